#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/job_report.h"
#include "rhizome/resource_options.h"
#include "rhizome/sampler.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

class NeighborCache;

struct DirectNeighborsOptions {
  IoQueueOptions io = {.depth = 128};

  /// Two wanted blocks at most this many bytes apart are read as one (see RowReaderOptions).
  std::uint64_t gap_bytes = 8192;

  /// Maximum length of a single read in bytes. Only a longer compressed list exceeds it.
  std::uint64_t max_read_bytes = std::uint64_t{128} << 10;

  /// Staging memory in bytes, per thread that calls LookUp concurrently.
  std::uint64_t staging_bytes = std::uint64_t{16} << 20;
};

/// Neighbours of a graph whose lists are on disk (TopologyPlace::kDirect). Lists in the
/// NeighborCache are served from it, all others by batched direct reads. The entries of a call are
/// sorted by file position and coalesced. Reads cover whole blocks of 4 KiB, with many in flight,
/// and each block is verified against the file's block checksums before its contents are used. A
/// plain list is read only in the blocks of the wanted entries, a compressed list completely.
///
/// Threads: LookUp may be called concurrently; each concurrent call uses a separate queue and
/// separate staging memory.
/// Ownership: shares the generation with `graph`.
class DirectNeighbors final : public NeighborSource {
 public:
  /// Opens the lists of one direction. `cache` may be null. Errors: kInvalidArgument, the graph's
  /// lists are in memory, the store lacks the direction, an option is out of range, or the cache is
  /// of the other direction; kUnsupported, io_uring is not available; kOutOfMemory.
  static Result<std::shared_ptr<DirectNeighbors>> Open(const GraphSnapshot& graph,
                                                       Direction direction,
                                                       std::shared_ptr<const NeighborCache> cache,
                                                       const DirectNeighborsOptions& options);
  ~DirectNeighbors() override;

  /// Sets rows[i] to the row of the neighbour referenced by entries[i]; both spans must have the
  /// same size. Errors: kCorruption, naming file and offset; kIoError.
  Status LookUp(std::span<const EntryRef> entries, std::span<Row> rows) const override;
  bool wants_whole_hops() const override { return true; }

  /// Replaces the cache; null means none. Must not overlap LookUp. Errors: kInvalidArgument,
  /// `cache` is of the other direction.
  Status SetCache(std::shared_ptr<const NeighborCache> cache);

  ListReads stats() const;

 private:
  class Impl;
  explicit DirectNeighbors(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rhizome
