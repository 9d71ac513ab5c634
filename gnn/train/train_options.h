#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rhizome/cache/job_report.h"
#include "rhizome/cache/neighbor_sampling.h"
#include "rhizome/cache/overlap.h"
#include "rhizome/cache/policy.h"
#include "rhizome/cache/prior.h"
#include "rhizome/cache/rank_plan.h"
#include "rhizome/cache/task_metrics.h"
#include "rhizome/gnn/compute_on.h"
#include "rhizome/gnn/learning_options.h"
#include "rhizome/gnn/model_spec.h"
#include "rhizome/index/graph_types.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/io_queue.h"

namespace RHIZOME_API rhizome {

class Transport;
struct TrainReport;

/// The rule by which chunks of the arrays of a training on the full graph stay in memory, where the
/// memory limit does not allow all of them.
enum class SpillRule : std::uint8_t {
  kAuto,      ///< the one that moves the fewest bytes
  kNone,      ///< nothing stays
  kLru,       ///< what was used last
  kLruLive,   ///< the same, but what no pass reads any more is not written
  kBelady,    ///< what is needed soonest
  kDp,        ///< parts of arrays, by dynamic programming over the passes of an epoch
  kDpTensor,  ///< whole arrays, by dynamic programming after ROC, with writes counted
};

/// The fate of sums over neighbours that the way back needs again.
enum class FullSums : std::uint8_t {
  kAuto,       ///< whichever moves fewer bytes
  kStore,      ///< they are kept
  kRecompute,  ///< they are gathered again, of layers between the first and the last
};

struct TrainOptions {
  Path store;
  ModelSpec model;
  std::string features = "feat";
  std::string labels = "label";
  std::string split = "split";  ///< or NAME:K (ParseSplitReference)

  /// Absent: by dtype and shape of the labels: int64 or int32 of one column are multiclass, uint8
  /// of several columns multilabel (255: missing), float32 regression (NaN: missing).
  std::optional<Task> task = {};
  LossOptions loss = {};
  std::vector<std::int64_t> fanouts = {10, 10};  ///< kAllNeighbors: the whole neighbourhood

  /// How they are drawn. Fanouts by edge type (NeighborSampling::typed_fanouts) stand for
  /// `fanouts`.
  NeighborSampling sampling = {};

  /// Use the weights of edges in layers that sum or average; absent: where the store has them.
  std::optional<bool> edge_weights = {};
  std::uint64_t batch_size = 1000;
  std::uint32_t epochs = 10;
  double learning_rate = 0.01;

  /// Decays matrices alone: biases, norms and other vectors and numbers do not decay.
  double weight_decay = 0;
  OptimizerChoice optimizer = {};
  ScheduleOptions schedule = {};
  std::uint64_t seed = 1;

  /// Trainings with `seed`, `seed` + 1, ..., one after another; the best one's model is written.
  std::uint32_t seeds = 1;
  Path init = {};  ///< a model file of equal shape whose weights are the first; empty: by the seed

  /// Every so many epochs, and after the last, the validation set is measured.
  std::uint32_t eval_every = 1;

  /// Neighbours drawn where the validation set is measured, one for each layer; kAllNeighbors in
  /// every layer takes all of the types that training walks. Empty: as in training.
  std::vector<std::int64_t> eval_fanouts = {};

  /// Measure in every epoch, too, how well the training set's minibatches were answered while they
  /// were learnt (EpochReport::train_metrics): 8 bytes a training vertex, or more for several
  /// labels.
  bool train_metrics = false;

  /// The metric by which an epoch is the best; absent: MainMetric of the task.
  std::optional<Metric> monitor = {};

  /// Training ends when so many epochs have passed without one that is better by more than
  /// `min_delta`; 0: never.
  std::uint32_t patience = 0;
  double min_delta = 0;
  std::uint32_t threads = 1;

  /// Memory limit of the whole process beyond its bare footprint, in bytes; 0: no limit.
  std::uint64_t memory_bytes = 0;
  PolicyKind cache = PolicyKind::kBelady;
  Prior prior = Prior::kUses;                ///< for caches that TakesPrior says
  std::optional<std::uint64_t> cache_bytes;  ///< default: what `memory_bytes` leaves, at most 1 GiB
  IoMaker io = IoMaker::kAuto;

