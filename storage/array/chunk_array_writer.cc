#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "rhizome/chunk_array.h"
#include "storage/array/array_rules.h"
#include "storage/array/array_versions.h"
#include "storage/array/chunk_writer.h"
#include "storage/array/codec.h"
#include "storage/array/coordinates.h"
#include "storage/array/shard_file.h"
#include "storage/array/zarr_format.h"
#include "storage/base/check.h"
#include "storage/base/exceptions.h"
#include "storage/base/hash.h"
#include "storage/base/mutant.h"
#include "storage/base/mutex.h"
#include "storage/io/files.h"
#include "storage/io/io_queue.h"
#include "storage/io/stored_file.h"

namespace rhizome {

namespace {

/// A new file below a root that hashes the bytes written to it. It replaces a file that a killed
/// run left behind.
class HashedFile {
 public:
  static Result<HashedFile> Create(FileSystem& fs, const Path& root, std::string relative_path) {
    const Path path = root / relative_path;
    auto file = fs.CreateFile(path);
    if (!file && file.error().code() == StatusCode::kAlreadyExists) {
      RHIZOME_RETURN_IF_ERROR(fs.RemoveFile(path));
      file = fs.CreateFile(path);
    }
    if (!file) return Fail(file.error());
    return HashedFile(*std::move(file), std::move(relative_path));
  }

  Status Append(std::span<const std::byte> bytes) {
    hash_.Update(bytes);
    return file_->Append(bytes);
  }

  Result<FileEntry> Finish() {
    if (!RHIZOME_MUTANT("chunk is not synced")) RHIZOME_RETURN_IF_ERROR(file_->Sync());
    const std::uint64_t size_bytes = file_->size_bytes();
    RHIZOME_RETURN_IF_ERROR(file_->Close());
    return FileEntry{relative_path_, size_bytes, hash_.xxh3(), hash_.crc32c()};
  }

 private:
  HashedFile(std::unique_ptr<WritableFile> file, std::string relative_path)
      : file_(std::move(file)), relative_path_(std::move(relative_path)) {}
  std::unique_ptr<WritableFile> file_;
  StreamHash hash_;
  std::string relative_path_;
};

Result<FileEntry> WriteText(FileSystem& fs, const Path& root, std::string relative_path,
                            std::string_view text) {
  RHIZOME_ASSIGN_OR_RETURN(HashedFile file, HashedFile::Create(fs, root, std::move(relative_path)));
  RHIZOME_RETURN_IF_ERROR(file.Append(std::as_bytes(std::span(text))));
  return file.Finish();
}

/// A pool of buffers for encoded chunks of one array. It keeps as many as were ever in use at once.
/// Threads: any.
class EncodeBuffers {
 public:
  Result<AlignedBuffer> Take(std::uint64_t size_bytes) {
    {
      const MutexLock lock(mutex_);
      if (!free_.empty()) {
        AlignedBuffer buffer = std::move(free_.back());
        free_.pop_back();
        return buffer;
      }
    }
    return AlignedBuffer::Allocate(size_bytes);
  }
  void GiveBack(AlignedBuffer buffer) {
    const MutexLock lock(mutex_);
    free_.push_back(std::move(buffer));
  }

