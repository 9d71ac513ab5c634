#include "rhizome/index/cached_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "rhizome/index/hot_blocks.h"
#include "rhizome/storage/stored_file.h"

namespace rhizome {
namespace {

constexpr std::uint64_t kBlockBytes = 4096;
constexpr std::uint64_t kMostRowsPerBlock = 128;

/// The least that is read and decoded at a time where rows have no checksums.
std::uint64_t RowsPerRead(const ArrayEntry& entry) {
  return entry.sharded() ? entry.inner_rows : entry.chunk_rows;
}

// A power of two that divides it, so that no block lies in two reads or chunks.
std::uint64_t RowsPerBlock(const ArrayEntry& entry) {
  const std::uint64_t fit = kBlockBytes / std::max<std::uint64_t>(entry.row_bytes(), 1);
  std::uint64_t rows = std::bit_floor(std::clamp<std::uint64_t>(fit, 1, kMostRowsPerBlock));
  while (RowsPerRead(entry) % rows != 0) rows /= 2;
  return rows;
}

std::uint64_t BlockCount(const ArrayEntry& entry) {
  const std::uint64_t rows_per_block = RowsPerBlock(entry);
  return (entry.rows + rows_per_block - 1) / rows_per_block;
}

bool HasRowChecksums(const ArrayEntry& entry) {
  return entry.layout == ArrayLayout::kRow && entry.codec.kind == CodecKind::kRaw;
}

// The sidecar's sums; none where they would take too much of the memory.
Result<std::vector<std::uint32_t>> RowChecksums(const Store& store, const ArrayEntry& entry,
                                                std::uint64_t memory_bytes) {
  std::vector<std::uint32_t> sums;
  const std::string name = SidecarName(entry.name);
  if (!HasRowChecksums(entry) || entry.rows * sizeof(std::uint32_t) > memory_bytes / 4 ||
      store.manifest().FindArray(name) == nullptr)
    return sums;
  RHIZOME_ASSIGN_OR_RETURN(const auto sidecar, store.OpenArray(name));
  const ArrayEntry& about = sidecar->entry();
  if (about.rows != entry.rows || about.row_bytes() != sizeof(std::uint32_t))
    return Fail(
        Status::Corruption(fmt::format("'{}' is not the sidecar of array '{}'", name, entry.name)));
  sums.resize(entry.rows);
  RHIZOME_RETURN_IF_ERROR(
      sidecar->ReadRows(0, entry.rows, std::as_writable_bytes(std::span(sums))));
  return sums;
}

}  // namespace

Result<std::shared_ptr<const CachedRows>> CachedRows::Open(const Store& store,
                                                           std::unique_ptr<ChunkArray> array,
                                                           std::uint64_t memory_bytes) {
  const ArrayEntry& entry = array->entry();
  RHIZOME_ASSIGN_OR_RETURN(auto sums, RowChecksums(store, entry, memory_bytes));
  const std::uint64_t rows_per_block = RowsPerBlock(entry);
  const BlockCache::Options options{
      .block_count = BlockCount(entry),
      .block_bytes = rows_per_block * entry.row_bytes(),
      .memory_bytes = memory_bytes - sums.size() * sizeof(std::uint32_t),
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

Status CachedRows::Read(std::uint64_t row, std::span<std::byte> out, bool& hit) const {
  const std::uint64_t block = row / rows_per_block_;
  hit = cache_.Read(block, row % rows_per_block_ * out.size(), out);
  if (hit) return Status::Ok();
  if (row_crcs_.empty()) return ReadThroughChunk(block, row, out, hit);
  const std::uint64_t first = block * rows_per_block_;
  std::vector<std::byte> bytes(RowsInBlock(block) * out.size());
  RHIZOME_RETURN_IF_ERROR(ReadBlocks(first, RowsInBlock(block), bytes));
  (void)cache_.Insert(block, bytes);
  std::memcpy(out.data(), bytes.data() + (row - first) * out.size(), out.size());
  return Status::Ok();
}

// Rows of one chunk of an array in layout kRow, each checked.
Status CachedRows::ReadBlocks(std::uint64_t first_row, std::uint64_t rows,
                              std::span<std::byte> out) const {
  const std::uint64_t row_bytes = entry().row_bytes();
  const FileEntry& chunk = array_->ChunkFile(first_row / entry().chunk_rows);
  const Path path = array_->root() / chunk.path;
  RHIZOME_ASSIGN_OR_RETURN(const auto file, OpenStored(array_->fs(), path));
  if (file->size_bytes() != chunk.size_bytes)
    return Status::Corruption(fmt::format("'{}': {} bytes long, but the manifest says {}",
                                          path.string(), file->size_bytes(), chunk.size_bytes));
  RHIZOME_RETURN_IF_ERROR(ReadExactly(*file, first_row % entry().chunk_rows * row_bytes, out));
  for (std::uint64_t i = 0; i < rows; ++i) {
    const std::uint64_t row = first_row + i;
    if (RowCrc(entry().array_id, row, out.subspan(i * row_bytes, row_bytes)) == row_crcs_[row])
      continue;
    return Status::Corruption(fmt::format(
        "array '{}', row {}: bytes at offset {} of '{}' do not have the checksum of the sidecar",
        entry().name, row, row % entry().chunk_rows * row_bytes, path.string()));
  }
  return Status::Ok();
}

Status CachedRows::ReadThroughChunk(std::uint64_t block, std::uint64_t row,
                                    std::span<std::byte> out, bool& hit) const {
  const std::uint64_t read_rows = RowsPerRead(entry());
  const std::uint64_t first = row / read_rows * read_rows;
  const MutexLock lock(decoding_[row / read_rows % decoding_.size()]);
  hit = cache_.Read(block, row % rows_per_block_ * out.size(), out);  // by who was here before
  if (hit) return Status::Ok();
  std::vector<std::byte> bytes(std::min(read_rows, entry().rows - first) * out.size());
  RHIZOME_RETURN_IF_ERROR(array_->ReadRows(first, bytes.size() / out.size(), bytes));
  std::memcpy(out.data(), bytes.data() + (row - first) * out.size(), out.size());
  const std::uint64_t begin = block * rows_per_block_ - first;
  (void)cache_.Insert(
      block, std::span(bytes).subspan(begin * out.size(), RowsInBlock(block) * out.size()));
  KeepBlocks(first / rows_per_block_, bytes);
  return Status::Ok();
}

// Decoded blocks from `first_block` on go where frames are free.
void CachedRows::KeepBlocks(std::uint64_t first_block, std::span<const std::byte> bytes) const {
  const std::uint64_t block_bytes = rows_per_block_ * entry().row_bytes();
  for (std::uint64_t begin = 0; begin < bytes.size(); begin += block_bytes, ++first_block) {
    const auto part =
        bytes.subspan(begin, std::min<std::uint64_t>(block_bytes, bytes.size() - begin));
    (void)cache_.Insert(first_block, part, BlockCache::Room::kFree);
  }
}

// Blocks of one chunk, by reads of what is the least that can be checked.
Status CachedRows::WarmByReads(std::uint64_t first_block, const std::vector<bool>& chosen) const {
  const std::uint64_t read_rows = row_crcs_.empty() ? RowsPerRead(entry()) : entry().chunk_rows;
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
  if (row_crcs_.empty() || wanted * 2 > chosen.size())
    return WarmByReads(chunk * blocks_per_chunk(), chosen);
  // Runs of neighbouring blocks in one read each.
  constexpr std::uint64_t kMostRunBlocks = 256;
  std::vector<std::byte> bytes;
  for (std::uint64_t i = 0; i < chosen.size();) {
    std::uint64_t end = i;
    while (end < chosen.size() && chosen[end] && end - i < kMostRunBlocks) ++end;
    if (end == i) {
      ++i;
      continue;
    }
    const std::uint64_t first_block = chunk * blocks_per_chunk() + i;
    const std::uint64_t first_row = first_block * rows_per_block_;
    const std::uint64_t rows = std::min((end - i) * rows_per_block_, entry().rows - first_row);
    bytes.resize(rows * row_bytes);
    RHIZOME_RETURN_IF_ERROR(ReadBlocks(first_row, rows, bytes));
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

}  // namespace rhizome
