#pragma once

#include <utility>

#include "cache/feed/feed_fields.h"
#include "rhizome/train_options.h"
#include "storage/options/option.h"

// The table (storage/options/option.h) of TrainOptions. To add an option: a field in its struct,
// and a row here. Front ends, the description of checkpoints and the agreement of ranks follow.

namespace rhizome {
inline namespace internal {

template <>
struct ChoiceNames<SpillRule> {
  static Choices<SpillRule> Names() {
    return {{"auto", SpillRule::kAuto},         {"none", SpillRule::kNone},
            {"lru", SpillRule::kLru},           {"lru-live", SpillRule::kLruLive},
            {"belady", SpillRule::kBelady},     {"dp", SpillRule::kDp},
            {"dp-tensor", SpillRule::kDpTensor}};
  }
};
template <>
struct ChoiceNames<FullSums> {
  static Choices<FullSums> Names() {
    return {{"auto", FullSums::kAuto},
            {"store", FullSums::kStore},
            {"recompute", FullSums::kRecompute}};
  }
};
template <>
struct ChoiceNames<Task> {
  static Choices<Task> Names() {
    Choices<Task> names;
    for (const Task task :
         {Task::kMulticlass, Task::kMultilabel, Task::kBinary, Task::kRegression, Task::kLink})
      names.emplace_back(TaskName(task), task);
    return names;
  }
};
template <>
struct ChoiceNames<Metric> {
  static Choices<Metric> Names() {
    Choices<Metric> names;
    for (int i = 0; i <= static_cast<int>(Metric::kLoss); ++i)
      names.emplace_back(MetricName(static_cast<Metric>(i)), static_cast<Metric>(i));
    return names;
  }
};
template <>
struct ChoiceNames<OptimizerKind> {
  static Choices<OptimizerKind> Names() {
    return {{"adam", OptimizerKind::kAdam},
            {"adamw", OptimizerKind::kAdamW},
            {"sgd", OptimizerKind::kSgd},
            {"adagrad", OptimizerKind::kAdagrad},
            {"adagrad-row", OptimizerKind::kAdagradRow}};
  }
};
template <>
struct ChoiceNames<LinkLoss> {
  static Choices<LinkLoss> Names() {
    return {{"softmax", LinkLoss::kSoftmax},
            {"self-adversarial", LinkLoss::kSelfAdversarial},
            {"margin", LinkLoss::kMargin},
            {"bce", LinkLoss::kBce}};
  }
};
template <>
struct ChoiceNames<ScheduleKind> {
  static Choices<ScheduleKind> Names() {
    return {{"constant", ScheduleKind::kConstant},
            {"step", ScheduleKind::kStep},
            {"cosine", ScheduleKind::kCosine},
            {"linear", ScheduleKind::kLinear},
            {"plateau", ScheduleKind::kPlateau}};
  }
};

/// Without the options of a kind of model, which ModelInfo describes.
template <typename Visit, typename... Model>
void EachModelField(Visit&& visit, Model&... model) {
  visit(Option{"model.kind", "model",
               "Kind of model; 'rhizome models' lists networks with their options; table: a row "
               "for each "
               "vertex",
               Effect::kResolved},
        model.kind...);
  visit(Option{"model.layers", "layers", "Number of layers, and of hops that are sampled",
               Effect::kResolved}
            .In(1, 16),
        model.layers...);
  visit(Option{"model.hidden", "hidden", "Width of the hidden layers", Effect::kResolved}.In(1,
                                                                                             65536),
        model.hidden...);
  visit(Option{"model.dropout", "dropout",
               "Probability that an input of a layer is dropped in "
               "training",
               Effect::kResolved}
            .In(0, 0.99),
        model.dropout...);
  visit(Option{"model.normalize_features", "normalize-features",
               "Divide each row of features by the sum of its absolute values", Effect::kResolved},
        model.normalize_features...);
  visit(Option{"model.no_edges", "no-edges", "Ignore edges: a baseline that shows their benefit",
               Effect::kResolved},
        model.no_edges...);
}

template <typename Visit, typename... Optimizer>
void EachOptimizerField(Visit&& visit, Optimizer&... optimizer) {
  visit(Option{"learning.optimizer.kind", "optimizer", "Algorithm that updates the weights",
               Effect::kResolved},
        optimizer.kind...);
  visit(Option{"learning.optimizer.momentum", "momentum", "With `optimizer=sgd`: momentum",
               Effect::kResolved}
            .In(0, 0.9999),
        optimizer.momentum...);
  visit(Option{"learning.optimizer.decay_first_layer_only", "decay-layers",
               "Layers whose weights decay", Effect::kModel}
            .Words("all", "first"),
        optimizer.decay_first_layer_only...);
  visit(Option{"learning.optimizer.clip_norm", "clip-norm",
               "Gradients of a larger norm are scaled down to this norm; 0: never", Effect::kModel},
        optimizer.clip_norm...);
}

template <typename Visit, typename... Schedule>
void EachScheduleField(Visit&& visit, Schedule&... schedule) {
  visit(Option{"learning.schedule.kind", "schedule",
               "How the learning rate changes over the epochs", Effect::kResolved},
        schedule.kind...);
  visit(Option{"learning.schedule.warmup", "warmup",
               "Number of epochs in which the rate rises to `learning_rate`", Effect::kResolved}
            .In(0, 4294967295.0),
        schedule.warmup...);
  visit(Option{"learning.schedule.every", "decay-every",
               "With `schedule=step`: epochs between steps; default: a third of all. With plateau: "
               "epochs without improvement before a step; default: 10",
               Effect::kResolved}
            .In(1, 1e6),
        schedule.every...);
  visit(Option{"learning.schedule.factor", "decay-factor",
               "With `schedule=step` or plateau: factor of a step", Effect::kResolved}
            .In(1e-6, 0.999999),
        schedule.factor...);
}

template <typename Visit, typename... Learning>
void EachLearningField(Visit&& visit, Learning&... learning) {
  visit(
      Option{"learning.task", "task",
             "What is predicted for a vertex; auto: integer labels are multiclass, uint8 labels of "
             "several columns multilabel (255: missing), float32 labels regression (NaN: missing)",
             Effect::kResolved}
          .Absent("auto"),
      learning.task...);
  visit(
      Option{"learning.loss.class_weights", "class-weights",
             "balanced: rare classes have a larger weight; or a text file with a number per class",
             Effect::kResolved}
          .As("balanced|F"),
      learning.loss.class_weights...);
  visit(Option{"learning.loss.label_smoothing", "label-smoothing",
               "Share of a target that is spread over all classes", Effect::kModel}
            .In(0, 0.99),
        learning.loss.label_smoothing...);
  visit(
      Option{"learning.epochs", "epochs", "Number of passes over the training set", Effect::kRanks}
          .In(1, 1e6),
      learning.epochs...);
  visit(Option{"learning.learning_rate", "lr", "Learning rate", Effect::kModel}.Above(0),
        learning.learning_rate...);
  visit(Option{"learning.weight_decay", "weight-decay",
               "L2 penalty of matrices (adamw: decay); biases and norms have none", Effect::kModel},
        learning.weight_decay...);
  EachOptimizerField(visit, learning.optimizer...);
  EachScheduleField(visit, learning.schedule...);
  visit(
      Option{"learning.seed", "seed",
             "Seed of all random choices; equal seeds give equal models (bitwise with `threads=1`)",
             Effect::kModel},
      learning.seed...);
  visit(Option{"learning.seeds", "seeds",
               "Number of trainings with consecutive seeds; reports mean and deviation, `out` "
               "receives the best model",
               Effect::kRanks}
            .In(1, 1e5),
        learning.seeds...);
  visit(Option{"learning.init", "init",
               "Model file of equal shape with the initial weights; default: random",
               Effect::kResolved}
            .As("F"),
        learning.init...);
  visit(
      Option{"learning.eval_every", "eval-every",
             "Epochs between measurements of the validation set, which is also measured at the end",
             Effect::kModel}
          .In(1, 1e6),
      learning.eval_every...);
  visit(Option{"learning.monitor", "monitor",
               "Metric of the validation set that selects the best epoch; default: accuracy, "
               "f1_micro (multilabel), roc_auc (binary), rmse (regression)",
               Effect::kResolved},
        learning.monitor...);
  visit(
      Option{"learning.patience", "patience",
             "Stop after this number of epochs without improvement; default: never", Effect::kRanks}
          .In(1, 1e6),
      learning.patience...);
  visit(Option{"learning.min_delta", "min-delta",
               "Minimum improvement that resets the patience counter", Effect::kRanks},
        learning.min_delta...);
  visit(Option{"learning.test", "no-test",
               "Do not measure the model with all neighbours at the end", Effect::kRanks},
        learning.test...);
}

template <typename Visit, typename... FullGraph>
void EachFullGraphField(Visit&& visit, FullGraph&... full_graph) {
  visit(Option{"full_graph.spill", "spill",
               "With `full_graph`: arrays that remain in memory if `memory_bytes` does not hold "
               "all; auto: "
               "the rule that moves the fewest bytes"},
        full_graph.spill...);
  visit(
      Option{"full_graph.sums", "sums",
             "With `full_graph`: whether sums over neighbours are stored for the backward pass or "
             "recomputed, in layers between the first and the last"},
      full_graph.sums...);
  visit(
      Option{"full_graph.checkpoint_seconds", "checkpoint-seconds",
             "With `full_graph` and `checkpoint_every`: also write a checkpoint within an epoch at "
             "intervals of this many seconds"}
          .In(0, 1e9)
          .As("S"),
      full_graph.checkpoint_seconds...);
}

template <typename Visit, typename... Link>
void EachLinkField(Visit&& visit, Link&... link) {
  visit(Option{"link.dim", "dim", "Links: numbers of a vertex's row"}.In(1, 65536), link.dim...);
  visit(
      Option{"link.decoder", "decoder",
             "Links: score of an edge (docs/LINKS.md): dot, distmult, complex, transe, rotate or "
             "mlp; default: complex for a table, else distmult, or dot if there is one edge type"},
      link.decoder...);
  visit(Option{"link.reciprocal", "reciprocal",
               "Links: a second row for each relation, for the opposite direction"},
        link.reciprocal...);
  visit(Option{"link.loss", "loss", "Links: loss of an edge and its negatives"}, link.loss...);
  visit(Option{"link.margin", "margin", "With `loss=margin` or self-adversarial: the margin"},
        link.margin...);
  visit(Option{"link.negatives", "negatives",
               "Links: negatives of each batch, for each side of its edges; with mlp of each edge; "
               "default: 512, with mlp 1"}
            .In(0, 1048576),
        link.negatives...);
  visit(Option{"link.negative_sources", "negative-sources",
               "Links: where negatives come from, with shares: resident (the batch's partition), "
               "uniform, degree^A, in-batch"}
            .As("SOURCE:SHARE,..."),
        link.negative_sources...);
  visit(Option{"link.filter_negatives", "filter-negatives",
               "Links: negatives that are edges of the store, or of `valid`, do not count"},
        link.filter_negatives...);
  visit(Option{"link.n3", "n3", "Links: weight of the cubes of the rows of an edge (N3)"},
        link.n3...);
  visit(Option{"link.keep_seed_edges", "keep-seed-edges",
               "Links: let message passing use the edges of the minibatch itself; for comparison"},
        link.keep_seed_edges...);
  visit(Option{"link.valid", "valid",
               "Links: file of edges, as 'evaluate' reads them, that are ranked after each epoch "
               "(`eval_every`); an encoder keeps its best epoch, a table its last one"}
            .As("F"),
        link.valid...);
  visit(Option{"link.test_edges", "test",
               "Links: file of edges that are ranked at the end, as 'evaluate' does, with `valid` "
               "as known edges; needs `out`, and `out_array` for a table"}
            .As("F"),
        link.test_edges...);
  visit(Option{"link.allow_leaked", "allow-leaked",
               "Links: accept edges of `test_edges` that are in the store"},
        link.allow_leaked...);
  visit(Option{"link.out_array", "out-array",
               "Links: new array of the store that receives the rows of all vertices"}
            .As("NAME"),
        link.out_array...);
}

template <typename Visit, typename... Job>
void EachJobField(Visit&& visit, Job&... job) {
  visit(Option{"job.name", "job", "Name of the job and of its folder below scratch/"}, job.name...);
  visit(Option{"job.scratch", "scratch", "Folder for temporary files; default: in the store"}.As(
            "DIR"),
        job.scratch...);
  visit(Option{"job.checkpoint_every", "checkpoint-every",
               "Number of minibatches (with `full_graph`: epochs) between checkpoints in the job's "
               "folder; default: none",
               Effect::kRanks}
            .In(1, 1099511627776.0),
        job.checkpoint_every...);
  visit(
      Option{"job.resume", "resume",
             "Continue from the checkpoint of an interrupted run; the model is the same as without "
             "the interruption",
             Effect::kRanks},
      job.resume...);
  visit(Option{"job.out", "out", "Write the model to this file (safetensors)"}.As("F"), job.out...);
}

/// Visits the rows of all groups, with the default of each field.
template <typename Visit>
void EachTrainRow(Visit&& visit) {
  const TrainOptions options;
  const DeviceOptions device;
  const RankOptions ranks;
  const FullGraphOptions full_graph;
  EachDataField(visit, options.data);
  EachModelField(visit, options.model);
  EachLearningField(visit, options.learning);
  EachResourceField(visit, options.resources);
  EachMinibatchField(visit, *options.minibatch());
  EachDeviceField(visit, device);
  EachPrefetchField(visit, ranks.prefetch);
  EachFullGraphField(visit, full_graph);
  EachLinkField(visit, options.link);
  EachJobField(visit, options.job);
}

}  // namespace internal
}  // namespace rhizome
