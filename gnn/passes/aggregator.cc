#include "gnn/passes/aggregator.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "cache/job/compute_threads.h"
#include "cache/kernels/simd.h"
#include "gnn/ops/dense.h"
#include "gnn/passes/max_aggregation.h"
#include "storage/base/check.h"
#include "storage/base/mutant.h"

// PassAggregator::Take, for each block of the targets:
//   1. SumBlock initialises the states of the block's targets, for attention with their own rows,
//      and adds the windows of source rows that BlockStager stages.
//   2. Finish copies the results of the targets that the caller asks for, and applies the factors
//      of sums.

namespace rhizome {
inline namespace internal {
namespace {

/// Divides `count` targets into runs of at most kDenseRows, and calls body(range) for each of them
/// on the compute threads.
template <typename Body>
void ForRuns(std::size_t count, const Body& body) {
  constexpr auto kRun = static_cast<std::size_t>(kDenseRows);
  ComputeFor((count + kRun - 1) / kRun, [&](std::size_t run) {
    body(TargetRange{run * kRun, std::min(kRun, count - run * kRun)});
  });
}

}  // namespace

Result<std::unique_ptr<PassAggregator>> PassAggregator::Create(const GraphSnapshot& graph,
                                                               const GatherShape& shape,
                                                               const GatherFactors& factors,
                                                               ChunkFeed& feed) {
  std::unique_ptr<PassAggregator> gatherer(new PassAggregator(shape, factors));
  RHIZOME_ASSIGN_OR_RETURN(BlockPlanner planner, BlockPlanner::Create(graph, shape.planner));
  std::uint64_t most = 0;
  for (const Block& block : shape.blocks) most = std::max(most, block.rows());
  gatherer->sums_.resize(most * shape.state_columns());
  RHIZOME_ASSIGN_OR_RETURN(
      gatherer->stager_,
      BlockStager::Create(std::move(planner), shape.blocks, feed, shape.planner.stage_rows,
                          shape.dim, factors.source, /*has_cache=*/false));
  return gatherer;
}

Status PassAggregator::Take(std::uint64_t first, std::uint64_t count, const float* own,
                            std::size_t own_stride, float* out) {
  while (count > 0) {
    RHIZOME_RETURN_IF_ERROR(Prepare(first));
    const std::uint64_t part = std::min(count, static_cast<std::uint64_t>(block_.end) - first);
    Finish(first, part, own, own_stride, out);
    first += part;
    count -= part;
    if (own != nullptr) own += part * own_stride;
    out += part * shape_.columns();
  }
  return Status::Ok();
}

/// Aggregates the next block.
Status PassAggregator::SumBlock() {
  RHIZOME_CHECK(next_block_ < shape_.blocks.size());
  block_ = shape_.blocks[next_block_++];
  RHIZOME_ASSIGN_OR_RETURN(StagedWindow window, stager_->Next());
  const std::shared_ptr<const BlockLists> block = window.lists;
  WindowLists lists(*block, /*weighs=*/shape_.by == AggregationKind::kSum);
  if (Attends(shape_.by)) {
    RHIZOME_RETURN_IF_ERROR(BeginAttention(window));
  } else if (shape_.by == AggregationKind::kMax) {
    BeginMaxima(block_.rows(), shape_.width, sums_.data());
  } else if (shape_.by == AggregationKind::kMaxGradient || block->sum_windows() == 0) {
    std::fill(sums_.begin(), sums_.end(), 0.0F);
  }
  while (block->is_sum(window.window)) {
    ForRuns(block->targets.size(),
            [&](const TargetRange& range) { AddWindow(window, lists, range); });
    if (window.is_last()) break;
    RHIZOME_ASSIGN_OR_RETURN(window, stager_->Next());
  }
  return Status::Ok();
}

void PassAggregator::AddWindow(const StagedWindow& window, WindowLists& lists,
                               const TargetRange& range) {
  const std::size_t number = window.window - window.lists->first_sum;
  const TileLists walked =
      window.lists->numbers.empty() ? lists.In(number, range) : lists.Whole(range);
  if (shape_.by != AggregationKind::kSum) return AddOther(window, walked, range);
  AddSums(window, walked, range);
}

void PassAggregator::AddSums(const StagedWindow& window, const TileLists& walked,
                             const TargetRange& range) {
  SumArgs args;
  args.x = window.staged.rows;
  args.x_stride = shape_.dim;
  args.dim = shape_.width;
  args.source_scale = window.staged.scale.empty() ? nullptr : window.staged.scale.data();
  args.edge_weight = walked.weights;
  walked.WalkedBy(args);
  args.keep = window.window > window.lists->first_sum;
  args.out = sums_.data() + range.first * shape_.width;
  args.out_stride = shape_.width;
  Kernels().sum(args, 0, range.count);
}

/// Adds a window to maxima, attention or gradients.
void PassAggregator::AddOther(const StagedWindow& window, const TileLists& walked,
                              const TargetRange& range) {
  const GatherWindow rows{.x = window.staged.rows,
                          .stride = shape_.dim,
                          .width = shape_.width,
                          .lists = walked,
                          .count = range.count};
  float* const state = sums_.data() + range.first * shape_.state_columns();
  const std::size_t first_target = static_cast<std::size_t>(block_.begin) + range.first;
  if (shape_.by == AggregationKind::kMaxGradient)
    return AddMaxGradients(rows, static_cast<std::uint32_t>(first_target), state);
  const BlockLists& lists = *window.lists;
  const std::size_t first = (window.window - lists.first_sum) * lists.stage_rows;
  const std::span numbers = std::span(lists.rows).subspan(std::min(first, lists.rows.size()));
  if (shape_.by == AggregationKind::kMax) return AddMaxima(rows, numbers, state);
  AddAttending(rows, {.of_rows = numbers.data(), .first = first_target}, state);
}

/// Adds a window to an attention or to one of its gradients.
void PassAggregator::AddAttending(const GatherWindow& window, const GatherNumbers& numbers,
                                  float* state) const {
  if (shape_.by == AggregationKind::kAttend)
    return AddAttention(shape_.heads, window, numbers, state);
  if (shape_.by == AggregationKind::kAttendGradient)
    return AddAttentionGradient(shape_.heads, window, numbers, state);
  AddQueryGradient(shape_.heads, window, numbers, state);
}

/// Initialises the targets with their own rows, which are staged in windows before the others
/// unless one window holds all rows. `window` is then the first of the other windows, if there are
/// any.
Status PassAggregator::BeginAttention(StagedWindow& window) {
  const std::shared_ptr<const BlockLists> lists = window.lists;
  const std::size_t targets = lists->targets.size();
  if (!lists->numbers.empty()) {
    BeginTargets(window.staged.rows, lists->numbers.data(), {0, targets});
    return Status::Ok();
  }
  for (std::size_t first = 0; first < targets; first += lists->stage_rows) {
    BeginTargets(window.staged.rows, nullptr,
                 {first, std::min<std::size_t>(lists->stage_rows, targets - first)});
    if (window.is_last()) break;
    RHIZOME_ASSIGN_OR_RETURN(window, stager_->Next());
  }
  return Status::Ok();
}

/// Initialises targets whose own rows are in `slots`. Null: they are in slots 0, 1, 2 and so on.
void PassAggregator::BeginTargets(const float* rows, const std::uint32_t* slots,
                                  const TargetRange& targets) {
  const std::size_t columns = shape_.state_columns();
  ForRuns(targets.count, [&](const TargetRange& run) {
    std::array<std::uint32_t, kDenseRows> at;      // slots of own rows
    std::array<std::uint32_t, kDenseRows + 1> of;  // a list with one edge for each target
    float* const state = sums_.data() + (targets.first + run.first) * columns;
    std::iota(of.begin(), of.end(), 0);
    for (std::size_t i = 0; i < run.count; ++i) {
      const std::size_t place = run.first + i;
      at[i] = slots != nullptr ? slots[targets.first + place] : static_cast<std::uint32_t>(place);
      const float* const own = rows + at[i] * shape_.dim;
      if (shape_.by == AggregationKind::kAttend) {
        internal::BeginAttention(shape_.heads, own, state + i * columns);
      } else if (shape_.by == AggregationKind::kAttendGradient) {
        BeginAttentionGradient(shape_.heads, own, state + i * columns);
      } else {
        BeginQueryGradient(shape_.heads, own, state + i * columns);
      }
    }
    if (!shape_.heads.own) return;
    const GatherWindow window{.x = rows,
                              .stride = shape_.dim,
                              .width = shape_.width,
                              .lists = {.begins = of.data(),
                                        .ends = of.data() + 1,
                                        .slots = at.data(),
                                        .slots_end = static_cast<std::uint32_t>(run.count)},
                              .count = run.count};
    const std::size_t first = targets.first + run.first;
    AddAttending(window, {.first = static_cast<std::size_t>(block_.begin) + first, .own = true},
                 state);
  });
}

/// Completes and copies the results of some targets of the block, whose neighbours have all been
/// added.
void PassAggregator::Finish(std::uint64_t first, std::uint64_t count, const float* own,
                            std::size_t own_stride, float* out) const {
  static constexpr std::uint32_t kNone[kDenseRows + 1] = {};
  const std::size_t columns = shape_.columns(), kept = shape_.state_columns();
  const bool stale = RHIZOME_MUTANT("sums are read from the beginning of their block");
  const std::uint64_t before = stale ? 0 : first - static_cast<std::uint64_t>(block_.begin);
  const float* const sums = sums_.data() + before * kept;
  ForRuns(count, [&](const TargetRange& range) {
    float* const to = out + range.first * columns;
    const float* const from = sums + range.first * kept;
    for (std::size_t t = 0; t < range.count; ++t)
      std::copy_n(from + t * kept, columns, to + t * columns);
    if (shape_.by == AggregationKind::kMax) EndMaxima(range.count, shape_.width, to);
    if (shape_.by != AggregationKind::kSum) return;
    SumArgs args;
    args.x = from;  // not read, because the lists are empty
    args.x_stride = args.dim = shape_.width;
    args.begins = args.ends = args.index = kNone;
    if (!factors_.target.empty()) args.target_scale = factors_.target.data() + first + range.first;
    if (!factors_.own.empty()) {
      args.initial = own + range.first * own_stride;
      args.initial_stride = own_stride;
      args.initial_rows = range.count;
      args.initial_scale = factors_.own.data() + first + range.first;
    }
    args.keep = true;
    args.out = to;
    args.out_stride = shape_.width;
    Kernels().sum(args, 0, range.count);
  });
}

}  // namespace internal
}  // namespace rhizome
