#include "index/compact/compacted_rows.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "storage/array/array_rules.h"
#include "storage/array/chunk_writer.h"
#include "storage/base/threads.h"

namespace rhizome {
inline namespace internal {

namespace {

bool VertexLess(const DeltaRowRef& a, const DeltaRowRef& b) { return a.vertex < b.vertex; }

}  // namespace

Result<std::unique_ptr<CompactedRows>> CompactedRows::Open(std::shared_ptr<const Store> store,
                                                           const ArrayEntry& entry,
                                                           std::shared_ptr<const GraphParts> parts,
                                                           const Delta& delta,
                                                           std::uint64_t memory_bytes,
                                                           std::uint32_t threads, IoPacer* pacer) {
  std::unique_ptr<CompactedRows> rows(new CompactedRows);
  rows->pacer_ = pacer;
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
  RHIZOME_RETURN_IF_ERROR(rows->OpenReaders(threads, memory_bytes));
  return rows;
}

Status CompactedRows::OpenReaders(std::uint32_t threads, std::uint64_t memory_bytes) {
  const ArrayEntry& entry = array_->entry();
  std::unique_ptr<ChunkArray> sidecar;
  if (entry.layout == ArrayLayout::kRow) {
    RHIZOME_ASSIGN_OR_RETURN(sidecar, store_->OpenArray(SidecarName(entry.name)));
  }
  RHIZOME_ASSIGN_OR_RETURN(readers_.emplace_back(),
                           PlacedRows::Open(*array_, sidecar.get(), memory_bytes / threads));
  while (readers_.size() < threads) {
    RHIZOME_ASSIGN_OR_RETURN(readers_.emplace_back(), readers_.front()->Another());
  }
  return Status::Ok();
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
  return ReadPlaces(out);
}

// Reads all rows at once, so that the reads overlap. If commits wait for the disk, it reads in
// smaller batches between them.
Status CompactedRows::ReadPaced(PlacedRows& reader, std::span<PlacedRows::Place> places,
                                std::span<std::byte> out) const {
  const std::uint64_t row_bytes = array_->entry().row_bytes();
  while (!places.empty()) {
    const std::uint64_t rows = std::max<std::uint64_t>(
        PieceBytes(pacer_, places.size() * row_bytes) / std::max<std::uint64_t>(row_bytes, 1), 1);
    const auto piece = places.first(std::min<std::uint64_t>(rows, places.size()));
    places = places.subspan(piece.size());
    const IoPacer::Turn turn(pacer_);
    RHIZOME_RETURN_IF_ERROR(reader.Read(piece, out));
  }
  return Status::Ok();
}

// Assigns each reader a consecutive range of the old rows: rows that are scattered in the new order
// are dense in the old one.
Status CompactedRows::ReadPlaces(std::span<std::byte> out) {
  if (readers_.size() == 1) return ReadPaced(*readers_.front(), places_, out);
  std::sort(places_.begin(), places_.end(),
            [](const auto& a, const auto& b) { return a.row < b.row; });
  std::atomic<std::size_t> next = 0;
  return RunOnThreads(readers_.size(), [&]() -> Status {
    for (std::size_t r = next++; r < readers_.size(); r = next++) {
      const std::size_t begin = places_.size() * r / readers_.size();
      const std::size_t end = places_.size() * (r + 1) / readers_.size();
      RHIZOME_RETURN_IF_ERROR(
          ReadPaced(*readers_[r], std::span(places_).subspan(begin, end - begin), out));
    }
    return Status::Ok();
  });
}

}  // namespace internal
}  // namespace rhizome
