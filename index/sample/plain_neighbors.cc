#include "index/sample/plain_neighbors.h"

#include "index/delta/graph_parts.h"
#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {

namespace {

// Prefetch distance: enough cache misses in flight to fill the processor's buffers.
constexpr std::size_t kPrefetchDistance = 24;

}  // namespace

PlainNeighbors::PlainNeighbors(const GraphSnapshot& graph, Direction direction)
    : parts_(graph.parts()) {
  for (const Adjacency& partition : parts_->partitions) {
    partitions_.push_back(&partition);
    neighbors_.push_back(partition.AllNeighbors(direction).data());
  }
}

Status PlainNeighbors::LookUp(std::span<const EntryRef> entries, std::span<Row> rows) const {
  RHIZOME_CHECK(entries.size() == rows.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (i + kPrefetchDistance < entries.size()) {
      const EntryRef& later = entries[i + kPrefetchDistance];
      __builtin_prefetch(neighbors_[later.partition] + later.position);
    }
    rows[i] = neighbors_[entries[i].partition][entries[i].position];
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    rows[i] = partitions_[entries[i].partition]->RowOf(static_cast<LocalId>(rows[i]));
  }
  return Status::Ok();
}

}  // namespace internal
}  // namespace rhizome
