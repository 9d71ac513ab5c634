#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "rhizome/io_queue.h"
#include "rhizome/manifest.h"
#include "rhizome/result.h"

namespace rhizome {
inline namespace internal {
class ShardTables;
}  // namespace internal
}  // namespace rhizome

namespace RHIZOME_API rhizome {

/// Returns the default chunk_rows (docs/DESIGN.md, section 5): the largest multiple of 128 that is
/// at most 32,768, at most `rows` rounded up to a multiple of 128, and whose chunk has at most 64
/// MiB.
/// Errors: kInvalidArgument if 128 rows are more than 64 MiB, or row_bytes is 0.
Result<std::uint64_t> DefaultChunkRows(std::uint64_t rows, std::uint64_t row_bytes);

/// A value for ArrayEntry::inner_rows, and for options that set it, that requests shards with inner
/// chunks of 32 to 64 KiB (or of one row).
inline constexpr std::uint64_t kChosenInnerRows = ~std::uint64_t{0};

/// Sets chunk_rows if it is 0, and inner_rows if it is kChosenInnerRows. A chunk_rows that is
/// chosen for shards is a multiple of inner_rows. Errors: as for DefaultChunkRows.
Status ChooseChunkRows(ArrayEntry& entry);

/// Computes the per-row checksum in the sidecar of a row array: the CRC-32C of array id, row number
/// (8 bytes each, little-endian) and the row's bytes, so that a swapped row or array is detected.
std::uint32_t RowCrc(std::uint64_t array_id, std::uint64_t row, std::span<const std::byte> bytes);

/// Return paths inside a generation. The folder of an array is "arrays/<name>". The folder of a
/// sidecar is "sums/<name>", or "arrays/<name>" in the form kZeroFill. A chunk is
/// "<folder>/c.<chunk>.0". The sidecar of an array is called "<name>.crc32c".
std::string ArrayFolder(std::string_view array, ArrayForm form = ArrayForm::kMarkedFill);
std::string ChunkPath(std::string_view array, std::uint64_t chunk,
                      ArrayForm form = ArrayForm::kMarkedFill);
std::string SidecarName(std::string_view array);

/// Returns "<name>" for a file in the folder of an array, in "arrays/" or "sums/"; empty for other
/// files.
std::string_view ArrayOfFile(std::string_view path);

/// Writes one array of shape [rows, dim] as Zarr v3, chunk by chunk in any order, below a root
/// folder (a generation, or a job's scratch folder). Every chunk file (a shard if entry.inner_rows
/// is not 0) is synced when WriteChunk returns; Finish syncs the folders.
/// Threads: WriteChunk may be called from many threads for different chunks.
/// Ownership: `fs` must outlive it.
/// Source: Zarr v3 core specification; docs/DESIGN.md, section 5.
class ChunkArrayWriter {
 public:
  /// Creates `root`/arrays/<name>, and its sidecar's folder in layout kRow. If the folder exists,
  /// writing continues in it; this is how a killed job resumes. Applies ChooseChunkRows and sorts
  /// the attributes.
  /// Errors: kInvalidArgument, a bad name, shape, codec or chunk_rows; errors of the FileSystem.
  static Result<std::unique_ptr<ChunkArrayWriter>> Create(FileSystem& fs, const Path& root,
                                                          const ArrayEntry& entry);
  ~ChunkArrayWriter();

  /// Writes chunk `chunk` from `rows`: its rows within the shape, row-major, entry().row_bytes()
  /// bytes each. The file is padded with zero rows and replaces an existing one. Returns the file's
  /// entry.
  /// Errors: kInvalidArgument, no such chunk or a wrong size; errors of the FileSystem.
  Result<FileEntry> WriteChunk(std::uint64_t chunk, std::span<const std::byte> rows);

  /// Takes over a chunk that an earlier run wrote and whose entry is in the job's log. Errors:
  /// kInvalidArgument, layout kRow or the file of another chunk; kCorruption, the file is missing
  /// or has a different length.
  Status AdoptChunk(std::uint64_t chunk, const FileEntry& file);

