#include "tools/verbs/schema_of_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace rhizome {
namespace {

using Kind = WriteBatch::Kind;

bool IsText(const ExternalId& id) {
  const auto* const text = std::get_if<std::string>(&id);
  return text != nullptr && !ParseCanonicalInteger(*text);
}

/// Names of types in the order in which they occur. An object without a type has the first type,
/// which then has the default name.
class TypeNames {
 public:
  void Add(const std::string& name) {
    if (std::find(names_.begin(), names_.end(), name) == names_.end()) names_.push_back(name);
  }
  std::vector<std::string> Names(bool some_have_none, const std::string& fallback) const {
    std::vector<std::string> names = names_;
    const auto known = std::find(names.begin(), names.end(), fallback);
    if (known != names.end())
      std::rotate(names.begin(), known, known + 1);
    else if (some_have_none || names.empty())
      names.insert(names.begin(), fallback);
    return names;
  }

 private:
  std::vector<std::string> names_;
};

}  // namespace

GraphSchema SchemaOfBatch(const WriteBatch& batch, bool weighted) {
  GraphSchema schema{.weighted = weighted};
  TypeNames vertex_types, edge_types;
  std::set<std::string> typed;  // ids of vertices that were put with a type
  bool edge_without = false;
  bool vertex_without = false;
  for (const WriteBatch::Operation& one : batch.operations()) {
    const bool edge = one.kind == Kind::kPutEdge || one.kind == Kind::kUpsertEdge;
    const bool both = edge || one.kind == Kind::kDeleteEdge;
    schema.text_ids = schema.text_ids || IsText(one.id) || (both && IsText(one.dst));
    if (edge && !one.name.empty()) edge_types.Add(one.name);
    if (one.kind == Kind::kPutVertex && !one.name.empty()) {
      vertex_types.Add(one.name);
      typed.insert(ToString(one.id));
    }
    edge_without = edge_without || (edge && one.name.empty());
    const bool adds = edge || one.kind == Kind::kPutVertex || one.kind == Kind::kPutRow ||
                      one.kind == Kind::kPutTexts;
    vertex_without = vertex_without || (adds && !typed.contains(ToString(one.id))) ||
                     (edge && !typed.contains(ToString(one.dst)));
  }
  schema.vertex_types = vertex_types.Names(vertex_without, schema.vertex_types.front());
  schema.edge_types = edge_types.Names(edge_without, schema.edge_types.front());
  return schema;
}

std::string DescribeSchema(const GraphSchema& schema) {
  return fmt::format("{} ids, {}vertex types {}; edge types {}",
                     schema.text_ids ? "text" : "integer", schema.weighted ? "weights, " : "",
                     fmt::join(schema.vertex_types, ", "), fmt::join(schema.edge_types, ", "));
}

}  // namespace rhizome
