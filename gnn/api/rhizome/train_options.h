#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "rhizome/job_report.h"
#include "rhizome/link_scores.h"
#include "rhizome/link_training.h"
#include "rhizome/minibatch_options.h"
#include "rhizome/neighbor_sampling.h"
#include "rhizome/policy.h"
#include "rhizome/resource_options.h"
#include "rhizome/task_metrics.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

/// Selects whether a model is computed on the CPU or on a CUDA device.
enum class ComputeOn : std::uint8_t { kCpu, kCuda };

/// A setting of a kind of network: its name, valid values and default, all as text.
struct ModelOption {
  enum class Type : std::uint8_t { kFlag, kInteger, kNumber, kChoice };

  std::string name;  ///< name of the flag without dashes, such as "attention-dropout"
  Type type = Type::kFlag;
  std::string fallback;  ///< default, if a ModelSpec does not name the option
  std::string help;

  double least = 0;                       ///< min, for integers and numbers
  double most = 0;                        ///< max, for integers and numbers
  std::vector<std::string> choices = {};  ///< valid values, for choices
};

/// A kind of network that this build supports (GnnEntry::Models).
struct ModelInfo {
  std::string name;                  ///< see ModelSpec::kind
  std::string title;                 ///< short description
  std::string source;                ///< the paper that defines it
  std::vector<ModelOption> options;  ///< options of this kind, then options of every network

  /// Whether the kind has weights for each edge type. It then walks both directions by default.
  bool typed = false;

  /// Whether it is a network. The other kind is the table (kTableModel), which has no such options.
  bool network = true;
};

/// The architecture of a network. It is stored as JSON in the metadata of the safetensors file.
struct ModelSpec {
  std::string kind = "sage";  ///< a ModelInfo::name
  std::uint32_t layers = 2;
  std::int64_t hidden = 128;  ///< columns between layers; for attention, of all heads together
  double dropout = 0.5;       ///< dropout of a layer's inputs, except the first layer's

  /// Whether to divide each input row by the sum of its absolute values first (the Planetoid
  /// convention).
  bool normalize_features = false;

  /// Whether to ignore edges. The same layers then run on each vertex alone, as a baseline that
  /// shows the benefit of edges.
  bool no_edges = false;

  /// Values of ModelInfo::options by name. Options that are not named have their default.
  std::map<std::string, std::string> options = {};
};

/// Algorithm that updates weights from gradients.
enum class OptimizerKind : std::uint8_t {
  kAdam,        ///< Kingma and Ba (ICLR 2015); weight decay is an L2 penalty
  kAdamW,       ///< Loshchilov and Hutter (ICLR 2019); decay is applied apart from the gradient
  kSgd,         ///< with momentum (Sutskever et al., ICML 2013); an L2 penalty
  kAdagrad,     ///< Duchi et al. (JMLR 2011); an L2 penalty
  kAdagradRow,  ///< of rows of a table: one sum of squares for each row
};

struct OptimizerChoice {
  OptimizerKind kind = OptimizerKind::kAdam;
  bool decay_first_layer_only = false;  ///< as in Kipf and Welling (ICLR 2017)
  double momentum = 0.9;                ///< kSgd, range [0, 1)
  double clip_norm = 0;                 ///< gradients of a larger norm are scaled to it; 0: never
};

/// How the learning rate changes over the epochs.
enum class ScheduleKind : std::uint8_t {
  kConstant,
  kStep,     ///< multiplied by `factor` every `every` epochs
  kCosine,   ///< half a cosine, to nearly 0 (Loshchilov and Hutter, ICLR 2017, no restarts)
  kLinear,   ///< linearly to nearly 0
  kPlateau,  ///< multiplied by `factor` after `every` epochs without improvement
};

struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::kConstant;

  /// Number of epochs at the start in which the rate rises in equal steps. Epoch `warmup` (from 0)
  /// has the full rate, and the schedule starts there.
  std::uint32_t warmup = 0;
  std::uint32_t every = 0;  ///< kStep, default (0): a third of the epochs; kPlateau: 10
  double factor = 0.1;      ///< range (0, 1)
};

