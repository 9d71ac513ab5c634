#include "index/topology/type_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "storage/array/array_facts.h"
#include "storage/array/array_versions.h"
#include "storage/array/type_names.h"

namespace rhizome {
inline namespace internal {

TypeRows::TypeRows(const VertexOrder& order, TypeId type) {
  if (!order.grouped()) {
    for (std::uint64_t row = 0; row < order.size(); ++row)
      if (order.TypeOf(static_cast<Row>(row)) == type) Add(row);
    return;
  }
  const auto segments = order.segments();
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (segments[i].type != type) continue;
    const auto first = static_cast<std::uint64_t>(segments[i].first_row);
    const auto end = i + 1 < segments.size() ? static_cast<std::uint64_t>(segments[i + 1].first_row)
                                             : order.size();
    if (!runs_.empty() && runs_.back().end == first)
      runs_.back().end = end;
    else
      runs_.push_back({first, end, before});
    before += end - first;
  }
}

void TypeRows::Add(std::uint64_t row) {
  if (!runs_.empty() && runs_.back().end == row)
    ++runs_.back().end;
  else
    runs_.push_back({row, row + 1, count()});
}

const TypeRows::Run* TypeRows::LastRunBefore(std::uint64_t row) const {
  const auto after =
      std::lower_bound(runs_.begin(), runs_.end(), row,
                       [](const Run& run, std::uint64_t r) { return run.first < r; });
  return after == runs_.begin() ? nullptr : &*(after - 1);
}

std::uint64_t TypeRows::RankOf(std::uint64_t row) const {
  const Run* const run = LastRunBefore(row);
  return run == nullptr ? 0 : run->before + std::min(row, run->end) - run->first;
}

bool TypeRows::Has(std::uint64_t row) const {
  const Run* const run = LastRunBefore(row + 1);
  return run != nullptr && row < run->end;
}

void PlaceOfType(const ArrayEntry& array, const TypeRows& of_type, std::uint64_t first,
                 std::span<const std::byte> packed, std::span<std::byte> rows) {
  const std::uint64_t row_bytes = array.row_bytes();
  FillOtherRows(array, rows);
  for (std::uint64_t i = 0; i * row_bytes < rows.size(); ++i) {
    if (!of_type.Has(first + i)) continue;
    std::memcpy(rows.data() + i * row_bytes, packed.data(), row_bytes);
    packed = packed.subspan(row_bytes);
  }
}

std::optional<TypeId> TypeNamed(std::span<const std::string> names, std::string_view name) {
  const auto at = std::find(names.begin(), names.end(), name);
  if (at == names.end()) return std::nullopt;
  return static_cast<TypeId>(at - names.begin());
}

std::optional<TypeRows> RowsOfBound(const ArrayEntry& array, const VertexOrder& order,
                                    std::span<const std::string> names) {
  const std::string_view name = BoundType(array);
  if (name.empty()) return std::nullopt;
  const auto type = TypeNamed(names, name);
  return type ? TypeRows(order, *type) : TypeRows();
}

}  // namespace internal
}  // namespace rhizome
