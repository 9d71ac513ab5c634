// Weighted draws. WeightTable stores the weights by position, with partial sums for blocks of each
// list. WeightedDrawer draws by share of the sum (DrawOne, which searches the sums), by keys
// (KeysOfPieces), or first by share and then by keys (WithoutReplacement).

#include "index/sample/sampler_weights.h"

#include <fmt/format.h>

#include <string>

#include "index/base/parallel.h"
#include "index/topology/adjacency.h"
#include "index/topology/vertex_order.h"
#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {

namespace {

// Up to this number of entries for each draw, computing a key for every entry is faster than
// searching the sums.
constexpr std::uint64_t kEntriesByKeys = 8;

// Number of tries for each requested draw, before the remaining draws are made by keys.
constexpr std::uint64_t kRepeats = 4;

// Up to this number of draws, each draw is compared with all earlier ones.
constexpr std::uint64_t kMaxCompared = 64;

// Maximum number of draws that rounding may lead to entries without weight; after that a list is
// abandoned.
constexpr std::uint64_t kMaxMissed = 1000;

/// The stored sums within a range [first, last) of a list, as a range of blocks.
struct Blocks {
  Blocks(std::uint64_t begin, std::uint64_t end)
      : first((begin + WeightTable::kBlock - 1) / WeightTable::kBlock),
        last(end == 0 ? 0 : (end - 1) / WeightTable::kBlock) {}
  bool none() const { return first >= last; }
  std::uint64_t first;
  std::uint64_t last;
};

// Number of entries, or vertices, of one task.
constexpr std::uint64_t kGrain = std::uint64_t{1} << 14;

// Calls body(begin, end) for ranges that cover [0, size), on all threads.
template <typename Body>
void ForStretches(std::uint64_t size, const Body& body) {
  ParallelFor((size + kGrain - 1) / kGrain,
              [&](std::size_t i) { body(i * kGrain, std::min((i + 1) * kGrain, size)); });
}

void CopyWeights(const Adjacency& partition, Direction direction, std::vector<float>& weights) {
  weights.resize(partition.edge_count());
  ForStretches(weights.size(), [&](std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t i = begin; i < end; ++i) weights[i] = partition.Weight(direction, i);
  });
}

Status CheckWeights(std::span<const float> weights, const std::string& place) {
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] >= 0 && std::isfinite(weights[i])) continue;
    return Status::InvalidArgument(
        fmt::format("{}: an edge has the weight {}; weighted sampling needs weights that are "
                    "finite and not negative",
                    place, weights[i]));
  }
  return Status::Ok();
}

/// Stores the sum of the weights before every kBlock-th position, within a list.
void SumBlocks(const Adjacency::Range& list, std::span<const float> weights,
               std::vector<double>& sums) {
  constexpr std::uint64_t kBlock = WeightTable::kBlock;
  double sum = 0;
  for (std::uint64_t i = list.first; i < list.first + list.count; ++i) {
    if (i % kBlock == 0) sums[i / kBlock] = sum;
    sum += static_cast<double>(weights[i]);
  }
}

std::vector<double> RoomForSums(std::span<const float> weights) {
  return std::vector<double>((weights.size() + WeightTable::kBlock - 1) / WeightTable::kBlock);
}

// Stores the sums of all lists of a partition.
std::vector<double> BlockSums(const Adjacency& partition, Direction direction,
                              std::span<const float> weights) {
  std::vector<double> sums = RoomForSums(weights);
  ForStretches(partition.vertex_count(), [&](std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t v = begin; v < end; ++v) {
      SumBlocks(partition.Entries(static_cast<LocalId>(v), direction), weights, sums);
    }
  });
  return sums;
}

}  // namespace

