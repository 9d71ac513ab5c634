#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "rhizome/cache/read_counts.h"
#include "rhizome/index/graph.h"
#include "rhizome/index/neighbor_source.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/io_queue.h"
#include "rhizome/storage/result.h"

namespace RHIZOME_API rhizome {

class NeighborCache;

struct DirectNeighborsOptions {
  IoQueueOptions io = {.depth = 128};

  /// Two wanted blocks that are at most this many bytes apart are read as one (see
  /// RowReaderOptions).
  std::uint64_t gap_bytes = 8192;

  /// Longest single read in bytes; only a longer compressed list exceeds it.
  std::uint64_t max_read_bytes = std::uint64_t{128} << 10;

  /// Staging memory in bytes, for each thread that looks up at the same time.
  std::uint64_t staging_bytes = std::uint64_t{16} << 20;
};

/// Neighbours of a graph whose lists are on disk (TopologyPlace::kDirect): from the NeighborCache
/// where it has the list, else by batched direct reads. All entries of a call are sorted by place
/// and coalesced; whole blocks of 4 KiB are read, many in flight, and checked against the file's
/// block checksums before anything in them is believed. Of a plain list only the blocks of the
/// wanted entries are read, of a compressed one all.
///
/// Threads: LookUp may run on many threads; each concurrent call uses a queue and staging memory of
/// its own.
/// Ownership: shares the generation with `graph`.
class DirectNeighbors final : public NeighborSource {
 public:
  /// `cache` may be null. Errors: kInvalidArgument, the graph's lists are in memory, the store
  /// lacks the direction, an option is out of range, or the cache is of the other direction;
  /// kUnsupported, io_uring is not available; kOutOfMemory.
  static Result<std::shared_ptr<DirectNeighbors>> Open(const GraphSnapshot& graph,
                                                       Direction direction,
                                                       std::shared_ptr<const NeighborCache> cache,
                                                       const DirectNeighborsOptions& options);
  ~DirectNeighbors() override;

  /// Sets rows[i] to the row of the neighbour that entries[i] names; both spans have the same size.
  /// Errors: kCorruption, naming file and offset; kIoError.
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