  /// kDirect: neighbour lists stay on disk, behind a neighbour cache.
  TopologyPlace topology = TopologyPlace::kMemory;
  std::optional<std::uint64_t> neighbor_cache_bytes;  ///< default: chosen, at most 256 MiB; 0: none
  std::uint32_t superbatch = 0;                       ///< minibatches; 0: chosen
  std::optional<Overlap> overlap = {};                ///< default: chosen
  std::uint64_t steps = 0;  ///< limit of training minibatches in an epoch; 0: all

  /// Train on all edges at once: an epoch is one step, down the gradient of the loss over the whole
  /// training set, with what does not fit into memory in the job's folder. `fanouts` are then
  /// kAllNeighbors; batch_size, steps and what is about minibatches is not used, and
  /// checkpoint_every counts epochs.
  bool full_graph = false;
  SpillRule spill = SpillRule::kAuto;  ///< of full_graph
  FullSums sums = FullSums::kAuto;     ///< likewise

  /// With full_graph and checkpoint_every: what a step has computed so far is written too, when so
  /// many seconds have passed since the last time; 0: after every chunk.
  double checkpoint_seconds = 60;

  /// kCuda: the network, and rows that stay there, are on the first CUDA device. Without
  /// full_graph.
  ComputeOn device = ComputeOn::kCpu;

  /// Memory of the device for feature rows that stay there, in bytes; default: half of what is
  /// free.
  std::optional<std::uint64_t> device_memory_bytes = {};

  /// The rule by which they stay: kBelady, kStatic, kMatch or kNone.
  PolicyKind device_cache = PolicyKind::kBelady;

  /// The ranks that train together, of which this process, or thread, is one: all make the same
  /// call. `batch_size` is then that of a home in a step, on average, and `superbatch` and
  /// `checkpoint_every` count steps. Null: this process trains alone. Borrowed.
  Transport* transport = nullptr;
  LinkModel link = {};  ///< of a rank, by which rows of other ranks are dearer than those of a disk
  PrefetchOptions prefetch = {};  ///< of a rank; `cache` is then kBelady

  bool test = true;           ///< measure the kept weights with all neighbours at the end
  std::string job = "train";  ///< name of the job and of its folder, scratch/<job>
  Path scratch;               ///< replaces the store's scratch folder (StoreOptions), if not empty

  /// Number of minibatches between two checkpoints in scratch/<job>; 0: none.
  std::uint64_t checkpoint_every = 0;
  /// continue from the checkpoint of a killed run of the same job, if there is one
  bool resume = false;

  /// The model file, safetensors: written, each time at once, whenever an epoch is the best so far,
  /// so that an interrupted training leaves it. Empty: not written.
  Path out;
  Path trace;         ///< Chrome trace of the stages; empty: not written
  JobNote note = {};  ///< told TrainReport::ignored and TrainReport::warnings

  /// Told what there is of the report if training ends before its end, interrupted or with an
  /// error, but after an epoch.
  std::function<void(const TrainReport&)> on_stop = {};
};

struct EpochReport : MinibatchCosts {
  double loss = 0;
  double seconds = 0;
  double compute_seconds = 0;
  double stall_seconds = 0;  ///< waiting for the next minibatch
  double learning_rate = 0;

  /// Figures of the validation set, if it was measured: accuracy (0: not measured, or no such
  /// metric), the metric TrainReport::monitor, and the loss.
  double valid_accuracy = 0;
  std::optional<double> valid_metric = {};
  std::optional<double> valid_loss = {};

  /// All metrics of the validation set, if it was measured; and of the training set
  /// (TrainOptions::train_metrics), with dropout and with the weights of each minibatch's turn.
  std::vector<MetricValue> valid_metrics = {};
  std::vector<MetricValue> train_metrics = {};
  std::uint64_t resident_bytes = 0;  ///< memory of the process at the epoch's end

  /// Figures of a training on a device: bytes that went up, and the time to pack and queue them;
  /// the time in which the host waited for the device; rows that it had already.
  std::uint64_t upload_bytes = 0;
  double upload_seconds = 0;
  double device_wait_seconds = 0;
  std::uint64_t device_hits = 0;

