#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "rhizome/graph.h"
#include "rhizome/link_scores.h"
#include "rhizome/status.h"

namespace rhizome {

/// A source of vertex pairs, and their number if it is known in advance, otherwise 0.
struct PairInput {
  PairSource next;
  std::uint64_t count = 0;
};

/// Opens a file of pairs of external ids: lines `src dst [type]`, tab-separated or CSV according to
/// the file's name, or .npy, int64 [m, 2]. Files may be compressed. "-" is standard
/// input, tab-separated. `type` is the name of an edge type; pairs without one get type 0. Memory:
/// one line.
/// Errors: kNotFound, an unknown id, type or file; kInvalidArgument. Errors of `next` also name the
/// file and the line or pair.
/// Ownership: `graph` must outlive the result.
Result<PairInput> OpenPairs(const GraphSnapshot& graph, const std::string& path);

/// Returns all edges, in the order of `export --edges`. Each pair of an undirected graph is
/// returned once.
Result<PairInput> AllEdges(const GraphSnapshot& graph);

/// Counts the pairs of `input` by reading it to its end.
Result<std::uint64_t> CountPairs(const PairInput& input, const JobControl& control);

}  // namespace rhizome
