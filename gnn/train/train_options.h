#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rhizome/cache/job_report.h"
#include "rhizome/cache/overlap.h"
#include "rhizome/cache/policy.h"
#include "rhizome/gnn/model_spec.h"
#include "rhizome/index/graph_types.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/io_queue.h"

namespace RHIZOME_API rhizome {

struct TrainOptions {
  Path store;
  ModelSpec model;
  std::string features = "feat";
  std::string labels = "label";
  std::string split = "split";
  std::vector<std::int64_t> fanouts = {10, 10};  ///< kAllNeighbors: the whole neighbourhood
  std::uint64_t batch_size = 1000;
  std::uint32_t epochs = 10;
  double learning_rate = 0.01;
  double weight_decay = 0;
  std::uint64_t seed = 1;
  std::uint32_t threads = 1;

  /// Bound on the whole process beyond its bare footprint, in bytes; 0: no limit.
  std::uint64_t memory_bytes = 0;
  PolicyKind cache = PolicyKind::kBelady;
  std::optional<std::uint64_t> cache_bytes;  ///< default: what `memory_bytes` leaves, at most 1 GiB
  IoMaker io = IoMaker::kAuto;

  /// kDirect: neighbour lists stay on disk, behind a cache of those that are most worth it.
  TopologyPlace topology = TopologyPlace::kMemory;
  std::optional<std::uint64_t> neighbor_cache_bytes;  ///< default: chosen, at most 256 MiB; 0: none
  std::uint32_t superbatch = 0;                       ///< minibatches; 0: chosen
  std::optional<Overlap> overlap = {};                ///< default: chosen
  std::uint64_t steps = 0;    ///< training minibatches of an epoch at most; 0: all
  bool test = true;           ///< accuracies of the kept weights, with all neighbours, at the end
  std::string job = "train";  ///< names scratch/<job>
  Path scratch;               ///< in place of the store's scratch (StoreOptions), if not empty

  /// Minibatches after which all that the run has learnt is written to scratch/<job>; 0: never.
  std::uint64_t checkpoint_every = 0;
  bool resume = false;  ///< go on from what a killed run of the same job wrote, if it did
  Path out;             ///< model file, safetensors; empty: not written
  Path trace;           ///< when each stage ran, as Chrome trace events; empty: not written
  JobNote note = {};    ///< told what of the graph the network ignores, if anything
};

struct EpochReport : MinibatchCosts {
  double loss = 0;
  double seconds = 0;
  double compute_seconds = 0;
  double stall_seconds = 0;  ///< the network waited for its next minibatch
  double valid_accuracy = 0;
};

/// How a training divides its memory, in bytes: estimates from its first minibatch, made before it
/// starts.
struct TrainMemory {
  std::uint64_t held = 0;            ///< topology, order, labels
  std::uint64_t working = 0;         ///< minibatches in flight, activations, read buffers
  std::uint64_t schedules = 0;       ///< of the superbatch in use and the one that is made
  std::uint64_t cache = 0;           ///< the buffer pool
  std::uint64_t neighbor_cache = 0;  ///< 0 where lists are in memory
};

struct TrainReport {
  FeedProfileReport profile;
  std::vector<EpochReport> epochs;
  IoMaker maker = IoMaker::kAuto;
  bool direct = false;
  double mean_depth = 0;
  std::optional<ListReadsReport> list_reads;  ///< where lists are on disk

  /// Of the epoch that was kept, the best on the validation set. Absent: not measured
  /// (options.test), or no vertex is in that set.
  std::optional<double> valid_accuracy;
  std::optional<double> test_accuracy;
  std::optional<double> majority_accuracy;  ///< of the training set's most frequent class, always
  std::uint32_t best_epoch = 0;
  std::uint32_t superbatch = 0;
  Overlap overlap = Overlap::kAll;
  TrainMemory memory;
  std::uint64_t valid_vertices = 0;       ///< in the validation set; 0: no accuracy of an epoch
  std::vector<std::string> ignored;       ///< of the graph, as IgnoredFacts says it
  std::uint64_t minibatches = 0;          ///< of an epoch
  std::uint64_t resumed_minibatches = 0;  ///< done before this run
  std::uint64_t base_memory_bytes = 0;
  std::uint64_t peak_memory_bytes = 0;
  std::string model;  ///< path of the model file, or empty
};

}  // namespace rhizome
