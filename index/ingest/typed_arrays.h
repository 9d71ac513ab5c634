#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "index/generation/graph_builder.h"
#include "index/ingest/ingest_context.h"
#include "index/ingest/ingest_steps.h"
#include "index/ingest/node_file.h"

namespace rhizome {
inline namespace internal {

/// The vertices of the rows of files whose array is bound to a vertex type
/// (ArrayFile::vertex_type).
/// Memory: 8 bytes a vertex of each type that a file names.
class TypedRows {
 public:
  /// Lists the vertices of the types: in the order of the nodes file, or of IngestOptions::
  /// vertex_ranges. `input` has the types of the vertices; a type has no effect if it is the only
  /// one. `vertex_of_accepted` has the vertices of the accepted lines of the nodes file.
  /// Errors: kInvalidArgument, a file names an unknown type, or the input does not order the
  /// vertices.
  static Result<TypedRows> Make(const IngestOptions& options,
                                std::span<const VertexId> vertex_of_accepted,
                                const GraphInput& input);

  /// Returns whether the array is bound.
  bool Has(const std::string& type) const { return vertices_.contains(type); }

  /// Return the vertices of the rows of such a file, and its row for each vertex, -1 for others.
  std::shared_ptr<const std::vector<VertexId>> VerticesOf(const std::string& type) const {
    return vertices_.at(type);
  }
  std::shared_ptr<const std::vector<std::int64_t>> RowsOf(const std::string& type,
                                                          std::uint64_t vertex_count) const;

  /// Checks that each array of a typed file has a row for each vertex of its type. `expected` and
  /// `nodes` are the arguments of CheckArrayRows, for a type that is the only one.
  Status CheckRows(std::span<const ArrayRows> arrays, std::uint64_t expected, bool nodes) const;

  std::uint64_t memory_bytes() const;

 private:
  std::map<std::string, std::shared_ptr<const std::vector<VertexId>>> vertices_;
};

/// Sets the attribute that binds the arrays of typed files to their types, after SetLayouts.
void BindToTypes(const IngestOptions& options, const TypedRows& rows, GraphInput& input);

/// Returns the number of vertices by name of their type; empty if there is one type.
std::map<std::string, std::uint64_t> CountTypes(const GraphInput& input);

/// Returns a sentence for each bound array whose chunks have many rows of other types, because the
/// order of the rows mixes the types. `counts` is the result of CountTypes.
std::vector<std::string> NotesOnMixedChunks(const Manifest& manifest,
                                            const std::map<std::string, std::uint64_t>& counts);

}  // namespace internal
}  // namespace rhizome