  /// Figures of a training on the full graph: the time forward and back, that of measuring, the
  /// bytes of arrays in the job's folder, and those of the features' files, measuring included.
  double forward_seconds = 0;
  double backward_seconds = 0;
  double measure_seconds = 0;
  std::uint64_t spill_bytes_read = 0;
  std::uint64_t spill_bytes_written = 0;
  std::uint64_t feature_bytes_read = 0;

  /// The share of its seconds in which an array in the job's folder was being read or written.
  double disk_busy = 0;
};

/// A pass of an epoch on the full graph, over all rows of the arrays that it reads and writes.
struct FullGraphPass {
  struct Moved {
    std::string array;
    std::uint64_t bytes = 0;
  };
  std::string name;
  bool measures = false;            ///< it belongs to the measuring of an epoch
  std::vector<Moved> reads;         ///< of files, of all arrays that it reads; without the features
  std::uint64_t feature_bytes = 0;  ///< that it reads of the features' files
  std::vector<Moved> writes;        ///< likewise, also of others that leave memory
  std::uint64_t blocks = 1;         ///< in which rows are gathered
  std::vector<Moved> resident;      ///< bytes in memory when it begins to read
  std::string sums;                 ///< that it works on: "stored", "recomputed", or no choice

  /// Guessed of a plan, zero of a training: it takes the longer of both.
  double compute_seconds = 0;
  double disk_seconds = 0;
};

/// How an epoch on the full graph goes. Bytes are those of arrays in the job's folder.
struct FullGraphReport {
  struct Array {
    std::string name;
    std::uint64_t bytes = 0;
  };
  struct Policy {
    std::string name;  ///< of a SpillRule, or "recompute": kDp, all sums gathered again
    std::uint64_t bytes = 0;
  };
  std::vector<FullGraphPass> passes;
  std::vector<Array> arrays;
  std::uint64_t chunk_rows = 0;
  std::string spill;          ///< the rule of learning, never auto
  std::string measure_spill;  ///< and of measuring

  /// Read and written in an epoch; with its measuring, if there is a validation set. Likewise all
  /// others.
  std::uint64_t planned_bytes = 0;
  std::uint64_t planned_read_bytes = 0;
  std::uint64_t feature_bytes = 0;      ///< of the features' files, that are read besides
  std::uint64_t lower_bound_bytes = 0;  ///< no rule moves fewer, features included
  bool optimal = false;                 ///< no plan of its kind moves fewer

  /// All rules that can be followed, with the best blocks; features included.
  std::vector<Policy> policies;
  std::uint64_t memory_bytes = 0;  ///< that the passes and chunks that stay take, at most
  std::uint64_t disk_bytes = 0;    ///< of files that exist at once, at most

  /// Guessed of a plan, zero of a training: the time of an epoch, and bytes a second of its files
  /// (zero: it has none).
  double seconds = 0;
  double disk_read_rate = 0;
  double disk_write_rate = 0;
  std::string disk_problem;  ///< why these could not be tried; the time is then without moving
};

/// Metrics of kept weights, with all neighbours. Absent: not measured (TrainOptions::test), or no
/// vertex is in that set.
struct TaskMetrics {
  std::optional<SplitMetrics> train, valid, test;
};

/// One of several trainings (TrainOptions::seeds).
struct SeedReport {
  std::uint64_t seed = 0;
  std::uint32_t best_epoch = 0;
  std::uint32_t epochs = 0;  ///< complete
  bool stopped_early = false;
  std::optional<double> best_value = {};  ///< of the monitored metric, in the best epoch
  TaskMetrics metrics = {};
  std::vector<EpochReport> course = {};  ///< its epochs
};

/// A metric of the test set (or, where there is none, the validation set) over all seeds.
struct MetricSpread {
  Metric metric = Metric::kAccuracy;
  double mean = 0;
  double deviation = 0;     ///< of the sample (n - 1); 0 for one seed
  std::uint32_t seeds = 0;  ///< in which it is defined
};

/// How a training divides its memory, in bytes: estimates from its first minibatch, made before
/// training starts.
struct TrainMemory {
  std::uint64_t held = 0;            ///< topology, order, labels
  std::uint64_t working = 0;         ///< minibatches in flight, activations, read buffers
  std::uint64_t schedules = 0;       ///< of the superbatch in use and the next one
  std::uint64_t cache = 0;           ///< the buffer pool; of a chosen size: with its history
  std::uint64_t neighbor_cache = 0;  ///< 0 where lists are in memory
};

/// The device of a training.
struct DeviceReport {
  std::string name;
  int sm = 0;  ///< compute capability, 90 for 9.0
  std::uint64_t memory_bytes = 0;
  std::uint64_t frame_bytes = 0;  ///< for rows that stay there

