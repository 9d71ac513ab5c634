#include "index/graph/delta_rows.h"

#include <algorithm>
#include <utility>

#include "index/delta/delta.h"
#include "storage/array/array_rules.h"
#include "storage/base/exceptions.h"

namespace rhizome {
inline namespace internal {

std::shared_ptr<const DeltaRows> DeltaRows::Of(std::shared_ptr<const GraphSnapshot> graph,
                                               const ArrayEntry& array) {
  const auto delta = graph->delta();
  const auto merged = delta->Merged();
  if (merged == nullptr) return nullptr;
  const auto by_array = [](const DeltaRowRef& a, const DeltaRowRef& b) {
    return a.array_id < b.array_id;
  };
  const auto [begin, end] = std::equal_range(merged->rows.begin(), merged->rows.end(),
                                             DeltaRowRef{array.array_id, 0, 0}, by_array);
  std::shared_ptr<DeltaRows> made(new DeltaRows);
  made->array_ = array;
  made->row_bytes_ = array.row_bytes();
  made->file_rows_ = array.rows;
  made->rows_ = array.rows + (delta->vertices() - delta->base_vertices());
  if (begin == end && made->rows_ == array.rows) return nullptr;
  made->put_at_ = RankBitmap(made->rows_);
  for (auto put = begin; put != end; ++put) {
    const Row row = ValueOrThrow(graph->RowOf(put->vertex));
    made->put_at_.Set(static_cast<std::uint64_t>(row));
    made->puts_.push_back({row, put->vertex, put->sequence});
  }
  std::sort(made->puts_.begin(), made->puts_.end(),
            [](const Put& a, const Put& b) { return a.row < b.row; });
  made->put_at_.Seal();
  made->graph_ = std::move(graph);
  return made;
}

Status DeltaRows::Read(Row row, std::span<std::byte> out) const {
  if (!WasPut(row)) {
    FillMissingRows(array_, out);
    return Status::Ok();
  }
  const Put& put = puts_[put_at_.Rank(static_cast<std::uint64_t>(row))];
  return graph_->store().ReadDeltaRow(put.sequence, array_.array_id, put.vertex, out);
}

Status DeltaRows::Overlay(Row first, std::span<std::byte> rows) const {
  if (row_bytes_ == 0) return Status::Ok();
  const std::uint64_t begin = static_cast<std::uint64_t>(first);
  const std::uint64_t end = begin + rows.size() / row_bytes_;
  const std::uint64_t first_new = std::clamp(file_rows_, begin, end);
  const auto fresh = rows.subspan((first_new - begin) * row_bytes_);
  FillMissingRows(array_, fresh);
  const auto before = [](const Put& put, std::uint64_t row) {
    return static_cast<std::uint64_t>(put.row) < row;
  };
  for (auto put = std::lower_bound(puts_.begin(), puts_.end(), begin, before);
       put != puts_.end() && static_cast<std::uint64_t>(put->row) < end; ++put) {
    RHIZOME_RETURN_IF_ERROR(Read(
        put->row,
        rows.subspan((static_cast<std::uint64_t>(put->row) - begin) * row_bytes_, row_bytes_)));
  }
  return Status::Ok();
}

}  // namespace internal
}  // namespace rhizome
