#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rhizome/index/edge_list.h"
#include "rhizome/index/partition_input.h"
#include "rhizome/index/spill.h"

namespace rhizome::inline internal {

/// A few thousand edges as one block of a spill file: column by column, ends of 4 bytes where they
/// fit. Columns may be absent: a spool may hold only ends, or only what stands beside them.
std::vector<std::byte> EncodeEdges(const EdgeList& edges);

/// The reverse; attributes get the names of `names`, if there are as many. Errors: kCorruption.
Status DecodeEdges(std::span<const std::byte> block, EdgeList& edges);

/// Empties the columns and keeps their memory.
void ClearEdges(EdgeList& edges);

/// Edges of a spill file, in the order in which they were added.
struct EdgeSpool {
  SpillFile file;
  std::uint64_t edges = 0;
};

/// Writes a spool. The caller adds to the columns of `edges` and calls Flush when full.
class EdgeSpoolWriter {
 public:
  static Result<EdgeSpoolWriter> Create(SpillSpace& space, std::size_t block_edges);

  EdgeList edges;  ///< of the block that is being filled

  /// Writes the block once it has `block_edges` edges. `count` is how many it has.
  Status FlushIfFull(std::size_t count) {
    return count < block_edges_ ? Status::Ok() : Flush(count);
  }
  Status Flush(std::size_t count);
  Result<EdgeSpool> Finish(std::size_t count);

 private:
  EdgeSpoolWriter(SpillWriter writer, std::size_t block_edges)
      : writer_(std::move(writer)), block_edges_(block_edges) {}
  SpillWriter writer_;
  std::size_t block_edges_;
  std::uint64_t written_edges_ = 0;
};

/// Reads a spool block by block, the next one while the caller works. Ownership: `spool` must
/// outlive it.
class EdgeSpoolReader {
 public:
  static Result<EdgeSpoolReader> Open(const EdgeSpool& spool);

  /// The next block; false at the end.
  Result<bool> Next(EdgeList& edges);

 private:
  explicit EdgeSpoolReader(SpillReader reader) : reader_(std::move(reader)) {}
  SpillReader reader_;
};

/// The ends in a spool as a partitioner passes over them. Ownership: `ends` must outlive it.
PartitionInput InputOf(std::uint64_t vertex_count, const EdgeSpool& ends);

}  // namespace rhizome::inline internal