  /// Writes metadata and sidecar, and syncs the folders. Returns the entries of all files, sorted
  /// by path.
  /// Errors: kInvalidArgument, a chunk was neither written nor adopted; errors of the FileSystem.
  Result<std::vector<FileEntry>> Finish();

  /// The array's entry and, in layout kRow, its sidecar's.
  std::vector<ArrayEntry> arrays() const;

  /// The entry as it is written, with the final chunk_rows and inner_rows.
  const ArrayEntry& entry() const;

 private:
  class Impl;
  explicit ChunkArrayWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Path of the metadata of the group of all arrays, within the folder of a generation.
inline constexpr std::string_view kGroupPath = "arrays/zarr.json";

/// Writes kGroupPath, the group that turns a folder of arrays into one Zarr hierarchy. `text` is
/// its content (EncodeGroupJson, coordinates.h); empty: a group without attributes.
Result<FileEntry> WriteArrayGroup(FileSystem& fs, const Path& root, std::string_view text = {});

/// Reads the chunks of one array, and checks each against the checksum or hash in the manifest. Can
/// also read single inner chunks of a shard; their checksums are verified through the manifest's
/// (FORMAT.md, "Shards").
/// Threads: const functions may be called from many threads.
/// Ownership: `fs` must outlive it; entries are copied.
class ChunkArray {
 public:
  ~ChunkArray();

  /// Reads zarr.json and compares it with `entry`. `files` are the manifest's files, and may
  /// include those unrelated to the array. Errors: kCorruption, metadata or file list do not match;
  /// kNotFound.
  static Result<std::unique_ptr<ChunkArray>> Open(FileSystem& fs, const Path& root,
                                                  const ArrayEntry& entry,
                                                  std::span<const FileEntry> files);

  const ArrayEntry& entry() const { return entry_; }

  /// Returns the number of rows of chunk `chunk` within the shape (the last chunk may have fewer);
  /// 0 if there is no such chunk.
  std::uint64_t RowsInChunk(std::uint64_t chunk) const;

  /// Reads and decodes chunk `chunk` into `out`, of RowsInChunk(chunk) * row_bytes() bytes. With
  /// `options.direct` it bypasses the page cache, fastest if `out` is aligned like an
  /// AlignedBuffer. The last argument is an optional buffer for encoded bytes, which a caller may
  /// reuse across calls; it grows if it is too small. Returns the number of bytes read from disk.
  /// Errors: kInvalidArgument, no such chunk or a wrong size; kCorruption, naming the file;
  /// kIoError.
  Result<std::uint64_t> ReadChunk(std::uint64_t chunk, std::span<std::byte> out,
                                  const FileSystem::ReadOptions& options = {},
                                  AlignedBuffer* room = nullptr) const;

  /// Reads rows [first, first + count) into `out`, of count * row_bytes() bytes. If only part of a
  /// chunk is needed, a shard's inner chunks are read individually; any other chunk is read as a
  /// whole.
  /// Errors: kInvalidArgument, no such rows or a wrong size; kCorruption, naming the file and, in a
  /// shard, inner chunk and bytes; kIoError.
  Status ReadRows(std::uint64_t first, std::uint64_t count, std::span<std::byte> out) const;

  const Path& root() const { return root_; }
  FileSystem& fs() const { return *fs_; }

  /// Returns the manifest's entry of a chunk's file; owned by this object. Errors:
  /// kInvalidArgument, no such chunk.
  Result<const FileEntry*> ChunkFile(std::uint64_t chunk) const;

 private:
  ChunkArray();
  Status ReadRowsOfShard(std::uint64_t chunk, std::uint64_t first_row,
                         std::span<std::byte> out) const;
  Status DecodeInto(const Path& path, std::uint64_t chunk, std::span<const std::byte> bytes,
                    std::span<std::byte> out) const;
  FileSystem* fs_ = nullptr;
  Path root_;
  ArrayEntry entry_;
  std::vector<FileEntry> chunks_;
  std::unique_ptr<ShardTables> tables_;
};

}  // namespace rhizome
