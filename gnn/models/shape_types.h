#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "gnn/models/model_shape.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

// The types in a ModelShape (format 3 of model files).

/// Checks that the names are not empty and differ, that relations have numbers of 16 bits, and that
/// inputs by type fit the names. Errors: kInvalidArgument, naming the type or the number of types.
Status CheckShapeTypes(const ModelShape& shape);

/// Adds the types to the description of a shape, if it has any, and reads them. Errors:
/// kCorruption, naming the field.
void AddShapeTypes(const ModelShape& shape, nlohmann::json& description);
Status ReadShapeTypes(const nlohmann::json& description, ModelShape& shape);

/// Sets the names that the shape needs, from the names of a graph: vertex types if it has inputs by
/// type, and vertex types and relations if its kind has weights by type (ModelInfo::typed). Errors:
/// kInvalidArgument, there is no such kind.
Status NameShapeTypes(const std::vector<std::string>& vertex_types,
                      const std::vector<std::string>& edge_types, ModelShape& shape);

/// Returns, for each name of `ours`, its number in `known`. `what`: "vertex type" or "edge type".
/// Errors: kUnsupported, listing the names that are not in `known`.
Result<std::vector<std::uint32_t>> NumbersOfTypes(std::string_view what,
                                                  const std::vector<std::string>& ours,
                                                  const std::vector<std::string>& known);

}  // namespace internal
}  // namespace rhizome
