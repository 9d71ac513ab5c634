#include "cache/layout/pass_plan.h"

#include "storage/base/exceptions.h"

namespace rhizome {
inline namespace internal {
namespace {

void AddWorker(const LayoutChoice& choice, WorkerPassPlan& plan) {
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
  plan.chunks += choice.chunks;
}

}  // namespace

Result<WorkerPassPlan> PlanWorkerPass(const GraphSnapshot& graph, const WorkerPassOptions& options,
                                      const JobControl& control) try {
  if (options.shape.block_rows == 0 || options.shape.chunk_rows == 0)
    return Fail(Status::InvalidArgument("blocks and chunks of a pass must have at least one row"));
  WorkerPassPlan plan;
  const std::uint64_t workers = graph.partition_count();
  for (std::uint64_t p = 0; p < workers; ++p) {
    RHIZOME_RETURN_IF_ERROR(control.Report({.phase = "plan", .done = p, .total = workers}));
    RHIZOME_ASSIGN_OR_RETURN(
        const PassLists lists,
        DrawPassLists(graph, TargetsOf(graph, static_cast<PartitionId>(p)), options.draw, control));
    RHIZOME_ASSIGN_OR_RETURN(const LayoutChoice choice,
                             ChooseLayout(lists, {.shape = options.shape,
                                                  .candidates = options.candidates,
                                                  .cache_chunks = options.cache_chunks,
                                                  .cache = options.cache}));
    AddWorker(choice, plan);
  }
  return plan;
} catch (...) {
  return Fail(StatusOfException());
}

}  // namespace internal
}  // namespace rhizome
