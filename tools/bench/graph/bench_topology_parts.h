#pragma once

#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "index/check/topology_sections.h"
#include "rhizome/graph.h"
#include "rhizome/job_control.h"
#include "rhizome/sampler.h"
#include "rhizome/status.h"
#include "tools/bench/graph/bench_topology.h"

namespace rhizome {

/// Returns the direction of the lists that the parts of `bench topology` read.
Direction WalkedDirection(const GraphSnapshot& graph);

/// Draws random entries of lists, uniformly.
std::vector<EntryRef> DrawEntries(const GraphSnapshot& graph, Direction direction,
                                  std::size_t count, std::mt19937_64& random);

/// Samples the same minibatches from memory in both codecs (if another store is given), and from
/// disk without and with the cache. The contestants alternate.
Result<nlohmann::ordered_json> BenchTopologySampling(const GraphSnapshot& memory,
                                                     const GraphSnapshot* other,
                                                     const GraphSnapshot& direct,
                                                     const BenchTopologyOptions& options,
                                                     const JobControl& control);

/// Looks up the types of random entries in the edge-type index and in an array of one byte per
/// edge.
Result<nlohmann::ordered_json> BenchTopologyTypes(const GraphSnapshot& graph,
                                                  const TopologySections& sections,
                                                  const BenchTopologyOptions& options);

}  // namespace rhizome
