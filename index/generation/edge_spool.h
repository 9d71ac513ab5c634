#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "index/base/edge_list.h"
#include "index/generation/spill.h"
#include "index/partition/partition_input.h"

namespace rhizome {
inline namespace internal {

/// Encodes a few thousand edges as one block of a spill file, column by column, with 4 bytes for
/// each end if they fit. Columns may be absent: a spool may hold only the ends, or only the other
/// columns.
std::vector<std::byte> EncodeEdges(const EdgeList& edges);

/// Decodes a block; attributes keep the names that `edges` has.
/// Errors: kCorruption.
Status DecodeEdges(std::span<const std::byte> block, EdgeList& edges);

/// Empties the columns but keeps their memory.
void ClearEdges(EdgeList& edges);

/// A spill file of edges, in the order in which they were added.
struct EdgeSpool {
  SpillFile file;
  std::uint64_t edges = 0;
};

/// Writes a spool. The caller appends to the columns of `edges` and calls FlushIfFull.
class EdgeSpoolWriter {
 public:
  static Result<EdgeSpoolWriter> Create(SpillSpace& space, std::size_t block_edges);

  EdgeList edges;  ///< the block that is being filled

  /// Writes the block if it has at least `block_edges` edges. `count` is the number of edges in the
  /// block.
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

/// Reads a spool block by block, and prefetches the next block while the caller works.
/// Ownership: `spool` must outlive it.
class EdgeSpoolReader {
 public:
  static Result<EdgeSpoolReader> Open(const EdgeSpool& spool);

  /// Reads the next block; false at the end.
  Result<bool> Next(EdgeList& edges);

 private:
  explicit EdgeSpoolReader(SpillReader reader) : reader_(std::move(reader)) {}
  SpillReader reader_;
};

/// Returns the ends in a spool as the input of a partitioner.
/// Ownership: `ends` must outlive the result.
PartitionInput InputOf(std::uint64_t vertex_count, const EdgeSpool& ends);

}  // namespace internal
}  // namespace rhizome
