#pragma once

#include <optional>
#include <string>

namespace rhizome::testing {

/// Checks that a store preserves its input: a vertex without a label is unlabelled, numbers are
/// not rounded, and no array may have a name that the store uses itself. Returns what is wrong.
std::optional<std::string> CheckInputs();

}  // namespace rhizome::testing
