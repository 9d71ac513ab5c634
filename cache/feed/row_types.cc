#include "cache/feed/row_types.h"

#include <span>

#include "index/delta/delta.h"
#include "index/topology/vertex_order.h"

namespace rhizome {
inline namespace internal {

RowTypes::RowTypes(const GraphSnapshot& graph)
    : order_(&graph.order()),
      delta_(graph.delta()),
      types_(graph.vertex_types().size()),
      rows_(graph.vertex_count()) {}

TypeId RowTypes::Of(Row row) const {
  const auto at = static_cast<std::uint64_t>(row);
  return at < order_->size() ? order_->TypeOf(row) : delta_->TypeOf(row);
}

std::vector<std::uint64_t> RowTypes::Counts() const {
  std::vector<std::uint64_t> counts(types_, 0);
  const std::uint64_t base = order_->size();
  if (order_->grouped()) {
    const std::span<const OrderSegment> segments = order_->segments();
    for (std::size_t i = 0; i < segments.size(); ++i) {
      const std::uint64_t end =
          i + 1 < segments.size() ? static_cast<std::uint64_t>(segments[i + 1].first_row) : base;
      counts[segments[i].type] += end - static_cast<std::uint64_t>(segments[i].first_row);
    }
  } else {
    for (std::uint64_t row = 0; row < base; ++row) ++counts[Of(static_cast<Row>(row))];
  }
  for (std::uint64_t row = base; row < rows_; ++row) ++counts[Of(static_cast<Row>(row))];
  return counts;
}

void RowTypes::Fill(Minibatch& minibatch) const {
  minibatch.vertex_types.clear();
  if (types_ < 2) return;
  minibatch.vertex_types.reserve(minibatch.rows.size());
  for (const Row row : minibatch.rows) minibatch.vertex_types.push_back(Of(row));
}

}  // namespace internal
}  // namespace rhizome
