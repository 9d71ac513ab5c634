#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "index/ingest/edge_file.h"
#include "index/ingest/ingest_context.h"
#include "index/ingest/node_file.h"
#include "index/partition/partition_input.h"
#include "storage/base/stopwatch.h"

namespace rhizome {
inline namespace internal {

/// Fails early if Store::Create would refuse `path` after all input was read. This header has the
/// steps that are common to ingestion in memory and through spill files.
Status CheckTarget(FileSystem& fs, const Path& path);

/// Creates the store and lets `build` fill it; on failure removes the incomplete store.
Result<IngestReport> MakeStore(FileSystem& fs, const Path& path, std::optional<StoreId> store_id,
                               const JobControl& control,
                               const std::function<Status(Store&, IngestReport&)>& build,
                               const StoreOptions& options = {});

/// Ids 0..count-1 that exist even if no line names them; `why` names the input that implies them.
struct ImpliedVertices {
  std::uint64_t count = 0;
  std::string why;
};

/// Name, path and rows of an array file, in memory or spilled.
struct ArrayRows {
  std::string name;
  std::string path;
  std::uint64_t rows = 0;
  bool exact_rows = false;
  std::string vertex_type = {};  ///< ArrayFile::vertex_type
};
/// Returns the vertices that `vertices`, or arrays of all types without a nodes file, imply.
ImpliedVertices CountImplied(const IngestOptions& options, std::span<const ArrayRows> arrays);

/// Checks that there are no more vertices than `vertices`, if it is given. Otherwise the option
/// would be ignored without notice. Errors: kInvalidArgument, naming both numbers.
Status CheckVertexBound(const IngestOptions& options, std::uint64_t count);

/// Checks that the array has one row for each line of the nodes file, or for each id.
Status CheckArrayRows(const ArrayRows& array, std::uint64_t expected, bool nodes);

/// Returns the vertex of each line of the nodes file, and so of each row of array files; -1 for a
/// bad line. Returns `vertex_of_accepted` itself if no line was bad.
std::vector<VertexId> VerticesOfLines(const NodeTable& nodes,
                                      std::vector<VertexId> vertex_of_accepted);

/// Returns the row of the nodes file, and so of array files, for each vertex; -1 if it has none.
std::vector<std::int64_t> RowsOfVertices(const NodeTable& nodes,
                                         std::span<const VertexId> vertex_of_accepted,
                                         std::uint64_t vertex_count);

/// Sets the vertex types by vertex id; a vertex that only edges name has the type "unknown".
void SetVertexTypes(const IngestOptions& options, const NodeTable& nodes,
                    std::span<const VertexId> vertex_of_accepted, GraphInput& input);

/// Sets the types of the ends of edges, IngestOptions::end_types, after SetVertexTypes. `edges` has
/// vertex ids.
/// Errors: any error of the scan of `edges`.
Status SetEndTypes(const IngestOptions& options, const PartitionInput& edges, GraphInput& input);

/// Sets layout, codec and chunk size of every array from the options.
void SetLayouts(const IngestOptions& options, GraphInput& input);

/// Ingests through spill files (ingest_spilled.cc). The options of the plan must be checked.
Result<IngestReport> IngestSpilled(FileSystem& fs, const Path& path, const InputPlan& plan,
                                   const JobControl& control);

}  // namespace internal
}  // namespace rhizome
