#include "index/generation/placed_rows.h"

#include <algorithm>
#include <cstring>

namespace rhizome {
inline namespace internal {

namespace {

// Reads of this length reach the disk's full rate. Reads are short and few so that concurrent
// writes do not wait for them.
constexpr std::uint64_t kLongestReadBytes = std::uint64_t{256} << 10;
constexpr std::uint32_t kDepth = 16;

// Most rows keep their neighbours, so long runs of rows are read at once.
constexpr std::uint64_t kGapBytes = std::uint64_t{8} << 10;

// A read is extended to whole sectors at both ends, which needs this much extra memory.
constexpr std::uint64_t kReadEndsBytes = 16 << 10;

}  // namespace

Result<std::unique_ptr<PlacedRows>> PlacedRows::Open(const ChunkArray& array,
                                                     const ChunkArray* sidecar,
                                                     std::uint64_t memory_bytes) {
  const ArrayEntry& entry = array.entry();
  std::unique_ptr<PlacedRows> rows(new PlacedRows(array));
  const std::uint64_t chunk_bytes =
      std::max<std::uint64_t>(entry.chunk_rows * entry.row_bytes(), 1);
  rows->max_chunks_ = std::max<std::uint64_t>(memory_bytes / chunk_bytes, 1);
  if (sidecar != nullptr) {
    RowReaderOptions options;
    options.io.depth = kDepth;
    options.gap_bytes = std::max<std::uint64_t>(kGapBytes, 4 * entry.row_bytes());
    options.max_read_bytes = std::max<std::uint64_t>(
        std::min<std::uint64_t>(kLongestReadBytes, memory_bytes / 4), entry.row_bytes());
    options.staging_bytes =
        std::max<std::uint64_t>(std::min<std::uint64_t>(options.staging_bytes, memory_bytes),
                                options.max_read_bytes + kReadEndsBytes);
    RHIZOME_ASSIGN_OR_RETURN(rows->reader_, RowReader::Open(array, *sidecar, options));
  }
  return rows;
}

Result<std::unique_ptr<PlacedRows>> PlacedRows::Another() const {
  std::unique_ptr<PlacedRows> rows(new PlacedRows(array_));
  rows->max_chunks_ = max_chunks_;
  if (reader_ != nullptr) {
    RHIZOME_ASSIGN_OR_RETURN(rows->reader_, reader_->Another());
  }
  return rows;
}

Status PlacedRows::Read(std::span<Place> places, std::span<std::byte> out) {
  if (reader_ == nullptr) return ReadByChunk(places, out);
  targets_.clear();
  for (const Place& place : places)
    targets_.push_back({place.row, out.data() + place.index * array_.entry().row_bytes()});
  return reader_->Read(targets_);
}

Status PlacedRows::ReadByChunk(std::span<Place> places, std::span<std::byte> out) {
  const ArrayEntry& entry = array_.entry();
  const std::uint64_t row_bytes = entry.row_bytes();
  std::sort(places.begin(), places.end(),
            [](const Place& a, const Place& b) { return a.row < b.row; });
  ++calls_;
  for (std::size_t i = 0; i < places.size();) {
    const std::uint64_t chunk = static_cast<std::uint64_t>(places[i].row) / entry.chunk_rows;
    RHIZOME_ASSIGN_OR_RETURN(const KeptChunk* const kept, Chunk(chunk));
    for (; i < places.size(); ++i) {
      const std::uint64_t row = static_cast<std::uint64_t>(places[i].row);
      if (row / entry.chunk_rows != chunk) break;
      std::memcpy(out.data() + places[i].index * row_bytes,
                  kept->rows.data() + (row % entry.chunk_rows) * row_bytes, row_bytes);
    }
  }
  return Status::Ok();
}

// Returns a decoded chunk from the cache; evicts the least recently used chunk if necessary. Orders
// of two generations are similar, so consecutive calls mostly need the same few chunks.
Result<const PlacedRows::KeptChunk*> PlacedRows::Chunk(std::uint64_t chunk) {
  const auto found = std::find_if(kept_.begin(), kept_.end(),
                                  [&](const KeptChunk& one) { return one.chunk == chunk; });
  if (found != kept_.end()) {
    found->used = calls_;
    return &*found;
  }
  KeptChunk* one = nullptr;
  if (kept_.size() < max_chunks_) {
    one = &kept_.emplace_back();
  } else {
    one =
        &*std::min_element(kept_.begin(), kept_.end(),
                           [](const KeptChunk& a, const KeptChunk& b) { return a.used < b.used; });
  }
  one->chunk = ~std::uint64_t{0};
  one->rows.resize(array_.RowsInChunk(chunk) * array_.entry().row_bytes());
  RHIZOME_RETURN_IF_ERROR(array_.ReadChunk(chunk, one->rows));
  one->chunk = chunk;
  one->used = calls_;
  return one;
}

}  // namespace internal
}  // namespace rhizome
