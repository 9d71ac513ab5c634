#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cache/pool/row_ranks.h"
#include "rhizome/export.h"
#include "rhizome/manifest.h"
#include "rhizome/status.h"
#include "rhizome/transport.h"
#include "storage/array/row_reader.h"
#include "storage/base/mutex.h"

namespace rhizome {
inline namespace internal {

/// Counts of the rows served. Messages and bytes are counted as in plans (rank_plan.h).
struct RowServiceStats {
  std::uint64_t rows = 0;
  std::uint64_t requests = 0;  ///< requests that were answered with rows
  std::uint64_t bytes_in = 0;  ///< bytes of these requests
  std::uint64_t bytes_out = 0;
  std::uint64_t refused = 0;     ///< requests that were answered with an error
  double processor_seconds = 0;  ///< for all requests
};

/// Serves the rows of one array that this rank owns to other ranks, from its disk (RemoteRows
/// requests them). A malformed request, or one for a row of another rank, is refused. A row that
/// cannot be read is an error of the request, which the requester receives.
/// Threads: stats from any thread. Ownership: transport and table must outlive it.
class RowService {
 public:
  /// Answers Service::kRows of `transport` from now on. `reader` must be a separate reader, not the
  /// one of this rank's cache (RowReader::Another). Errors: as Transport::Serve.
  static Result<std::unique_ptr<RowService>> Start(Transport& transport,
                                                   std::unique_ptr<RowReader> reader,
                                                   const ArrayEntry& array, const RowRanks& ranks);

  /// Waits for the request that is being answered; no requests are answered afterwards.
  ~RowService();
  RowService(const RowService&) = delete;
  RowService& operator=(const RowService&) = delete;

  RowServiceStats stats() const;

 private:
  RowService(Transport& transport, std::unique_ptr<RowReader> reader, const ArrayEntry& array,
             const RowRanks& ranks);
  Status Answer(std::uint32_t peer, std::span<const std::byte> request,
                std::vector<std::byte>& reply);
  Status Serve(std::uint32_t peer, std::span<const std::byte> request,
               std::vector<std::byte>& reply);
  Status TakeRows(std::uint32_t peer, std::span<const std::byte> request);

  Transport& transport_;
  const std::unique_ptr<RowReader> reader_;
  const std::string array_;
  const std::uint64_t array_id_;
  const std::size_t row_bytes_;
  const RowRanks ranks_;
  std::vector<RowTarget> targets_;  // rows of the current request
  mutable Mutex mutex_;
  RowServiceStats stats_ RHIZOME_GUARDED_BY(mutex_);
};

}  // namespace internal
}  // namespace rhizome
