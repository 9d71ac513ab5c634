#pragma once

#include <cstdint>

namespace rhizome::inline internal {

/// Calls SetComputeThreads, and holds libtorch to one thread on each of them and on the caller's:
/// each of its operations runs where it is called and gives the same bits, however many threads
/// there are.
/// Threads: must not overlap ComputeFor.
void SetTorchThreads(std::uint32_t threads);

}  // namespace rhizome::inline internal
