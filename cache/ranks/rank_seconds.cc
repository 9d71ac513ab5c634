#include "cache/ranks/rank_seconds.h"

#include <algorithm>
#include <bit>

#include "cache/ranks/row_costs.h"
#include "cache/ranks/row_messages.h"

namespace rhizome {
inline namespace internal {
namespace {

/// MPI announces messages above this size and waits until the receiver is ready (the limit of Open
/// MPI over TCP).
constexpr double kEagerBytes = 65536;

double RowsOfOthers(std::uint32_t rank, const RankFetches& fetched) {
  double rows = 0;
  for (std::size_t other = 0; other < fetched.rows_of.size(); ++other)
    if (other != rank) rows += static_cast<double>(fetched.rows_of[other]);
  return rows;
}

}  // namespace

double RankSeconds::Reading(double rows) const {
  return rows * options_.read_seconds.value_or(DiskSeconds(options_.disk, row_bytes_));
}

double RankSeconds::Carrying(double rows) const {
  return rows * LinkSeconds(options_.minibatch.ranks->link, row_bytes_ + kReplyChecksumBytes);
}

/// Returns the latency of a request and its reply, without the transfer of their bytes.
double RankSeconds::RoundTrip(double reply_bytes) const {
  return (reply_bytes > kEagerBytes ? 4 : 2) * options_.minibatch.ranks->link.latency_seconds;
}

double RankSeconds::Work(std::uint32_t rank, const RankFetches& fetched, double served) const {
  return static_cast<double>(fetched.rows_of[rank]) * options_.own_seconds +
         Giving(RowsOfOthers(rank, fetched) + served);
}

double RankSeconds::Moving(std::uint32_t rank, const RankFetches& fetched, double served) const {
  const double remote = RowsOfOthers(rank, fetched);
  double most = 0;  // largest number of rows of one owner
  for (std::size_t other = 0; other < fetched.rows_of.size(); ++other)
    if (other != rank) most = std::max(most, static_cast<double>(fetched.rows_of[other]));
  const auto own = static_cast<double>(fetched.rows_of[rank]);
  double slowest = Carrying(served);
  if (options_.processors > 0)
    slowest = std::max(slowest, Work(rank, fetched, served) / options_.processors);
  const double disk = Reading(own + served);
  if (remote == 0) return std::max(disk, slowest);

  const double owner = Reading(most) + Giving(most), link = Carrying(remote);
  const double asker = Giving(remote);
  const double stage = std::max({owner, link, asker});
  slowest = std::max(slowest, stage);
  // The first request of a sweep passes through all stages; the following requests arrive at the
  // rate of the slowest stage.
  const auto sweeps = static_cast<double>(fetched.asking_sweeps);
  const double request_rows = std::min(static_cast<double>(RequestRows(row_bytes_)), most / sweeps);
  const double first = (owner + link + asker - stage) * request_rows * sweeps / most;
  const double trips =
      sweeps * RoundTrip(request_rows * static_cast<double>(row_bytes_ + kReplyChecksumBytes));
  return std::max(disk, trips + first + slowest);
}

double RankSeconds::Exchange(std::uint32_t ranks, std::uint64_t bytes) const {
  const double one = RoundTrip(static_cast<double>(bytes)) -
                     options_.minibatch.ranks->link.latency_seconds +
                     LinkSeconds(options_.minibatch.ranks->link, bytes);
  return 2 * static_cast<double>(std::bit_width(ranks - 1)) * one;
}

}  // namespace internal
}  // namespace rhizome
