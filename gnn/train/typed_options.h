#pragma once

#include "rhizome/status.h"
#include "rhizome/train_options.h"

namespace rhizome {
inline namespace internal {

/// Returns the options with the direction that the kind of model walks by default
/// (ModelInfo::typed). Errors: kInvalidArgument, a typed kind with a mode of training that does not
/// support it; an unknown kind.
Result<TrainOptions> WithTypedDefaults(const TrainOptions& options);

}  // namespace internal
}  // namespace rhizome