 private:
  Mutex mutex_;
  std::vector<AlignedBuffer> free_ RHIZOME_GUARDED_BY(mutex_);
};

/// Writes the file of one chunk, padded with zero rows to its full length.
Result<FileEntry> WriteChunkFile(FileSystem& fs, const Path& root, const ArrayEntry& entry,
                                 std::uint64_t chunk, std::span<const std::byte> rows,
                                 EncodeBuffers& buffers) {
  RHIZOME_ASSIGN_OR_RETURN(HashedFile file,
                           HashedFile::Create(fs, root, ChunkPath(entry.name, chunk, entry.form)));
  const std::size_t full_bytes = entry.chunk_rows * entry.row_bytes();
  RHIZOME_DCHECK(rows.size() <= full_bytes && rows.size() % entry.row_bytes() == 0);
  if (entry.sharded()) {
    RHIZOME_ASSIGN_OR_RETURN(const auto shard, EncodeShard(entry, rows));
    RHIZOME_RETURN_IF_ERROR(file.Append(shard));
    return file.Finish();
  }
  if (entry.codec.kind == CodecKind::kRaw) {
    RHIZOME_RETURN_IF_ERROR(file.Append(rows));
    const std::vector<std::byte> padding(full_bytes - rows.size());
    RHIZOME_RETURN_IF_ERROR(file.Append(padding));
    return file.Finish();
  }
  std::vector<std::byte> padded;
  if (rows.size() < full_bytes) {
    padded.assign(rows.begin(), rows.end());
    padded.resize(full_bytes);
    rows = padded;
  }
  RHIZOME_ASSIGN_OR_RETURN(AlignedBuffer encoded,
                           buffers.Take(MaxEncodedBytes(entry.codec, full_bytes)));
  RHIZOME_ASSIGN_OR_RETURN(const std::size_t size,
                           EncodeChunkInto(entry.codec, rows, encoded.bytes()));
  RHIZOME_RETURN_IF_ERROR(file.Append(encoded.bytes().first(size)));
  buffers.GiveBack(std::move(encoded));
  return file.Finish();
}

Result<ArrayEntry> SidecarOf(const ArrayEntry& entry) {
  ArrayEntry sidecar;
  sidecar.name = SidecarName(entry.name);
  sidecar.rows = entry.rows;
  sidecar.dim = 1;
  sidecar.dtype = DataType::kUint32;
  sidecar.layout = ArrayLayout::kRow;
  sidecar.codec = {.kind = CodecKind::kRaw, .level = 0, .element_bytes = 4};
  sidecar.array_id = entry.array_id;
  sidecar.form = entry.form;
  RHIZOME_ASSIGN_OR_RETURN(sidecar.chunk_rows, DefaultChunkRows(entry.rows, sidecar.row_bytes()));
  if (BoundType(entry).empty()) return sidecar;
  sidecar.chunk_rows = entry.chunk_rows;  // so that the two leave out the same chunks
  sidecar.attributes.emplace_back(kVertexTypeAttribute, BoundType(entry));
  return sidecar;
}

// Normalises an entry, so that equal arrays have equal bytes.
Result<ArrayEntry> Normalised(ArrayEntry entry) {
  RHIZOME_RETURN_IF_ERROR(ChooseChunkRows(entry));
  std::sort(entry.attributes.begin(), entry.attributes.end());
  if (!entry.codec.has_level()) entry.codec.level = 0;
  entry.form = ArrayForm::kMarkedFill;  // also for an array that had kZeroFill before
  RHIZOME_RETURN_IF_ERROR(CheckArrayEntry(entry));
  entry.codec.element_bytes = DataTypeBytes(entry.dtype);
  if (entry.name.ends_with(kSidecarSuffix)) {
    return Fail(Status::InvalidArgument(
        fmt::format("array '{}': names that end in '{}' are reserved for row checksums",
                    ShownName(entry.name), kSidecarSuffix)));
  }
  if (entry.layout == ArrayLayout::kRow)
    RHIZOME_RETURN_IF_ERROR(CheckName("array", SidecarName(entry.name)));
  return entry;
}

}  // namespace

/// Writes an array in these steps:
///   1. MakeFolders creates the folder of the array, and its sidecar's in layout kRow;
///   2. WriteChunk computes row checksums (layout kRow), then encodes, writes, hashes and syncs the
///      file of one chunk; AdoptChunk takes over a chunk that an earlier run wrote; LeaveOut notes
///      a chunk of a bound array that has no file;
///   3. Finish checks that no chunk is missing, writes zarr.json and the sidecar, and syncs the
///      folders.
class ChunkArrayWriter::Impl {
 public:
  Impl(FileSystem& fs, Path root, ArrayEntry entry, std::optional<ArrayEntry> sidecar)
      : fs_(fs),
        root_(std::move(root)),
        entry_(std::move(entry)),
        sidecar_(std::move(sidecar)),
        row_crcs_(sidecar_ ? entry_.rows : 0),
        chunks_(entry_.chunk_count()),
        left_out_(BoundType(entry_).empty() ? 0 : entry_.chunk_count()) {}

  Status MakeFolders() {
    RHIZOME_RETURN_IF_ERROR(CreateDirectories(fs_, root_ / ArrayFolder(entry_.name, entry_.form)));
    if (!sidecar_) return Status::Ok();
    return CreateDirectories(fs_, root_ / ArrayFolder(sidecar_->name, sidecar_->form));
  }