/// Options of the training loss that do not follow from the task.
struct LossOptions {
  /// Class weights, for multiclass and binary tasks. Empty: all 1. "balanced": inversely
  /// proportional to the number of training vertices of a class, 1 on average over these vertices.
  /// Otherwise the path of a text file with one number per class, in order.
  std::string class_weights = {};

  /// Share of a vertex's target that is spread over all classes (Szegedy et al., CVPR 2016); for
  /// multiclass and binary tasks. Range [0, 1).
  double label_smoothing = 0;
};

/// The task and loss, how weights are updated, and when training ends.
struct LearningOptions {
  /// Default: from dtype and shape of the labels: int64 or int32 of one column are multiclass,
  /// uint8 of several columns multilabel (255: missing), float32 regression (NaN: missing).
  std::optional<Task> task = {};
  LossOptions loss = {};
  std::uint32_t epochs = 10;
  double learning_rate = 0.01;

  /// Applies to matrices only: biases, norms and other vectors and scalars do not decay.
  double weight_decay = 0;
  OptimizerChoice optimizer = {};
  ScheduleOptions schedule = {};
  std::uint64_t seed = 1;

  /// Number of training runs, with `seed`, `seed` + 1, ..., in sequence; the best run's model is
  /// written.
  std::uint32_t seeds = 1;
  Path init = {};  ///< model file of the same shape with the initial weights; empty: from the seed

  /// The validation set is measured every `eval_every` epochs, and after the last epoch.
  std::uint32_t eval_every = 1;

  /// Metric that selects the best epoch; default: MainMetric of the task.
  std::optional<Metric> monitor = {};

  /// Training ends after this many epochs without an improvement by more than `min_delta`; 0:
  /// never.
  std::uint32_t patience = 0;
  double min_delta = 0;

  /// Also report metrics of the training set in every epoch, from the scores of its minibatches
  /// during training (EpochReport::train_metrics). Needs 8 bytes per training vertex, or more for
  /// several labels.
  bool train_metrics = false;
  bool test = true;  ///< measure the kept weights with all neighbours at the end
};

struct TrainReport;

/// Rule that selects which chunks of the arrays of a full-graph training remain in memory, if the
/// memory limit does not allow all of them.
enum class SpillRule : std::uint8_t {
  kAuto,      ///< the rule that moves the fewest bytes
  kNone,      ///< no chunk remains
  kLru,       ///< the most recently used chunks
  kLruLive,   ///< as kLru, but data that no later pass reads is not written
  kBelady,    ///< the chunks that are needed soonest
  kDp,        ///< parts of arrays, by dynamic programming over the passes of an epoch
  kDpTensor,  ///< whole arrays, by dynamic programming as in ROC, with writes counted
};

/// How sums over neighbours reach the backward pass, which needs them again.
enum class FullSums : std::uint8_t {
  kAuto,       ///< the choice that moves fewer bytes
  kStore,      ///< they are kept
  kRecompute,  ///< they are recomputed, for layers between the first and the last
};

/// Training on all edges at once: an epoch is one gradient step for the loss over the whole
/// training set. Data that does not fit into memory is spilled to the job's folder.
struct FullGraphOptions {
  SpillRule spill = SpillRule::kAuto;
  FullSums sums = FullSums::kAuto;

  /// With JobOptions::checkpoint_every: the partial results of a step are also written, at
  /// intervals of this many seconds; 0: after every chunk.
  double checkpoint_seconds = 60;
};

/// The files of a training, and its notes to the user.
struct JobOptions {
  std::string name = "train";  ///< name of the job and of its folder, scratch/<name>
  Path scratch = {};           ///< replaces the store's scratch folder (StoreOptions) unless empty

  /// Number of minibatches (over ranks: steps; full graph: epochs) between two checkpoints in the
  /// job's folder; 0: none.
  std::uint64_t checkpoint_every = 0;

