#pragma once

#include <string>

namespace rhizome {
inline namespace internal {

/// Describes the holder of the flock of an open file, for a message that ends in "is locked by",
/// and adds what to do. Names the processes that the kernel reports; otherwise quotes the text that
/// the last writer wrote into the file about itself.
std::string DescribeLockHolder(int descriptor);

}  // namespace internal
}  // namespace rhizome
