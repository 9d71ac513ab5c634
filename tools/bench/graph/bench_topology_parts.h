#pragma once

#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "bench_topology.h"
#include "rhizome/index/graph.h"
#include "rhizome/index/neighbor_source.h"
#include "rhizome/index/topology_sections.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome {

/// The direction whose lists the parts of `bench topology` read.
Direction WalkedDirection(const GraphSnapshot& graph);

/// Random entries, each as likely as any other.
std::vector<EntryRef> DrawEntries(const GraphSnapshot& graph, Direction direction,
                                  std::size_t count, std::mt19937_64& random);

/// The same minibatches from memory in both codecs (where there is another store), and from disk
/// without and with the cache, taking turns.
Result<nlohmann::ordered_json> BenchTopologySampling(const GraphSnapshot& memory,
                                                     const GraphSnapshot* other,
                                                     const GraphSnapshot& direct,
                                                     const BenchTopologyOptions& options,
                                                     const JobControl& control);

/// The type of random entries: through the edge-type index, and from one byte an edge.
Result<nlohmann::ordered_json> BenchTopologyTypes(const GraphSnapshot& graph,
                                                  const TopologySections& sections,
                                                  const BenchTopologyOptions& options);

}  // namespace rhizome
