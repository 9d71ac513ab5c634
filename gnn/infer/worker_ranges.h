#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cache/blocks/pass_order.h"
#include "cache/ranges/cost_model.h"
#include "cache/ranges/range_features.h"
#include "gnn/infer/worker_pool.h"
#include "rhizome/file_system.h"
#include "rhizome/graph.h"
#include "rhizome/infer_options.h"
#include "rhizome/job_control.h"
#include "rhizome/job_report.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// A layer whose chunks workers compute. `graph` and everything that `pass` borrows must outlive
/// the call.
struct LayerToCut {
  const GraphSnapshot& graph;
  std::uint32_t layer = 0;
  std::string kind;  ///< kind of network
  std::uint64_t columns_read = 0;
  std::uint64_t columns_written = 0;
  std::uint64_t rows = 0;   ///< rows that the layer writes
  std::uint64_t alike = 0;  ///< number of later layers with the same columns
  PassReads pass = {};
};

/// Returns the name of a layer's cost model: the kind of network, the columns that it reads and
/// writes, each rounded up to a power of two, and the direction of its lists.
std::string CostModelName(const LayerToCut& layer);

/// Cuts the layers of a job into ranges, which are fixed before workers begin, and learns from
/// their measured costs. A layer is cut by
///   - predicted cost, if its cost model has enough measurements and the predicted gain over equal
///     edges exceeds the model's own error (CostModel::Error), unless InferWorkers requests equal
///     edges;
///   - otherwise the number of edges, or of rows if no edges are walked.
/// Results do not depend on the cut. The report says which criterion was used, and why.
///
/// Source: ROC (MLSys 2020), section 4; cost_model.h describes the differences.
/// Threads: one at a time.
class WorkerRanges {
 public:
  /// A cost file that exists but cannot be read is reported to `note` and replaced.
  WorkerRanges(const InferWorkers& workers, JobNote note);

  /// Returns the memory for the features of a graph's ranges, in bytes.
  static std::uint64_t Bytes(const GraphSnapshot& graph) { return graph.vertex_count() * 9; }

  /// Returns the unfinished chunks of a layer as tasks, cut into at most `workers` ranges. A range
  /// has one task for each run of consecutive unfinished chunks. Errors: any error of reading the
  /// lists; kInterrupted.
  Result<std::vector<WorkerTask>> Cut(const LayerToCut& layer, const std::vector<bool>& done,
                                      std::uint32_t workers, const JobControl& control);

  /// Learns from the measured costs of parts of the layer that was cut last, in any order, and
  /// writes the cost file. Each part is inside one range, and begins and ends at tile boundaries.
  /// Errors: kIoError, an invalid part.
  Result<InferRanges> Learn(std::vector<InferLayerReport::Cost> costs);

  const CostModels& models() const { return models_; }

 private:
  Status FindFeatures(const LayerToCut& layer, const JobControl& control);
  bool KnowsFeatures(const LayerToCut& layer) const;
  bool WantsFeatures(const LayerToCut& layer) const;
  void Judge(const CostModel& model, double equal_edges, double learned);
  Status LearnParts(const std::vector<InferLayerReport::Cost>& costs);
  void Save();

  /// Features, and the passes for which they are valid.
  struct Known {
    PassDrawOptions draw;
    bool as_stored = false;
    std::uint64_t columns = 0;
    std::uint64_t rows = 0;
    RangeFeatures features;
  };

  const Path file_;
  const InferWorkers::Ranges by_;
  const JobNote note_;
  CostModels models_;
  std::optional<Known> known_;

  // State of the layer that was cut last.
  bool has_features_ = false;             // known_ is valid for it
  std::vector<std::uint64_t> open_rows_;  // [ranges] unfinished rows
  InferRanges report_;
};

}  // namespace internal
}  // namespace rhizome
