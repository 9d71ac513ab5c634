#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/graph_types.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

/// Return the name of a kind ("pds"), and the kind for a name; nullopt if there is none.
std::string_view OrderName(OrderKind kind);
std::optional<OrderKind> ParseOrder(std::string_view name);

/// Returns whether the order keeps the rows of an owner together, and within an owner the rows of a
/// type.
bool GroupsByOwner(OrderKind kind);

/// The vertex properties that the orders use.
struct ReorderInput {
  std::span<const PartitionId> owner;     ///< [vertices]
  std::span<const TypeId> type;           ///< [vertices], or empty: all type 0
  std::span<const std::uint64_t> degree;  ///< [vertices]; how often a vertex is read as a neighbour
};

/// Returns the vertex at each row: a permutation of [0, vertices). The result depends only on the
/// arguments.
/// Errors: kInvalidArgument, columns of different lengths; kOutOfMemory.
Result<std::vector<VertexId>> OrderVertices(const ReorderInput& input, OrderKind kind,
                                            std::uint64_t seed);

}  // namespace rhizome
