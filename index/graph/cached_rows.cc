// Reads rows through a cache of blocks. Read copies the cached rows and reads the others: by block
// if the array has row checksums (ReadMisses), otherwise by decoding the chunks or inner chunks
// that hold them (ReadThroughParts). Warm fills the cache with the blocks of the highest degrees.

#include "index/graph/cached_rows.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <utility>

#include "index/graph/hot_blocks.h"
#include "storage/array/array_files.h"
#include "storage/array/chunk_writer.h"
#include "storage/array/row_sums.h"

namespace rhizome {
inline namespace internal {
namespace {

// A block has up to kBlockBytes of rows, and between 1 and kMaxRowsPerBlock rows.
constexpr std::uint64_t kBlockBytes = 4096;
constexpr std::uint64_t kMaxRowsPerBlock = 128;

// Number of rows that are prefetched before they are copied.
constexpr std::ptrdiff_t kRowsAhead = 8;

// Returns a power of two that divides the number of rows of a read, so that no block spans two
// reads or chunks.
std::uint64_t RowsPerBlock(const ArrayEntry& entry) {
  const std::uint64_t fit = kBlockBytes / std::max<std::uint64_t>(entry.row_bytes(), 1);
  std::uint64_t rows = std::bit_floor(std::clamp<std::uint64_t>(fit, 1, kMaxRowsPerBlock));
  while (RowsPerRead(entry) % rows != 0) rows /= 2;
  return rows;
}

std::uint64_t BlockCount(const ArrayEntry& entry) {
  const std::uint64_t rows_per_block = RowsPerBlock(entry);
  return (entry.rows + rows_per_block - 1) / rows_per_block;
}

// Returns the sidecar's checksums; null if they would take too much of the memory.
Result<std::shared_ptr<const RowSums>> RowChecksums(const Store& store, const ArrayEntry& entry,
                                                    std::uint64_t memory_bytes) {
  const std::string name = SidecarName(entry.name);
  if (!HasRowChecksums(entry) || entry.rows * sizeof(std::uint32_t) > memory_bytes / 4 ||
      store.manifest().FindArray(name) == nullptr)
    return nullptr;
  RHIZOME_ASSIGN_OR_RETURN(const auto sidecar, store.OpenArray(name));
  return RowSums::Load(entry, *sidecar);
}

}  // namespace

Result<std::shared_ptr<const CachedRows>> CachedRows::Open(const Store& store,
                                                           std::unique_ptr<ChunkArray> array,
                                                           std::uint64_t memory_bytes) {
  const ArrayEntry& entry = array->entry();
  RHIZOME_ASSIGN_OR_RETURN(auto sums, RowChecksums(store, entry, memory_bytes));
  const std::uint64_t rows_per_block = RowsPerBlock(entry);
  const std::uint64_t sums_bytes = sums == nullptr ? 0 : entry.rows * sizeof(std::uint32_t);
  const BlockCache::Options options{.block_count = BlockCount(entry),
                                    .block_bytes = rows_per_block * entry.row_bytes(),
                                    .memory_bytes = memory_bytes - sums_bytes,
                                    .metrics = store.metrics(),
                                    .evictions = Counter::kRowCacheEvictions};
  return std::shared_ptr<const CachedRows>(
      new CachedRows(std::move(array), rows_per_block, std::move(sums), options));
}

std::uint64_t CachedRows::FullBytes(const ArrayEntry& entry) {
  const std::uint64_t sums = HasRowChecksums(entry) ? entry.rows * sizeof(std::uint32_t) : 0;
  const std::uint64_t block_bytes = RowsPerBlock(entry) * entry.row_bytes();
  return sums + BlockCache::FullBytes(BlockCount(entry), block_bytes);
}

std::uint64_t CachedRows::ReadBytes(const ArrayEntry& entry) {
  return RowsPerRead(entry) * entry.row_bytes();
}

std::uint64_t CachedRows::RowsInBlock(std::uint64_t block) const {
  return std::min(rows_per_block_, entry().rows - block * rows_per_block_);
}

bool CachedRows::ReadCached(const RowTarget& target) const {
  const std::uint64_t row_bytes = entry().row_bytes();
  return cache_.Read(BlockOf(target), target.row % rows_per_block_ * row_bytes,
                     std::span(target.out, row_bytes));
}

void CachedRows::Prefetch(const RowTarget& target) const {
  const std::uint64_t row_bytes = entry().row_bytes();
  cache_.Prefetch(BlockOf(target), target.row % rows_per_block_ * row_bytes, row_bytes);
}

// Copies the cached rows, sorts the others, and reads them by block or, without row checksums, by
// chunk.
Result<std::uint64_t> CachedRows::Read(std::span<RowTarget> targets) const {
  const RowTarget* const end = targets.data() + targets.size();
  const auto first_missing =
      std::partition(targets.begin(), targets.end(), [&](const RowTarget& target) {
        if (end - &target > kRowsAhead) Prefetch(*(&target + kRowsAhead));
        return ReadCached(target);
      });
  const auto hits = static_cast<std::uint64_t>(first_missing - targets.begin());
  const auto missing = targets.subspan(hits);
  std::sort(missing.begin(), missing.end(),
            [](const RowTarget& a, const RowTarget& b) { return a.row < b.row; });
  if (files_.by_row()) {
    RHIZOME_RETURN_IF_ERROR(ReadMisses(missing));
    return hits;
  }
  RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t more, ReadThroughParts(missing));
  return hits + more;
}

// Reads the missing rows in as few batches as kMaxMissBytes allows.
Status CachedRows::ReadMisses(std::span<RowTarget> targets) const {
  const std::uint64_t most =
      std::max<std::uint64_t>(kMaxMissBytes / std::max<std::uint64_t>(cache_.block_bytes(), 1), 1);
  while (!targets.empty()) {
    std::uint64_t blocks = 1;
    std::size_t end = 1;
    for (; end < targets.size(); ++end) {
      if (BlockOf(targets[end]) == BlockOf(targets[end - 1])) continue;
      if (blocks == most) break;
      ++blocks;
    }
    RHIZOME_RETURN_IF_ERROR(ReadBlocks(targets.first(end), blocks));
    targets = targets.subspan(end);
  }
  return Status::Ok();
}

// Reads the blocks of `targets`, which are sorted, in one batch, and copies them to the cache and
// to the targets.
Status CachedRows::ReadBlocks(std::span<const RowTarget> targets, std::uint64_t blocks) const {
  const std::uint64_t row_bytes = entry().row_bytes();
  const auto memory = std::make_unique_for_overwrite<std::byte[]>(blocks * cache_.block_bytes());
  std::vector<RowTarget> rows;
  rows.reserve(blocks * rows_per_block_);
  std::byte* at = memory.get();
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const std::uint64_t block = BlockOf(targets[i]);
    if (i > 0 && BlockOf(targets[i - 1]) == block) continue;
    for (std::uint64_t r = 0; r < RowsInBlock(block); ++r, at += row_bytes)
      rows.push_back({static_cast<std::int64_t>(block * rows_per_block_ + r), at});
  }
  RHIZOME_RETURN_IF_ERROR(files_.Read(rows));
  at = memory.get();
  for (std::size_t i = 0; i < targets.size();) {
    const std::uint64_t block = BlockOf(targets[i]);
    const std::span bytes(at, RowsInBlock(block) * row_bytes);
    at += bytes.size();
    (void)cache_.Insert(block, bytes);
    for (; i < targets.size() && BlockOf(targets[i]) == block; ++i)
      std::memcpy(targets[i].out, bytes.data() + targets[i].row % rows_per_block_ * row_bytes,
                  row_bytes);
  }
  return Status::Ok();
}

