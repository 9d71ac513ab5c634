#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cache/feed/feed_pipeline.h"
#include "rhizome/graph.h"
#include "rhizome/loader.h"
#include "rhizome/policy.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace internal {

/// Distinct rows to read from an array for some vertices of a minibatch.
struct RowsToRead {
  std::vector<Row> rows;

  /// In disjoint samples: the row of each vertex, an index into `rows`. Absent: row i belongs to
  /// the i-th vertex.
  std::optional<std::vector<std::uint32_t>> row_of;
};

/// Divides the vertices of minibatches among the arrays of a pipeline: by their types if there are
/// several arrays or a type has none, else all vertices belong to the only array.
/// Threads: const functions from any number of threads.
class InputDivision {
 public:
  /// Errors: kInvalidArgument, no type has an array; several arrays with an option that supports
  /// one (FeedPipelineOptions::inputs); an unknown type; a type that is named twice.
  static Result<InputDivision> Create(const GraphSnapshot& graph,
                                      const FeedPipelineOptions& options);

  const std::vector<std::string>& arrays() const { return arrays_; }
  bool by_type() const { return by_type_; }

  /// Returns the array of a type, an index into arrays(); nullopt: it has none. Only if by_type().
  const std::vector<std::optional<std::size_t>>& array_of_type() const { return array_of_type_; }

  /// Returns the local numbers of the vertices of each array, ascending. Only if by_type(); the
  /// minibatch must have vertex_types, unless the graph has one type.
  std::vector<std::vector<std::uint32_t>> Divide(const Minibatch& minibatch) const;

  /// Adds the rows that a minibatch requests from each array to its trace, as one step.
  void AddStep(const Minibatch& minibatch, std::span<Trace> traces) const;

 private:
  std::vector<std::string> arrays_;
  bool by_type_ = false;
  std::vector<std::optional<std::size_t>> array_of_type_;
};

/// Returns the rows of the vertices with these local numbers.
RowsToRead RowsOf(const Minibatch& minibatch, std::span<const std::uint32_t> vertices);

}  // namespace internal
}  // namespace rhizome
