#pragma once

#include <cstdint>
#include <string>

#include "rhizome/storage/export.h"

namespace RHIZOME_API rhizome {

/// How weights follow gradients.
enum class OptimizerKind : std::uint8_t {
  kAdam,     ///< Kingma and Ba (ICLR 2015); weight decay is an L2 penalty
  kAdamW,    ///< Loshchilov and Hutter (ICLR 2019); weights decay beside the gradient
  kSgd,      ///< with momentum (Sutskever et al., ICML 2013); an L2 penalty
  kAdagrad,  ///< Duchi et al. (JMLR 2011); an L2 penalty
};

struct OptimizerChoice {
  OptimizerKind kind = OptimizerKind::kAdam;
  bool decay_first_layer_only = false;  ///< as Kipf and Welling (ICLR 2017) have it
  double momentum = 0.9;                ///< kSgd, range [0, 1)
  double clip_norm = 0;                 ///< gradients of a larger norm are scaled to it; 0: never
};

/// How the learning rate goes over the epochs.
enum class ScheduleKind : std::uint8_t {
  kConstant,
  kStep,     ///< times `factor` every `every` epochs
  kCosine,   ///< half a cosine, to nearly 0 (Loshchilov and Hutter, ICLR 2017, no restarts)
  kLinear,   ///< a line, to nearly 0
  kPlateau,  ///< times `factor` when `every` epochs have passed without a better one
};

struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::kConstant;

  /// Epochs at the beginning in which the rate rises in equal steps; epoch `warmup` (from 0) has
  /// all of it, and the schedule begins there.
  std::uint32_t warmup = 0;
  std::uint32_t every = 0;  ///< kStep, default (0): a third of the epochs; kPlateau: 10
  double factor = 0.1;      ///< range (0, 1)
};

/// The loss that training minimises, beside the task.
struct LossOptions {
  /// Weights of the classes, for multiclass and binary tasks. Empty: all 1. "balanced": inversely
  /// proportional to their number of training vertices, 1 on average over these. Else the path of a
  /// text file with a number for each class, in order.
  std::string class_weights = {};

  /// The share of a vertex's target that is spread over all classes (Szegedy et al., CVPR 2016);
  /// for multiclass and binary tasks. Range [0, 1).
  double label_smoothing = 0;
};

}  // namespace rhizome
