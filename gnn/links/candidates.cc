#include "gnn/links/candidates.h"

#include <algorithm>
#include <string>

#include "index/delta/graph_parts.h"
#include "storage/array/array_facts.h"

namespace rhizome {
inline namespace internal {

Candidates::Candidates(const LinkTable& table, bool by_type)
    : types_(*table.graph), by_type_(by_type && types_.types() > 1) {
  const std::vector<std::string> names = table.graph->vertex_types();
  const auto found = std::find(names.begin(), names.end(), BoundType(table.entry()));
  if (found != names.end()) bound_ = static_cast<TypeId>(found - names.begin());
  const std::uint64_t rows = table.rows();
  if (table.graph->live_vertex_count() < rows) {
    const auto parts = table.graph->parts();
    deleted_.resize(rows);
    for (std::uint64_t row = 0; row < rows; ++row)
      deleted_[row] = table.graph->IsDeleted(parts->VertexAt(static_cast<Row>(row)));
  }
  in_chunk_.assign(by_type_ ? types_.types() : 1, std::vector<bool>(table.chunks()));
  const std::uint64_t chunk_rows = std::max<std::uint64_t>(table.entry().chunk_rows, 1);
  for (std::uint64_t row = 0; row < rows; ++row) {
    const std::uint32_t set = SetOf(static_cast<Row>(row));
    if (Has(set, static_cast<Row>(row))) in_chunk_[set][row / chunk_rows] = true;
  }
}

void Candidates::Places(std::uint32_t set, Row first, std::uint64_t count,
                        std::vector<std::uint32_t>& places) const {
  places.clear();
  for (std::uint64_t i = 0; i < count; ++i)
    if (Has(set, first + static_cast<Row>(i))) places.push_back(static_cast<std::uint32_t>(i));
}

std::uint64_t Candidates::Bytes(const LinkTable& table) {
  const std::uint64_t sets = table.graph->vertex_types().size();
  const bool deleted = table.graph->live_vertex_count() < table.rows();
  return sets * (table.chunks() / 8 + 64) + (deleted ? table.rows() / 8 : 0) + 4096;
}

}  // namespace internal
}  // namespace rhizome
