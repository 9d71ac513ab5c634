#pragma once

#include <optional>
#include <string>

namespace rhizome::testing {

/// Checks that a store says what its input said: a vertex without a label is unlabelled, integers
/// are not rounded, and no array has a name that the store gives. Returns what is wrong.
std::optional<std::string> CheckInputs();

}  // namespace rhizome::testing
