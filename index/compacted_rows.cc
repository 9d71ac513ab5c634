#include "rhizome/index/compacted_rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "rhizome/storage/array_rules.h"
#include "rhizome/storage/check.h"

namespace rhizome {

namespace {

bool VertexLess(const DeltaRowRef& a, const DeltaRowRef& b) { return a.vertex < b.vertex; }

struct Place {
  Row row = 0;
  std::size_t index = 0;  // of the vertex in the call
};

struct KeptChunk {
  std::uint64_t chunk = 0;
  std::uint64_t used = 0;  // the call that used it last
  std::vector<std::byte> rows;
};

}  // namespace

struct CompactedRows::Lane {
  Result<const KeptChunk*> Chunk(const ChunkArray& array, std::uint64_t chunk);

  std::unique_ptr<RowReader> reader;  // of layout kRow
  std::vector<RowTarget> targets;
  std::size_t most_chunks = 1;
  std::uint64_t calls = 0;
  std::vector<KeptChunk> kept;
  std::vector<Place> places;
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
  const std::uint64_t chunk_bytes =
      std::max<std::uint64_t>(entry.chunk_rows * entry.row_bytes(), 1);
  std::unique_ptr<RowReader> reader;
  std::vector<std::unique_ptr<Lane>> lanes;
  for (std::uint32_t i = 0; i < threads; ++i) {
    auto lane = std::make_unique<Lane>();
    lane->most_chunks = std::max<std::uint64_t>(memory_bytes / threads / chunk_bytes, 1);
    if (entry.layout == ArrayLayout::kRow && i > 0) {
      RHIZOME_ASSIGN_OR_RETURN(lane->reader, lanes.front()->reader->Another());
    } else if (entry.layout == ArrayLayout::kRow) {
      RHIZOME_ASSIGN_OR_RETURN(const auto sidecar, store_->OpenArray(SidecarName(entry.name)));
      RowReaderOptions options;
      options.staging_bytes =
          std::min<std::uint64_t>(options.staging_bytes, memory_bytes / threads);
      // Most rows keep their neighbours: whole stretches are read.
      options.gap_bytes = std::max<std::uint64_t>(options.gap_bytes, 4 * entry.row_bytes());
      options.max_read_bytes = std::max<std::uint64_t>(std::uint64_t{1} << 20, entry.row_bytes());
      RHIZOME_ASSIGN_OR_RETURN(lane->reader, RowReader::Open(*array_, *sidecar, options));
    }
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
  if (lane.reader == nullptr) return ReadByChunk(lane, out);
  lane.targets.clear();
  for (const Place& place : lane.places)
    lane.targets.push_back({place.row, out.data() + place.index * row_bytes});
  return lane.reader->Read(lane.targets);
}

Status CompactedRows::ReadByChunk(Lane& lane, std::span<std::byte> out) const {
  const ArrayEntry& entry = array_->entry();
  const std::uint64_t row_bytes = entry.row_bytes();
  auto& places = lane.places;
  std::sort(places.begin(), places.end(),
            [](const Place& a, const Place& b) { return a.row < b.row; });
  ++lane.calls;
  for (std::size_t i = 0; i < places.size();) {
    const std::uint64_t chunk = static_cast<std::uint64_t>(places[i].row) / entry.chunk_rows;
    RHIZOME_ASSIGN_OR_RETURN(const KeptChunk* const kept, lane.Chunk(*array_, chunk));
    for (; i < places.size(); ++i) {
      const std::uint64_t row = static_cast<std::uint64_t>(places[i].row);
      if (row / entry.chunk_rows != chunk) break;
      std::memcpy(out.data() + places[i].index * row_bytes,
                  kept->rows.data() + (row % entry.chunk_rows) * row_bytes, row_bytes);
    }
  }
  return Status::Ok();
}

// Orders of two generations are alike: a chunk is needed by a few calls one after another.
Result<const KeptChunk*> CompactedRows::Lane::Chunk(const ChunkArray& array, std::uint64_t chunk) {
  const auto found = std::find_if(kept.begin(), kept.end(),
                                  [&](const KeptChunk& one) { return one.chunk == chunk; });
  if (found != kept.end()) {
    found->used = calls;
    return &*found;
  }
  KeptChunk* one = nullptr;
  if (kept.size() < most_chunks) {
    one = &kept.emplace_back();
  } else {
    one = &*std::min_element(kept.begin(), kept.end(), [](const KeptChunk& a, const KeptChunk& b) {
      return a.used < b.used;
    });
  }
  one->chunk = ~std::uint64_t{0};
  one->rows.resize(array.RowsInChunk(chunk) * array.entry().row_bytes());
  RHIZOME_RETURN_IF_ERROR(array.ReadChunk(chunk, one->rows));
  one->chunk = chunk;
  one->used = calls;
  return one;
}

}  // namespace rhizome
