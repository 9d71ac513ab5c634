#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "rhizome/index/edge_file.h"
#include "rhizome/index/ingest_context.h"
#include "rhizome/index/node_file.h"
#include "rhizome/storage/stopwatch.h"

namespace rhizome::inline internal {

/// What the two ways of ingesting, in memory and through spill files, have in common.

/// Fails early where Store::Create would refuse later, after all input was read.
Status CheckTarget(FileSystem& fs, const Path& path);

/// Makes the store and lets `build` fill it; takes away what a failed one left.
Result<IngestReport> MakeStore(FileSystem& fs, const Path& path, std::optional<StoreId> store_id,
                               const JobControl& control,
                               const std::function<Status(Store&, IngestReport&)>& build,
                               const StoreOptions& options = {});

/// Ids 0..count-1 exist even if no line names them; `why` tells which input says so.
struct ImpliedVertices {
  std::uint64_t count = 0;
  std::string why;
};

/// Name, rows and such of an array file, however it is held.
struct ArrayRows {
  std::string name;
  std::string path;
  std::uint64_t rows = 0;
  bool exact_rows = false;
};
ImpliedVertices CountImplied(const IngestOptions& options, std::span<const ArrayRows> arrays);

/// Does the array have the rows that the nodes file, or the ids, ask for?
Status CheckArrayRows(const ArrayRows& array, std::uint64_t expected, bool nodes);

/// The vertex of each line of the nodes file, and so of each row of array files, -1 for a bad line;
/// takes `vertex_of_accepted` where both are the same.
std::vector<VertexId> VerticesOfLines(const NodeTable& nodes,
                                      std::vector<VertexId> vertex_of_accepted);

/// Vertex types by vertex id; a vertex that only edges name is of the type "unknown".
void SetVertexTypes(const IngestOptions& options, const NodeTable& nodes,
                    std::span<const VertexId> vertex_of_accepted, GraphInput& input);

/// Names of edge types; `edge` if there is no column of them.
std::vector<std::string> EdgeTypeNames(const EdgeTable& edges);

/// Layout, codec and chunks of every array, as the options say.
void SetLayouts(const IngestOptions& options, GraphInput& input);

/// Ingest through spill files (ingest_spilled.cc), after the options were checked.
Result<IngestReport> IngestSpilled(FileSystem& fs, const Path& path, const IngestOptions& options,
                                   const JobControl& control);

}  // namespace rhizome::inline internal