// Reads consecutive rows within one chunk of an array with row checksums.
Status CachedRows::ReadRun(std::uint64_t first_row, std::uint64_t rows,
                           std::span<std::byte> out) const {
  std::vector<RowTarget> targets(rows);
  for (std::uint64_t i = 0; i < rows; ++i)
    targets[i] = {static_cast<std::int64_t>(first_row + i), out.data() + i * entry().row_bytes()};
  return files_.Read(targets);
}

// For arrays without row checksums: decodes each chunk, or inner chunk, once. Returns the number of
// rows that another thread had decoded in the meantime.
Result<std::uint64_t> CachedRows::ReadThroughParts(std::span<RowTarget> targets) const {
  const auto part_rows = static_cast<std::int64_t>(RowsPerRead(entry()));
  std::uint64_t hits = 0;
  while (!targets.empty()) {
    std::size_t end = 1;
    while (end < targets.size() && targets[end].row / part_rows == targets.front().row / part_rows)
      ++end;
    RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t more, ReadThroughPart(targets.first(end)));
    hits += more;
    targets = targets.subspan(end);
  }
  return hits;
}

Result<std::uint64_t> CachedRows::ReadThroughPart(std::span<const RowTarget> targets) const {
  const std::uint64_t row_bytes = entry().row_bytes();
  const std::uint64_t part_rows = RowsPerRead(entry());
  const std::uint64_t part = static_cast<std::uint64_t>(targets.front().row) / part_rows;
  const std::uint64_t first = part * part_rows;
  const MutexLock lock(decoding_[part % decoding_.size()]);
  const bool here = std::all_of(targets.begin(), targets.end(),
                                [&](const RowTarget& target) { return ReadCached(target); });
  if (here) return targets.size();  // another thread decoded it
  std::vector<std::byte> bytes(std::min(part_rows, entry().rows - first) * row_bytes);
  RHIZOME_RETURN_IF_ERROR(array_->ReadRows(first, bytes.size() / row_bytes, bytes));
  std::uint64_t kept = ~std::uint64_t{0};
  for (const RowTarget& target : targets) {
    std::memcpy(target.out, bytes.data() + (target.row - first) * row_bytes, row_bytes);
    const std::uint64_t block = BlockOf(target);
    if (block == kept) continue;
    kept = block;
    const std::uint64_t begin = block * rows_per_block_ - first;
    (void)cache_.Insert(
        block, std::span(bytes).subspan(begin * row_bytes, RowsInBlock(block) * row_bytes));
  }
  KeepBlocks(first / rows_per_block_, bytes);
  return std::uint64_t{0};
}

