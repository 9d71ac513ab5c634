#pragma once

#include <string_view>

#include "rhizome/status.h"
#include "rhizome/train_options.h"

namespace rhizome {
inline namespace internal {

/// Describes the kind of network with that name, for code that does not use libtorch. registry.cc
/// implements it. Errors: kInvalidArgument, there is none; the message lists all kinds.
Result<ModelInfo> FindModelInfo(std::string_view name);

}  // namespace internal
}  // namespace rhizome
