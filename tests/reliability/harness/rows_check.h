#pragma once

#include <optional>
#include <string>

namespace rhizome::testing {

/// Checks that rows stay with their vertices: a vertex is deleted, the store compacted, and rows
/// for the remaining vertices are added in their order and put one by one; rows of another type are
/// refused. Returns what is wrong.
std::optional<std::string> CheckRows();

}  // namespace rhizome::testing