// Caches decoded blocks, beginning with `first_block`, if frames are free.
void CachedRows::KeepBlocks(std::uint64_t first_block, std::span<const std::byte> bytes) const {
  const std::uint64_t block_bytes = rows_per_block_ * entry().row_bytes();
  for (std::uint64_t begin = 0; begin < bytes.size(); begin += block_bytes, ++first_block) {
    const auto part =
        bytes.subspan(begin, std::min<std::uint64_t>(block_bytes, bytes.size() - begin));
    (void)cache_.Insert(first_block, part, BlockCache::Room::kFree);
  }
}

// Loads blocks of one chunk by the smallest units that can be verified.
Status CachedRows::WarmByReads(std::uint64_t first_block, const std::vector<bool>& chosen) const {
  const std::uint64_t read_rows = files_.by_row() ? entry().chunk_rows : RowsPerRead(entry());
  const std::uint64_t at_once = read_rows / rows_per_block_;
  const std::uint64_t row_bytes = entry().row_bytes();
  const std::uint64_t block_bytes = rows_per_block_ * row_bytes;
  std::vector<std::byte> bytes;
  for (std::uint64_t i = 0; i < chosen.size(); i += at_once) {
    const std::uint64_t end = std::min<std::uint64_t>(i + at_once, chosen.size());
    const auto from = chosen.begin() + static_cast<std::ptrdiff_t>(i);
    const auto to = chosen.begin() + static_cast<std::ptrdiff_t>(end);
    if (std::find(from, to, true) == to) continue;
    const std::uint64_t first_row = (first_block + i) * rows_per_block_;
    const std::uint64_t rows = std::min((end - i) * rows_per_block_, entry().rows - first_row);
    bytes.resize(rows * row_bytes);
    RHIZOME_RETURN_IF_ERROR(array_->ReadRows(first_row, rows, bytes));
    for (std::uint64_t b = i; b < end; ++b) {
      if (!chosen[b]) continue;
      const std::uint64_t size = RowsInBlock(first_block + b) * row_bytes;
      (void)cache_.Insert(first_block + b, std::span(bytes).subspan((b - i) * block_bytes, size),
                          BlockCache::Room::kFree);
    }
  }
  return Status::Ok();
}