  /// Whether to continue from the checkpoint of an interrupted run of the same job, if there is
  /// one.
  bool resume = false;

  /// Path of the model file, safetensors. It is written atomically after each epoch that is the
  /// best so far, so that an interrupted training leaves a model. Empty: not written.
  Path out = {};
  JobNote note = {};  ///< receives TrainReport::ignored and TrainReport::warnings

  /// Receives the incomplete report if training is interrupted or fails after at least one epoch.
  std::function<void(const TrainReport&)> on_stop = {};
};

/// Options of a training. Each group is passed on as it is to the part that uses it. The command
/// line and the Python package have the same options: gnn/options/train_fields.h is the table of
/// their names, ranges and help.
struct TrainOptions {
  Path store = {};
  DataOptions data = {};
  ModelSpec model = {};
  LearningOptions learning = {};
  std::variant<MinibatchOptions, FullGraphOptions> mode = {};
  LinkTrainOptions link = {};  ///< only for Task::kLink
  ResourceOptions resources = {};
  JobOptions job = {};

  /// Return the options of the mode; null: the other mode is chosen.
  const MinibatchOptions* minibatch() const { return std::get_if<MinibatchOptions>(&mode); }
  MinibatchOptions* minibatch() { return std::get_if<MinibatchOptions>(&mode); }
  const FullGraphOptions* full_graph() const { return std::get_if<FullGraphOptions>(&mode); }
  FullGraphOptions* full_graph() { return std::get_if<FullGraphOptions>(&mode); }
};

struct EpochReport : MinibatchCosts {
  double loss = 0;
  double seconds = 0;
  double compute_seconds = 0;
  double stall_seconds = 0;  ///< waiting for the next minibatch
  double learning_rate = 0;

  /// Results on the validation set, if it was measured: accuracy (0: not measured, or no such
  /// metric), the metric TrainReport::monitor, and the loss.
  double valid_accuracy = 0;
  std::optional<double> valid_metric = {};
  std::optional<double> valid_loss = {};

  /// All metrics of the validation set, if it was measured, and of the training set
  /// (LearningOptions::train_metrics). The latter include dropout, and use the weights before each
  /// minibatch's step.
  std::vector<MetricValue> valid_metrics = {};
  std::vector<MetricValue> train_metrics = {};
  std::uint64_t resident_bytes = 0;  ///< memory of the process at the epoch's end

  /// For training on a device: bytes uploaded, time to pack and queue them, time that the host
  /// waited for the device, and rows found in the device cache.
  std::uint64_t upload_bytes = 0;
  double upload_seconds = 0;
  double device_wait_seconds = 0;
  std::uint64_t device_hits = 0;

  /// For training on the full graph: time of the forward and backward pass and of measuring, bytes
  /// of arrays in the job's folder, and bytes of the feature files; both include measuring.
  double forward_seconds = 0;
  double backward_seconds = 0;
  double measure_seconds = 0;
  std::uint64_t spill_bytes_read = 0;
  std::uint64_t spill_bytes_written = 0;
  std::uint64_t feature_bytes_read = 0;

  /// Share of `seconds` in which an array in the job's folder was being read or written.
  double disk_busy = 0;
};

/// A pass of a full-graph epoch over all rows of the arrays that it reads and writes.
struct FullGraphPass {
  struct Moved {
    std::string array;
    std::uint64_t bytes = 0;
  };
  std::string name;
  bool measures = false;            ///< part of measuring an epoch
  std::vector<Moved> reads;         ///< from files, for each array that it reads; without features
  std::uint64_t feature_bytes = 0;  ///< bytes read from the feature files
  std::vector<Moved> writes;        ///< bytes written, including arrays evicted from memory
  std::uint64_t blocks = 1;         ///< number of blocks for aggregation
  std::vector<Moved> resident;      ///< bytes in memory when the pass starts to read
  std::string sums;                 ///< "stored" or "recomputed"; empty: no choice

