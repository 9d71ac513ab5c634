#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rhizome/index/delta.h"
#include "rhizome/index/graph_parts.h"
#include "rhizome/storage/chunk_array.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/row_reader.h"
#include "rhizome/storage/store.h"

namespace rhizome {

/// The rows of an array with what the delta put, by vertex id: for scans of many rows at a time.
/// Rows in layout kRow are read where they stand; of layout kChunk, decoded chunks are kept, as
/// many as `memory_bytes` has room for, and at least one.
/// Threads: one at a time.
class CompactedRows {
 public:
  static Result<std::unique_ptr<CompactedRows>> Open(std::shared_ptr<const Store> store,
                                                     const ArrayEntry& entry,
                                                     std::shared_ptr<const GraphParts> parts,
                                                     const Delta& delta,
                                                     std::uint64_t memory_bytes);

  /// Copies the rows of `vertices` to `out`, of vertices.size() * row bytes. Errors: kCorruption;
  /// kIoError.
  Status Read(std::span<const VertexId> vertices, std::span<std::byte> out);

 private:
  struct Place {
    Row row = 0;
    std::size_t index = 0;  // of the vertex in the call
  };
  struct KeptChunk {
    std::uint64_t chunk = 0;
    std::uint64_t used = 0;  // the call that used it last
    std::vector<std::byte> rows;
  };
  CompactedRows() = default;
  Status ReadByRow(std::span<std::byte> out);
  Status ReadByChunk(std::span<std::byte> out);
  Result<const KeptChunk*> Chunk(std::uint64_t chunk);

  std::shared_ptr<const Store> store_;
  std::shared_ptr<const GraphParts> parts_;
  std::unique_ptr<ChunkArray> array_;
  std::unique_ptr<RowReader> reader_;  // of layout kRow
  std::vector<DeltaRowRef> put_;       // by vertex
  std::size_t most_chunks_ = 1;
  std::uint64_t calls_ = 0;
  std::vector<KeptChunk> kept_;
  std::vector<Place> places_;
  std::vector<RowTarget> targets_;
};

}  // namespace rhizome