  Result<FileEntry> WriteChunk(std::uint64_t chunk, std::span<const std::byte> rows) {
    const std::uint64_t first = chunk * entry_.chunk_rows;
    if (chunk >= entry_.chunk_count() ||
        rows.size() != std::min(entry_.chunk_rows, entry_.rows - first) * entry_.row_bytes()) {
      return Fail(Status::InvalidArgument(
          fmt::format("array '{}' of {} chunks: chunk {} of {} bytes does not belong to it",
                      ShownName(entry_.name), entry_.chunk_count(), chunk, rows.size())));
    }
    // Threads write disjoint parts of row_crcs_, one part per chunk.
    if (sidecar_) SumRows(first, rows);
    RHIZOME_ASSIGN_OR_RETURN(FileEntry file,
                             WriteChunkFile(fs_, root_, entry_, chunk, rows, buffers_));
    const MutexLock lock(mutex_);
    chunks_[chunk] = file;
    return file;
  }

  Status AdoptChunk(std::uint64_t chunk, const FileEntry& file) {
    if (sidecar_)
      return Status::InvalidArgument(fmt::format(
          "array '{}': rows cannot be appended to an array of layout row", ShownName(entry_.name)));
    if (chunk >= entry_.chunk_count() || file.path != ChunkPath(entry_.name, chunk))
      return Status::InvalidArgument(fmt::format("'{}' is not chunk {} of array '{}'", file.path,
                                                 chunk, ShownName(entry_.name)));
    const Path path = root_ / file.path;
    RHIZOME_ASSIGN_OR_RETURN(const FileInfo info, MissingIsDamage(fs_.Stat(path), path));
    if (info.kind != DirectoryEntry::Kind::kFile || info.size_bytes != file.size_bytes)
      return Status::Corruption(
          fmt::format("'{}' is not a file of {} bytes", path.string(), file.size_bytes));
    const MutexLock lock(mutex_);
    chunks_[chunk] = file;
    return Status::Ok();
  }

  Status LeaveOut(std::uint64_t chunk) {
    const MutexLock lock(mutex_);
    if (chunk >= left_out_.size() || chunks_[chunk])
      return Status::InvalidArgument(
          fmt::format("array '{}': chunk {} cannot be left out: there is no such chunk, it was "
                      "written, or the array is not bound to a vertex type",
                      ShownName(entry_.name), chunk));
    left_out_[chunk] = true;
    return Status::Ok();
  }

  Result<std::vector<FileEntry>> Finish() {
    RHIZOME_ASSIGN_OR_RETURN(std::vector<FileEntry> files, Chunks());
    RHIZOME_RETURN_IF_ERROR(WriteMetadata(entry_, files));
    if (sidecar_) RHIZOME_RETURN_IF_ERROR(WriteSidecar(files));
    RHIZOME_RETURN_IF_ERROR(fs_.SyncDirectory(root_ / "arrays"));
    if (sidecar_)
      RHIZOME_RETURN_IF_ERROR(
          fs_.SyncDirectory((root_ / ArrayFolder(sidecar_->name, sidecar_->form)).parent_path()));
    std::sort(files.begin(), files.end(), [](auto& a, auto& b) { return a.path < b.path; });
    RHIZOME_DCHECK(std::adjacent_find(files.begin(), files.end(), [](auto& a, auto& b) {
                     return a.path == b.path;
                   }) == files.end());
    return files;
  }

  const ArrayEntry& entry() const { return entry_; }
  const std::optional<ArrayEntry>& sidecar() const { return sidecar_; }

 private:
  void SumRows(std::uint64_t first, std::span<const std::byte> rows) {
    const std::size_t row_bytes = entry_.row_bytes();
    for (std::size_t i = 0; i * row_bytes < rows.size(); ++i) {
      row_crcs_[first + i] =
          RowCrc(entry_.array_id, first + i, rows.subspan(i * row_bytes, row_bytes));
    }
  }

  Result<std::vector<FileEntry>> Chunks() {
    const MutexLock lock(mutex_);
    std::vector<FileEntry> files;
    files.reserve(chunks_.size() + 1);
    for (std::size_t chunk = 0; chunk < chunks_.size(); ++chunk) {
      if (!chunks_[chunk] && IsLeftOut(chunk)) continue;
      if (!chunks_[chunk])
        return Fail(Status::InvalidArgument(
            fmt::format("array '{}': chunk {} was not written", ShownName(entry_.name), chunk)));
      files.push_back(*chunks_[chunk]);
    }
    return files;
  }

  bool IsLeftOut(std::uint64_t chunk) const RHIZOME_REQUIRES(mutex_) {
    return chunk < left_out_.size() && left_out_[chunk];
  }
  bool IsWithoutSums(std::uint64_t chunk) {
    const MutexLock lock(mutex_);
    return IsLeftOut(chunk) && !RHIZOME_MUTANT("checksums of left-out chunks are written");
  }

