#pragma once

#include <string>
#include <vector>

#include "cache/feed/task_labels.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// Returns the class weights for LossOptions::class_weights; empty if all are 1. "balanced" is
/// defined as in scikit-learn: class c of n_c training vertices weighs n / (classes n_c). Classes
/// without training vertices weigh 1 and are not counted. Errors: kNotFound, kIoError, from the
/// file; kInvalidArgument, the file does not have one number above 0 per class; names the line.
Result<std::vector<float>> ClassWeights(const std::string& asked, const Labels& labels);

}  // namespace internal
}  // namespace rhizome
