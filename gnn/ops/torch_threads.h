#pragma once

#include <cstdint>

namespace rhizome {
inline namespace internal {

/// Calls SetComputeThreads, and limits libtorch to one thread on each compute thread and on the
/// caller's: each libtorch operation runs on the thread that calls it, and its bits do not depend
/// on the number of threads.
/// Threads: must not be called concurrently with ComputeFor.
void SetTorchThreads(std::uint32_t threads);

}  // namespace internal
}  // namespace rhizome
