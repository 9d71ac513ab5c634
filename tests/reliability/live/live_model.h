#pragma once

#include <cstdint>

#include "index/generation/graph_builder.h"
#include "rhizome/graph.h"
#include "rhizome/status.h"
#include "rhizome/write_batch.h"

namespace rhizome::testing {

/// Defines the work of a live writer (live_writer.h) as a function of the commit number, and
/// thereby the contents of a store after the first m commits: its vertices, their weighted
/// neighbours in both directions, and their rows of the array "feat".

/// Returns the graph before the first commit: "root" with an edge to "base", and their rows.
GraphInput LiveInput();

/// Returns commit number 0, 1, ...: a new vertex with edges and a row, and by turns a deleted edge,
/// a deleted vertex, a vertex that returns, or a replaced edge. Vertices are deleted after some
/// commits, so that the graph remains small. The row of "root" holds the number of commits.
WriteBatch LiveBatch(std::uint64_t commit);

/// Returns the number of commits in the graph, from the row of "root". Errors: kCorruption, the
/// graph does not hold exactly these commits; any of reading.
Result<std::uint64_t> CommitsIn(const Graph& graph);

}  // namespace rhizome::testing
