#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "index/topology/vertex_order.h"
#include "rhizome/manifest.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace internal {

/// The rows of one vertex type in an order, which decide which chunks of a bound array are stored
/// (BoundType): those with such a row, of a deleted vertex or not.
/// Memory: 24 bytes a run of consecutive rows. Orders that group types have one run a partition.
/// Threads: const.
class TypeRows {
 public:
  /// Without a row.
  TypeRows() = default;

  TypeRows(const VertexOrder& order, TypeId type);

  /// Appends a row of a vertex that the delta added; such rows follow the rows of the order, and
  /// must be appended in ascending order.
  void Add(std::uint64_t row);

  std::uint64_t count() const { return runs_.empty() ? 0 : RankOf(runs_.back().end); }
  bool Has(std::uint64_t row) const;

  /// Returns the number of rows of the type before `row`, which may be any number.
  std::uint64_t RankOf(std::uint64_t row) const;
  bool AnyIn(std::uint64_t begin, std::uint64_t end) const { return RankOf(begin) != RankOf(end); }

 private:
  struct Run {
    std::uint64_t first = 0;
    std::uint64_t end = 0;
    std::uint64_t before = 0;  // rows of earlier runs
  };
  const Run* LastRunBefore(std::uint64_t row) const;

  std::vector<Run> runs_;
};

/// Fills `rows`, consecutive rows of a bound array beginning with row `first`: the rows of the type
/// are taken from `packed`, one after another; the others get the fill value.
void PlaceOfType(const ArrayEntry& array, const TypeRows& of_type, std::uint64_t first,
                 std::span<const std::byte> packed, std::span<std::byte> rows);

/// Returns the number of a vertex type; nullopt if there is none of this name.
std::optional<TypeId> TypeNamed(std::span<const std::string> names, std::string_view name);

/// Returns the rows of an array's vertex type; nullopt if the array is not bound. `names` are the
/// types of the order; a type that only the delta has is not among them, and has no row.
std::optional<TypeRows> RowsOfBound(const ArrayEntry& array, const VertexOrder& order,
                                    std::span<const std::string> names);

}  // namespace internal
}  // namespace rhizome
