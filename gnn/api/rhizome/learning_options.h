#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "rhizome/task_metrics.h"

namespace RHIZOME_API rhizome {

/// Algorithm that updates weights from gradients.
enum class OptimizerKind : std::uint8_t {
  kAdam,     ///< Kingma and Ba (ICLR 2015); weight decay is an L2 penalty
  kAdamW,    ///< Loshchilov and Hutter (ICLR 2019); decay is applied apart from the gradient
  kSgd,      ///< with momentum (Sutskever et al., ICML 2013); an L2 penalty
  kAdagrad,  ///< Duchi et al. (JMLR 2011); an L2 penalty
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

}  // namespace rhizome
