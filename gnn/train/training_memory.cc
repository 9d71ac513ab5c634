#include "rhizome/gnn/training_memory.h"

namespace rhizome::inline internal {
namespace {

/// Memory that libtorch and the allocator take when they first work.
constexpr std::uint64_t kSlackBytes = std::uint64_t{48} << 20;

/// Adds an eighth, because later minibatches may be larger than those that were sampled.
std::uint64_t WithMargin(std::uint64_t bytes) { return bytes + bytes / 8; }

}  // namespace

std::uint64_t StepBytes(const Minibatch& minibatch, const Model& model) {
  return kSlackBytes + WithMargin(model.StepNumbers(minibatch) * sizeof(float));
}

}  // namespace rhizome::inline internal
