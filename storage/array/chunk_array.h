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

/// The default chunk_rows of DESIGN section 5: the largest multiple of 128 that is at most 32,768
/// and at most `rows` rounded up to 128, and whose chunk is at most 64 MiB. Errors:
/// kInvalidArgument if 128 rows are more than 64 MiB.
Result<std::uint64_t> DefaultChunkRows(std::uint64_t rows, std::uint64_t row_bytes);

/// In ArrayEntry::inner_rows and the options that lead to it: shards, of inner chunks of 32 to 64
/// KiB (or of one row).
inline constexpr std::uint64_t kChosenInnerRows = ~std::uint64_t{0};

/// Sets chunk_rows where it is 0, and inner_rows where it is kChosenInnerRows. A chunk_rows that is
/// chosen for shards is a multiple of inner_rows. Errors: those of DefaultChunkRows.
Status ChooseChunkRows(ArrayEntry& entry);

/// The checksum that the sidecar of a row array holds for each row: CRC-32C over array id, row
/// number (both 8 bytes little-endian) and the row's bytes, so that a swapped row or array is
/// noticed.
std::uint32_t RowCrc(std::uint64_t array_id, std::uint64_t row, std::span<const std::byte> bytes);

/// Names inside a generation: "arrays/<name>" ("sums/<name>" of a sidecar, which in the first form
/// is among the arrays too), "arrays/<name>/c.<chunk>.0", "<name>.crc32c".
std::string ArrayFolder(std::string_view array, ArrayForm form = ArrayForm::kMarkedFill);
std::string ChunkPath(std::string_view array, std::uint64_t chunk,
                      ArrayForm form = ArrayForm::kMarkedFill);
std::string SidecarName(std::string_view array);

/// "<name>" of a file in the folder of an array, be it in "arrays/" or in "sums/"; empty of others.
std::string_view ArrayOfFile(std::string_view path);

/// Writes one array of shape [rows, dim] as Zarr v3, chunk by chunk in any order, below a root
/// folder (a generation, or a job's scratch folder). Every chunk file, which is a shard where
/// entry.inner_rows says so, is synced when WriteChunk returns; folders are synced by Finish.
/// Threads: WriteChunk may be called from many threads for different chunks. Source: Zarr v3 core
/// specification; DESIGN section 5.
class ChunkArrayWriter {
 public:
  /// Creates `root`/arrays/<name> (and its sidecar's folder); an existing folder is continued,
  /// which is how a killed job resumes. ChooseChunkRows is applied; attributes are sorted.
  /// Errors: kInvalidArgument, a bad name, shape, codec or chunk_rows.
  static Result<std::unique_ptr<ChunkArrayWriter>> Create(FileSystem& fs, const Path& root,
                                                          const ArrayEntry& entry);
  ~ChunkArrayWriter();

  /// Writes chunk `chunk` from `rows` (its real rows only, row-major; the file is padded with
  /// zeros). An existing file of that chunk is replaced. Returns the file's entry.
  Result<FileEntry> WriteChunk(std::uint64_t chunk, std::span<const std::byte> rows);

  /// Declares a chunk that an earlier run wrote and whose entry its log holds. kChunk layout only.
  Status AdoptChunk(std::uint64_t chunk, const FileEntry& file);

  /// Writes metadata and sidecar, syncs the folders. All chunks must have been written or adopted.
  /// Returns the entries of all files, sorted by path; arrays() then lists the array and its
  /// sidecar.
  Result<std::vector<FileEntry>> Finish();

  /// The array, and the sidecar's own entry in layout kRow.
  std::vector<ArrayEntry> arrays() const;
  const ArrayEntry& entry() const;

 private:
  class Impl;
  explicit ChunkArrayWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// `arrays/zarr.json`: the group that makes a folder of arrays one Zarr hierarchy. `text`: what it
/// says (EncodeGroupJson, coordinates.h); empty: nothing but that it is a group.
Result<FileEntry> WriteArrayGroup(FileSystem& fs, const Path& root, std::string_view text = {});

/// Reads the chunks of one array, each checked against the sum that the manifest holds for it; of a
/// shard, also single inner chunks, whose sums lead to the manifest's (FORMAT.md, "Shards").
/// Threads: const, and safe from many threads.
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

  /// Rows of chunk `chunk` that are part of the shape (the last chunk may have fewer); 0: there is
  /// no such chunk.
  std::uint64_t RowsInChunk(std::uint64_t chunk) const;

  /// Decodes chunk `chunk` into `out`, of RowsInChunk(chunk) * row_bytes() bytes; with
  /// `options.direct` not through the page cache (fastest if `out` is aligned as AlignedBuffer is).
  /// `room`: memory for what must be decoded, for a caller who reads many: grown where it is too
  /// small. Returns the bytes read from disk. Errors: kInvalidArgument, no such chunk, a wrong
  /// size; kCorruption naming the file; kIoError.
  Result<std::uint64_t> ReadChunk(std::uint64_t chunk, std::span<std::byte> out,
                                  const FileSystem::ReadOptions& options = {},
                                  AlignedBuffer* room = nullptr) const;

  /// Reads rows [first, first + count) in chunk order. Of a chunk that is not needed whole, a shard
  /// gives the inner chunks alone, any other is read whole. Errors: kInvalidArgument, rows that are
  /// not there, a wrong size; kCorruption naming the file and, in a shard, inner chunk and bytes;
  /// kIoError.
  Status ReadRows(std::uint64_t first, std::uint64_t count, std::span<std::byte> out) const;

  const Path& root() const { return root_; }
  FileSystem& fs() const { return *fs_; }

  /// The manifest's entry of a chunk's file; lives as long as this. Errors: kInvalidArgument, no
  /// such chunk.
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