  /// Estimates, in plans only (0 in training reports). The pass takes the longer of the two.
  double compute_seconds = 0;
  double disk_seconds = 0;
};

/// Plan of a full-graph epoch. Bytes are bytes of arrays in the job's folder.
struct FullGraphReport {
  struct Array {
    std::string name;
    std::uint64_t bytes = 0;
  };
  struct Policy {
    std::string name;  ///< a SpillRule, or "recompute": kDp with all sums recomputed
    std::uint64_t bytes = 0;
  };
  std::vector<FullGraphPass> passes;
  std::vector<Array> arrays;
  std::uint64_t chunk_rows = 0;
  std::string spill;          ///< rule for training steps, never "auto"
  std::string measure_spill;  ///< rule for measuring

  /// Bytes read and written per epoch, including measuring if there is a validation set. The
  /// following figures include it, too.
  std::uint64_t planned_bytes = 0;
  std::uint64_t planned_read_bytes = 0;
  std::uint64_t feature_bytes = 0;      ///< bytes read from the feature files, not included above
  std::uint64_t lower_bound_bytes = 0;  ///< no rule moves fewer bytes; features included
  bool optimal = false;                 ///< no plan of its kind moves fewer bytes

  /// All applicable rules with their best number of blocks; features included.
  std::vector<Policy> policies;
  std::uint64_t memory_bytes = 0;  ///< maximum, for passes and resident chunks
  std::uint64_t disk_bytes = 0;    ///< maximum size of the files that exist at the same time

  /// Estimates, in plans only (0 in training reports): time of an epoch, and bytes per second of
  /// its files (0: it has no files).
  double seconds = 0;
  double disk_read_rate = 0;
  double disk_write_rate = 0;
  std::string disk_problem;  ///< why the rates could not be measured; `seconds` is then without I/O
};

/// Metrics of the kept weights, with all neighbours. Absent: not measured (LearningOptions::test),
/// or the set has no vertex.
struct TaskMetrics {
  std::optional<SplitMetrics> train, valid, test;
};

/// Result of one of several training runs (LearningOptions::seeds).
struct SeedReport {
  std::uint64_t seed = 0;
  std::uint32_t best_epoch = 0;
  std::uint32_t epochs = 0;  ///< completed epochs
  bool stopped_early = false;
  std::optional<double> best_value = {};  ///< of the monitored metric, in the best epoch
  TaskMetrics metrics = {};
  std::vector<EpochReport> course = {};  ///< reports of its epochs
};

/// A metric of the test set, or of the validation set if there is no test set, over all seeds.
struct MetricSpread {
  Metric metric = Metric::kAccuracy;
  double mean = 0;
  double deviation = 0;     ///< sample deviation (n - 1); 0 for one seed
  std::uint32_t seeds = 0;  ///< number of seeds for which it is defined
};

/// Division of a training run's memory, in bytes: estimates from its first minibatches, before
/// training starts.
struct TrainMemory {
  std::uint64_t held = 0;            ///< topology, order, labels
  std::uint64_t working = 0;         ///< minibatches in flight, activations, read buffers
  std::uint64_t schedules = 0;       ///< for the superbatch in use and the next one
  std::uint64_t cache = 0;           ///< the buffer pool; if its size was chosen, with its history
  std::uint64_t neighbor_cache = 0;  ///< 0 if lists are in memory
};

/// Device of a training run.
struct DeviceReport {
  std::string name;
  int sm = 0;  ///< compute capability, 90 for 9.0
  std::uint64_t memory_bytes = 0;
  std::uint64_t frame_bytes = 0;  ///< for cached rows

  /// Whether the device read rows in place, in the registered memory of the host cache. Otherwise
  /// rows were uploaded through pinned memory.
  bool reaches = false;

  /// Host memory at the end, and as planned in TrainMemory::working: pinned memory for the upload
  /// of lists and packed rows, and the bookkeeping of cached rows.
  std::uint64_t host_bytes = 0;
  std::uint64_t planned_host_bytes = 0;
  PolicyKind cache = PolicyKind::kBelady;
};