  Status WriteMetadata(const ArrayEntry& entry, std::vector<FileEntry>& files) {
    const std::string folder = ArrayFolder(entry.name, entry.form);
    RHIZOME_ASSIGN_OR_RETURN(files.emplace_back(),
                             WriteText(fs_, root_, folder + "/zarr.json", EncodeArrayJson(entry)));
    return fs_.SyncDirectory(root_ / folder);
  }

  Status WriteSidecar(std::vector<FileEntry>& files) {
    const auto bytes = std::as_bytes(std::span(row_crcs_));
    const std::uint64_t full_bytes = sidecar_->chunk_rows * sidecar_->row_bytes();
    for (std::uint64_t chunk = 0; chunk < sidecar_->chunk_count(); ++chunk) {
      if (IsWithoutSums(chunk)) continue;
      const std::uint64_t begin = chunk * full_bytes;
      const auto rows = bytes.subspan(begin, std::min(full_bytes, bytes.size() - begin));
      RHIZOME_ASSIGN_OR_RETURN(files.emplace_back(),
                               WriteChunkFile(fs_, root_, *sidecar_, chunk, rows, buffers_));
    }
    return WriteMetadata(*sidecar_, files);
  }

  // Constant after construction.
  FileSystem& fs_;
  const Path root_;
  const ArrayEntry entry_;
  const std::optional<ArrayEntry> sidecar_;

  std::vector<std::uint32_t> row_crcs_;  // each chunk writes its own part; Finish reads them

  EncodeBuffers buffers_;
  Mutex mutex_;
  std::vector<std::optional<FileEntry>> chunks_ RHIZOME_GUARDED_BY(mutex_);
  std::vector<bool> left_out_ RHIZOME_GUARDED_BY(mutex_);  // empty: the array is not bound
};

Result<std::unique_ptr<ChunkArrayWriter>> ChunkArrayWriter::Create(FileSystem& fs, const Path& root,
                                                                   const ArrayEntry& entry) try {
  RHIZOME_ASSIGN_OR_RETURN(ArrayEntry normalised, Normalised(entry));
  std::optional<ArrayEntry> sidecar;
  if (normalised.layout == ArrayLayout::kRow) {
    RHIZOME_ASSIGN_OR_RETURN(sidecar, SidecarOf(normalised));
  }
  auto impl = std::make_unique<Impl>(fs, root, std::move(normalised), std::move(sidecar));
  RHIZOME_RETURN_IF_ERROR(impl->MakeFolders());
  return std::unique_ptr<ChunkArrayWriter>(new ChunkArrayWriter(std::move(impl)));
} catch (...) {
  return Fail(StatusOfException());
}

ChunkArrayWriter::ChunkArrayWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ChunkArrayWriter::~ChunkArrayWriter() = default;

Result<FileEntry> ChunkArrayWriter::WriteChunk(std::uint64_t chunk,
                                               std::span<const std::byte> rows) try {
  return impl_->WriteChunk(chunk, rows);
} catch (...) {
  return Fail(StatusOfException());
}
Status ChunkArrayWriter::AdoptChunk(std::uint64_t chunk, const FileEntry& file) try {
  return impl_->AdoptChunk(chunk, file);
} catch (...) {
  return StatusOfException();
}
Status ChunkArrayWriter::LeaveOut(std::uint64_t chunk) try {
  return impl_->LeaveOut(chunk);
} catch (...) {
  return StatusOfException();
}
Result<std::vector<FileEntry>> ChunkArrayWriter::Finish() {
  return Guarded([&] { return impl_->Finish(); });
}
const ArrayEntry& ChunkArrayWriter::entry() const { return impl_->entry(); }

std::vector<ArrayEntry> ChunkArrayWriter::arrays() const {
  std::vector<ArrayEntry> arrays = {impl_->entry()};
  if (impl_->sidecar()) arrays.push_back(*impl_->sidecar());
  return arrays;
}

Result<FileEntry> WriteArrayGroup(FileSystem& fs, const Path& root, std::string_view text) try {
  RHIZOME_RETURN_IF_ERROR(CreateDirectories(fs, root / "arrays"));
  const std::string plain = EncodeGroupJson(0, {}, {});
  RHIZOME_ASSIGN_OR_RETURN(
      FileEntry file, WriteText(fs, root, std::string(kGroupPath), text.empty() ? plain : text));
  RHIZOME_RETURN_IF_ERROR(fs.SyncDirectory(root / "arrays"));
  return file;
} catch (...) {
  return Fail(StatusOfException());
}

}  // namespace rhizome
