#pragma once

#include <cstdint>

namespace rhizome::inline internal {

/// SetComputeThreads, with libtorch itself held to one thread on each of them and on the caller's:
/// each of its operations runs where it is called and gives the same bits, however many threads
/// there are. Threads: not while ComputeFor runs.
void SetTorchThreads(std::uint32_t threads);

}  // namespace rhizome::inline internal
