#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "index/ingest/ingest_context.h"
#include "index/ingest/ingest_steps.h"
#include "index/ingest/node_file.h"

namespace rhizome {
inline namespace internal {

/// Checks IngestOptions::homes_file against the rule.
/// Errors: kInvalidArgument.
Status CheckHomesFile(const IngestOptions& options);

/// Homes that another program chose: one for each line of the nodes file, or for each id. Memory: 2
/// bytes each.
struct GivenHomes {
  std::vector<PartitionId> of_line;

  /// Reads IngestOptions::homes_file; reads nothing if there is none.
  /// Errors: kInvalidArgument, naming the file and the line or row: not an integer, or a home
  /// outside [0, partitions); any error of opening and reading; kInterrupted; kOutOfMemory.
  static Result<GivenHomes> Read(IngestContext& context);

  /// Returns the rows of the homes file, which imply a number of vertices like the rows of an
  /// array.
  ArrayRows rows(const IngestOptions& options) const;

  /// Returns the homes by vertex. `vertex_of_accepted` and `nodes` are used if there is a nodes
  /// file.
  /// Errors: kInvalidArgument, vertices that only edges name have no home.
  Result<std::vector<PartitionId>> ByVertex(const IngestOptions& options, const NodeTable& nodes,
                                            std::span<const VertexId> vertex_of_accepted,
                                            std::uint64_t vertex_count) &&;
};

}  // namespace internal
}  // namespace rhizome
