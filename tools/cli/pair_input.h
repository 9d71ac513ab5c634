#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "rhizome/gnn/link_scores.h"
#include "rhizome/index/graph.h"
#include "rhizome/storage/result.h"

namespace rhizome {

/// A source of vertex pairs, and their number if it is known beforehand, else 0.
struct PairInput {
  PairSource next;
  std::uint64_t count = 0;
};

/// Opens a file of pairs of external ids: lines `src dst [type]`, tab-separated or CSV by the
/// file's name, or .npy, int64 [m, 2]; each plain, .gz or .zst. "-" is standard input,
/// tab-separated. Types are names of edge types; pairs without one get type 0. Memory: one line.
/// Errors: kNotFound, an unknown id, type or file; kInvalidArgument. Errors of `next` too name the
/// file and the line or pair.
/// Ownership: `graph` must outlive the result.
Result<PairInput> OpenPairs(const GraphSnapshot& graph, const std::string& path);

/// Returns all edges, in the order of `export --edges`; of an undirected graph each pair once.
Result<PairInput> AllEdges(const GraphSnapshot& graph);

/// Counts the pairs of `input`, which is at its end afterwards.
Result<std::uint64_t> CountPairs(const PairInput& input, const JobControl& control);

}  // namespace rhizome
