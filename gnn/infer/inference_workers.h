#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rhizome/cache/inference_log.h"
#include "rhizome/cache/layer_output.h"
#include "rhizome/gnn/infer_options.h"
#include "rhizome/gnn/worker_pool.h"
#include "rhizome/index/graph.h"

namespace rhizome::inline internal {

/// The child processes of a layerwise inference job. Each computes, one partition at a time, the
/// chunks of a layer that belong to it. This process distributes the partitions and keeps the job's
/// log, so that finished chunks are never computed again, whichever process is killed.
/// Source: GLISP (section III-D), where each worker has a partition; here the partition of a dead
/// child goes to the others.
/// Threads: one, which must outlive it.
class InferenceWorkers {
 public:
  /// Starts `workers` children with `command`. Errors: those of WorkerPool::Start.
  static Result<std::unique_ptr<InferenceWorkers>> Start(const std::vector<std::string>& command,
                                                         std::uint32_t workers);

  /// Lets the children compute the chunks of `output` that are not done, adopts them and appends
  /// them to `log`. Returns the sum of the children's reports. Errors: those of a child; kIoError,
  /// all children are dead; kInterrupted.
  Result<InferLayerReport> RunLayer(const GraphSnapshot& graph, std::uint32_t layer,
                                    LayerOutput& output, InferenceLog& log,
                                    const JobControl& control);

  /// As WorkerPool::PeakBytes.
  std::vector<std::uint64_t> PeakBytes() const { return pool_->PeakBytes(); }

 private:
  explicit InferenceWorkers(std::unique_ptr<WorkerPool> pool) : pool_(std::move(pool)) {}
  std::unique_ptr<WorkerPool> pool_;
};

/// The child's side: serves tasks on the standard streams. `run` computes each, and reports every
/// chunk.
using RunTask =
    std::function<Result<InferLayerReport>(const WorkerTask& task, ChunkProgress progress)>;
Status ServeInference(const RunTask& run);

/// Returns the chunks that are not done as tasks: cut where a chunk's first row has another owner
/// than that of the chunk before, or into as many equal parts as there are workers if there are
/// fewer partitions.
std::vector<WorkerTask> TasksOfLayer(const GraphSnapshot& graph, std::uint32_t layer,
                                     const LayerOutput& output, std::uint32_t workers);

}  // namespace rhizome::inline internal
