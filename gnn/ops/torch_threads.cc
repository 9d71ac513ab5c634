#include "rhizome/gnn/torch_threads.h"

#include <ATen/Parallel.h>

#include "rhizome/cache/compute_threads.h"

namespace rhizome::inline internal {
namespace {

/// libtorch's thread count is a per-thread setting.
void HoldLibtorchToOneThread() { at::set_num_threads(1); }

}  // namespace

void SetTorchThreads(std::uint32_t threads) {
  HoldLibtorchToOneThread();
  SetComputeThreads(threads, HoldLibtorchToOneThread);
}

}  // namespace rhizome::inline internal
