#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "rhizome/manifest.h"
#include "rhizome/status.h"

namespace RHIZOME_API rhizome {

/// Returns the default chunk_rows (docs/DESIGN.md, section 5): the largest multiple of 128 that is
/// at most 32,768, at most `rows` rounded up to a multiple of 128, and whose chunk has at most 64
/// MiB.
/// Errors: kInvalidArgument if 128 rows are more than 64 MiB, or row_bytes is 0.
Result<std::uint64_t> DefaultChunkRows(std::uint64_t rows, std::uint64_t row_bytes);

/// Returns `rows` for DefaultChunkRows, for an array that is bound to a type with `type_rows`
/// vertices in a store of `partitions`: the rows of a type are apart in each partition, so chunks
/// are small, and few of their rows belong to other types.
std::uint64_t RowsOfBoundChunk(std::uint64_t type_rows, std::uint32_t partitions);

/// Sets chunk_rows if it is 0, to the default for `rows` rows (unset: the array's), and inner_rows
/// if it is kChosenInnerRows. A chunk_rows that is chosen for shards is a multiple of inner_rows.
/// Errors: as for DefaultChunkRows.
Status ChooseChunkRows(ArrayEntry& entry, std::optional<std::uint64_t> rows = {});

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

/// Returns the number in "<folder>/c.<chunk>.0"; nullopt for any other path.
std::optional<std::uint64_t> ChunkOfFile(std::string_view path);

/// Returns the chunks of an array that `files` list, in ascending order. `files` must be sorted by
/// path, as the files of a manifest are.
std::vector<std::uint64_t> ListedChunks(const ArrayEntry& entry, std::span<const FileEntry> files);

/// Returns "<name>" for a file in the folder of an array, in "arrays/", "sums/" or "texts/"; empty
/// for other files.
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

  /// Leaves out a chunk of an array that is bound to a vertex type (BoundType): it has no vertex of
  /// the type. The sidecar's chunk is left out, too. Errors: kInvalidArgument, no such chunk, the
  /// chunk was written, or the array is not bound.
  Status LeaveOut(std::uint64_t chunk);

  /// Writes metadata and sidecar, and syncs the folders. Returns the entries of all files, sorted
  /// by path.
  /// Errors: kInvalidArgument, a chunk was neither written nor adopted nor left out; errors of the
  /// FileSystem.
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

}  // namespace rhizome
