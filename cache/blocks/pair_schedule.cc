#include "cache/blocks/pair_schedule.h"

#include <algorithm>
#include <tuple>

#include "index/base/parallel.h"

namespace rhizome {
inline namespace internal {
namespace {

std::uint64_t ChunkOf(Row row, std::uint64_t chunk_rows) {
  return static_cast<std::uint64_t>(row) / chunk_rows;
}

/// Returns the distinct source chunks, ascending.
std::vector<std::uint64_t> SourceChunks(std::span<const PlacedPair> pairs,
                                        std::uint64_t chunk_rows) {
  std::vector<std::uint64_t> chunks;
  for (const PlacedPair& pair : pairs) {
    const std::uint64_t chunk = ChunkOf(pair.src, chunk_rows);
    if (chunks.empty() || chunks.back() != chunk) chunks.push_back(chunk);
  }
  std::sort(chunks.begin(), chunks.end());
  chunks.erase(std::unique(chunks.begin(), chunks.end()), chunks.end());
  return chunks;
}

}  // namespace

PairSchedule::PairSchedule(std::span<PlacedPair> pairs, std::uint64_t chunk_rows,
                           std::uint64_t group_chunks) {
  const std::vector<std::uint64_t> sources = SourceChunks(pairs, chunk_rows);
  std::uint64_t chunks = 0;  // upper bound of the target chunks
  for (const PlacedPair& pair : pairs) chunks = std::max(chunks, ChunkOf(pair.dst, chunk_rows) + 1);
  for (PlacedPair& pair : pairs) {
    const auto found =
        std::lower_bound(sources.begin(), sources.end(), ChunkOf(pair.src, chunk_rows));
    const std::uint64_t group = static_cast<std::uint64_t>(found - sources.begin()) / group_chunks;
    const std::uint64_t dst = ChunkOf(pair.dst, chunk_rows);
    pair.step = group * chunks + (group % 2 == 0 ? dst : chunks - 1 - dst);
  }
  ParallelSort(pairs.begin(), pairs.end(), [](const PlacedPair& a, const PlacedPair& b) {
    return std::tie(a.step, a.src, a.dst, a.place) < std::tie(b.step, b.src, b.dst, b.place);
  });
  std::vector<std::uint64_t> distinct = sources;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const std::uint64_t src = ChunkOf(pairs[i].src, chunk_rows);
    const std::uint64_t dst = ChunkOf(pairs[i].dst, chunk_rows);
    if (cells_.empty() || cells_.back().src_chunk != src || cells_.back().dst_chunk != dst) {
      cells_.push_back({.src_chunk = src, .dst_chunk = dst, .begin = i, .end = i});
      distinct.push_back(dst);
    }
    cells_.back().end = i + 1;
  }
  std::sort(distinct.begin(), distinct.end());
  distinct_chunks_ =
      static_cast<std::uint64_t>(std::unique(distinct.begin(), distinct.end()) - distinct.begin());
}

std::vector<std::uint64_t> PairSchedule::Chunks() const {
  std::vector<std::uint64_t> chunks;
  for (std::size_t c = 0; c < cells_.size(); ++c) {
    const PairCell& cell = cells_[c];
    if (c == 0 || cells_[c - 1].dst_chunk != cell.dst_chunk) chunks.push_back(cell.dst_chunk);
    if (cell.src_chunk != cell.dst_chunk) chunks.push_back(cell.src_chunk);
  }
  return chunks;
}

}  // namespace internal
}  // namespace rhizome
