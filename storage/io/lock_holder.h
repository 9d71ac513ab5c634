#pragma once

#include <string>

namespace rhizome::inline internal {

/// Says, for a message, who holds the flock of an open file: the processes that the kernel names,
/// else what the last writer wrote into the file about itself.
std::string DescribeLockHolder(int descriptor);

}  // namespace rhizome::inline internal
