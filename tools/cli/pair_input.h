#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "rhizome/gnn/link_scores.h"
#include "rhizome/index/graph.h"
#include "rhizome/storage/result.h"

namespace rhizome {

/// Pairs of vertices, and how many there are where that is known beforehand (0: not).
struct PairInput {
  PairSource next;
  std::uint64_t count = 0;
};

/// Pairs of external ids: lines `src dst [type]`, tab-separated or CSV by the name, or .npy, int64
/// [m, 2]; each plain, .gz or .zst; "-": standard input, tab-separated. Types are names of edge
/// types; pairs without one get type 0. Memory: a line. Errors, of this and of next, which name
/// file and line or pair: kNotFound, an unknown id, type or file; kInvalidArgument. Ownership:
/// `graph` must outlive it.
Result<PairInput> OpenPairs(const GraphSnapshot& graph, const std::string& path);

/// All edges, in the order of `export --edges`; of an undirected graph each pair once.
Result<PairInput> AllEdges(const GraphSnapshot& graph);

/// How many pairs `input` gives; it is at its end then.
Result<std::uint64_t> CountPairs(const PairInput& input, const JobControl& control);

}  // namespace rhizome
