#pragma once

#include <string_view>

#include "rhizome/gnn/model_spec.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// Describes the kind of network of that name, for code that needs no libtorch; registry.cc knows
/// them. Errors: kInvalidArgument, there is none, naming those there are.
Result<ModelInfo> FindModelInfo(std::string_view name);

}  // namespace rhizome::inline internal
