#pragma once

#include <optional>
#include <string>

namespace rhizome::testing {

/// Is an input what a store of it says? A vertex without a label is unlabelled, integers are not
/// rounded, and an array has no name that the store gives. Returns what is wrong.
std::optional<std::string> CheckInputs();

}  // namespace rhizome::testing
