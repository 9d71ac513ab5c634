#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/manifest.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

class GraphSnapshot;

/// An attribute that every edge of a store has.
struct EdgeAttributeSchema {
  std::string name;                   ///< not a name of EdgeFields, such as "type" or "weight"
  DataType dtype = DataType::kInt64;  ///< kInt64, kFloat32 or kFloat64; `time` must be one kInt64
  std::uint64_t dim = 1;              ///< number of values of an edge

  /// The meaning of the values, such as `null` (EdgeAttributeInfo::attributes).
  std::vector<std::pair<std::string, std::string>> attributes = {};
  friend bool operator==(const EdgeAttributeSchema&, const EdgeAttributeSchema&) = default;
};

/// An array with one row for each vertex of a store.
struct ArraySchema {
  std::string name;
  DataType dtype = DataType::kFloat32;
  std::uint64_t dim = 1;
  ArrayLayout layout = ArrayLayout::kRow;

  /// Metadata that describes the values, such as the names of classes (ArrayEntry::attributes).
  std::vector<std::pair<std::string, std::string>> attributes = {};
  friend bool operator==(const ArraySchema&, const ArraySchema&) = default;
};

/// The types, columns and arrays of a store (docs/DESIGN.md, "The schema of a store").
struct GraphSchema {
  bool text_ids = false;                    ///< external ids are texts; otherwise they are integers
  bool undirected = false;                  ///< every edge has both directions
  bool weighted = false;                    ///< every edge has a weight
  Direction directions = Direction::kBoth;  ///< lists that are kept; undirected: kBoth
  std::vector<std::string> vertex_types = {"vertex"};
  std::vector<std::string> edge_types = {"edge"};
  std::vector<EdgeAttributeSchema> edge_attributes = {};
  std::vector<ArraySchema> arrays = {};
  friend bool operator==(const GraphSchema&, const GraphSchema&) = default;
};

/// Additions to the edges of a store (Graph::Alter).
struct SchemaChange {
  bool weighted = false;                                  ///< existing edges get the weight 1
  std::vector<EdgeAttributeSchema> edge_attributes = {};  ///< existing edges get zeros

  bool empty() const { return !weighted && edge_attributes.empty(); }
};

/// Returns the schema of a graph. Arrays that the store computes (embeddings of `infer`, homes,
/// marks of stale rows) are not part of it; of an array with versions it has the one that the plain
/// name refers to. Texts are not part of a schema either: an array of texts has the dtype of its
/// codes.
GraphSchema SchemaOf(const GraphSnapshot& graph);

/// Parses a schema in JSON; the form is documented in docs/DESIGN.md. Every member may be absent,
/// and then has the value of a default GraphSchema.
/// Errors: kInvalidArgument, not JSON, an unknown member, or a value of the wrong kind, by name.
Result<GraphSchema> ParseSchema(std::string_view json);

/// Returns the JSON from which ParseSchema returns the same schema: on several lines, with a line
/// feed at the end.
std::string SchemaText(const GraphSchema& schema);

}  // namespace rhizome
