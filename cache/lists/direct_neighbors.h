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

  /// Two wanted blocks that are at most this far apart are read as one (see RowReaderOptions).
  std::uint64_t gap_bytes = 8192;

  /// Longest single read, but for a compressed list that is longer.
  std::uint64_t max_read_bytes = std::uint64_t{128} << 10;

  /// Memory that reads land in, of each thread that looks up.
  std::uint64_t staging_bytes = std::uint64_t{16} << 20;
};

/// Neighbours of a graph whose lists are on disk (TopologyPlace::kDirect): from the NeighborCache
/// where it has the list, else by batched direct reads. All entries of a call are sorted by place
/// and coalesced; whole blocks of 4 KiB are read, many in flight, and checked against the file's
/// block checksums before anything in them is believed. Of a plain list only the blocks of the
/// wanted entries are read, of a compressed one all.
///
/// Threads: LookUp from many threads; each concurrent call has a queue and staging memory of its
/// own. Ownership: shares the generation with `graph`.
class DirectNeighbors final : public NeighborSource {
 public:
  /// `cache` may be null. Errors: kInvalidArgument, the graph's lists are in memory, a direction it
  /// lacks, options out of range, a cache of another direction; kUnsupported, no io_uring here;
  /// kOutOfMemory.
  static Result<std::shared_ptr<DirectNeighbors>> Open(const GraphSnapshot& graph,
                                                       Direction direction,
                                                       std::shared_ptr<const NeighborCache> cache,
                                                       const DirectNeighborsOptions& options);
  ~DirectNeighbors() override;

  /// Errors: kCorruption naming file and offset; kIoError.
  Status LookUp(std::span<const EntryRef> entries, std::span<Row> rows) const override;
  bool wants_whole_hops() const override { return true; }

  /// Another cache from now on, or none. While nobody looks up. Errors: kInvalidArgument, one of
  /// another direction.
  Status SetCache(std::shared_ptr<const NeighborCache> cache);

  ListReads stats() const;

 private:
  class Impl;
  explicit DirectNeighbors(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rhizome
