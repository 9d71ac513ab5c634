#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "index/delta/delta.h"
#include "index/delta/graph_parts.h"
#include "index/generation/placed_rows.h"
#include "rhizome/chunk_array.h"
#include "rhizome/status.h"
#include "rhizome/store.h"
#include "storage/io/io_pacer.h"

namespace rhizome {
inline namespace internal {

/// Reads rows of an array by vertex id, with the delta's rows overlaid, for scans of many rows at a
/// time. PlacedRows describes the access and its memory.
/// Threads: one at a time. A call reads with the number of threads passed to Open. They share
/// `memory_bytes`, and take turns through `pacer` if there is one.
class CompactedRows {
 public:
  static Result<std::unique_ptr<CompactedRows>> Open(std::shared_ptr<const Store> store,
                                                     const ArrayEntry& entry,
                                                     std::shared_ptr<const GraphParts> parts,
                                                     const Delta& delta, std::uint64_t memory_bytes,
                                                     std::uint32_t threads, IoPacer* pacer);

  /// Copies the rows of `vertices` to `out`: shape [vertices.size(), row bytes].
  /// Errors: kCorruption; kIoError.
  Status Read(std::span<const VertexId> vertices, std::span<std::byte> out);

 private:
  CompactedRows() = default;
  Status OpenReaders(std::uint32_t threads, std::uint64_t memory_bytes);
  Status ReadPlaces(std::span<std::byte> out);
  Status ReadPaced(PlacedRows& reader, std::span<PlacedRows::Place> places,
                   std::span<std::byte> out) const;

  IoPacer* pacer_ = nullptr;
  std::shared_ptr<const Store> store_;
  std::shared_ptr<const GraphParts> parts_;
  std::unique_ptr<ChunkArray> array_;
  std::vector<DeltaRowRef> put_;  // sorted by vertex
  std::vector<std::unique_ptr<PlacedRows>> readers_;
  // The rows of the current call that are not in the delta.
  std::vector<PlacedRows::Place> places_;
};

}  // namespace internal
}  // namespace rhizome
