#pragma once

#include <optional>
#include <string>

namespace rhizome::testing {

/// Checks that rows remain with their vertices: a vertex is deleted, the store is compacted, and
/// rows for the remaining vertices are added in order and put one by one. Rows of another data type
/// are refused. Returns what is wrong.
std::optional<std::string> CheckRows();

}  // namespace rhizome::testing
