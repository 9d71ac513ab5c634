#include "gnn/models/related_rows.h"

#include <algorithm>
#include <utility>

#include "cache/job/compute_threads.h"
#include "gnn/ops/block_products.h"
#include "gnn/ops/dense.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr auto kTile = static_cast<std::size_t>(kDenseRows);
constexpr std::uint32_t kTargetBits = 8;  // of an edge's target in its tile
static_assert(kTile == std::size_t{1} << kTargetBits);
static_assert(RelatedRows::kMaxPairs << kTargetBits <= std::uint64_t{1} << 32);

/// Bytes of a pair of a run besides its row: its number, row, relation and places.
constexpr std::uint64_t kBytesOfPair = 32;

std::size_t TilesOf(std::size_t targets) { return (targets + kTile - 1) / kTile; }

}  // namespace

std::uint64_t RelatedRows::Bytes(const Layer& layer, std::uint64_t rows, std::uint64_t relations,
                                 std::uint64_t edges) {
  const auto columns = static_cast<std::uint64_t>(layer.prepared_columns());
  const std::uint64_t bitmap = rows * relations / 4;  // two bits a pair
  return rows * (columns * sizeof(float) + kBytesOfPair) + bitmap + edges * sizeof(std::uint32_t);
}

Result<RelatedRows> RelatedRows::Create(const Layer& layer, std::size_t run,
                                        std::size_t relations) {
  RelatedRows made(layer, run, relations);
  RHIZOME_ASSIGN_OR_RETURN(
      made.memory_, AlignedBuffer::Allocate(
                        run * static_cast<std::size_t>(layer.prepared_columns()) * sizeof(float)));
  return made;
}

void RelatedRows::Begin(const BlockLists& lists) {
  lists_ = &lists;
  taken_.assign(lists.offsets.begin(), lists.offsets.end() - 1);
  edges_.resize(lists.neighbors.size());
  count_.assign(TilesOf(lists.targets.size()), 0);
}

void RelatedRows::FindPairs(std::size_t window) {
  const std::uint64_t first = window * lists_->stage_rows;
  const std::uint64_t end =
      std::min<std::uint64_t>(first + lists_->stage_rows, lists_->rows.size());
  pairs_ = RankBitmap((end - first) * relations_);
  next_ = 0;
  const std::size_t targets = lists_->targets.size();
  ComputeFor(count_.size(), [&](std::size_t tile) {
    const std::size_t begin = tile * kTile;
    std::uint32_t* const edges = edges_.data() + lists_->offsets[begin];
    std::uint32_t count = 0;
    for (std::size_t t = begin; t < std::min(begin + kTile, targets); ++t) {
      std::uint32_t e = taken_[t];
      for (; e < lists_->offsets[t + 1] && lists_->neighbors[e] < end; ++e) {
        const std::uint64_t pair =
            (lists_->neighbors[e] - first) * relations_ + lists_->relation[e];
        pairs_.SetShared(pair);
        edges[count++] = static_cast<std::uint32_t>(pair << kTargetBits | (t - begin));
      }
      taken_[t] = e;
    }
    count_[tile] = count;
  });
  pairs_.Seal();
}

bool RelatedRows::NextRun(const WindowRows& staged) {
  members_.clear();
  first_ = next_;
  next_ = pairs_.AppendFrom(first_, run_, members_);
  if (members_.empty()) return false;
  std::vector<std::uint32_t> rows;
  std::vector<std::uint16_t> relations;
  rows.reserve(members_.size());
  relations.reserve(members_.size());
  for (const std::uint64_t pair : members_) {
    rows.push_back(static_cast<std::uint32_t>(pair / relations_));
    relations.push_back(static_cast<std::uint16_t>(pair % relations_));
  }
  const RowsByClass sorted = RowsByClass::Of(relations, relations_);
  place_.resize(members_.size());
  for (std::size_t i = 0; i < sorted.rows.size(); ++i)
    place_[sorted.rows[i]] = static_cast<std::uint32_t>(i);
  layer_->Relate(staged.reduced, sorted, rows, reinterpret_cast<float*>(memory_.bytes().data()));
  return true;
}

WindowRows RelatedRows::rows() const {
  return {.raw = nullptr,
          .reduced = reinterpret_cast<const float*>(memory_.bytes().data()),
          .reduced_stride = static_cast<std::size_t>(layer_->prepared_columns()),
          .scale = {}};
}

TileLists RelatedRows::ListsOf(const TargetRange& range) const {
  thread_local std::vector<std::uint32_t> offsets;
  thread_local std::vector<std::uint32_t> slots;
  offsets.clear();
  slots.clear();
  const std::uint64_t before = pairs_.Rank(members_.front());
  const std::uint32_t* const edges = edges_.data() + lists_->offsets[range.first];
  for (std::uint32_t i = 0; i < count_[range.first / kTile]; ++i) {
    const std::uint64_t pair = edges[i] >> kTargetBits;
    if (pair < first_ || pair >= next_) continue;
    const std::size_t list =
        lists_->linked_before[range.first + edges[i] % kTile] - lists_->linked_before[range.first];
    // Begins of the lists up to this one.
    if (offsets.size() <= list) offsets.resize(list + 1, static_cast<std::uint32_t>(slots.size()));
    slots.push_back(place_[pairs_.Rank(pair) - before]);
  }
  const std::size_t count =
      lists_->linked_before[range.first + range.count] - lists_->linked_before[range.first];
  offsets.resize(count + 1, static_cast<std::uint32_t>(slots.size()));
  return {.begins = offsets.data(),
          .ends = offsets.data() + 1,
          .slots = slots.data(),
          .slots_end = offsets.back()};
}

}  // namespace internal
}  // namespace rhizome
