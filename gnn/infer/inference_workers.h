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

/// The child processes of a layerwise inference job. Each computes the chunks of a layer that
/// belong to one partition at a time; this process hands out the partitions and keeps the job's
/// log, so that whichever process is killed, what was finished is not computed again. Source: GLISP
/// (section III-D), where a worker has a partition; here a child that dies leaves its partition to
/// the others. Threads: one, which must outlive it.
class InferenceWorkers {
 public:
  /// Errors: those of WorkerPool::Start.
  static Result<std::unique_ptr<InferenceWorkers>> Start(const std::vector<std::string>& command,
                                                         std::uint32_t workers);

  /// Has the chunks of `output` that are not done computed, adopts them and appends them to `log`.
  /// The report sums up what the children did. Errors: those of a child; kIoError, all children are
  /// dead; kInterrupted.
  Result<InferLayerReport> RunLayer(const GraphSnapshot& graph, std::uint32_t layer,
                                    LayerOutput& output, InferenceLog& log,
                                    const JobControl& control);

  /// As WorkerPool::PeakBytes.
  std::vector<std::uint64_t> PeakBytes() const { return pool_->PeakBytes(); }

 private:
  explicit InferenceWorkers(std::unique_ptr<WorkerPool> pool) : pool_(std::move(pool)) {}
  std::unique_ptr<WorkerPool> pool_;
};

/// The child's side: serves tasks on the standard streams, each computed by `run`, which tells of
/// every chunk.
using RunTask =
    std::function<Result<InferLayerReport>(const WorkerTask& task, ChunkProgress progress)>;
Status ServeInference(const RunTask& run);

/// Chunks that are not done, cut where a chunk's first row has another owner than the one before,
/// or into as many equal parts as there are workers if these are more than the partitions.
std::vector<WorkerTask> TasksOfLayer(const GraphSnapshot& graph, std::uint32_t layer,
                                     const LayerOutput& output, std::uint32_t workers);

}  // namespace rhizome::inline internal