Status CachedRows::WarmChunk(std::uint64_t chunk, const std::vector<bool>& chosen) const {
  const auto wanted = static_cast<std::uint64_t>(std::count(chosen.begin(), chosen.end(), true));
  if (wanted == 0) return Status::Ok();
  const std::uint64_t row_bytes = entry().row_bytes();
  if (!files_.by_row() || wanted * 2 > chosen.size())
    return WarmByReads(chunk * blocks_per_chunk(), chosen);
  // Each run of consecutive blocks is one read.
  constexpr std::uint64_t kMaxRunBlocks = 256;
  std::vector<std::byte> bytes;
  for (std::uint64_t i = 0; i < chosen.size();) {
    std::uint64_t end = i;
    while (end < chosen.size() && chosen[end] && end - i < kMaxRunBlocks) ++end;
    if (end == i) {
      ++i;
      continue;
    }
    const std::uint64_t first_block = chunk * blocks_per_chunk() + i;
    const std::uint64_t first_row = first_block * rows_per_block_;
    const std::uint64_t rows = std::min((end - i) * rows_per_block_, entry().rows - first_row);
    bytes.resize(rows * row_bytes);
    RHIZOME_RETURN_IF_ERROR(ReadRun(first_row, rows, bytes));
    for (std::uint64_t b = 0; b < end - i; ++b) {
      const std::uint64_t begin = b * rows_per_block_ * row_bytes;
      const std::uint64_t size = RowsInBlock(first_block + b) * row_bytes;
      (void)cache_.Insert(first_block + b, std::span(bytes).subspan(begin, size),
                          BlockCache::Room::kFree);
    }
    i = end;
  }
  return Status::Ok();
}

// Warms the cache:
// 1. counts the blocks of each class of degree;
// 2. chooses the highest classes that fit (HotBlocks);
// 3. loads the chosen blocks chunk by chunk, in file order.
Status CachedRows::Warm(
    const std::function<std::uint64_t(std::uint64_t row)>& degree,
    const std::function<Status(std::uint64_t done, std::uint64_t total)>& tick) const {
  if (cache_.frame_count() == 0) return Status::Ok();
  const std::uint64_t blocks = BlockCount(entry());
  const auto class_of = [&](std::uint64_t block) {
    std::uint64_t highest = 0;
    for (std::uint64_t i = 0; i < RowsInBlock(block); ++i)
      highest = std::max(highest, degree(block * rows_per_block_ + i));
    return HotBlocks::ClassOf(highest);
  };
  const std::uint64_t bytes = cache_.frame_count() * cache_.block_bytes();
  HotBlocks hot;
  for (std::uint64_t b = 0; b < blocks && !cache_.holds_all(); ++b) {
    if (b % 1024 == 0) RHIZOME_RETURN_IF_ERROR(tick(0, bytes));
    hot.Count(class_of(b));
  }
  hot.Choose(cache_.free_frames());
  std::uint64_t done = 0;
  for (std::uint64_t chunk = 0; chunk < entry().chunk_count(); ++chunk) {
    if (!array_->HasChunk(chunk)) continue;
    RHIZOME_RETURN_IF_ERROR(tick(done * cache_.block_bytes(), bytes));
    const std::uint64_t first = chunk * blocks_per_chunk();
    std::vector<bool> chosen(std::min(blocks_per_chunk(), blocks - first));
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      chosen[i] = cache_.holds_all() || hot.Take(class_of(first + i));
      done += chosen[i] ? 1 : 0;
      if (chosen[i] && cache_.Holds(first + i)) chosen[i] = false;
    }
    RHIZOME_RETURN_IF_ERROR(WarmChunk(chunk, chosen));
  }
  return tick(bytes, bytes);
}

}  // namespace internal
}  // namespace rhizome
