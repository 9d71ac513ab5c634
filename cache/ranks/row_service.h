#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rhizome/cache/row_ranks.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/manifest.h"
#include "rhizome/storage/mutex.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/row_reader.h"
#include "rhizome/storage/transport.h"

namespace rhizome::inline internal {

/// Counts of what a rank has served. Messages and bytes are those that a plan counts (rank_plan.h).
struct RowServiceStats {
  std::uint64_t rows = 0;
  std::uint64_t requests = 0;  ///< that were answered with rows
  std::uint64_t bytes_in = 0;  ///< of those
  std::uint64_t bytes_out = 0;
  std::uint64_t refused = 0;     ///< requests that were answered with an error
  double processor_seconds = 0;  ///< of all
};

/// Gives other ranks the rows of one array that this rank has, from its disk (RemoteRows asks for
/// them). A request that names a row of another rank, or is malformed, is refused; a row that
/// cannot be read is an error of the request, and the asker's. Threads: stats any. Ownership:
/// transport and table must outlive it.
class RowService {
 public:
  /// Answers Service::kRows of `transport` from now on. `reader`: of its own, another than that of
  /// this rank's cache (RowReader::Another). Errors: those of Transport::Serve.
  static Result<std::unique_ptr<RowService>> Start(Transport& transport,
                                                   std::unique_ptr<RowReader> reader,
                                                   const ArrayEntry& array, const RowRanks& ranks);

  /// Waits for the request that is being answered, and answers no more.
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
  std::vector<RowTarget> targets_;  // of the request
  mutable Mutex mutex_;
  RowServiceStats stats_ RHIZOME_GUARDED_BY(mutex_);
};

}  // namespace rhizome::inline internal
