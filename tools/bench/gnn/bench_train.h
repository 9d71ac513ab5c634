#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rhizome/graph.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"
#include "tools/bench/harness/bench.h"

namespace rhizome {

/// `bench train`: epochs of GraphSAGE under a memory limit that includes the page cache, compared
/// with rows in memory-mapped files under the same limit, and with all rows in memory without a
/// limit.
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
  std::uint64_t steps = 100;        ///< minibatches per epoch; 0: all
  std::uint64_t mapped_steps = 20;  ///< of the contestant with mapped files, which is slow
  std::vector<std::string> policies = {"belady", "cost", "s3fifo"};
  /// a store of the same graph, for example in natural order, which is also measured mapped; empty:
  /// none
  std::string mapped_store;
  std::uint32_t rounds = 1;
  std::string topology;  ///< memory or direct; empty: memory
  /// runs these studies instead of the comparison: the first policy with each value
  std::vector<TrainStudy> studies;
  std::string plot;  ///< .svg or .png of the time by phase; empty: none
};

/// Runs the bench. Errors: kUnsupported, the limit cannot be set (it requires root), or
/// librhizome_gnn is not installed.
Result<nlohmann::ordered_json> BenchTrain(const BenchTrainOptions& options,
                                          const JobControl& control);

}  // namespace rhizome
