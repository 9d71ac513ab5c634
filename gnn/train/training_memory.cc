#include "gnn/train/training_memory.h"

#include <algorithm>
#include <vector>

namespace rhizome {
inline namespace internal {
namespace {

/// Memory that libtorch and the allocator reserve at first use.
constexpr std::uint64_t kSlackBytes = std::uint64_t{48} << 20;

/// Adds an eighth, because later minibatches may be larger than the sampled ones.
std::uint64_t WithMargin(std::uint64_t bytes) { return bytes + bytes / 8; }

/// Counts of 4-byte numbers in a minibatch's lists and factors.
struct ListNumbers {
  std::uint64_t largest = 0;  ///< in one upload: lists of all layers, or one transpose
  std::uint64_t turned = 0;   ///< in the transposed lists of all layers
};

/// Returns the counts, as Model::MakeGraphs creates the arrays and PlaceOnDevice packs them.
ListNumbers ListNumbersOf(const Minibatch& minibatch, std::uint32_t layers) {
  const std::vector<std::uint64_t>& hops = minibatch.hop_offsets;
  const std::uint64_t last = hops.size() - 2;
  // Arrays start at multiples of 16 bytes. A piece of a long list has four numbers, and is for at
  // least kEdgesOfPiece edges.
  constexpr std::uint64_t kGaps = 64;
  constexpr std::uint64_t kEdgesOfPiece = 16;
  // Numbers per edge: its neighbour, and its weight or another factor in its place.
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
             {.row_bytes = device.row_bytes(), .max_requests = DevicePool::GrownTo(rows)},
             !device.reaches) +
         DeviceUploads::PinnedBytes(WithMargin(largest)) +
         DeviceFrames::HostBytes(device.policy, device.frame_count(), device.row_count);
}

std::uint64_t StagingBytes(const Minibatch& minibatch, const Model& model,
                           const DeviceFeedOptions& device) {
  // One minibatch is computed while the next is uploaded.
  const std::uint64_t turned = 2 * ListNumbersOf(minibatch, model.layers()).turned * sizeof(float);
  return kSlackBytes + DeviceHostBytes(minibatch, model, device) + WithMargin(turned);
}

}  // namespace internal
}  // namespace rhizome
