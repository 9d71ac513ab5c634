#pragma once

#include <string>

namespace rhizome::inline internal {

/// Describes, for a message that ends "is locked by", the holder of the flock of an open file, and
/// says what to do: the processes that the kernel names, else the text that the last writer wrote
/// into the file about itself.
std::string DescribeLockHolder(int descriptor);

}  // namespace rhizome::inline internal
