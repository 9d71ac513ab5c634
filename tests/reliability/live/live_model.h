#pragma once

#include <cstdint>

#include "rhizome/index/graph.h"
#include "rhizome/index/graph_builder.h"
#include "rhizome/index/write_batch.h"
#include "rhizome/storage/result.h"

namespace rhizome::testing {

/// What a live writer (live_writer.h) does, as a function of a commit's number alone, and thereby
/// what a store must hold after the first m commits: which vertices, the neighbours of each in both
/// directions with their weights, and its row of the array "feat".

/// The graph before the first commit: "root" with an edge to "base", and their rows.
GraphInput LiveInput();

/// Commit number 0, 1, ...: a new vertex with edges and a row, and by turns a deleted edge, a
/// deleted vertex, one that comes back, a replaced edge. Vertices are deleted after a while, so
/// that the graph stays small. The row of "root" says how many commits there are.
WriteBatch LiveBatch(std::uint64_t commit);

/// How many commits the graph holds, by the row of "root". Errors: kCorruption, it does not hold
/// just what these do; those of reading.
Result<std::uint64_t> CommitsIn(const Graph& graph);

}  // namespace rhizome::testing
