#include "rhizome/gnn/training_memory.h"

#include <algorithm>
#include <vector>

namespace rhizome::inline internal {
namespace {

/// Memory that libtorch and the allocator take when they first work.
constexpr std::uint64_t kSlackBytes = std::uint64_t{48} << 20;

/// Adds an eighth, because later minibatches may be larger than those that were sampled.
std::uint64_t WithMargin(std::uint64_t bytes) { return bytes + bytes / 8; }

/// Returns the bytes that a step holds besides its features: for every layer the rows that it
/// multiplies (a vertex's own and its neighbours' sum), the products, and the gradients of both.
std::uint64_t ActivationBytes(const Minibatch& minibatch, const ModelShape& shape) {
  const std::vector<std::uint64_t>& offsets = minibatch.hop_offsets;
  const std::uint64_t layers = shape.spec.layers, last = offsets.size() - 2;
  const auto hidden = static_cast<std::uint64_t>(shape.spec.hidden);
  std::uint64_t numbers = 0;
  for (std::uint64_t k = 0; k < layers; ++k) {
    const std::uint64_t hop = std::min(layers - 1 - k, last);
    const std::uint64_t targets = offsets[hop + 1];
    const std::uint64_t sources = offsets[std::min(hop + 1, last) + 1];
    const std::uint64_t in = k == 0 ? static_cast<std::uint64_t>(shape.inputs) : hidden;
    numbers += targets * (2 * in + 3 * hidden);
    if (k > 0) numbers += sources * in + targets * 2 * in;
    // the layer may multiply before it aggregates
    if (in > hidden) numbers += 2 * sources * hidden;
  }
  return numbers * sizeof(float);
}

}  // namespace

std::uint64_t StepBytes(const Minibatch& minibatch, const ModelShape& shape) {
  return kSlackBytes + WithMargin(ActivationBytes(minibatch, shape));
}

}  // namespace rhizome::inline internal
