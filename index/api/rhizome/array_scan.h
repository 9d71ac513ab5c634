#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/manifest.h"
#include "rhizome/result.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

/// Iterates over the rows of a vertex array, a block at a time, in the order on disk. It returns,
/// for every vertex that is not deleted, the row that Graph::ReadRows returns.
///
/// Consistency: the scan holds a snapshot of the graph, taken when it is opened, until it is
/// destroyed.
/// Memory: one decoded chunk, and 8 bytes for each row that was put since the generation.
/// Threads: one at a time; any number of scans.
/// Ownership: shares the snapshot; the FileSystem must outlive it.
class ArrayScan {
 public:
  /// A block of rows: vertices [n], and their rows, shape [n, entry().row_bytes()].
  struct Block {
    std::vector<VertexId> vertices;
    std::vector<std::byte> rows;
  };

  /// `array` is a name or a reference (emb@live).
  /// Errors: kNotFound, no such array; kInvalidArgument, not a vertex array; kCorruption; kIoError.
  static Result<ArrayScan> Open(const Graph& graph, std::string_view array);
  ~ArrayScan();
  ArrayScan(ArrayScan&&) noexcept;
  ArrayScan& operator=(ArrayScan&&) noexcept;

  /// Replaces `block` by the next rows, at most `most` (at least 1); fewer at the end or where
  /// vertices are deleted. Returns false, and no rows, at the end.
  /// Errors: kCorruption; kIoError.
  Result<bool> Next(std::uint64_t most, Block& block);

  const ArrayEntry& entry() const;
  std::uint64_t rows_done() const;  ///< of graph().vertex_count(); for progress
  const GraphSnapshot& graph() const;

 private:
  class Impl;
  explicit ArrayScan(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rhizome
