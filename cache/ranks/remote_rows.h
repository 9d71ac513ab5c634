#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cache/pool/row_fetcher.h"
#include "cache/pool/row_ranks.h"
#include "rhizome/export.h"
#include "rhizome/manifest.h"
#include "rhizome/status.h"
#include "rhizome/transport.h"
#include "storage/base/mutex.h"

namespace rhizome {
inline namespace internal {

/// Counts of the rows requested from other ranks. Messages and bytes are counted as in plans
/// (rank_plan.h).
struct RemoteRowsStats {
  std::vector<std::uint64_t> rows_of;      ///< received rows, by rank
  std::vector<std::uint64_t> requests_to;  ///< sent requests, by rank
  std::uint64_t rows = 0;
  std::uint64_t requests = 0;
  std::uint64_t bytes_out = 0;  ///< bytes of requests
  std::uint64_t bytes_in = 0;   ///< bytes of replies
  double wait_seconds = 0;      ///< time that the reading thread waited for replies
};

/// Fetches rows of one array from other ranks (Service::kRows, served by RowService). Each row
/// arrives with its checksum and is verified.
///
/// Errors: kCorruption, a row does not match its checksum (naming array, row and owner); any error
/// of Transport, and of the owner, naming it.
/// Threads: Send and Finish one at a time, stats from any thread.
/// Memory: the reply buffer of the largest Send, until it is destroyed.
/// Ownership: transport and table must outlive it.
class RemoteRows {
 public:
  RemoteRows(Transport& transport, const ArrayEntry& array, const RowRanks& ranks);

  /// Sends requests for all targets, one to each owner (more if a request would exceed the limits
  /// in row_messages.h), and sorts the targets by owner and row. Targets must not include rows of
  /// this rank or of every rank. Targets and their memory must remain valid until Finish, which
  /// must be called if Send succeeded. If Send failed, no request is pending.
  Status Send(std::span<RowTarget> targets);

  /// Waits for all replies, even after an error, and fills the targets. Duplicates are requested
  /// once.
  Status Finish();

  RemoteRowsStats stats() const;

 private:
  /// A pending request.
  struct Flight {
    Transport::Ticket ticket = 0;
    std::uint16_t owner = 0;
    std::span<const RowTarget> targets;
    std::size_t rows = 0;  // distinct rows
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

/// Reads rows from their locations: own rows from the local disk, other rows from their owners.
/// Both proceed concurrently: requests are sent, the disk is read, then the replies are awaited.
/// Destroying it, or the cache that owns it, waits until a pending Read has ended, which is when
/// all owners have answered or the transport has given them up.
/// Ownership: `remote` and the table must outlive it.
class RowsByHome final : public RowFetcher {
 public:
  RowsByHome(std::unique_ptr<RowReader> local, RemoteRows& remote, const RowRanks& ranks)
      : local_(std::move(local)), remote_(remote), ranks_(ranks) {}

  /// Errors: kInvalidArgument, a row out of range; as RowReader::Read, then as RemoteRows.
  Status Read(std::span<RowTarget> targets) override;
  RowReaderStats stats() const override { return local_->stats(); }

 private:
  const std::unique_ptr<RowReader> local_;
  RemoteRows& remote_;
  const RowRanks ranks_;
};

}  // namespace internal
}  // namespace rhizome
