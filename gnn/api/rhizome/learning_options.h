#pragma once

#include <cstdint>
#include <string>

#include "rhizome/export.h"

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

}  // namespace rhizome
