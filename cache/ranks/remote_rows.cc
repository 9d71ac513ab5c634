#include "cache/ranks/remote_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <tuple>

#include "cache/ranks/row_messages.h"
#include "rhizome/chunk_array.h"
#include "storage/array/array_versions.h"
#include "storage/array/chunk_writer.h"
#include "storage/base/check.h"
#include "storage/base/exceptions.h"
#include "storage/base/little_endian.h"
#include "storage/base/mutant.h"
#include "storage/base/stopwatch.h"

namespace rhizome {
inline namespace internal {

RemoteRows::RemoteRows(Transport& transport, const ArrayEntry& array, const RowRanks& ranks)
    : transport_(transport),
      array_(array.name),
      array_id_(array.array_id),
      row_bytes_(array.row_bytes()),
      ranks_(ranks) {
  stats_.rows_of.assign(transport.ranks(), 0);
  stats_.requests_to.assign(transport.ranks(), 0);
}

/// Divides sorted targets into requests, and assigns to each its part of the reply buffer.
void RemoteRows::Divide(std::span<const RowTarget> targets) {
  flights_.clear();
  const std::size_t most = RequestRows(row_bytes_);
  for (std::size_t i = 0; i < targets.size();) {
    Flight flight{.owner = OwnerOf(targets[i]), .targets = {}, .reply = {}};
    const std::size_t begin = i;
    for (; i < targets.size() && OwnerOf(targets[i]) == flight.owner; ++i) {
      if (i > begin && targets[i].row == targets[i - 1].row) continue;
      if (flight.rows == most) break;
      ++flight.rows;
    }
    flight.targets = targets.subspan(begin, i - begin);
    flights_.push_back(flight);
  }
  std::size_t rows = 0;
  for (const Flight& flight : flights_) rows += flight.rows;
  const std::size_t one = row_bytes_ + kReplyChecksumBytes;
  if (replies_.size() < rows * one) replies_.resize(rows * one);
  std::span<std::byte> left(replies_);
  for (Flight& flight : flights_) {
    flight.reply = left.first(flight.rows * one);
    left = left.subspan(flight.rows * one);
  }
}

Status RemoteRows::Ask(Flight& flight) {
  request_.resize(flight.rows * kRequestRowBytes);
  std::byte* to = request_.data();
  for (std::size_t i = 0; i < flight.targets.size(); ++i) {
    if (i > 0 && flight.targets[i].row == flight.targets[i - 1].row) continue;
    StoreLittle(to, static_cast<std::uint64_t>(flight.targets[i].row));
    to += kRequestRowBytes;
  }
  RHIZOME_ASSIGN_OR_RETURN(flight.ticket,
                           transport_.Ask(flight.owner, Service::kRows, request_, flight.reply));
  const MutexLock lock(mutex_);
  ++stats_.requests;
  ++stats_.requests_to[flight.owner];
  stats_.bytes_out += kMessageHeaderBytes + request_.size();
  return Status::Ok();
}

// Steps: (1) check that all rows belong to other ranks; (2) sort the targets by owner and row; (3)
// divide them into requests with space for the replies; (4) send the requests. If a request fails,
// wait for those sent before, so that no reply arrives later.
Status RemoteRows::Send(std::span<RowTarget> targets) {
  RHIZOME_DCHECK(flights_.empty());
  for (const RowTarget& target : targets) {
    if (OwnerOf(target) < transport_.ranks() && !ranks_.IsOwn(target.row)) continue;
    return Status::InvalidArgument(fmt::format("array '{}': row {} does not belong to another rank",
                                               ShownName(array_), target.row));
  }
  std::sort(targets.begin(), targets.end(), [this](const RowTarget& a, const RowTarget& b) {
    return std::tuple(OwnerOf(a), a.row) < std::tuple(OwnerOf(b), b.row);
  });
  Divide(targets);
  for (std::size_t i = 0; i < flights_.size(); ++i) {
    Status asked = Guarded([&] { return Ask(flights_[i]); });
    if (asked.ok()) continue;
    flights_.resize(i);
    static_cast<void>(Finish());  // no reply may arrive later
    return asked;
  }
  return Status::Ok();
}

Status RemoteRows::Finish() {
  Status first;
  for (const Flight& flight : flights_) {
    const Stopwatch watch;
    Status arrived = transport_.Wait(flight.ticket);
    const double waited = watch.seconds();
    const bool came = arrived.ok();
    if (came && first.ok()) arrived = Deliver(flight);
    if (first.ok()) first = std::move(arrived);
    const MutexLock lock(mutex_);
    stats_.wait_seconds += waited;
    if (!came) continue;
    stats_.rows += flight.rows;
    stats_.rows_of[flight.owner] += flight.rows;
    stats_.bytes_in += kMessageHeaderBytes + flight.reply.size();
  }
  flights_.clear();
  return first;
}

Status RemoteRows::Deliver(const Flight& flight) const {
  const std::byte* from = flight.reply.data();
  const std::byte* sum = from + flight.rows * row_bytes_;
  const std::span<const RowTarget> targets = flight.targets;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (i > 0 && targets[i].row == targets[i - 1].row) {
      std::memcpy(targets[i].out, targets[i - 1].out, row_bytes_);
      continue;
    }
    const auto row = static_cast<std::uint64_t>(targets[i].row);
    if (RowCrc(array_id_, row, {from, row_bytes_}) != LoadLittle<std::uint32_t>(sum) &&
        !RHIZOME_MUTANT("rows of other ranks are not checked")) {
      return Status::Corruption(
          fmt::format("array '{}', row {}: the row that rank {} ({}) sent does not match the "
                      "checksum that it sent",
                      ShownName(array_), row, flight.owner, transport_.HostOf(flight.owner)));
    }
    std::memcpy(targets[i].out, from, row_bytes_);
    from += row_bytes_;
    sum += kReplyChecksumBytes;
  }
  return Status::Ok();
}

RemoteRowsStats RemoteRows::stats() const {
  const MutexLock lock(mutex_);
  return stats_;
}

Status RowsByHome::Read(std::span<RowTarget> targets) {
  for (const RowTarget& target : targets) {
    if (target.row >= 0 && static_cast<std::size_t>(target.row) < ranks_.rank_of.size()) continue;
    return Status::InvalidArgument(
        fmt::format("there are {} rows over the ranks, but row {} was requested",
                    ranks_.rank_of.size(), target.row));
  }
  const auto others = std::partition(targets.begin(), targets.end(), [this](const RowTarget& one) {
    return ranks_.IsOwn(one.row);
  });
  const auto own = static_cast<std::size_t>(others - targets.begin());
  RHIZOME_RETURN_IF_ERROR(remote_.Send(targets.subspan(own)));
  const Status read = local_->Read(targets.first(own));
  const Status arrived = remote_.Finish();
  return read.ok() ? arrived : read;
}

}  // namespace internal
}  // namespace rhizome
