#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rhizome/cache/row_fetcher.h"
#include "rhizome/cache/row_ranks.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/manifest.h"
#include "rhizome/storage/mutex.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/transport.h"

namespace rhizome::inline internal {

/// Counts of what a rank has asked others for. Messages and bytes are those that a plan counts
/// (rank_plan.h).
struct RemoteRowsStats {
  std::vector<std::uint64_t> rows_of;      ///< rows that came, by rank
  std::vector<std::uint64_t> requests_to;  ///< requests sent, by rank
  std::uint64_t rows = 0;
  std::uint64_t requests = 0;
  std::uint64_t bytes_out = 0;  ///< of requests
  std::uint64_t bytes_in = 0;   ///< of their replies
  double wait_seconds = 0;      ///< in which the reading thread waited for replies
};

/// Asks other ranks for rows of one array (Service::kRows, which RowService answers). Each row
/// comes with its checksum, and is checked when it arrives.
///
/// Errors: kCorruption, a row that does not have its checksum, naming array, row and owner; those
/// of Transport, and of the owner, which name it. Threads: Send and Finish one at a time, stats
/// any. Memory: the replies that Send has asked for, kept until it is destroyed. Ownership:
/// transport and table must outlive it.
class RemoteRows {
 public:
  RemoteRows(Transport& transport, const ArrayEntry& array, const RowRanks& ranks);

  /// Sends requests for all targets, one to each owner (more where it would be longer than
  /// row_messages.h says), and sorts the targets by owner and row. No target may be of a row of
  /// this rank, or of every rank. Targets and their memory stay until Finish, which must be called
  /// if this succeeded; if not, nothing is under way.
  Status Send(std::span<RowTarget> targets);

  /// Waits for all replies, whatever becomes of them, and fills the targets. Duplicates are asked
  /// for once.
  Status Finish();

  RemoteRowsStats stats() const;

 private:
  /// A request that is under way.
  struct Flight {
    Transport::Ticket ticket = 0;
    std::uint16_t owner = 0;
    std::span<const RowTarget> targets;
    std::size_t rows = 0;  // distinct ones
    std::span<std::byte> reply;
  };

  std::uint16_t OwnerOf(const RowTarget& target) const {
    return ranks_.rank_of[static_cast<std::size_t>(target.row)];
  }
  void Divide(std::span<const RowTarget> targets);
  Status Ask(Flight& flight);
  Status Deliver(const Flight& flight) const;

  Transport& transport_;
  const std::string array_;
  const std::uint64_t array_id_;
  const std::size_t row_bytes_;
  const RowRanks ranks_;
  std::vector<Flight> flights_;
  std::vector<std::byte> request_;
  std::vector<std::byte> replies_;
  mutable Mutex mutex_;
  RemoteRowsStats stats_ RHIZOME_GUARDED_BY(mutex_);
};

/// Reads rows from where they are: those of this rank from its disk, the others from their owners.
/// Both are at work at once: requests are sent, the disk is read, then replies are awaited.
/// Whoever destroys it, or the cache that it is of, waits until a Read that is under way has ended,
/// which is when all owners have answered or the transport gives them up.
/// Ownership: `remote` and the table must outlive it.
class RowsByHome final : public RowFetcher {
 public:
  RowsByHome(std::unique_ptr<RowReader> local, RemoteRows& remote, const RowRanks& ranks)
      : local_(std::move(local)), remote_(remote), ranks_(ranks) {}

  /// Errors: kInvalidArgument, a row out of range; those of RowReader::Read, then of RemoteRows.
  Status Read(std::span<RowTarget> targets) override;
  RowReaderStats stats() const override { return local_->stats(); }

 private:
  const std::unique_ptr<RowReader> local_;
  RemoteRows& remote_;
  const RowRanks ranks_;
};

}  // namespace rhizome::inline internal
