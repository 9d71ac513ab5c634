#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rhizome/graph.h"
#include "rhizome/graph_schema.h"

namespace rhizome {

/// The edge attributes and arrays that lines of an update file can name. They belong to a graph, or
/// to the schema of a store that is created afterwards.
/// Threads: one at a time.
class UpdateTarget {
 public:
  explicit UpdateTarget(std::shared_ptr<const GraphSnapshot> graph);
  explicit UpdateTarget(const GraphSchema& schema);

  const std::vector<EdgeAttributeInfo>& edge_attributes() const { return edge_attributes_; }

  /// The values of a row of an array.
  struct Columns {
    DataType dtype = DataType::kInvalid;
    std::uint64_t dim = 0;
    std::optional<std::string> null;  ///< text of the value that means null; absent: none does
  };

  /// Returns the columns of an array by its name or a reference such as emb@live. The pointer is
  /// valid as long as this object.
  /// Errors: kNotFound, listing the existing arrays.
  Result<const Columns*> Find(const std::string& array);

 private:
  const std::shared_ptr<const GraphSnapshot> graph_;  // null: a schema
  std::vector<EdgeAttributeInfo> edge_attributes_;
  std::map<std::string, Columns> arrays_;  // of the schema, or found so far
};

}  // namespace rhizome
