#pragma once

#include <cstdint>
#include <vector>

#include "rhizome/cache/inference_log.h"
#include "rhizome/cache/labels.h"
#include "rhizome/cache/layer_output.h"
#include "rhizome/cache/pass_layout.h"
#include "rhizome/cache/vertex_score_sink.h"
#include "rhizome/gnn/infer_options.h"
#include "rhizome/gnn/layer_sharing.h"
#include "rhizome/gnn/layerwise_options.h"
#include "rhizome/gnn/model.h"
#include "rhizome/index/graph.h"
#include "rhizome/storage/job_control.h"

namespace rhizome::inline internal {

class DeviceTiles;
class InferenceWorkers;

/// The input of a layerwise run, and its scratch folder. All is borrowed.
struct LayerwiseInput {
  const GraphSnapshot& graph;
  const Model& model;
  const ClassLabels* labels = nullptr;  ///< null: no accuracy is counted
  VertexScoreSink* sink = nullptr;      ///< given the scores of all rows, if not null
  Path scratch;                         ///< a folder for the arrays of the layers
  InferenceLog* log = nullptr;          ///< null: a killed run begins again

  /// Processes that compute the layers' chunks; null: this one does. With a log, and without
  /// LayerwiseOptions::targets. Does not change results.
  InferenceWorkers* workers = nullptr;

  DeviceTiles* device = nullptr;  ///< that multiplies; null: the processor. Not with workers.

  /// Others that compute parts of each layer; null: this process computes all. Not with a log,
  /// workers, or LayerwiseOptions::targets, and with LayerwiseOptions::chunk_rows, which are the
  /// same for all. The last layer's array then has the chunks of this process alone, and cannot be
  /// written; the sink is given the scores of their rows.
  LayerSharing* sharing = nullptr;
};

struct LayerwiseResult {
  std::vector<InferLayerReport> layers;  ///< of layers computed in this run; zeros for others
  AccuracyCounts accuracy;               ///< if labels were given
  std::uint64_t resumed_chunks = 0;
  std::uint64_t non_finite_rows = 0;  ///< of the output, if it is written (LayerOutput)
  WrittenArray output;
};

/// Computes every vertex layer by layer: K passes over all rows in order, each reading the array of
/// the layer before chunk by chunk and writing its own below `scratch`. No vertex is computed
/// twice.
///
/// The rows that a block of targets needs are brought together on a stage, as many as it holds at a
/// time, and summed up in ascending order of rows, a sum by one thread; a row's product depends on
/// that row alone. So the bytes of the result are the same for any policy, cache, stage, block size
/// and number of threads, and for a run that was killed and resumed (by its log).
///
/// Source: layerwise inference as in GLISP (section III-D), with Belady's schedule over chunks.
/// That sums stay in memory while the source goes by, block by block of targets as large as memory
/// allows, is ours: what is read is the source times the number of blocks, and in order.
/// Memory: the cache, and LayerSizes::WorkingBytes.
/// Errors: kInvalidArgument, features that do not fit the model; those of the store; kInterrupted.
Result<LayerwiseResult> RunLayerwise(const LayerwiseInput& input, const LayerwiseOptions& options,
                                     const JobControl& control);

/// Chunks [begin, end) of the array that a layer (counted from 0) writes.
struct LayerPart {
  std::uint32_t layer = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Computes a part of a job that another process runs with the same options except for memory and
/// threads. The job's log (InferenceLog::Read) gives the order of rows and the previous layer's
/// array. `progress.tell` is called for each chunk. Errors: those of RunLayerwise.
Result<InferLayerReport> RunLayerPart(const LayerwiseInput& input, const LayerwiseOptions& options,
                                      const LayerPart& part, ChunkProgress progress,
                                      const JobControl& control);

/// The reads of a layer, and the order in which it will write.
struct LayerReads {
  ArrayEntry source;
  std::uint64_t chunks = 0;        ///< of the source
  std::uint64_t cache_chunks = 0;  ///< chunks that the cache holds
  std::uint64_t requests = 0;
  std::uint64_t reads = 0;
  RowRule layout = RowRule::kStored;
};

/// Counts, by layer, exactly what RunLayerwise would report, without computing anything.
/// `options.output` is complete.
Result<std::vector<LayerReads>> PlanLayerwise(const GraphSnapshot& graph, const Model& model,
                                              const LayerwiseOptions& options,
                                              const JobControl& control);

/// Checks that `array` fits the model and the graph. Errors: kInvalidArgument, its columns are not
/// those that the model reads, or its rows are not those of the vertices.
Status CheckFeatures(const ArrayEntry& array, const Model& model, const GraphSnapshot& graph);

}  // namespace rhizome::inline internal
