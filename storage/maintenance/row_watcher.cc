#include "storage/maintenance/row_watcher.h"

#include <algorithm>

#include "storage/array/chunk_writer.h"

namespace rhizome {
inline namespace internal {

Result<std::unique_ptr<RowWatcher>> RowWatcher::Make(const ArrayEntry& rows, std::uint64_t chunk,
                                                     const ChunkArray& sums,
                                                     std::function<void(std::uint64_t row)> tell,
                                                     SeeRow see) {
  std::unique_ptr<RowWatcher> watcher(new RowWatcher);
  watcher->array_id_ = rows.array_id;
  watcher->row_bytes_ = rows.row_bytes();
  watcher->first_row_ = chunk * rows.chunk_rows;
  watcher->sums_.resize(std::min(rows.chunk_rows, rows.rows - watcher->first_row_));
  watcher->tell_ = std::move(tell);
  watcher->see_ = std::move(see);
  RHIZOME_RETURN_IF_ERROR(sums.ReadRows(watcher->first_row_, watcher->sums_.size(),
                                        std::as_writable_bytes(std::span(watcher->sums_))));
  return watcher;
}

void RowWatcher::Check(std::span<const std::byte> row) {
  if (seen_ < sums_.size()) {  // padding follows the last row
    const std::uint64_t number = first_row_ + seen_;
    if (see_) see_(number, row);
    if (!differs_ && RowCrc(array_id_, number, row) != sums_[seen_]) {
      differs_ = true;
      tell_(number);
    }
  }
  ++seen_;
}

void RowWatcher::See(std::uint64_t, std::span<const std::byte> bytes) {
  if (!begun_.empty()) {
    const std::size_t missing = std::min<std::size_t>(row_bytes_ - begun_.size(), bytes.size());
    begun_.insert(begun_.end(), bytes.begin(),
                  bytes.begin() + static_cast<std::ptrdiff_t>(missing));
    bytes = bytes.subspan(missing);
    if (begun_.size() < row_bytes_) return;
    Check(begun_);
    begun_.clear();
  }
  for (; bytes.size() >= row_bytes_ && seen_ < sums_.size(); bytes = bytes.subspan(row_bytes_))
    Check(bytes.first(row_bytes_));
  if (seen_ < sums_.size()) begun_.assign(bytes.begin(), bytes.end());
}

}  // namespace internal
}  // namespace rhizome