// Copies the weights of each partition and sums them by block. The weights of the delta follow, if
// there is one. The second side begins at the number that WalkedSides assigns to it.
Result<WeightTable> WeightTable::Create(const GraphSnapshot& graph, const DeltaView* view,
                                        const WalkedSides& sides) {
  WeightTable table;
  for (std::size_t side = 0; side < sides.count(); ++side) {
    const Direction direction = sides.direction(side);
    table.weights_.resize(sides.ShiftOf(side));
    table.sums_.resize(sides.ShiftOf(side));
    for (std::uint32_t p = 0; p < graph.partition_count(); ++p)
      RHIZOME_RETURN_IF_ERROR(table.AddPartition(graph.partition(p), p, direction));
    if (view != nullptr) RHIZOME_RETURN_IF_ERROR(table.AddDelta(*view, direction));
  }
  return table;
}

Status WeightTable::AddPartition(const Adjacency& partition, std::uint32_t p, Direction direction) {
  std::vector<float>& weights = weights_.emplace_back();
  CopyWeights(partition, direction, weights);
  RHIZOME_RETURN_IF_ERROR(CheckWeights(weights, fmt::format("partition {}", p)));
  sums_.push_back(BlockSums(partition, direction, weights));
  return Status::Ok();
}

Status WeightTable::AddDelta(const DeltaView& view, Direction direction) {
  const auto given = view.weights(direction);
  const std::vector<float>& weights = weights_.emplace_back(given.begin(), given.end());
  RHIZOME_RETURN_IF_ERROR(CheckWeights(weights, "an edge written after the generation"));
  std::vector<double>& sums = sums_.emplace_back(RoomForSums(weights));
  view.ForEachTouched(direction, [&](Row row) {
    std::uint64_t begin = 0;
    for (const Piece& piece : view.PiecesOf(row, direction)) {
      if (piece.partition == view.partition())
        SumBlocks({piece.first, piece.end - begin}, weights, sums);
      begin = piece.end;
    }
  });
  return Status::Ok();
}

// Sums weights one by one.
double WeightTable::Add(PartitionId partition, std::uint64_t first, std::uint64_t last) const {
  const float* const weights = weights_[partition].data();
  double sum = 0;
  for (std::uint64_t i = first; i < last; ++i) sum += static_cast<double>(weights[i]);
  return sum;
}

double WeightTable::Sum(PartitionId partition, std::uint64_t first, std::uint64_t last) const {
  const Blocks blocks(first, last);
  if (blocks.none()) return Add(partition, first, last);
  const std::vector<double>& sums = sums_[partition];
  return Add(partition, first, blocks.first * kBlock) + sums[blocks.last] - sums[blocks.first] +
         Add(partition, blocks.last * kBlock, last);
}

std::uint64_t WeightTable::Find(PartitionId partition, std::uint64_t first, std::uint64_t last,
                                double share) const {
  const Blocks blocks(first, last);
  if (!blocks.none()) {
    const std::vector<double>& sums = sums_[partition];
    const std::uint64_t blocks_begin = blocks.first * kBlock;
    const double head = Add(partition, first, blocks_begin);
    if (share < head) {
      last = blocks_begin;
    } else {
      // Finds the last block that begins at or before the share.
      const auto begin = sums.begin() + static_cast<std::ptrdiff_t>(blocks.first);
      const auto end = sums.begin() + static_cast<std::ptrdiff_t>(blocks.last) + 1;
      const auto after = std::upper_bound(begin, end, share - head + *begin);
      const auto block = static_cast<std::uint64_t>(after - 1 - sums.begin());
      share -= head + sums[block] - *begin;
      first = block * kBlock;
      if (block < blocks.last) last = first + kBlock;
    }
  }
  const float* const weights = weights_[partition].data();
  std::uint64_t none = kNowhere;
  for (std::uint64_t i = first; i < last; ++i) {
    share -= static_cast<double>(weights[i]);
    if (share < 0) return weights[i] > 0 ? i : none;
    if (weights[i] > 0) none = i;
  }
  return none;
}

