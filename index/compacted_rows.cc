#include "rhizome/index/compacted_rows.h"

#include <algorithm>
#include <utility>

#include "rhizome/index/placed_rows.h"
#include "rhizome/storage/array_rules.h"
#include "rhizome/storage/check.h"

namespace rhizome {

namespace {

bool VertexLess(const DeltaRowRef& a, const DeltaRowRef& b) { return a.vertex < b.vertex; }

}  // namespace

struct CompactedRows::Lane {
  std::unique_ptr<PlacedRows> rows;
  std::vector<PlacedRows::Place> places;
};

CompactedRows::CompactedRows() = default;
CompactedRows::~CompactedRows() = default;

Result<std::unique_ptr<CompactedRows>> CompactedRows::Open(std::shared_ptr<const Store> store,
                                                           const ArrayEntry& entry,
                                                           std::shared_ptr<const GraphParts> parts,
                                                           const Delta& delta,
                                                           std::uint64_t memory_bytes,
                                                           std::uint32_t threads) {
  std::unique_ptr<CompactedRows> rows(new CompactedRows);
  RHIZOME_ASSIGN_OR_RETURN(rows->array_, store->OpenArray(entry.name));
  if (const auto merged = delta.Merged()) {
    const DeltaRowRef wanted{entry.array_id, 0, 0};
    const auto of_array = std::equal_range(
        merged->rows.begin(), merged->rows.end(), wanted,
        [](const DeltaRowRef& a, const DeltaRowRef& b) { return a.array_id < b.array_id; });
    rows->put_.assign(of_array.first, of_array.second);
  }
  rows->store_ = std::move(store);
  rows->parts_ = std::move(parts);
  RHIZOME_RETURN_IF_ERROR(rows->OpenLanes(threads, memory_bytes));
  return rows;
}

Status CompactedRows::OpenLanes(std::uint32_t threads, std::uint64_t memory_bytes) {
  const ArrayEntry& entry = array_->entry();
  std::unique_ptr<ChunkArray> sidecar;
  if (entry.layout == ArrayLayout::kRow) {
    RHIZOME_ASSIGN_OR_RETURN(sidecar, store_->OpenArray(SidecarName(entry.name)));
  }
  std::vector<std::unique_ptr<Lane>> lanes;
  for (std::uint32_t i = 0; i < threads; ++i) {
    auto lane = std::make_unique<Lane>();
    RHIZOME_ASSIGN_OR_RETURN(
        lane->rows, i > 0 ? lanes.front()->rows->Another()
                          : PlacedRows::Open(*array_, sidecar.get(), memory_bytes / threads));
    lanes.push_back(std::move(lane));
  }
  const MutexLock lock(mutex_);
  idle_ = std::move(lanes);
  return Status::Ok();
}

Status CompactedRows::Read(std::span<const VertexId> vertices, std::span<std::byte> out) {
  std::unique_ptr<Lane> lane;
  {
    const MutexLock lock(mutex_);
    RHIZOME_CHECK(!idle_.empty());
    lane = std::move(idle_.back());
    idle_.pop_back();
  }
  const Status status = Read(*lane, vertices, out);
  const MutexLock lock(mutex_);
  idle_.push_back(std::move(lane));
  return status;
}

Status CompactedRows::Read(Lane& lane, std::span<const VertexId> vertices,
                           std::span<std::byte> out) {
  const std::uint64_t row_bytes = array_->entry().row_bytes();
  lane.places.clear();
  for (std::size_t i = 0; i < vertices.size(); ++i) {
    const auto to = out.subspan(i * row_bytes, row_bytes);
    const DeltaRowRef wanted{0, vertices[i], 0};
    const auto put = std::lower_bound(put_.begin(), put_.end(), wanted, VertexLess);
    if (put != put_.end() && put->vertex == vertices[i]) {
      RHIZOME_RETURN_IF_ERROR(store_->ReadDeltaRow(put->sequence, put->array_id, put->vertex, to));
    } else if (static_cast<std::uint64_t>(vertices[i]) < parts_->order.size()) {
      lane.places.push_back({parts_->order.RowOf(vertices[i]), i});
    } else {
      FillMissingRows(array_->entry(), to);
    }
  }
  return lane.rows->Read(lane.places, out);
}

}  // namespace rhizome
