#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome {

/// `bench train`: epochs of GraphSAGE under a limit on memory, page cache included, against rows
/// out of mapped files under the same limit, and against all rows in memory without one.
struct TrainStudy {
  std::string what;  ///< superbatch, memory, batch-size or features
  std::vector<std::string> values;
};

struct BenchTrainOptions {
  BenchGraphOptions graph = Graph();
  static BenchGraphOptions Graph() {
    BenchGraphOptions graph;
    graph.scale = 22;
    graph.partitions = 8;
    graph.threads = 2;
    graph.dim = 256;
    graph.labels = true;
    return graph;
  }
  std::uint64_t limit_bytes = std::uint64_t{1536} << 20;
  std::uint32_t layers = 3;
  std::uint32_t hidden = 256;
  std::uint64_t steps = 100;        ///< minibatches of an epoch; 0: all
  std::uint64_t mapped_steps = 20;  ///< of the mapped contestant, which is slow
  std::vector<std::string> policies = {"belady", "cost", "s3fifo"};
  std::string mapped_store;  ///< the same graph, say in natural order: mapped as well; empty: none
  std::uint32_t rounds = 1;
  std::string topology;             ///< memory or direct; empty: memory
  std::vector<TrainStudy> studies;  ///< instead of the contest: its first policy under each value
  std::string plot;                 ///< .svg or .png of where the time goes; empty: none
};

/// Errors: kUnsupported, the limit cannot be set (it takes root), or there is no librhizome_gnn.
Result<nlohmann::ordered_json> BenchTrain(const BenchTrainOptions& options,
                                          const JobControl& control);

}  // namespace rhizome