/// Figures of a rank, over all epochs of this run.
struct RankFigures : RankCounts {
  std::uint64_t peak_memory_bytes = 0;
  double compute_seconds = 0;
  double stall_seconds = 0;  ///< waiting for its next minibatch
  double wait_seconds = 0;   ///< waiting for other ranks at the end of steps
  double serve_seconds = 0;  ///< CPU time spent on requests of other ranks
};
struct RankReport : RankFigures {
  std::string host;
};

/// A tensor of the model.
struct WeightReport {
  std::string name;  ///< as in the model file
  std::vector<std::int64_t> shape;
};

/// Rows of vertex types that were learned with the model ("learned:DIM").
struct LearnedRowsReport {
  std::uint64_t rows = 0;
  std::uint64_t table_bytes = 0;     ///< with the state of the optimiser; the disk needs it twice
  std::uint64_t cached_rows = 0;     ///< that fit in memory
  std::uint64_t rows_requested = 0;  ///< by minibatches of this run
  std::uint64_t rows_read = 0;       ///< from disk
  std::uint64_t rows_written = 0;
};

/// Report of a training job. With several seeds, the report of `best_seed`, and `seeds` of all.
struct TrainReport {
  FeedProfileReport profile;
  Task task = Task::kMulticlass;
  Metric monitor = Metric::kAccuracy;
  std::vector<EpochReport> epochs;
  bool stopped_early = false;  ///< LearningOptions::patience
  IoMaker maker = IoMaker::kAuto;
  bool direct = false;
  double mean_depth = 0;
  std::optional<ListReadsReport> list_reads;  ///< only if lists are on disk

  /// Metrics of the kept weights, those with the best validation result.
  TaskMetrics metrics;
  std::vector<SeedReport> seeds;  ///< in order
  std::vector<MetricSpread> spread;
  std::uint64_t best_seed = 0;

  /// Accuracies from `metrics`. Absent: not measured, no vertex in the set, or no such metric.
  std::optional<double> valid_accuracy;
  std::optional<double> test_accuracy;
  /// Test accuracy of always predicting the training set's most frequent class; absent without
  /// classes.
  std::optional<double> majority_accuracy;
  std::vector<std::string> class_names;  ///< by class; empty: the classes have no names
  std::uint32_t best_epoch = 0;
  std::uint32_t superbatch = 0;
  Overlap overlap = Overlap::kAll;
  Prior prior = Prior::kNone;  ///< the prior that schedules used
  TrainMemory memory;
  /// Size of the validation set; 0: epochs have no accuracy.
  std::uint64_t valid_vertices = 0;
  std::vector<std::string> ignored;       ///< parts of the graph that were ignored (IgnoredFacts)
  std::vector<std::string> warnings;      ///< likely mistakes, in words
  Direction direction = Direction::kIn;   ///< direction of the lists that were used
  bool edge_weights = false;              ///< whether layers used edge weights
  std::uint64_t minibatches = 0;          ///< minibatches per epoch, validation included
  std::uint64_t resumed_minibatches = 0;  ///< minibatches completed before this run
  std::uint64_t base_memory_bytes = 0;
  std::uint64_t peak_memory_bytes = 0;
  std::string model;                          ///< path of the model file, or empty
  std::optional<DeviceReport> device;         ///< only for training on a device
  std::optional<FullGraphReport> full_graph;  ///< only for full-graph training
  std::optional<LearnedRowsReport> learned;   ///< only with learned rows
  std::optional<TableModelReport> table;    ///< only for ModelSpec::kind "table", whose report has
                                            ///< also `task`, `warnings` and `link_test`
  std::optional<LinkEvaluation> link_test;  ///< only with LinkTrainOptions::test_edges
  std::vector<RankReport> ranks;            ///< only at rank 0 of a training over ranks
  ModelSpec network;                        ///< the trained model, with all options
  std::vector<WeightReport> weights;        ///< tensors of the model
};

}  // namespace rhizome