  /// Whether the device read rows in the host's cache itself, whose memory was registered with it;
  /// else they went up through pinned memory.
  bool reaches = false;

  /// Memory of the host, at last and as it was planned in TrainMemory::working: pinned, through
  /// which lists, and rows that are packed, go up, and what is known of the rows that stay.
  std::uint64_t host_bytes = 0;
  std::uint64_t planned_host_bytes = 0;
  PolicyKind cache = PolicyKind::kBelady;
};

/// A rank of a training over ranks: over all epochs of this run.
struct RankFigures : RankCounts {
  std::uint64_t peak_memory_bytes = 0;
  double compute_seconds = 0;
  double stall_seconds = 0;  ///< waiting for its next minibatch
  double wait_seconds = 0;   ///< waiting for the other ranks at the end of steps
  double serve_seconds = 0;  ///< of processor time, for other ranks
};
struct RankReport : RankFigures {
  std::string host;
};

/// A tensor of the network.
struct WeightReport {
  std::string name;  ///< as in the model file
  std::vector<std::int64_t> shape;
};

/// The course of a training; of several seeds, what `best_seed` did, and `seeds` of all.
struct TrainReport {
  FeedProfileReport profile;
  Task task = Task::kMulticlass;
  Metric monitor = Metric::kAccuracy;
  std::vector<EpochReport> epochs;
  bool stopped_early = false;  ///< TrainOptions::patience
  IoMaker maker = IoMaker::kAuto;
  bool direct = false;
  double mean_depth = 0;
  std::optional<ListReadsReport> list_reads;  ///< only if lists are on disk

  /// Metrics of the kept weights, those of the best epoch on the validation set.
  TaskMetrics metrics;
  std::vector<SeedReport> seeds;  ///< in order
  std::vector<MetricSpread> spread;
  std::uint64_t best_seed = 0;

  /// Accuracies in `metrics`. Absent: not measured, no vertex in that set, or no such metric.
  std::optional<double> valid_accuracy;
  std::optional<double> test_accuracy;
  /// of always answering the training set's most frequent class; absent where there are no classes
  std::optional<double> majority_accuracy;
  std::uint32_t best_epoch = 0;
  std::uint32_t superbatch = 0;
  Overlap overlap = Overlap::kAll;
  Prior prior = Prior::kNone;  ///< that schedules had
  TrainMemory memory;
  /// size of the validation set; 0: epochs have no accuracy
  std::uint64_t valid_vertices = 0;
  std::vector<std::string> ignored;       ///< parts of the graph that were ignored (IgnoredFacts)
  std::vector<std::string> warnings;      ///< what is likely a mistake, in words
  Direction direction = Direction::kIn;   ///< the lists that were walked
  bool edge_weights = false;              ///< whether layers used them
  std::uint64_t minibatches = 0;          ///< minibatches of an epoch, validation included
  std::uint64_t resumed_minibatches = 0;  ///< minibatches done before this run
  std::uint64_t base_memory_bytes = 0;
  std::uint64_t peak_memory_bytes = 0;
  std::string model;                          ///< path of the model file, or empty
  std::optional<DeviceReport> device;         ///< of a training on one
  std::optional<FullGraphReport> full_graph;  ///< of a training on the full graph
  std::vector<RankReport> ranks;              ///< of a training over ranks, at rank 0
  ModelSpec network;                          ///< what was trained, with all options
  std::vector<WeightReport> weights;          ///< of the network
};

}  // namespace rhizome
