#include "rhizome/gnn/training_memory.h"

#include <algorithm>
#include <vector>

namespace rhizome::inline internal {
namespace {

/// Memory that libtorch and the allocator take when they first work.
constexpr std::uint64_t kSlackBytes = std::uint64_t{48} << 20;

/// Adds an eighth, because later minibatches may be larger than those that were sampled.
std::uint64_t WithMargin(std::uint64_t bytes) { return bytes + bytes / 8; }

/// Numbers of 4 bytes of the lists of a minibatch, with what belongs to them.
struct ListNumbers {
  std::uint64_t largest = 0;  ///< of what goes up at once: the lists of all layers, or turned ones
  std::uint64_t turned = 0;   ///< of the turned lists of all layers
};

/// Counts them, as Model::MakeGraphs makes and PlaceOnDevice packs them.
ListNumbers ListNumbersOf(const Minibatch& minibatch, std::uint32_t layers) {
  const std::vector<std::uint64_t>& hops = minibatch.hop_offsets;
  const std::uint64_t last = hops.size() - 2;
  // Arrays begin at multiples of 16 bytes; a long list has a piece of four numbers for so many
  // edges at least.
  constexpr std::uint64_t kGaps = 64;
  constexpr std::uint64_t kEdgesOfPiece = 16;
  // Weights, or as many numbers of what stands in their place.
  const std::uint64_t of_edge = 1 + (minibatch.weights.empty() ? 0 : 1);
  ListNumbers numbers;
  std::uint64_t packed = minibatch.neighbors.size() * of_edge + minibatch.rows.size();
  for (std::uint32_t k = 0; k < layers; ++k) {
    const std::uint64_t hop = std::min<std::uint64_t>(layers - 1 - k, last);
    const std::uint64_t targets = hops[hop + 1];
    const std::uint64_t sources = hops[std::min(hop + 1, last) + 1];
    const std::uint64_t edges = minibatch.offsets[targets];
    packed += 2 * targets + sources + 4 * (edges / kEdgesOfPiece) + kGaps;
    const std::uint64_t turned =
        edges * (1 + of_edge) + sources + 4 * (edges / kEdgesOfPiece) + kGaps;
    numbers.turned += turned;
    numbers.largest = std::max(numbers.largest, turned);
  }
  numbers.largest = std::max(numbers.largest, packed);
  return numbers;
}

}  // namespace

std::uint64_t StepBytes(const Minibatch& minibatch, const Model& model) {
  return kSlackBytes + WithMargin(model.StepNumbers(minibatch) * sizeof(float));
}

std::uint64_t DeviceHostBytes(const Minibatch& minibatch, const Model& model,
                              const DeviceFeedOptions& device) {
  const auto rows = static_cast<std::uint32_t>(WithMargin(minibatch.rows.size()));
  const std::uint64_t largest = ListNumbersOf(minibatch, model.layers()).largest * sizeof(float);
  return DevicePool::PinnedBytes(
             {.row_bytes = device.row_bytes(), .most_requests = DevicePool::GrownTo(rows)},
             !device.reaches) +
         DeviceUploads::PinnedBytes(WithMargin(largest)) +
         DeviceFrames::HostBytes(device.policy, device.frame_count(), device.row_count);
}

std::uint64_t StagingBytes(const Minibatch& minibatch, const Model& model,
                           const DeviceFeedOptions& device) {
  // One minibatch is computed, and one goes up.
  const std::uint64_t turned = 2 * ListNumbersOf(minibatch, model.layers()).turned * sizeof(float);
  return kSlackBytes + DeviceHostBytes(minibatch, model, device) + WithMargin(turned);
}

}  // namespace rhizome::inline internal
