#pragma once

#include <cstdint>

#include "rhizome/index/graph.h"
#include "rhizome/index/graph_builder.h"
#include "rhizome/index/write_batch.h"
#include "rhizome/storage/result.h"

namespace rhizome::testing {

/// Defines the work of a live writer (live_writer.h) as a function of a commit's number alone, and
/// thereby the contents of a store after the first m commits: its vertices, the neighbours of each
/// in both directions with their weights, and its row of the array "feat".

/// The graph before the first commit: "root" with an edge to "base", and their rows.
GraphInput LiveInput();

/// Returns commit number 0, 1, ...: a new vertex with edges and a row, and in turn a deleted edge,
/// a deleted vertex, a vertex that comes back, a replaced edge. Vertices are deleted after a while,
/// so that the graph stays small. The row of "root" holds the number of commits.
WriteBatch LiveBatch(std::uint64_t commit);

/// Returns the number of commits in the graph, from the row of "root". Errors: kCorruption, the
/// graph does not hold exactly these commits; those of reading.
Result<std::uint64_t> CommitsIn(const Graph& graph);

}  // namespace rhizome::testing
