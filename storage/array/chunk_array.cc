#include "rhizome/chunk_array.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "storage/array/array_rules.h"
#include "storage/array/array_versions.h"
#include "storage/array/chunk_writer.h"
#include "storage/array/codec.h"
#include "storage/array/shard_file.h"
#include "storage/array/zarr_format.h"
#include "storage/base/exceptions.h"
#include "storage/base/hash.h"
#include "storage/base/little_endian.h"
#include "storage/base/mutant.h"
#include "storage/base/mutex.h"
#include "storage/io/files.h"
#include "storage/io/io_queue.h"
#include "storage/io/stored_file.h"

namespace rhizome {

/// A small cache of the most recently read shard tables. The memory of each is bounded by
/// kMaxInnerChunksOfShard. Threads: any.
class internal::ShardTables {
 public:
  std::shared_ptr<const ShardTable> Find(std::uint64_t chunk) {
    const MutexLock lock(mutex_);
    const Slot& slot = slots_[chunk % slots_.size()];
    return slot.chunk == chunk ? slot.table : nullptr;
  }
  void Keep(std::uint64_t chunk, std::shared_ptr<const ShardTable> table) {
    const MutexLock lock(mutex_);
    slots_[chunk % slots_.size()] = {chunk, std::move(table)};
  }

