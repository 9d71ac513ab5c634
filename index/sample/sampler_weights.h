#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "index/base/counter_random.h"
#include "index/sample/sampled_directions.h"
#include "index/sample/sampler_lists.h"
#include "rhizome/graph.h"
#include "rhizome/status.h"
#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {

/// The weights of all entries of the traversed sides by position, with partial sums, so that the
/// weight of any range within a list is computed without visiting all its entries. Sums are double,
/// one for every kBlock entries.
/// Memory: 4.5 bytes an edge.
/// Threads: const after Create.
class WeightTable {
 public:
  static constexpr std::uint64_t kBlock = 16;  // so that sums take half a byte an entry

  /// `view` is the view of the graph's delta, or null; its weights form an additional partition of
  /// each side.
  /// Errors: kInvalidArgument, a weight that is negative or not finite.
  static Result<WeightTable> Create(const GraphSnapshot& graph, const DeltaView* view,
                                    const WalkedSides& sides);

  float At(PartitionId partition, std::uint64_t position) const {
    RHIZOME_DCHECK(position < weights_[partition].size());
    return weights_[partition][position];
  }

  /// Returns the sum of the weights in [first, last), which must be within one list.
  double Sum(PartitionId partition, std::uint64_t first, std::uint64_t last) const;

  /// Returns the position in [first, last) at which the running sum passes `share`, in [0, Sum). It
  /// always has a positive weight; kNowhere if there is none.
  std::uint64_t Find(PartitionId partition, std::uint64_t first, std::uint64_t last,
                     double share) const;
  static constexpr std::uint64_t kNowhere = ~std::uint64_t{0};

 private:
  WeightTable() = default;
  Status AddPartition(const Adjacency& partition, std::uint32_t p, Direction direction);
  Status AddDelta(const DeltaView& view, Direction direction);
  double Add(PartitionId partition, std::uint64_t first, std::uint64_t last) const;

  std::vector<std::vector<float>> weights_;  // [partition][position]
  // [partition][b]: the sum of the weights before position b * kBlock, within the list at that
  // position.
  std::vector<std::vector<double>> sums_;
};

/// Weighted draws from lists that consist of pieces. Holds scratch memory: use one instance for
/// each thread.
///
/// Draws without replacement follow A-ES: each entry has a key u^(1/w), and the largest keys win.
/// That is equivalent to drawing one entry after another in proportion to the weights of the
/// remaining ones. Short lists are drawn by keys. In long lists, entries are drawn by their share
/// of the sum, and drawn again if they were drawn before, which costs a few look-ups instead of a
/// key for every entry. If that happens too often (a few entries have nearly all the weight), keys
/// among the remaining entries finish the draw. In both cases each step has the exact conditional
/// distribution.
class WeightedDrawer {
 public:
  /// Replaces `out` by at most `draws` positions of positive weight within the list of `pieces`.
  void WithoutReplacement(CounterRandom& random, const WeightTable& weights,
                          std::span<const Piece> pieces, std::uint64_t draws,
                          std::vector<std::uint64_t>& out);

  /// Replaces `out` by `draws` independent positions; empty if no weight is positive.
  void WithReplacement(CounterRandom& random, const WeightTable& weights,
                       std::span<const Piece> pieces, std::uint64_t draws,
                       std::vector<std::uint64_t>& out);

  /// Draws by A-ES from `size` entries of the given weights, except those already in `out`; appends
  /// at most `draws` positions, sorted.
  template <typename WeightAt>
  void ByKeys(CounterRandom& random, std::uint64_t size, WeightAt&& weight_at, std::uint64_t draws,
              std::vector<std::uint64_t>& out);

  /// Replaces `out` by `draws` independent positions of `size` entries, by running sums over all of
  /// them; empty if no weight is positive.
  template <typename WeightAt>
  void ByShares(CounterRandom& random, std::uint64_t size, WeightAt&& weight_at,
                std::uint64_t draws, std::vector<std::uint64_t>& out);

 private:
  struct Key {
    double value;  // -ln(u) / w: the smallest wins
    std::uint64_t position;
    bool operator<(const Key& other) const { return value < other.value; }
  };
  void Offer(const Key& key, std::uint64_t draws);
  double SumPieces(const WeightTable& weights, std::span<const Piece> pieces);
  std::uint64_t DrawOne(CounterRandom& random, const WeightTable& weights,
                        std::span<const Piece> pieces) const;
  void KeysOfPieces(CounterRandom& random, const WeightTable& weights,
                    std::span<const Piece> pieces, std::uint64_t draws,
                    std::vector<std::uint64_t>& out);

  std::vector<Key> heap_;
  std::vector<double> piece_ends_;           // running sums of weights
  std::vector<std::uint64_t> sorted_taken_;  // scratch of ByKeys
};

template <typename WeightAt>
void WeightedDrawer::ByKeys(CounterRandom& random, std::uint64_t size, WeightAt&& weight_at,
                            std::uint64_t draws, std::vector<std::uint64_t>& out) {
  heap_.clear();
  sorted_taken_.assign(out.begin(), out.end());
  std::sort(sorted_taken_.begin(), sorted_taken_.end());
  auto taken = sorted_taken_.begin();
  for (std::uint64_t i = 0; draws > 0 && i < size; ++i) {
    if (taken != sorted_taken_.end() && *taken == i) {
      ++taken;
      continue;
    }
    const auto weight = static_cast<double>(weight_at(i));
    if (weight <= 0) continue;
    const double u = random.Unit();
    // -ln(u) is at least 1 - u, so most keys are rejected without the logarithm.
    if (heap_.size() == draws && 1 - u >= heap_.front().value * weight) continue;
    Offer({-std::log(u) / weight, i}, draws);
  }
  std::sort(heap_.begin(), heap_.end(),
            [](const Key& a, const Key& b) { return a.position < b.position; });
  for (const Key& key : heap_) out.push_back(key.position);
}

template <typename WeightAt>
void WeightedDrawer::ByShares(CounterRandom& random, std::uint64_t size, WeightAt&& weight_at,
                              std::uint64_t draws, std::vector<std::uint64_t>& out) {
  out.clear();
  piece_ends_.clear();
  double sum = 0;
  std::uint64_t last = size;  // the last entry of positive weight
  for (std::uint64_t i = 0; i < size; ++i) {
    const auto weight = static_cast<double>(weight_at(i));
    if (weight > 0) last = i;
    piece_ends_.push_back(sum += weight);
  }
  if (last == size) return;
  for (; draws > 0; --draws) {
    const auto after =
        std::upper_bound(piece_ends_.begin(), piece_ends_.end(), random.Unit() * sum);
    out.push_back(
        std::min<std::uint64_t>(static_cast<std::uint64_t>(after - piece_ends_.begin()), last));
  }
}

}  // namespace internal
}  // namespace rhizome
