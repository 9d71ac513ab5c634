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

std::uint64_t StagingBytes(const Minibatch& minibatch) {
  // Rows and their numbers (DevicePool), and the lists, twice: as they are, and turned.
  constexpr std::uint64_t kInFlight = 2;
  const std::uint64_t rows =
      minibatch.rows.size() * (minibatch.features.row_bytes() + 5 * sizeof(std::int64_t));
  const std::uint64_t lists =
      2 * sizeof(float) * (2 * minibatch.neighbors.size() + 2 * minibatch.rows.size());
  return kSlackBytes + WithMargin(kInFlight * (rows + 2 * lists));
}

}  // namespace rhizome::inline internal