// For long lists it draws by share of the sum, and rejects repeated positions, for up to kRepeats *
// draws tries. The missing draws are made by keys among the remaining entries. Short lists, and
// very many draws, use only keys.
void WeightedDrawer::WithoutReplacement(CounterRandom& random, const WeightTable& weights,
                                        std::span<const Piece> pieces, std::uint64_t draws,
                                        std::vector<std::uint64_t>& out) {
  out.clear();
  if (draws == 0) return;
  if (LengthOf(pieces) / kEntriesByKeys > draws && draws <= kMaxCompared) {
    SumPieces(weights, pieces);
    for (std::uint64_t tries = kRepeats * draws; tries > 0 && out.size() < draws; --tries) {
      const std::uint64_t drawn = DrawOne(random, weights, pieces);
      if (drawn == WeightTable::kNowhere) continue;
      if (std::find(out.begin(), out.end(), drawn) == out.end()) out.push_back(drawn);
    }
  }
  if (out.size() < draws) KeysOfPieces(random, weights, pieces, draws - out.size(), out);
  RHIZOME_DCHECK(out.size() <= draws);
}

void WeightedDrawer::WithReplacement(CounterRandom& random, const WeightTable& weights,
                                     std::span<const Piece> pieces, std::uint64_t draws,
                                     std::vector<std::uint64_t>& out) {
  out.clear();
  if (SumPieces(weights, pieces) <= 0) return;
  for (std::uint64_t missed = 0; out.size() < draws && missed < kMaxMissed;) {
    const std::uint64_t drawn = DrawOne(random, weights, pieces);
    if (drawn == WeightTable::kNowhere) {
      ++missed;
    } else {
      out.push_back(drawn);
    }
  }
}

double WeightedDrawer::SumPieces(const WeightTable& weights, std::span<const Piece> pieces) {
  piece_ends_.clear();
  double sum = 0;
  std::uint64_t begin = 0;
  for (const Piece& piece : pieces) {
    sum += weights.Sum(piece.partition, piece.first, piece.first + piece.end - begin);
    piece_ends_.push_back(sum);
    begin = piece.end;
  }
  return sum;
}

// Draws a position in proportion to its weight, using the sums of SumPieces. Returns kNowhere if
// rounding led to a position without positive weight.
std::uint64_t WeightedDrawer::DrawOne(CounterRandom& random, const WeightTable& weights,
                                      std::span<const Piece> pieces) const {
  const double sum = piece_ends_.empty() ? 0 : piece_ends_.back();
  if (sum <= 0) return WeightTable::kNowhere;
  RHIZOME_DCHECK(piece_ends_.size() == pieces.size());
  const double share = random.Unit() * sum;
  const auto after = std::upper_bound(piece_ends_.begin(), piece_ends_.end(), share);
  std::size_t p =
      std::min(static_cast<std::size_t>(after - piece_ends_.begin()), pieces.size() - 1);
  // Rounding may lead to a last piece without weight.
  while (p > 0 && piece_ends_[p] <= piece_ends_[p - 1]) --p;
  const std::uint64_t begin = p == 0 ? 0 : pieces[p - 1].end;
  const double before = p == 0 ? 0 : piece_ends_[p - 1];
  const Piece& piece = pieces[p];
  const std::uint64_t found = weights.Find(
      piece.partition, piece.first, piece.first + piece.end - begin, std::max(share - before, 0.0));
  RHIZOME_DCHECK(found == WeightTable::kNowhere ||
                 (found >= piece.first && found - piece.first < piece.end - begin));
  return found == WeightTable::kNowhere ? found : begin + found - piece.first;
}

void WeightedDrawer::KeysOfPieces(CounterRandom& random, const WeightTable& weights,
                                  std::span<const Piece> pieces, std::uint64_t draws,
                                  std::vector<std::uint64_t>& out) {
  const Piece* piece = pieces.data();
  std::uint64_t begin = 0;
  ByKeys(
      random, LengthOf(pieces),
      [&](std::uint64_t i) {
        while (i >= piece->end) begin = (piece++)->end;
        return weights.At(piece->partition, piece->first + i - begin);
      },
      draws, out);
}

void WeightedDrawer::Offer(const Key& key, std::uint64_t draws) {
  if (heap_.size() < draws) {
    heap_.push_back(key);
    std::push_heap(heap_.begin(), heap_.end());
  } else if (key < heap_.front()) {
    std::pop_heap(heap_.begin(), heap_.end());
    heap_.back() = key;
    std::push_heap(heap_.begin(), heap_.end());
  }
}

}  // namespace internal
}  // namespace rhizome
