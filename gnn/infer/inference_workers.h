#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cache/blocks/inference_log.h"
#include "cache/blocks/layer_output.h"
#include "gnn/infer/worker_pool.h"
#include "gnn/infer/worker_ranges.h"
#include "rhizome/graph.h"
#include "rhizome/infer_options.h"

namespace rhizome {
inline namespace internal {

/// The child processes of a layerwise inference job. Each computes the chunks of one range of a
/// layer. The parent cuts the ranges (WorkerRanges) and keeps the job's log, so finished chunks are
/// never computed again, no matter which process is killed.
/// Source: GLISP (section III-D), where each worker has a partition. Here ranges are fixed layer by
/// layer, and the range of a dead child goes to the others.
/// Threads: one, which must outlive this object.
class InferenceWorkers {
 public:
  /// Starts `workers` children with `command`; `ranges` divides the work among them. `note`
  /// receives a message for each child that is killed because it is silent. Errors: see
  /// WorkerPool::Start.
  static Result<std::unique_ptr<InferenceWorkers>> Start(const std::vector<std::string>& command,
                                                         std::uint32_t workers, WorkerRanges ranges,
                                                         JobNote note);

  /// Lets the children compute the unfinished chunks of `output`, adopts the chunks and appends
  /// them to `log`. Returns the sum of the children's reports. Errors: any error of a child;
  /// kIoError, all children have died; kInterrupted.
  Result<InferLayerReport> RunLayer(const LayerToCut& layer, LayerOutput& output, InferenceLog& log,
                                    const JobControl& control);

  /// See WorkerPool::PeakBytes.
  std::vector<std::uint64_t> PeakBytes() const { return pool_->PeakBytes(); }

 private:
  InferenceWorkers(std::unique_ptr<WorkerPool> pool, WorkerRanges ranges)
      : pool_(std::move(pool)), ranges_(std::move(ranges)) {}
  std::unique_ptr<WorkerPool> pool_;
  WorkerRanges ranges_;
};

/// The child's side: serves tasks on the standard streams. `run` computes a task and reports each
/// finished chunk.
using RunTask =
    std::function<Result<InferLayerReport>(const WorkerTask& task, ChunkProgress progress)>;
Status ServeInference(const RunTask& run);

}  // namespace internal
}  // namespace rhizome
