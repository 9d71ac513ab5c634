#pragma once

#include <optional>
#include <string>

namespace rhizome::testing {

/// Do rows stay with their vertices? A vertex is deleted, the store compacted, and rows for those
/// that are left are added in their order and put one by one; rows of another type are refused.
/// Returns what is wrong.
std::optional<std::string> CheckRows();

}  // namespace rhizome::testing
