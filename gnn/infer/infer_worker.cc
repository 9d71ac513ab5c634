#include "gnn/infer/infer_worker.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "cache/job/process_memory.h"
#include "cache/kernels/simd.h"
#include "gnn/infer/inference_job.h"
#include "gnn/infer/inference_workers.h"
#include "gnn/infer/worker_pool.h"
#include "gnn/ops/torch_threads.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Returns the options of one worker: its share of memory and threads.
InferOptions OfWorker(InferOptions options, std::uint64_t memory_bytes) {
  options.resources.memory_bytes = memory_bytes;
  options.resources.threads =
      std::max<std::uint32_t>(options.resources.threads / std::max(options.workers.count, 1U), 1);
  return options;
}

Result<std::unique_ptr<InferenceJob>> OpenPrepared(const InferOptions& options,
                                                   std::uint64_t base_bytes,
                                                   const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(auto job, InferenceJob::Open(options, InferRole::kWorker));
  RHIZOME_RETURN_IF_ERROR(job->Prepare(base_bytes, control));
  return job;
}

}  // namespace

Status ServeInfer(const InferOptions& given, std::uint64_t memory_bytes,
                  const JobControl& control) {
  const std::uint64_t base_bytes = ResidentBytes();
  RHIZOME_RETURN_IF_ERROR(CheckSimdSetting());
  // Heartbeats begin here, because opening and preparing a job also takes a while.
  const WorkerBeats beats(STDOUT_FILENO);
  const InferOptions options = OfWorker(given, memory_bytes);
  SetTorchThreads(options.resources.threads);
  const Result<std::unique_ptr<InferenceJob>> job = OpenPrepared(options, base_bytes, control);
  static_cast<void>(ServeInference(
      [&](const WorkerTask& task, ChunkProgress progress) -> Result<InferLayerReport> {
        if (!job) return Fail(job.error());
        return (*job)->RunPart({task.stage, task.begin, task.end}, std::move(progress), control);
      }));
  return Status::Ok();
}

}  // namespace internal
}  // namespace rhizome
