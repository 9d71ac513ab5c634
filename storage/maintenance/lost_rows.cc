#include "storage/maintenance/lost_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "storage/array/array_rules.h"
#include "storage/array/array_versions.h"
#include "storage/array/chunk_writer.h"
#include "storage/base/check.h"
#include "storage/base/damage.h"
#include "storage/base/hash.h"
#include "storage/base/mutant.h"
#include "storage/io/files.h"

namespace rhizome {
inline namespace internal {

std::string DescribeRows(std::span<const RowRange> rows) {
  std::string text;
  for (const RowRange& range : rows) {
    text += fmt::format("{}{}", text.empty() ? "" : ",", range.first);
    if (range.last > range.first) text += fmt::format("-{}", range.last);
  }
  return text;
}

/// Find checks each damaged chunk (Look): in layout kRow row by row, against the checksums of the
/// sidecar (LookByRows); otherwise by inner chunk or chunk (LookByPieces). Rows that fail are added
/// to lost_. ReadChunk and WholeFile then read the remaining rows.
Result<SoundRows> SoundRows::Find(FileSystem& fs, const Path& generation, const Manifest& manifest,
                                  const std::string& array,
                                  const std::set<std::uint64_t>& damaged) {
  SoundRows rows(fs, generation, manifest, *FindStoredArray(manifest.arrays, array));
  RHIZOME_RETURN_IF_ERROR(rows.OpenArray());
  for (const std::uint64_t chunk : damaged) RHIZOME_RETURN_IF_ERROR(rows.Look(chunk));
  return rows;
}

/// Opens the array. In layout kRow it stays null: its chunks are read using only the manifest, as
/// its metadata may be damaged, too.
Status SoundRows::OpenArray() {
  if (entry_->layout == ArrayLayout::kRow) return Status::Ok();
  auto opened = ChunkArray::Open(*fs_, generation_, *entry_, manifest_->files);
  if (opened) array_ = *std::move(opened);
  return opened || ProvesDamage(opened.error()) ? Status::Ok() : opened.error();
}

std::uint64_t SoundRows::RowsIn(std::uint64_t chunk) const {
  return std::min(entry_->chunk_rows, entry_->rows - chunk * entry_->chunk_rows);
}

Status SoundRows::Look(std::uint64_t chunk) {
  return entry_->layout == ArrayLayout::kRow ? LookByRows(chunk) : LookByPieces(chunk);
}

void SoundRows::Lose(std::uint64_t first, std::uint64_t last) {
  RHIZOME_DCHECK(first <= last && (lost_.empty() || lost_.back().last < first));
  if (!lost_.empty() && lost_.back().last + 1 == first && first % entry_->chunk_rows != 0)
    lost_.back().last = last;
  else
    lost_.push_back({first, last});
}

void SoundRows::LoseRows(std::span<const RowRange> rows) {
  lost_.insert(lost_.end(), rows.begin(), rows.end());
  std::ranges::sort(lost_, {}, &RowRange::first);
}

/// Reads what is left of a chunk of layout kRow, and pads it with zeros.
Result<std::vector<std::byte>> SoundRows::ReadLeft(const ArrayEntry& entry,
                                                   std::uint64_t chunk) const {
  const std::uint64_t chunk_bytes = entry.chunk_rows * entry.row_bytes();
  const Path path = generation_ / ChunkPath(entry.name, chunk, entry.form);
  constexpr std::uint64_t kMoreBytes = std::uint64_t{1} << 20;
  auto bytes = ReadWholeFile(*fs_, path, chunk_bytes + kMoreBytes);
  if (!bytes && !ProvesDamage(bytes.error())) return bytes;
  std::vector<std::byte> left = bytes ? *std::move(bytes) : std::vector<std::byte>();
  left.resize(chunk_bytes);
  return left;
}

/// Compares rows with their checksums, and calls `wrong` for each row that differs. A damaged
/// checksum matches no row, so the sidecar need not be intact. Restores rows of a bound array that
/// should hold the fill value.
Status SoundRows::CheckRows(std::uint64_t chunk, std::span<std::byte> rows,
                            const std::function<void(std::uint64_t row)>& wrong) const {
  const ArrayEntry* sidecar = FindStoredArray(manifest_->arrays, SidecarName(entry_->name));
  const bool fits = sidecar != nullptr && sidecar->rows == entry_->rows &&
                    sidecar->row_bytes() == sizeof(std::uint32_t) &&
                    !RHIZOME_MUTANT("a chunk is lost whole");
  const std::uint64_t first = chunk * entry_->chunk_rows;
  std::vector<std::byte> sums;
  std::uint64_t loaded = ~std::uint64_t{0};
  std::vector<std::byte> other(BoundType(*entry_).empty() ? 0 : entry_->row_bytes());
  FillOtherRows(*entry_, other);
  for (std::uint64_t row = first; row < first + RowsIn(chunk); ++row) {
    std::uint32_t sum = 0;
    if (fits && row / sidecar->chunk_rows != loaded) {
      loaded = row / sidecar->chunk_rows;
      RHIZOME_ASSIGN_OR_RETURN(sums, ReadLeft(*sidecar, loaded));
    }
    if (fits)
      std::memcpy(&sum, sums.data() + (row % sidecar->chunk_rows) * sizeof(sum), sizeof(sum));
    const auto bytes = rows.subspan((row - first) * entry_->row_bytes(), entry_->row_bytes());
    if (fits && RowCrc(entry_->array_id, row, bytes) == sum) continue;
    if (fits && !other.empty() && RowCrc(entry_->array_id, row, other) == sum)
      std::copy(other.begin(), other.end(), bytes.begin());
    else
      wrong(row);
  }
  return Status::Ok();
}

Status SoundRows::LookByRows(std::uint64_t chunk) {
  RHIZOME_ASSIGN_OR_RETURN(auto rows, ReadLeft(*entry_, chunk));
  return CheckRows(chunk, rows, [this](std::uint64_t row) { Lose(row, row); });
}

Status SoundRows::LookByPieces(std::uint64_t chunk) {
  const std::uint64_t first = chunk * entry_->chunk_rows;
  const std::uint64_t end = first + RowsIn(chunk);
  const bool pieces = entry_->sharded() && array_ != nullptr;
  const std::uint64_t step = pieces ? entry_->inner_rows : end - first;
  std::vector<std::byte> rows;
  for (std::uint64_t row = first; row < end; row += step) {
    const std::uint64_t count = std::min(step, end - row);
    rows.resize(count * entry_->row_bytes());
    RHIZOME_ASSIGN_OR_RETURN(const bool sound, ReadPiece(row, count, rows));
    if (!sound) Lose(row, row + count - 1);
  }
  return Status::Ok();
}

/// Reads rows, a second time if the first read fails. Returns false if both reads prove damage.
Result<bool> SoundRows::ReadPiece(std::uint64_t first, std::uint64_t count,
                                  std::span<std::byte> out) const {
  if (array_ == nullptr) return false;
  Status read = array_->ReadRows(first, count, out);
  if (!read.ok()) read = array_->ReadRows(first, count, out);
  if (!read.ok() && !ProvesDamage(read)) return Fail(read);
  return read.ok();
}

/// Reads the rows of a chunk of layout kRow. Either the file is intact, or each row that is not
/// lost must match its checksum. The rows will be written with new checksums, so no damage may go
/// unnoticed here. A chunk of a bound array that the manifest does not list has no rows.
Status SoundRows::ReadRowsOf(std::uint64_t chunk, std::vector<std::byte>& rows) const {
  const FileEntry* file = manifest_->FindFile(ChunkPath(entry_->name, chunk));
  if (file == nullptr && !BoundType(*entry_).empty()) {
    rows.resize(entry_->chunk_rows * entry_->row_bytes());
    FillOtherRows(*entry_, rows);
    return Status::Ok();
  }
  RHIZOME_ASSIGN_OR_RETURN(rows, ReadLeft(*entry_, chunk));
  if (file != nullptr && file->size_bytes == rows.size() && Xxh3(rows) == file->xxh3)
    return Status::Ok();
  std::uint64_t wrong = 0;
  RHIZOME_RETURN_IF_ERROR(CheckRows(chunk, rows, [&](std::uint64_t row) {
    wrong += std::none_of(lost_.begin(), lost_.end(), [&](const RowRange& range) {
      return range.first <= row && row <= range.last;
    });
  }));
  if (wrong == 0) return Status::Ok();
  return Status::IoError(
      fmt::format("'{}': {} rows that were intact are damaged now; run the repair again",
                  (generation_ / ChunkPath(entry_->name, chunk)).string(), wrong));
}

Status SoundRows::ReadChunk(std::uint64_t chunk, std::span<std::byte> out) {
  const std::uint64_t row_bytes = entry_->row_bytes();
  const std::uint64_t first = chunk * entry_->chunk_rows;
  const std::uint64_t end = first + RowsIn(chunk);
  std::vector<std::byte> rows;
  if (entry_->layout == ArrayLayout::kRow) RHIZOME_RETURN_IF_ERROR(ReadRowsOf(chunk, rows));
  std::uint64_t row = first;
  const auto read_to = [&](std::uint64_t to) -> Status {
    if (to <= row) return Status::Ok();
    const auto target = out.subspan((row - first) * row_bytes, (to - row) * row_bytes);
    if (rows.empty() && array_ == nullptr)
      return Status::Corruption(
          fmt::format("the metadata of array '{}' is lost", ShownName(entry_->name)));
    if (rows.empty()) return array_->ReadRows(row, to - row, target);
    const auto from = rows.begin() + static_cast<std::ptrdiff_t>((row - first) * row_bytes);
    std::copy_n(from, target.size(), target.begin());
    return Status::Ok();
  };
  for (const RowRange& range : lost_) {
    if (range.first >= end || range.last < first) continue;
    RHIZOME_RETURN_IF_ERROR(read_to(range.first));
    const auto hole =
        out.subspan((range.first - first) * row_bytes, (range.last + 1 - range.first) * row_bytes);
    FillLostRows(*entry_, hole);
    row = range.last + 1;
  }
  return read_to(end);
}

Result<std::vector<std::byte>> SoundRows::WholeFile(std::uint64_t chunk) {
  std::vector<std::byte> bytes(entry_->chunk_rows * entry_->row_bytes());
  RHIZOME_RETURN_IF_ERROR(
      ReadChunk(chunk, std::span(bytes).first(RowsIn(chunk) * entry_->row_bytes())));
  return bytes;
}

}  // namespace internal
}  // namespace rhizome
