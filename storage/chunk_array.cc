#include "rhizome/storage/chunk_array.h"

#include <fmt/format.h>

#include <algorithm>

#include "rhizome/storage/array_rules.h"
#include "rhizome/storage/check.h"
#include "rhizome/storage/little_endian.h"
#include "rhizome/storage/zarr_format.h"

namespace rhizome {

namespace {

std::uint64_t ChunkBytes(const ArrayEntry& entry) { return entry.chunk_rows * entry.row_bytes(); }

Status Corrupt(const Path& path, std::string_view why) {
  return Status::Corruption(fmt::format("'{}': {}", path.string(), why));
}

/// The files of `array`, sorted by path. Manifests hold the files of all arrays.
std::vector<const FileEntry*> FilesOf(std::string_view array, std::span<const FileEntry> files) {
  const std::string prefix = ArrayFolder(array) + "/";
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
  const std::string relative = ArrayFolder(entry.name) + "/zarr.json";
  const Path path = root / relative;
  const FileEntry* file = Find(files, relative);
  if (file == nullptr) return Corrupt(path, "not in the manifest's list of files");
  RHIZOME_ASSIGN_OR_RETURN(const auto bytes, ReadWholeFile(fs, path, kMaxZarrJsonBytes));
  if (bytes.size() != file->size_bytes || Xxh3(bytes) != file->xxh3)
    return Corrupt(path, "length or hash differ from the manifest's");
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto described = DecodeArrayJson(text, entry.name);
  if (!described) return described.error().WithContext(path.string());
  if (*described == entry) return Status::Ok();
  return Corrupt(path, "describes another array than the manifest does");
}

Status CheckChunkSize(const Path& path, const ArrayEntry& entry, std::uint64_t size_bytes) {
  const std::uint64_t raw = ChunkBytes(entry);
  const bool fits = entry.codec.kind == CodecKind::kRaw
                        ? size_bytes == raw
                        : size_bytes <= MaxEncodedBytes(entry.codec, raw);
  if (fits) return Status::Ok();
  return Corrupt(path, fmt::format("{} bytes cannot be a chunk of {} bytes in codec {}", size_bytes,
                                   raw, CodecName(entry.codec.kind)));
}

/// Is this the file that the manifest names, and not another chunk's, or an older one? An encoded
/// chunk ends in its own CRC-32C, and then every file has the same CRC-32C: only the hash tells.
Status CheckAgainstManifest(const Path& path, const Codec& codec, std::span<const std::byte> bytes,
                            const FileEntry& expected) {
  if (codec.kind != CodecKind::kRaw) {
    if (Xxh3(bytes) == expected.xxh3) return Status::Ok();
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
  constexpr std::uint64_t kMostRows = 32768;
  if (row_bytes == 0 || row_bytes > kMaxChunkBytes / kUnit) {
    return Fail(Status::InvalidArgument(
        fmt::format("rows of {} bytes: {} of them must be 1 to {} bytes, the largest chunk",
                    row_bytes, kUnit, kMaxChunkBytes)));
  }
  const std::uint64_t most = std::min(kMostRows, AlignDown(kMaxChunkBytes / row_bytes, kUnit));
  if (rows >= most) return most;
  return std::max(kUnit, AlignUp(rows, kUnit));
}

std::uint32_t RowCrc(std::uint64_t array_id, std::uint64_t row, std::span<const std::byte> bytes) {
  std::array<std::byte, 16> place;
  StoreLittle(place.data(), array_id);
  StoreLittle(place.data() + 8, row);
  return Crc32c(bytes, Crc32c(place));
}

std::string ArrayFolder(std::string_view array) { return fmt::format("arrays/{}", array); }
std::string ChunkPath(std::string_view array, std::uint64_t chunk) {
  return fmt::format("arrays/{}/c.{}.0", array, chunk);
}
std::string SidecarName(std::string_view array) {
  return fmt::format("{}{}", array, kSidecarSuffix);
}

Result<std::unique_ptr<ChunkArray>> ChunkArray::Open(FileSystem& fs, const Path& root,
                                                     const ArrayEntry& entry,
                                                     std::span<const FileEntry> files) {
  if (const Status rules = CheckArrayEntry(entry); !rules.ok())
    return Fail(Status::Corruption(rules.message()));
  const auto mine = FilesOf(entry.name, files);
  RHIZOME_RETURN_IF_ERROR(CheckMetadata(fs, root, entry, mine));
  const Path folder = root / ArrayFolder(entry.name);
  // Before anything is allocated for them: a shape may claim any number of chunks.
  if (mine.size() != entry.chunk_count() + 1) {
    return Fail(Corrupt(folder, fmt::format("{} files in the manifest, but {} chunks by the shape",
                                            mine.size(), entry.chunk_count())));
  }
  std::unique_ptr<ChunkArray> array(new ChunkArray);
  array->fs_ = &fs;
  array->root_ = root;
  array->entry_ = entry;
  array->entry_.codec.element_bytes = DataTypeBytes(entry.dtype);
  array->chunks_.reserve(entry.chunk_count());
  for (std::uint64_t chunk = 0; chunk < entry.chunk_count(); ++chunk) {
    const std::string relative = ChunkPath(entry.name, chunk);
    const FileEntry* file = Find(mine, relative);
    if (file == nullptr)
      return Fail(Corrupt(root / relative, "not in the manifest's list of files"));
    RHIZOME_RETURN_IF_ERROR(CheckChunkSize(root / relative, array->entry_, file->size_bytes));
    array->chunks_.push_back(*file);
  }
  return array;
}

std::uint64_t ChunkArray::RowsInChunk(std::uint64_t chunk) const {
  RHIZOME_CHECK(chunk < entry_.chunk_count());
  return std::min(entry_.chunk_rows, entry_.rows - chunk * entry_.chunk_rows);
}

Result<std::uint64_t> ChunkArray::ReadChunk(std::uint64_t chunk, std::span<std::byte> out) const {
  if (chunk >= entry_.chunk_count() || out.size() != RowsInChunk(chunk) * entry_.row_bytes()) {
    return Fail(Status::InvalidArgument(fmt::format(
        "array '{}': no chunk {}, or not its {} bytes of memory", entry_.name, chunk, out.size())));
  }
  const FileEntry& expected = chunks_[chunk];
  const Path path = root_ / expected.path;
  RHIZOME_ASSIGN_OR_RETURN(const auto file, fs_->OpenRead(path));
  if (file->size_bytes() != expected.size_bytes) {
    return Fail(Corrupt(path, fmt::format("{} bytes long, but the manifest says {}",
                                          file->size_bytes(), expected.size_bytes)));
  }
  // A whole chunk of raw bytes needs no second copy.
  const bool in_place = entry_.codec.kind == CodecKind::kRaw && out.size() == expected.size_bytes;
  std::vector<std::byte> memory(in_place ? 0 : expected.size_bytes);
  const std::span<std::byte> bytes = in_place ? out : std::span<std::byte>(memory);
  RHIZOME_RETURN_IF_ERROR(ReadExactly(*file, 0, bytes));
  RHIZOME_RETURN_IF_ERROR(CheckAgainstManifest(path, entry_.codec, bytes, expected));
  if (in_place) return expected.size_bytes;
  const std::uint64_t decoded_bytes = ChunkBytes(entry_);
  std::vector<std::byte> padded(out.size() == decoded_bytes ? 0 : decoded_bytes);
  const std::span<std::byte> decoded = padded.empty() ? out : std::span<std::byte>(padded);
  if (const Status status = DecodeChunk(entry_.codec, bytes, decoded); !status.ok())
    return Fail(status.WithContext(path.string()));
  if (!padded.empty()) std::copy_n(padded.begin(), out.size(), out.begin());
  return expected.size_bytes;
}

Status ChunkArray::ReadRows(std::uint64_t first, std::uint64_t count,
                            std::span<std::byte> out) const {
  const std::uint64_t row_bytes = entry_.row_bytes();
  if (first > entry_.rows || count > entry_.rows - first || out.size() != count * row_bytes) {
    return Status::InvalidArgument(
        fmt::format("array '{}' has no rows [{}, {} + {}), or not their memory", entry_.name, first,
                    first, count));
  }
  std::vector<std::byte> memory;
  for (std::uint64_t done = 0; done < count;) {
    const std::uint64_t chunk = (first + done) / entry_.chunk_rows;
    const std::uint64_t skip = first + done - chunk * entry_.chunk_rows;
    const std::uint64_t in_chunk = RowsInChunk(chunk);
    const std::uint64_t take = std::min(in_chunk - skip, count - done);
    const auto target = out.subspan(done * row_bytes, take * row_bytes);
    if (take == in_chunk) {
      RHIZOME_RETURN_IF_ERROR(ReadChunk(chunk, target));
    } else {
      memory.resize(in_chunk * row_bytes);
      RHIZOME_RETURN_IF_ERROR(ReadChunk(chunk, memory));
      std::copy_n(memory.begin() + static_cast<std::ptrdiff_t>(skip * row_bytes), target.size(),
                  target.begin());
    }
    done += take;
  }
  return Status::Ok();
}

}  // namespace rhizome
