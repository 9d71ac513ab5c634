#include "gnn/ops/torch_threads.h"

#include <ATen/Parallel.h>

#include "cache/job/compute_threads.h"

namespace rhizome {
inline namespace internal {
namespace {

/// libtorch's thread count is a per-thread setting.
void HoldLibtorchToOneThread() { at::set_num_threads(1); }

}  // namespace

void SetTorchThreads(std::uint32_t threads) {
  HoldLibtorchToOneThread();
  SetComputeThreads(threads, HoldLibtorchToOneThread);
}

}  // namespace internal
}  // namespace rhizome
