#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rhizome/index/delta.h"
#include "rhizome/index/graph_parts.h"
#include "rhizome/storage/chunk_array.h"
#include "rhizome/storage/mutex.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/store.h"

namespace rhizome {

/// The rows of an array with what the delta put, by vertex id: for scans of many rows at a time.
/// How, and what it keeps: see PlacedRows.
/// Threads: as many as Open is told, at the same time; they share `memory_bytes`.
class CompactedRows {
 public:
  ~CompactedRows();
  static Result<std::unique_ptr<CompactedRows>> Open(std::shared_ptr<const Store> store,
                                                     const ArrayEntry& entry,
                                                     std::shared_ptr<const GraphParts> parts,
                                                     const Delta& delta, std::uint64_t memory_bytes,
                                                     std::uint32_t threads);

  /// Copies the rows of `vertices` to `out`, of vertices.size() * row bytes. Errors: kCorruption;
  /// kIoError.
  Status Read(std::span<const VertexId> vertices, std::span<std::byte> out);

 private:
  struct Lane;  // what one thread reads with
  CompactedRows();
  Status OpenLanes(std::uint32_t threads, std::uint64_t memory_bytes);
  Status Read(Lane& lane, std::span<const VertexId> vertices, std::span<std::byte> out);

  // Constant after Open.
  std::shared_ptr<const Store> store_;
  std::shared_ptr<const GraphParts> parts_;
  std::unique_ptr<ChunkArray> array_;
  std::vector<DeltaRowRef> put_;  // by vertex

  Mutex mutex_;
  std::vector<std::unique_ptr<Lane>> idle_ RHIZOME_GUARDED_BY(mutex_);
};

}  // namespace rhizome
