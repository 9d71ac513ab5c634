#include "gnn/infer/plan_inference.h"

#include "cache/blocks/pass_order.h"
#include "cache/job/process_memory.h"
#include "cache/layout/pass_plan.h"
#include "gnn/infer/inference_job.h"
#include "gnn/infer/layer_sizes.h"
#include "gnn/ops/torch_threads.h"
#include "storage/base/stopwatch.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Rows of a block of a worker, which holds no sums.
constexpr std::uint64_t kWorkerBlockRows = 1024;

/// Adds the reads of a layer by workers that have separate disk caches.
Status PlanWorkers(const InferenceJob& job, std::uint32_t layer, const LayerReads& reads,
                   const JobControl& control, InferPlanLayer& planned) {
  const LayerwiseOptions& options = job.layerwise();
  const std::uint64_t block_rows = options.tuning.block_rows;
  WorkerPassOptions pass{
      .draw = LayerSizes(job.graph(), job.model(), options).Draw(layer),
      .shape = {.block_rows = RoundUpToTiles(block_rows == 0 ? kWorkerBlockRows : block_rows),
                .chunk_rows = reads.source.chunk_rows},
      .cache_chunks = options.memory.cache_bytes / ChunkReader::DecodedBytes(reads.source),
      .cache = options.tuning.cache};
  pass.draw.weights = false;  // weights do not affect reads
  RHIZOME_ASSIGN_OR_RETURN(const WorkerPassPlan plan, PlanWorkerPass(job.graph(), pass, control));
  planned.worker_chunks = plan.chunks;
  planned.chosen_requests = plan.chosen_requests;
  planned.chosen_reads = plan.chosen_reads;
  for (const LayoutCost& cost : plan.layouts) {
    planned.layouts.push_back({LayoutName(cost.rule), cost.requests, cost.reads});
  }
  for (const LayoutRule& rule : plan.chosen) planned.chosen_layouts.push_back(LayoutName(rule));
  return Status::Ok();
}

}  // namespace

Result<InferPlan> PlanInference(const InferOptions& options, const JobControl& control) {
  const Stopwatch watch;
  const std::uint64_t base_bytes = ResidentBytes();
  SetTorchThreads(options.resources.threads);
  RHIZOME_ASSIGN_OR_RETURN(const auto job, InferenceJob::Open(options, InferRole::kPlan));
  RHIZOME_RETURN_IF_ERROR(job->Prepare(base_bytes, control));
  InferPlan plan{.layers = {},
                 .vertices = job->graph().vertex_count(),
                 .workers = job->graph().partition_count(),
                 .cache_bytes = job->layerwise().memory.cache_bytes,
                 .seconds = 0};
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<LayerReads> layers,
                           PlanLayerwise(job->graph(), job->model(), job->layerwise(), control));
  for (std::uint32_t layer = 0; layer < layers.size(); ++layer) {
    const LayerReads& reads = layers[layer];
    InferPlanLayer planned;
    planned.source = reads.source.name;
    planned.chunk_rows = reads.source.chunk_rows;
    planned.chunks = reads.chunks;
    planned.cache_chunks = reads.cache_chunks;
    planned.chunk_requests = reads.requests;
    planned.chunk_reads = reads.reads;
    planned.layout = RowRuleName(reads.layout);
    RHIZOME_RETURN_IF_ERROR(PlanWorkers(*job, layer, reads, control, planned));
    plan.layers.push_back(std::move(planned));
  }
  plan.seconds = watch.seconds();
  return plan;
}

}  // namespace internal
}  // namespace rhizome
