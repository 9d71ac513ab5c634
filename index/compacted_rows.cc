#include "rhizome/index/compacted_rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "rhizome/storage/array_rules.h"

namespace rhizome {

namespace {

bool VertexLess(const DeltaRowRef& a, const DeltaRowRef& b) { return a.vertex < b.vertex; }

}  // namespace

Result<std::unique_ptr<CompactedRows>> CompactedRows::Open(std::shared_ptr<const Store> store,
                                                           const ArrayEntry& entry,
                                                           std::shared_ptr<const GraphParts> parts,
                                                           const Delta& delta,
                                                           std::uint64_t memory_bytes) {
  std::unique_ptr<CompactedRows> rows(new CompactedRows);
  RHIZOME_ASSIGN_OR_RETURN(rows->array_, store->OpenArray(entry.name));
  if (entry.layout == ArrayLayout::kRow) {
    RHIZOME_ASSIGN_OR_RETURN(const auto sidecar, store->OpenArray(SidecarName(entry.name)));
    RowReaderOptions options;
    options.staging_bytes = std::min<std::uint64_t>(options.staging_bytes, memory_bytes);
    // Most rows keep their neighbours: whole stretches are read.
    options.gap_bytes = std::max<std::uint64_t>(options.gap_bytes, 4 * entry.row_bytes());
    options.max_read_bytes = std::max<std::uint64_t>(std::uint64_t{1} << 20, entry.row_bytes());
    RHIZOME_ASSIGN_OR_RETURN(rows->reader_, RowReader::Open(*rows->array_, *sidecar, options));
  }
  if (const auto merged = delta.Merged()) {
    const DeltaRowRef wanted{entry.array_id, 0, 0};
    const auto of_array = std::equal_range(
        merged->rows.begin(), merged->rows.end(), wanted,
        [](const DeltaRowRef& a, const DeltaRowRef& b) { return a.array_id < b.array_id; });
    rows->put_.assign(of_array.first, of_array.second);
  }
  const std::uint64_t chunk_bytes =
      std::max<std::uint64_t>(entry.chunk_rows * entry.row_bytes(), 1);
  rows->most_chunks_ = std::max<std::uint64_t>(memory_bytes / chunk_bytes, 1);
  rows->store_ = std::move(store);
  rows->parts_ = std::move(parts);
  return rows;
}

Status CompactedRows::Read(std::span<const VertexId> vertices, std::span<std::byte> out) {
  const std::uint64_t row_bytes = array_->entry().row_bytes();
  places_.clear();
  for (std::size_t i = 0; i < vertices.size(); ++i) {
    const auto to = out.subspan(i * row_bytes, row_bytes);
    const DeltaRowRef wanted{0, vertices[i], 0};
    const auto put = std::lower_bound(put_.begin(), put_.end(), wanted, VertexLess);
    if (put != put_.end() && put->vertex == vertices[i]) {
      RHIZOME_RETURN_IF_ERROR(store_->ReadDeltaRow(put->sequence, put->array_id, put->vertex, to));
    } else if (static_cast<std::uint64_t>(vertices[i]) < parts_->order.size()) {
      places_.push_back({parts_->order.RowOf(vertices[i]), i});
    } else {
      FillMissingRows(array_->entry(), to);
    }
  }
  return reader_ != nullptr ? ReadByRow(out) : ReadByChunk(out);
}

Status CompactedRows::ReadByRow(std::span<std::byte> out) {
  targets_.clear();
  for (const Place& place : places_)
    targets_.push_back({place.row, out.data() + place.index * array_->entry().row_bytes()});
  return reader_->Read(targets_);
}

Status CompactedRows::ReadByChunk(std::span<std::byte> out) {
  const ArrayEntry& entry = array_->entry();
  const std::uint64_t row_bytes = entry.row_bytes();
  std::sort(places_.begin(), places_.end(),
            [](const Place& a, const Place& b) { return a.row < b.row; });
  ++calls_;
  for (std::size_t i = 0; i < places_.size();) {
    const std::uint64_t chunk = static_cast<std::uint64_t>(places_[i].row) / entry.chunk_rows;
    RHIZOME_ASSIGN_OR_RETURN(const KeptChunk* const kept, Chunk(chunk));
    for (; i < places_.size(); ++i) {
      const std::uint64_t row = static_cast<std::uint64_t>(places_[i].row);
      if (row / entry.chunk_rows != chunk) break;
      std::memcpy(out.data() + places_[i].index * row_bytes,
                  kept->rows.data() + (row % entry.chunk_rows) * row_bytes, row_bytes);
    }
  }
  return Status::Ok();
}

// Orders of two generations are alike: a chunk is needed by a few calls one after another.
Result<const CompactedRows::KeptChunk*> CompactedRows::Chunk(std::uint64_t chunk) {
  const auto found = std::find_if(kept_.begin(), kept_.end(),
                                  [&](const KeptChunk& kept) { return kept.chunk == chunk; });
  if (found != kept_.end()) {
    found->used = calls_;
    return &*found;
  }
  KeptChunk* kept = nullptr;
  if (kept_.size() < most_chunks_) {
    kept = &kept_.emplace_back();
  } else {
    kept =
        &*std::min_element(kept_.begin(), kept_.end(),
                           [](const KeptChunk& a, const KeptChunk& b) { return a.used < b.used; });
  }
  kept->chunk = ~std::uint64_t{0};
  kept->rows.resize(array_->RowsInChunk(chunk) * array_->entry().row_bytes());
  RHIZOME_RETURN_IF_ERROR(array_->ReadChunk(chunk, kept->rows));
  kept->chunk = chunk;
  kept->used = calls_;
  return kept;
}

}  // namespace rhizome
