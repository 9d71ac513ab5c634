#pragma once

#include <string_view>
#include <vector>

#include "gnn/models/conv.h"

namespace rhizome {
inline namespace internal {

/// Returns all kinds of layers, in the order of the list in registry.cc.
const std::vector<const ConvKind*>& ConvKinds();

/// Returns the kind with that name. Errors: kInvalidArgument, there is none; the message lists all
/// kinds.
Result<const ConvKind*> FindConvKind(std::string_view name);

/// Describes a kind with all options: its own, and the options of every network with the defaults
/// of this kind.
ModelInfo DescribeModel(const ConvKind& kind);

/// Describes all kinds (GnnEntry::Models).
std::vector<ModelInfo> DescribeModels();

}  // namespace internal
}  // namespace rhizome
