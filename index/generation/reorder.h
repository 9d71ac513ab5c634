#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "rhizome/export.h"
#include "rhizome/graph_types.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace internal {
class Degrees;
class VertexColumn;
}  // namespace internal
}  // namespace rhizome

namespace RHIZOME_API rhizome {

/// Return the name of a kind ("pds"), and the kind for a name; nullopt if there is none.
std::string_view OrderName(OrderKind kind);
std::optional<OrderKind> ParseOrder(std::string_view name);

/// Returns whether the order keeps the rows of an owner together, and within an owner the rows of a
/// type.
bool GroupsByOwner(OrderKind kind);

/// The vertex properties that the orders use.
struct ReorderInput {
  std::span<const PartitionId> owner;  ///< [vertices]
  std::span<const TypeId> type;        ///< [vertices], or empty: all type 0
  const internal::Degrees* degree =
      nullptr;  ///< [vertices]; how often a vertex is read as a neighbour
};

/// Returns the vertex at each row: a permutation of [0, vertices). The result depends only on the
/// arguments.
/// Errors: kInvalidArgument, columns of different lengths; kOutOfMemory.
Result<internal::VertexColumn> OrderVertices(const ReorderInput& input, OrderKind kind,
                                             std::uint64_t seed);

}  // namespace rhizome
