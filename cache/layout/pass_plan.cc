#include "rhizome/cache/pass_plan.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "rhizome/storage/exceptions.h"

namespace rhizome {
namespace {

/// The pass in place is drawn in so many shares of the rows, one after another, to bound the memory
/// of their lists.
constexpr std::uint64_t kShares = 8;

std::uint64_t RoundUp(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

/// Returns the ends of the blocks of rows [0, count). Each output chunk begins a block.
std::vector<std::uint64_t> BlockEnds(std::uint64_t count, const PassPlanOptions& options) {
  std::vector<std::uint64_t> ends;
  for (std::uint64_t chunk = 0; chunk < count; chunk += options.output_chunk_rows) {
    const std::uint64_t last = std::min(chunk + options.output_chunk_rows, count);
    for (std::uint64_t begin = chunk; begin < last; begin += options.shape.block_rows) {
      ends.push_back(std::min(begin + options.shape.block_rows, last));
    }
  }
  return ends;
}

Status PlanInPlace(const GraphSnapshot& graph, const PassPlanOptions& options,
                   const JobControl& control, PassPlan& plan) {
  const std::uint64_t row_count = graph.vertex_count();
  plan.chunks = ChunksOf(row_count, options.shape.chunk_rows);
  const std::uint64_t share =
      RoundUp(std::max<std::uint64_t>(row_count / kShares, 1), options.output_chunk_rows);
  Trace trace;
  for (std::uint64_t first = 0; first < row_count; first += share) {
    std::vector<Row> targets(std::min(share, row_count - first));
    std::iota(targets.begin(), targets.end(), static_cast<Row>(first));
    RHIZOME_ASSIGN_OR_RETURN(const PassLists lists,
                             DrawPassLists(graph, targets, options.draw, control));
    const Trace part =
        StoredChunkTrace(lists, BlockEnds(targets.size(), options), options.shape.chunk_rows);
    for (std::size_t block = 0; block < part.steps(); ++block) trace.AddStep(part.step(block));
  }
  plan.blocks = trace.steps();
  plan.requests = trace.keys.size();
  plan.reads = CountReads(InArrivalOrder(trace), plan.chunks, options.cache, options.cache_chunks);
  return Status::Ok();
}

void AddWorker(const LayoutChoice& choice, PassPlan& plan) {
  plan.layouts.resize(choice.costs.size());
  for (std::size_t i = 0; i < choice.costs.size(); ++i) {
    plan.layouts[i].rule = choice.costs[i].rule;
    plan.layouts[i].requests += choice.costs[i].requests;
    plan.layouts[i].reads += choice.costs[i].reads;
  }
  const LayoutCost& chosen = choice.costs[choice.chosen];
  plan.chosen.push_back(chosen.rule);
  plan.chosen_requests += chosen.requests;
  plan.chosen_reads += chosen.reads;
  plan.worker_chunks += choice.chunks;
}

}  // namespace

Result<PassPlan> PlanPass(const GraphSnapshot& graph, const PassPlanOptions& options,
                          const JobControl& control) try {
  if (options.shape.block_rows == 0 || options.shape.chunk_rows == 0 ||
      options.output_chunk_rows == 0)
    return Fail(Status::InvalidArgument("blocks and chunks of a pass have at least one row"));
  PassPlan plan;
  const std::uint64_t workers = graph.partition_count();
  RHIZOME_RETURN_IF_ERROR(control.Report({.phase = "plan", .done = 0, .total = workers + 1}));
  RHIZOME_RETURN_IF_ERROR(PlanInPlace(graph, options, control, plan));
  for (std::uint64_t p = 0; p < workers; ++p) {
    RHIZOME_RETURN_IF_ERROR(control.Report({.phase = "plan", .done = p + 1, .total = workers + 1}));
    RHIZOME_ASSIGN_OR_RETURN(
        const PassLists lists,
        DrawPassLists(graph, TargetsOf(graph, static_cast<PartitionId>(p)), options.draw, control));
    AddWorker(ChooseLayout(lists, {.shape = options.shape,
                                   .candidates = options.candidates,
                                   .cache_chunks = options.cache_chunks,
                                   .cache = options.cache}),
              plan);
  }
  return plan;
} catch (...) {
  return Fail(StatusOfException());
}

}  // namespace rhizome
