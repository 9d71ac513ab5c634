#pragma once

#include <string>
#include <vector>

#include "rhizome/cache/task_labels.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// The weights of the classes that LossOptions::class_weights asks for; empty: all 1. Balanced, as
/// scikit-learn has it: class c of n_c training vertices weighs n / (classes n_c); classes without
/// one weigh 1 and do not count. Errors: kNotFound, kIoError, of the file; kInvalidArgument, it
/// does not have a number above 0 for each class, naming the line.
Result<std::vector<float>> ClassWeights(const std::string& asked, const Labels& labels);

}  // namespace rhizome::inline internal
