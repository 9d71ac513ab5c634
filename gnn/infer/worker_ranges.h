#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rhizome/cache/cost_model.h"
#include "rhizome/cache/job_report.h"
#include "rhizome/cache/pass_order.h"
#include "rhizome/cache/range_features.h"
#include "rhizome/gnn/infer_options.h"
#include "rhizome/gnn/worker_pool.h"
#include "rhizome/index/graph.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// A layer whose chunks workers compute. `graph` and what `pass` borrows outlive the call.
struct LayerToCut {
  const GraphSnapshot& graph;
  std::uint32_t layer = 0;
  std::string kind;  ///< of the network
  std::uint64_t columns_read = 0;
  std::uint64_t columns_written = 0;
  std::uint64_t rows = 0;   ///< that the layer writes
  std::uint64_t alike = 0;  ///< later layers of the same columns
  PassReads pass = {};
};

/// Returns the name of a layer's cost model: the kind of network, the columns that it reads and
/// writes, each rounded up to a power of two, and the direction that it walks.
std::string CostModelName(const LayerToCut& layer);

/// Cuts the layers of a job into ranges, which are fixed before workers begin, and learns from what
/// these then cost. What a layer is cut by, in this order:
///   - predicted cost, where its model has seen enough, and the predicted gain over equal edges is
///   larger than the model's own error (CostModel::Error), unless InferWorkers asks for equal
///   edges;
///   - numbers of edges, or of rows where there are none.
/// Results do not depend on it, and the report says which it was, and why.
///
/// Source: ROC (MLSys 2020), section 4; the cost model (cost_model.h) has what is ours.
/// Threads: one at a time.
class WorkerRanges {
 public:
  /// A file of costs that cannot be read is told to `note`, and replaced.
  WorkerRanges(const InferWorkers& workers, JobNote note);

  /// Memory for the features of a graph's ranges.
  static std::uint64_t Bytes(const GraphSnapshot& graph) { return graph.vertex_count() * 9; }

  /// Returns the chunks of a layer that are not done as tasks, at least one for each range that has
  /// such chunks, and more only where a chunk that is done stands between. At most `workers`
  /// ranges. Errors: those of the lists; kInterrupted.
  Result<std::vector<WorkerTask>> Cut(const LayerToCut& layer, const std::vector<bool>& done,
                                      std::uint32_t workers, const JobControl& control);

  /// Learns what parts of the layer that was cut last did cost, in any order, and writes the file.
  /// A part lies within a range, as its task did, and its ends are those of tiles. Errors:
  /// kIoError, a part that cannot be.
  Result<InferRanges> Learn(std::vector<InferLayerReport::Cost> costs);

  const CostModels& models() const { return models_; }

 private:
  Status FindFeatures(const LayerToCut& layer, const JobControl& control);
  bool KnowsFeatures(const LayerToCut& layer) const;
  bool WantsFeatures(const LayerToCut& layer) const;
  void Judge(const CostModel& model, double equal_edges, double learned);
  Status LearnParts(const std::vector<InferLayerReport::Cost>& costs);
  void Save();

  /// Features, and of which passes they are.
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

  // These belong to the layer that was cut last.
  bool has_features_ = false;             // known_ is of it
  std::vector<std::uint64_t> open_rows_;  // [ranges] rows that were not done
  InferRanges report_;
};

}  // namespace rhizome::inline internal
