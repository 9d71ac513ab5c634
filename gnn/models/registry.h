#pragma once

#include <string_view>
#include <vector>

#include "rhizome/gnn/conv.h"

namespace rhizome::inline internal {

/// Returns the kinds of layers, in the order in which they are listed.
const std::vector<const ConvKind*>& ConvKinds();

/// Returns the kind of that name. Errors: kInvalidArgument, there is none, naming those there are.
Result<const ConvKind*> FindConvKind(std::string_view name);

/// Describes a kind with all options: its own, and those of every network with its defaults.
ModelInfo DescribeModel(const ConvKind& kind);

/// Describes all kinds (GnnEntry::Models).
std::vector<ModelInfo> DescribeModels();

}  // namespace rhizome::inline internal
