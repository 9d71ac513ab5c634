#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/storage/export.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/io_queue.h"
#include "rhizome/storage/manifest.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {
class ShardTables;
}  // namespace rhizome::inline internal

namespace RHIZOME_API rhizome {

/// Returns the default chunk_rows (docs/DESIGN.md, section 5): the largest multiple of 128 that is
/// at most 32,768 and at most `rows` rounded up to a multiple of 128, and whose chunk is at most 64
/// MiB. Errors: kInvalidArgument if 128 rows are more than 64 MiB, or row_bytes is 0.
Result<std::uint64_t> DefaultChunkRows(std::uint64_t rows, std::uint64_t row_bytes);

/// A value for ArrayEntry::inner_rows, and for options that set it, which asks for shards with
/// inner chunks of 32 to 64 KiB (or of one row).
inline constexpr std::uint64_t kChosenInnerRows = ~std::uint64_t{0};

/// Sets chunk_rows if it is 0, and inner_rows if it is kChosenInnerRows. A chunk_rows that is
/// chosen for shards is a multiple of inner_rows. Errors: those of DefaultChunkRows.
Status ChooseChunkRows(ArrayEntry& entry);

/// Computes the checksum that the sidecar of a row array holds for each row: the CRC-32C of array
/// id, row number (8 bytes each, little-endian) and the row's bytes, so that a swapped row or array
/// is noticed.
std::uint32_t RowCrc(std::uint64_t array_id, std::uint64_t row, std::span<const std::byte> bytes);

/// Paths inside a generation. The folder of an array is "arrays/<name>"; that of a sidecar is
/// "sums/<name>", but "arrays/<name>" in the form kZeroFill. A chunk is "<folder>/c.<chunk>.0". The
/// sidecar of an array is "<name>.crc32c".
std::string ArrayFolder(std::string_view array, ArrayForm form = ArrayForm::kMarkedFill);
std::string ChunkPath(std::string_view array, std::uint64_t chunk,
                      ArrayForm form = ArrayForm::kMarkedFill);
std::string SidecarName(std::string_view array);

/// Returns "<name>" for a file in the folder of an array, in "arrays/" or "sums/"; empty for
/// others.
std::string_view ArrayOfFile(std::string_view path);

/// Writes one array of shape [rows, dim] as Zarr v3, chunk by chunk in any order, below a root
/// folder (a generation, or a job's scratch folder). Every chunk file, which is a shard if
/// entry.inner_rows says so, is synced when WriteChunk returns; Finish syncs the folders.
/// Threads: WriteChunk may be called from many threads for different chunks.
/// Ownership: `fs` must outlive it.
/// Source: Zarr v3 core specification; docs/DESIGN.md, section 5.
class ChunkArrayWriter {
 public:
  /// Creates `root`/arrays/<name>, and its sidecar's folder in layout kRow. It continues in an
  /// existing folder, which is how a killed job resumes. Applies ChooseChunkRows and sorts the
  /// attributes. Errors: kInvalidArgument, a bad name, shape, codec or chunk_rows; those of the
  /// FileSystem.
  static Result<std::unique_ptr<ChunkArrayWriter>> Create(FileSystem& fs, const Path& root,
                                                          const ArrayEntry& entry);
  ~ChunkArrayWriter();

  /// Writes chunk `chunk` from `rows`: its rows of the shape, row-major, entry().row_bytes() bytes
  /// each. The file is padded with zero rows and replaces an existing one. Returns the file's
  /// entry.
  /// Errors: kInvalidArgument, no such chunk or another size; those of the FileSystem.
  Result<FileEntry> WriteChunk(std::uint64_t chunk, std::span<const std::byte> rows);

  /// Takes over a chunk that an earlier run wrote and whose entry the job's log holds. Errors:
  /// kInvalidArgument, layout kRow or another chunk's file; kCorruption, the file is missing or of
  /// another length.
  Status AdoptChunk(std::uint64_t chunk, const FileEntry& file);

  /// Writes metadata and sidecar, and syncs the folders. Returns the entries of all files, sorted
  /// by path. Errors: kInvalidArgument, a chunk was neither written nor adopted; those of the
  /// FileSystem.
  Result<std::vector<FileEntry>> Finish();

  /// The array's entry, followed by its sidecar's in layout kRow.
  std::vector<ArrayEntry> arrays() const;

  /// The entry as it is written, with chosen chunk_rows and inner_rows.
  const ArrayEntry& entry() const;

 private:
  class Impl;
  explicit ChunkArrayWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// The metadata of the group of all arrays: its path in the folder of a generation.
inline constexpr std::string_view kGroupPath = "arrays/zarr.json";

/// Writes kGroupPath, the group that makes a folder of arrays one Zarr hierarchy. `text` is
/// its content (EncodeGroupJson, coordinates.h); empty: a group without attributes.
Result<FileEntry> WriteArrayGroup(FileSystem& fs, const Path& root, std::string_view text = {});

/// Reads the chunks of one array, and checks each against the checksum or hash that the manifest
/// holds for it. It also reads single inner chunks of a shard; their checksums lead to the
/// manifest's (FORMAT.md, "Shards").
/// Threads: const functions may be called from many threads.
/// Ownership: `fs` must outlive it; entries are copied.
class ChunkArray {
 public:
  ~ChunkArray();

  /// Reads zarr.json and compares it with `entry`. `files` are the manifest's (a superset is fine).
  /// Errors: kCorruption, metadata or file list do not fit; kNotFound.
  static Result<std::unique_ptr<ChunkArray>> Open(FileSystem& fs, const Path& root,
                                                  const ArrayEntry& entry,
                                                  std::span<const FileEntry> files);

  const ArrayEntry& entry() const { return entry_; }

  /// Returns how many rows of chunk `chunk` are part of the shape (the last chunk may have fewer);
  /// 0 if there is no such chunk.
  std::uint64_t RowsInChunk(std::uint64_t chunk) const;

  /// Reads and decodes chunk `chunk` into `out`, of RowsInChunk(chunk) * row_bytes() bytes. With
  /// `options.direct` it bypasses the page cache, fastest if `out` is aligned as AlignedBuffer is.
  /// `room` is a buffer for encoded bytes that a caller may reuse over many calls; it grows if it
  /// is too small. Returns the bytes read from disk. Errors: kInvalidArgument, no such chunk or a
  /// wrong size; kCorruption naming the file; kIoError.
  Result<std::uint64_t> ReadChunk(std::uint64_t chunk, std::span<std::byte> out,
                                  const FileSystem::ReadOptions& options = {},
                                  AlignedBuffer* room = nullptr) const;

  /// Reads rows [first, first + count) into `out`, of count * row_bytes() bytes. If only a part of
  /// a chunk is needed, a shard's inner chunks are read alone; any other chunk is read whole.
  /// Errors: kInvalidArgument, no such rows or a wrong size; kCorruption naming the file and, in a
  /// shard, inner chunk and bytes; kIoError.
  Status ReadRows(std::uint64_t first, std::uint64_t count, std::span<std::byte> out) const;

  const Path& root() const { return root_; }
  FileSystem& fs() const { return *fs_; }

  /// Returns the manifest's entry of a chunk's file; this array owns it. Errors: kInvalidArgument,
  /// no such chunk.
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
