#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rhizome/chunk_array.h"
#include "rhizome/file_system.h"
#include "rhizome/manifest.h"
#include "storage/array/array_facts.h"

namespace rhizome {
inline namespace internal {

/// A range of rows of an array, both ends included.
struct RowRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  bool operator==(const RowRange&) const = default;
};

/// Describes ranges as text, such as "3,128-255".
std::string DescribeRows(std::span<const RowRange> rows);

/// Finds the rows of a damaged array that are still intact. A row in layout kRow is intact if it
/// matches its checksum in the sidecar, even in a damaged chunk; a row of a shard if its inner
/// chunk is intact; any other row if its chunk is intact. In layout kChunk a failed read is
/// repeated before rows count as lost. In a bound array of layout kRow, a row that has the checksum
/// of the fill value in the sidecar belongs to a vertex of another type: it is not lost. Threads:
/// one at a time. Ownership: file system and manifest must outlive it.
class SoundRows {
 public:
  /// `damaged` are the chunks whose files are damaged or missing. Errors: errors of reading them
  /// that do not prove damage.
  static Result<SoundRows> Find(FileSystem& fs, const Path& generation, const Manifest& manifest,
                                const std::string& array, const std::set<std::uint64_t>& damaged);

  const ArrayEntry& entry() const { return *entry_; }
  const std::vector<RowRange>& lost() const { return lost_; }

  /// Adds rows of chunks that the manifest does not list.
  void LoseRows(std::span<const RowRange> rows);

  /// Reads the rows of a chunk. Lost rows get the values of FillLostRows.
  Status ReadChunk(std::uint64_t chunk, std::span<std::byte> out);

  /// Creates the file of a chunk of layout kRow in which no row is lost: its rows, padded with
  /// zeros.
  Result<std::vector<std::byte>> WholeFile(std::uint64_t chunk);

 private:
  SoundRows(FileSystem& fs, Path generation, const Manifest& manifest, const ArrayEntry& entry)
      : fs_(&fs), generation_(std::move(generation)), manifest_(&manifest), entry_(&entry) {}
  std::uint64_t RowsIn(std::uint64_t chunk) const;
  Status Look(std::uint64_t chunk);
  Status LookByRows(std::uint64_t chunk);
  Status LookByPieces(std::uint64_t chunk);
  Status CheckRows(std::uint64_t chunk, std::span<std::byte> rows,
                   const std::function<void(std::uint64_t row)>& wrong) const;
  Status ReadRowsOf(std::uint64_t chunk, std::vector<std::byte>& rows) const;
  void Lose(std::uint64_t first, std::uint64_t last);
  Result<std::vector<std::byte>> ReadLeft(const ArrayEntry& entry, std::uint64_t chunk) const;
  Result<bool> ReadPiece(std::uint64_t first, std::uint64_t count, std::span<std::byte> out) const;
  Status OpenArray();

  FileSystem* fs_;
  Path generation_;
  const Manifest* manifest_;
  const ArrayEntry* entry_;
  std::unique_ptr<ChunkArray> array_;  // null in layout kRow, and if zarr.json is damaged
  std::vector<RowRange> lost_;
};

}  // namespace internal
}  // namespace rhizome
