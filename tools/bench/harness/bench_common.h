#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "rhizome/chunk_array.h"
#include "rhizome/graph.h"
#include "rhizome/job_control.h"
#include "rhizome/job_report.h"
#include "rhizome/sampler.h"
#include "rhizome/status.h"
#include "rhizome/store.h"
#include "tools/bench/harness/bench.h"
#include "tools/bench/harness/fio.h"
#include "tools/cli/machine.h"
#include "tools/cli/scratch_folder.h"

namespace rhizome {

/// The graph that a bench reads, from a store or generated for the run. Members are destroyed in
/// reverse order: the graph first, its files last.
struct BenchGraph {
  std::unique_ptr<ScratchFolder> scratch;  ///< contains a graph generated for the run
  std::unique_ptr<Store> store;
  std::unique_ptr<GraphSnapshot> graph;
};
Result<BenchGraph> OpenBenchGraph(const BenchGraphOptions& options, const JobControl& control);

/// Describes the graph: "RMAT scale 18, edge factor 16" or the path of the store, and counts of
/// vertices and edges.
nlohmann::ordered_json DescribeGraph(const BenchGraphOptions& options, const GraphSnapshot& graph);

/// Draws the distinct seeds of one minibatch from all vertices. Deterministic in (seed, batch).
std::vector<VertexId> DrawSeeds(std::uint64_t vertex_count, std::uint32_t batch_size,
                                std::uint64_t seed, std::uint64_t batch);

/// Returns a fio job of random reads from the files of an array, each of the blocks that cover one
/// row: the lower bound of the cost of reading rows.
FioJob RowReadsJob(const ChunkArray& rows);

double Median(std::vector<double> values);

}  // namespace rhizome
