#include "rhizome/gnn/gatherer.h"

#include <algorithm>

#include "rhizome/cache/compute_threads.h"
#include "rhizome/cache/simd.h"
#include "rhizome/gnn/dense.h"
#include "rhizome/storage/check.h"

namespace rhizome::inline internal {
namespace {

/// Calls body(range) for runs of at most kDenseRows of `count` targets, on the compute threads.
template <typename Body>
void ForRuns(std::size_t count, const Body& body) {
  constexpr auto kRun = static_cast<std::size_t>(kDenseRows);
  ComputeFor((count + kRun - 1) / kRun, [&](std::size_t run) {
    body(TargetRange{run * kRun, std::min(kRun, count - run * kRun)});
  });
}

}  // namespace

Result<std::unique_ptr<Gatherer>> Gatherer::Create(const GraphSnapshot& graph,
                                                   const GatherShape& shape,
                                                   const GatherFactors& factors, ChunkFeed& feed) {
  std::unique_ptr<Gatherer> gatherer(new Gatherer(shape, factors));
  RHIZOME_ASSIGN_OR_RETURN(BlockPlanner planner, BlockPlanner::Create(graph, shape.planner));
  std::uint64_t most = 0;
  for (const Block& block : shape.blocks) most = std::max(most, block.rows());
  gatherer->sums_.resize(most * shape.width);
  RHIZOME_ASSIGN_OR_RETURN(
      gatherer->stager_,
      BlockStager::Create(std::move(planner), shape.blocks, feed, shape.planner.stage_rows,
                          shape.dim, factors.source, /*has_cache=*/false));
  return gatherer;
}

Status Gatherer::Take(std::uint64_t first, std::uint64_t count, const float* own,
                      std::size_t own_stride, float* out) {
  while (count > 0) {
    RHIZOME_RETURN_IF_ERROR(Prepare(first));
    const std::uint64_t part = std::min(count, static_cast<std::uint64_t>(block_.end) - first);
    Finish(first, part, own, own_stride, out);
    first += part;
    count -= part;
    if (own != nullptr) own += part * own_stride;
    out += part * shape_.width;
  }
  return Status::Ok();
}

/// Sums up the next block.
Status Gatherer::SumBlock() {
  RHIZOME_CHECK(next_block_ < shape_.blocks.size());
  block_ = shape_.blocks[next_block_++];
  RHIZOME_ASSIGN_OR_RETURN(StagedWindow window, stager_->Next());
  const std::shared_ptr<const BlockLists> block = window.lists;
  WindowLists lists(*block, /*weighs=*/true);
  if (block->sum_windows() == 0) std::fill(sums_.begin(), sums_.end(), 0.0F);
  while (block->is_sum(window.window)) {
    ForRuns(block->targets.size(),
            [&](const TargetRange& range) { AddWindow(window, lists, range); });
    if (window.is_last()) break;
    RHIZOME_ASSIGN_OR_RETURN(window, stager_->Next());
  }
  return Status::Ok();
}

void Gatherer::AddWindow(const StagedWindow& window, WindowLists& lists, const TargetRange& range) {
  const std::size_t number = window.window - window.lists->first_sum;
  const TileLists walked =
      window.lists->numbers.empty() ? lists.In(number, range) : lists.Whole(range);
  SumArgs args;
  args.x = window.staged.rows;
  args.x_stride = shape_.dim;
  args.dim = shape_.width;
  args.source_scale = window.staged.scale.empty() ? nullptr : window.staged.scale.data();
  args.edge_weight = walked.weights;
  walked.WalkedBy(args);
  args.keep = number > 0;
  args.out = sums_.data() + range.first * shape_.width;
  args.out_stride = shape_.width;
  Kernels().sum(args, 0, range.count);
}

/// Completes sums of the block, which have no more neighbours.
void Gatherer::Finish(std::uint64_t first, std::uint64_t count, const float* own,
                      std::size_t own_stride, float* out) const {
  static constexpr std::uint32_t kNone[kDenseRows + 1] = {};
  const float* const sums =
      sums_.data() + (first - static_cast<std::uint64_t>(block_.begin)) * shape_.width;
  ForRuns(count, [&](const TargetRange& range) {
    float* const to = out + range.first * shape_.width;
    const float* const from = sums + range.first * shape_.width;
    std::copy(from, from + range.count * shape_.width, to);
    SumArgs args;
    args.x = from;  // no row of it is read
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

}  // namespace rhizome::inline internal
