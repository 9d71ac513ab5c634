#include "cache/ranks/row_service.h"

#include <fmt/format.h>

#include <ctime>
#include <utility>

#include "cache/ranks/row_messages.h"
#include "rhizome/chunk_array.h"
#include "storage/array/array_versions.h"
#include "storage/array/chunk_writer.h"
#include "storage/base/exceptions.h"
#include "storage/base/little_endian.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Processor time of the calling thread.
double ThreadSeconds() {
  std::timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

RowService::RowService(Transport& transport, std::unique_ptr<RowReader> reader,
                       const ArrayEntry& array, const RowRanks& ranks)
    : transport_(transport),
      reader_(std::move(reader)),
      array_(array.name),
      array_id_(array.array_id),
      row_bytes_(array.row_bytes()),
      ranks_(ranks) {}

Result<std::unique_ptr<RowService>> RowService::Start(Transport& transport,
                                                      std::unique_ptr<RowReader> reader,
                                                      const ArrayEntry& array,
                                                      const RowRanks& ranks) try {
  std::unique_ptr<RowService> service(new RowService(transport, std::move(reader), array, ranks));
  RHIZOME_RETURN_IF_ERROR(transport.Serve(
      Service::kRows, [one = service.get()](std::uint32_t peer, std::span<const std::byte> request,
                                            std::vector<std::byte>& reply) {
        return one->Answer(peer, request, reply);
      }));
  return service;
} catch (...) {
  return Fail(StatusOfException());
}

RowService::~RowService() { static_cast<void>(transport_.Serve(Service::kRows, {})); }

Status RowService::Answer(std::uint32_t peer, std::span<const std::byte> request,
                          std::vector<std::byte>& reply) {
  const double before = ThreadSeconds();
  Status served = Guarded([&] { return Serve(peer, request, reply); });
  const MutexLock lock(mutex_);
  stats_.processor_seconds += ThreadSeconds() - before;
  if (!served.ok()) {
    ++stats_.refused;
    return served;
  }
  ++stats_.requests;
  stats_.rows += targets_.size();
  stats_.bytes_in += kMessageHeaderBytes + request.size();
  stats_.bytes_out += kMessageHeaderBytes + reply.size();
  return Status::Ok();
}

/// Checks a request, and adds its rows to targets_.
Status RowService::TakeRows(std::uint32_t peer, std::span<const std::byte> request) {
  const auto refuse = [&](std::string why) {
    return Status::InvalidArgument(
        fmt::format("array '{}': rank {} requests {}", ShownName(array_), peer, std::move(why)));
  };
  const std::size_t rows = request.size() / kRequestRowBytes;
  if (request.size() % kRequestRowBytes != 0 || rows == 0 || rows > RequestRows(row_bytes_)) {
    return refuse(fmt::format("rows in {} bytes, which are not 1 to {} numbers of 8 bytes",
                              request.size(), RequestRows(row_bytes_)));
  }
  targets_.clear();
  for (std::size_t i = 0; i < rows; ++i) {
    const auto row = LoadLittle<std::uint64_t>(&request[i * kRequestRowBytes]);
    if (row >= reader_->row_count() || row >= ranks_.rank_of.size())
      return refuse(fmt::format("row {} of {}, which does not exist", row, reader_->row_count()));
    if (ranks_.rank_of[row] != ranks_.rank) {
      return refuse(fmt::format("row {}, which belongs to rank {} and not to rank {}", row,
                                ranks_.rank_of[row], ranks_.rank));
    }
    if (i > 0 && static_cast<std::uint64_t>(targets_.back().row) >= row)
      return refuse(
          fmt::format("row {} after row {}, but rows must ascend", row, targets_.back().row));
    targets_.push_back({static_cast<std::int64_t>(row), nullptr});
  }
  return Status::Ok();
}

Status RowService::Serve(std::uint32_t peer, std::span<const std::byte> request,
                         std::vector<std::byte>& reply) {
  RHIZOME_RETURN_IF_ERROR(TakeRows(peer, request));
  reply.resize(targets_.size() * (row_bytes_ + kReplyChecksumBytes));
  for (std::size_t i = 0; i < targets_.size(); ++i) targets_[i].out = &reply[i * row_bytes_];
  RHIZOME_RETURN_IF_ERROR(reader_->Read(targets_));
  std::byte* sum = &reply[targets_.size() * row_bytes_];
  for (const RowTarget& target : targets_) {
    StoreLittle(
        sum, RowCrc(array_id_, static_cast<std::uint64_t>(target.row), {target.out, row_bytes_}));
    sum += kReplyChecksumBytes;
  }
  return Status::Ok();
}

RowServiceStats RowService::stats() const {
  const MutexLock lock(mutex_);
  return stats_;
}

}  // namespace internal
}  // namespace rhizome