 private:
  struct Slot {
    std::uint64_t chunk = ~std::uint64_t{0};
    std::shared_ptr<const ShardTable> table;
  };
  Mutex mutex_;
  std::array<Slot, 16> slots_ RHIZOME_GUARDED_BY(mutex_);
};

namespace {

std::uint64_t ChunkBytes(const ArrayEntry& entry) { return entry.chunk_rows * entry.row_bytes(); }

Status Corrupt(const Path& path, std::string_view why) {
  return Status::Corruption(fmt::format("'{}': {}", path.string(), why));
}

/// Selects the files of `array`, sorted by path, from a manifest's files of all arrays.
std::vector<const FileEntry*> FilesOf(const ArrayEntry& array, std::span<const FileEntry> files) {
  const std::string prefix = ArrayFolder(array.name, array.form) + "/";
  std::vector<const FileEntry*> mine;
  for (const FileEntry& file : files)
    if (file.path.starts_with(prefix)) mine.push_back(&file);
  std::sort(mine.begin(), mine.end(), [](auto* a, auto* b) { return a->path < b->path; });
  return mine;
}

const FileEntry* Find(const std::vector<const FileEntry*>& files, const std::string& path) {
  const auto at = std::lower_bound(files.begin(), files.end(), path,
                                   [](auto* file, const auto& p) { return file->path < p; });
  return at != files.end() && (*at)->path == path ? *at : nullptr;
}

Status CheckMetadata(FileSystem& fs, const Path& root, const ArrayEntry& entry,
                     const std::vector<const FileEntry*>& files) {
  const std::string relative = ArrayFolder(entry.name, entry.form) + "/zarr.json";
  const Path path = root / relative;
  const FileEntry* file = Find(files, relative);
  if (file == nullptr) return Corrupt(path, "not in the manifest's list of files");
  RHIZOME_ASSIGN_OR_RETURN(const auto bytes,
                           MissingIsDamage(ReadWholeFile(fs, path, kMaxZarrJsonBytes), path));
  if (bytes.size() != file->size_bytes || Xxh3(bytes) != file->xxh3)
    return Corrupt(path, "length or hash differ from the manifest's");
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto described = DecodeArrayJson(text, entry.name);
  if (!described) return described.error().WithContext(path.string());
  if (*described == entry) return Status::Ok();
  return Corrupt(path, "describes a different array than the manifest");
}

Status CheckChunkSize(const Path& path, const ArrayEntry& entry, std::uint64_t size_bytes) {
  const std::uint64_t raw = ChunkBytes(entry);
  if (entry.sharded()) {
    if (size_bytes >= ShardTailBytes(entry) && size_bytes <= MaxShardBytes(entry))
      return Status::Ok();
    return Corrupt(path, fmt::format("{} bytes cannot be a shard of {} inner chunks of {} rows",
                                     size_bytes, InnerChunks(entry), entry.inner_rows));
  }
  const bool fits = entry.codec.kind == CodecKind::kRaw
                        ? size_bytes == raw
                        : size_bytes <= MaxEncodedBytes(entry.codec, raw);
  if (fits) return Status::Ok();
  return Corrupt(path, fmt::format("{} bytes cannot be a chunk of {} bytes in codec {}", size_bytes,
                                   raw, CodecName(entry.codec.kind)));
}

/// Checks that this is the file that the manifest names, and not another chunk or an older file. An
/// encoded chunk ends in its own CRC-32C, which gives all such files the same CRC-32C, so only the
/// hash distinguishes them.
Status CheckAgainstManifest(const Path& path, const ArrayEntry& entry, std::uint64_t rows,
                            std::span<const std::byte> bytes, const FileEntry& expected) {
  if (RHIZOME_MUTANT("chunk is not compared")) return Status::Ok();
  if (entry.codec.kind != CodecKind::kRaw || entry.sharded()) {
    if (Xxh3(bytes) == expected.xxh3) return Status::Ok();
    if (entry.sharded())
      for (const ShardDamage& damage : FindShardDamage(entry, rows, bytes, expected))
        return Corrupt(path, damage.what);
    return Corrupt(path, "its bytes do not have the hash that the manifest holds");
  }
  const std::uint32_t crc = Crc32c(bytes);
  if (crc == expected.crc32c) return Status::Ok();
  return Corrupt(
      path, fmt::format("CRC-32C is {:08x}, but the manifest says {:08x}", crc, expected.crc32c));
}

}  // namespace

Result<std::uint64_t> DefaultChunkRows(std::uint64_t rows, std::uint64_t row_bytes) {
  constexpr std::uint64_t kUnit = 128;
  constexpr std::uint64_t kMaxRows = 32768;
  if (row_bytes == 0 || row_bytes > kMaxChunkBytes / kUnit) {
    return Fail(
        Status::InvalidArgument(fmt::format("rows of {} bytes: reads of {} bytes are not possible; "
                                            "they must have 1 to {} bytes, the largest chunk",
                                            row_bytes, kUnit, kMaxChunkBytes)));
  }
  const std::uint64_t most = std::min(kMaxRows, AlignDown(kMaxChunkBytes / row_bytes, kUnit));
  if (rows >= most) return most;
  return std::max(kUnit, AlignUp(rows, kUnit));
}

std::uint64_t RowsOfBoundChunk(std::uint64_t type_rows, std::uint32_t partitions) {
  constexpr std::uint64_t kChunksOfPartition = 16;
  const std::uint64_t chunks = kChunksOfPartition * std::max(partitions, 1U);
  return (type_rows + chunks - 1) / chunks;
}

Status ChooseChunkRows(ArrayEntry& entry, std::optional<std::uint64_t> rows) {
  constexpr std::uint64_t kMaxInnerBytes = std::uint64_t{64} << 10;
  const bool by_default = entry.chunk_rows == 0;
  if (by_default) {
    RHIZOME_ASSIGN_OR_RETURN(entry.chunk_rows,
                             DefaultChunkRows(rows.value_or(entry.rows), entry.row_bytes()));
  }
  std::uint64_t& inner = entry.inner_rows;
  if (inner == kChosenInnerRows) {
    const std::uint64_t fit = kMaxInnerBytes / std::max<std::uint64_t>(entry.row_bytes(), 1);
    inner = std::bit_floor(std::clamp<std::uint64_t>(fit, 1, entry.chunk_rows));
    while (!by_default && entry.chunk_rows % inner != 0) inner /= 2;
  }
  if (!by_default || inner == 0 || inner > kMaxChunkBytes / entry.row_bytes())
    return Status::Ok();  // sizes that do not fit are refused when the entry is checked
  const std::uint64_t most = kMaxChunkBytes / entry.row_bytes() / inner;
  entry.chunk_rows = std::min((entry.chunk_rows + inner - 1) / inner, most) * inner;
  return Status::Ok();
}

std::uint32_t RowCrc(std::uint64_t array_id, std::uint64_t row, std::span<const std::byte> bytes) {
  std::array<std::byte, 16> place;
  StoreLittle(place.data(), array_id);
  StoreLittle(place.data() + 8, row);
  return Crc32c(bytes, Crc32c(place));
}

// Only this engine reads sidecars, so they are outside the group of arrays that other programs
// list.
std::string ArrayFolder(std::string_view array, ArrayForm form) {
  const bool apart = array.ends_with(kSidecarSuffix) && form != ArrayForm::kZeroFill;
  return fmt::format("{}{}", apart ? kSumsPrefix : kArraysPrefix, array);
}
std::string ChunkPath(std::string_view array, std::uint64_t chunk, ArrayForm form) {
  return fmt::format("{}/c.{}.0", ArrayFolder(array, form), chunk);
}
std::string_view ArrayOfFile(std::string_view path) {
  for (const std::string_view prefix : {kArraysPrefix, kSumsPrefix, kTextsPrefix}) {
    if (!path.starts_with(prefix)) continue;
    path.remove_prefix(prefix.size());
    return path.substr(0, path.find('/') == path.npos ? 0 : path.find('/'));
  }
  return {};
}
std::string SidecarName(std::string_view array) {
  return fmt::format("{}{}", array, kSidecarSuffix);
}

std::optional<std::uint64_t> ChunkOfFile(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  if (name == "c.0.0") return 0;
  if (name.size() < 5 || !name.starts_with("c.") || !name.ends_with(".0")) return std::nullopt;
  return ParseVersion(name.substr(2, name.size() - 4));
}

std::vector<std::uint64_t> ListedChunks(const ArrayEntry& entry, std::span<const FileEntry> files) {
  const std::string prefix = ArrayFolder(entry.name, entry.form) + "/";
  auto at = std::lower_bound(files.begin(), files.end(), prefix,
                             [](const FileEntry& file, auto& p) { return file.path < p; });
  std::vector<std::uint64_t> chunks;
  for (; at != files.end() && at->path.starts_with(prefix); ++at)
    if (const auto chunk = ChunkOfFile(at->path); chunk && *chunk < entry.chunk_count())
      chunks.push_back(*chunk);
  std::sort(chunks.begin(), chunks.end());
  return chunks;
}

ChunkArray::ChunkArray() = default;
ChunkArray::~ChunkArray() = default;

Result<std::unique_ptr<ChunkArray>> ChunkArray::Open(FileSystem& fs, const Path& root,
                                                     const ArrayEntry& entry,
                                                     std::span<const FileEntry> files) try {
  if (const Status rules = CheckArrayEntry(entry); !rules.ok())
    return Fail(Status::Corruption(rules.message()));
  const auto mine = FilesOf(entry, files);
  RHIZOME_RETURN_IF_ERROR(CheckMetadata(fs, root, entry, mine));
  const Path folder = root / ArrayFolder(entry.name, entry.form);
  // Checked before anything is allocated for the chunks, since a shape may claim any number of
  // them.
  const bool bound = !BoundType(entry).empty();
  if (bound ? mine.size() > entry.chunk_count() + 1 : mine.size() != entry.chunk_count() + 1) {
    return Fail(Corrupt(folder, fmt::format("{} files in the manifest, but {} chunks by the shape",
                                            mine.size(), entry.chunk_count())));
  }
  std::unique_ptr<ChunkArray> array(new ChunkArray);
  array->fs_ = &fs;
  array->root_ = root;
  array->entry_ = entry;
  array->entry_.codec.element_bytes = DataTypeBytes(entry.dtype);
  if (entry.sharded()) array->tables_ = std::make_unique<ShardTables>();
  RHIZOME_RETURN_IF_ERROR(array->AddChunks(mine));
  return array;
} catch (...) {
  return Fail(StatusOfException());
}

/// Takes the files of the chunks from the array's files. All chunks of an array that is not bound
/// have one. Memory: for the files that are listed, not for the chunks that the shape claims.
Status ChunkArray::AddChunks(std::span<const FileEntry* const> files) {
  const std::string json = ArrayFolder(entry_.name, entry_.form) + "/zarr.json";
  std::vector<std::pair<std::uint64_t, const FileEntry*>> listed;
  for (const FileEntry* file : files) {
    if (file->path == json) continue;
    const auto chunk = ChunkOfFile(file->path);
    if (!chunk || *chunk >= entry_.chunk_count() ||
        file->path != ChunkPath(entry_.name, *chunk, entry_.form))
      return Corrupt(root_ / file->path, "not the file of a chunk of the array");
    listed.emplace_back(*chunk, file);
  }
  std::sort(listed.begin(), listed.end());
  const bool bound = !BoundType(entry_).empty();
  std::vector<std::uint64_t> chunks;
  for (const auto& [chunk, file] : listed) {
    if (!bound && chunk != chunks_.size())
      return Corrupt(root_ / ChunkPath(entry_.name, chunks_.size(), entry_.form),
                     "not in the manifest's list of files");
    RHIZOME_RETURN_IF_ERROR(CheckChunkSize(root_ / file->path, entry_, file->size_bytes));
    chunks_.push_back(*file);
    if (bound) chunks.push_back(chunk);
  }
  slots_ = bound ? ChunkSlots(std::move(chunks)) : ChunkSlots(entry_.chunk_count());
  return Status::Ok();
}

std::uint64_t ChunkArray::RowsInChunk(std::uint64_t chunk) const {
  if (chunk >= entry_.chunk_count()) return 0;
  return std::min(entry_.chunk_rows, entry_.rows - chunk * entry_.chunk_rows);
}

Result<const FileEntry*> ChunkArray::ChunkFile(std::uint64_t chunk) const try {
  if (HasChunk(chunk)) return &FileAt(chunk);
  const bool none = chunk < entry_.chunk_count();
  return Fail(Status::InvalidArgument(
      fmt::format("chunk {} {}: array '{}' has {} chunks", chunk,
                  none ? "has no file, as it has no vertex of the array's type" : "does not exist",
                  ShownName(entry_.name), entry_.chunk_count())));
} catch (...) {
  return Fail(StatusOfException());
}

/// Reads a chunk in these steps:
///   1. Opens the chunk's file, and compares its length with the manifest. Without a file, the rows
///      are the fill value.
///   2. Reads the whole file: a full raw chunk into `out`, any other into the caller's or a local
///      buffer.
///   3. Compares its bytes with the manifest's checksum or hash (CheckAgainstManifest).
///   4. Decodes it into `out` unless it was read there (DecodeInto).
Result<std::uint64_t> ChunkArray::ReadChunk(std::uint64_t chunk, std::span<std::byte> out,
                                            const FileSystem::ReadOptions& options,
                                            AlignedBuffer* room) const try {
  if (chunk >= entry_.chunk_count() || out.size() != RowsInChunk(chunk) * entry_.row_bytes()) {
    return Fail(Status::InvalidArgument(
        fmt::format("array '{}': chunk {} does not exist, or the buffer does not have its {} bytes",
                    ShownName(entry_.name), chunk, out.size())));
  }
  if (!HasChunk(chunk)) {
    FillOtherRows(entry_, out);
    return std::uint64_t{0};
  }
  const FileEntry& expected = FileAt(chunk);
  const Path path = root_ / expected.path;
  RHIZOME_ASSIGN_OR_RETURN(const auto file, OpenStored(*fs_, path, options));
  if (file->size_bytes() != expected.size_bytes) {
    return Fail(Corrupt(path, fmt::format("{} bytes long, but the manifest says {}",
                                          file->size_bytes(), expected.size_bytes)));
  }
  // A full chunk of raw bytes is read directly into `out`.
  const std::uint64_t unit = file->alignment_bytes();
  const bool in_place = entry_.codec.kind == CodecKind::kRaw && !entry_.sharded() &&
                        out.size() == expected.size_bytes && out.size() % unit == 0 &&
                        reinterpret_cast<std::uintptr_t>(out.data()) % unit == 0;
  AlignedBuffer own;
  AlignedBuffer& memory = room == nullptr ? own : *room;
  const std::uint64_t needed = AlignUp(expected.size_bytes, unit);
  if (!in_place && memory.size_bytes() < needed) {
    RHIZOME_ASSIGN_OR_RETURN(memory, AlignedBuffer::Allocate(needed));
  }
  const std::span<std::byte> read = in_place ? out : memory.bytes().first(needed);
  RHIZOME_RETURN_IF_ERROR(ReadWhole(*file, read));
  const std::span<std::byte> bytes = read.first(expected.size_bytes);
  RHIZOME_RETURN_IF_ERROR(CheckAgainstManifest(path, entry_, RowsInChunk(chunk), bytes, expected));
  if (!in_place) RHIZOME_RETURN_IF_ERROR(DecodeInto(path, chunk, bytes, out));
  return expected.size_bytes;
} catch (...) {
  return Fail(StatusOfException());
}

/// Decodes the rows of a whole chunk from the bytes of its file.
Status ChunkArray::DecodeInto(const Path& path, std::uint64_t chunk,
                              std::span<const std::byte> bytes, std::span<std::byte> out) const {
  if (entry_.sharded()) {
    const auto tail = bytes.subspan(bytes.size() - ShardTailBytes(entry_));
    const auto table = DecodeShardTail(entry_, RowsInChunk(chunk), tail, FileAt(chunk));
    if (!table) return table.error().WithContext(path.string());
    const std::uint64_t inner_bytes = entry_.inner_rows * entry_.row_bytes();
    for (std::uint64_t inner = 0; inner * inner_bytes < out.size(); ++inner) {
      const InnerRange& range = table->ranges[inner];
      const auto rows = out.subspan(inner * inner_bytes);
      const Status decoded =
          DecodeInner(entry_, *table, inner, bytes.subspan(range.offset_bytes, range.size_bytes),
                      rows.first(std::min<std::uint64_t>(rows.size(), inner_bytes)));
      if (!decoded.ok()) return decoded.WithContext(path.string());
    }
    return Status::Ok();
  }
  const std::uint64_t decoded_bytes = ChunkBytes(entry_);
  std::vector<std::byte> padded(out.size() == decoded_bytes ? 0 : decoded_bytes);
  const std::span<std::byte> decoded = padded.empty() ? out : std::span<std::byte>(padded);
  if (const Status status = DecodeChunk(entry_.codec, bytes, decoded); !status.ok())
    return status.WithContext(path.string());
  if (!padded.empty()) std::copy_n(padded.begin(), out.size(), out.begin());
  return Status::Ok();
}

/// Reads rows of one shard, starting with its row `first_row`: first the shard's table, unless it
/// is cached, then the inner chunks that contain the rows, in one read.
Status ChunkArray::ReadRowsOfShard(std::uint64_t chunk, std::uint64_t first_row,
                                   std::span<std::byte> out) const {
  const FileEntry& expected = FileAt(chunk);
  const Path path = root_ / expected.path;
  RHIZOME_ASSIGN_OR_RETURN(const auto file, OpenStored(*fs_, path));
  if (file->size_bytes() != expected.size_bytes)
    return Corrupt(path, fmt::format("{} bytes long, but the manifest says {}", file->size_bytes(),
                                     expected.size_bytes));
  const std::uint64_t row_bytes = entry_.row_bytes();
  const std::uint64_t in_shard = RowsInChunk(chunk);
  std::shared_ptr<const ShardTable> table = tables_->Find(chunk);
  if (table == nullptr) {
    std::vector<std::byte> tail(ShardTailBytes(entry_));
    RHIZOME_RETURN_IF_ERROR(ReadExactly(*file, expected.size_bytes - tail.size(), tail));
    auto decoded = DecodeShardTail(entry_, in_shard, tail, expected);
    if (!decoded) return decoded.error().WithContext(path.string());
    table = std::make_shared<const ShardTable>(*std::move(decoded));
    tables_->Keep(chunk, table);
  }
  const std::uint64_t first = first_row / entry_.inner_rows;
  const std::uint64_t last = (first_row + out.size() / row_bytes - 1) / entry_.inner_rows;
  const std::uint64_t begin = table->ranges[first].offset_bytes;
  const InnerRange& end = table->ranges[last];
  std::vector<std::byte> encoded(end.offset_bytes + end.size_bytes - begin);
  RHIZOME_RETURN_IF_ERROR(ReadExactly(*file, begin, encoded));
  std::vector<std::byte> rows;
  std::uint64_t done = 0;
  for (std::uint64_t inner = first; inner <= last; ++inner) {
    const InnerRange& range = table->ranges[inner];
    const auto bytes = std::span(encoded).subspan(range.offset_bytes - begin, range.size_bytes);
    const std::uint64_t inner_row = inner * entry_.inner_rows;
    rows.resize(std::min(entry_.inner_rows, in_shard - inner_row) * row_bytes);
    std::uint64_t skip = inner == first ? (first_row - inner_row) * row_bytes : 0;
    if (RHIZOME_MUTANT("shard is read off by one") && skip > 0) skip -= row_bytes;
    const std::uint64_t take = std::min<std::uint64_t>(rows.size() - skip, out.size() - done);
    const bool whole = take == rows.size();
    const auto target = whole ? out.subspan(done, take) : std::span<std::byte>(rows);
    const Status decoded = DecodeInner(entry_, *table, inner, bytes, target);
    if (!decoded.ok()) return decoded.WithContext(path.string());
    if (!whole) std::copy_n(rows.data() + skip, take, out.data() + done);
    done += take;
  }
  return Status::Ok();
}

Status ChunkArray::ReadRows(std::uint64_t first, std::uint64_t count,
                            std::span<std::byte> out) const try {
  const std::uint64_t row_bytes = entry_.row_bytes();
  if (first > entry_.rows || count > entry_.rows - first || out.size() != count * row_bytes) {
    return Status::InvalidArgument(fmt::format(
        "array '{}' does not have the rows [{}, {} + {}), or the buffer has another size",
        ShownName(entry_.name), first, first, count));
  }
  std::vector<std::byte> memory;
  for (std::uint64_t done = 0; done < count;) {
    const std::uint64_t chunk = (first + done) / entry_.chunk_rows;
    const std::uint64_t skip = first + done - chunk * entry_.chunk_rows;
    const std::uint64_t in_chunk = RowsInChunk(chunk);
    const std::uint64_t take = std::min(in_chunk - skip, count - done);
    const auto target = out.subspan(done * row_bytes, take * row_bytes);
    if (!HasChunk(chunk)) {
      FillOtherRows(entry_, target);
    } else if (take == in_chunk) {
      RHIZOME_RETURN_IF_ERROR(ReadChunk(chunk, target));
    } else if (entry_.sharded() && take > 0) {
      RHIZOME_RETURN_IF_ERROR(ReadRowsOfShard(chunk, skip, target));
    } else {
      memory.resize(in_chunk * row_bytes);
      RHIZOME_RETURN_IF_ERROR(ReadChunk(chunk, memory));
      std::copy_n(memory.begin() + static_cast<std::ptrdiff_t>(skip * row_bytes), target.size(),
                  target.begin());
    }
    done += take;
  }
  return Status::Ok();
} catch (...) {
  return StatusOfException();
}

}  // namespace rhizome
