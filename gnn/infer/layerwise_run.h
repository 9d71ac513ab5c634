#pragma once

#include <cstdint>
#include <vector>

#include "cache/blocks/inference_log.h"
#include "cache/blocks/layer_output.h"
#include "cache/feed/labels.h"
#include "cache/feed/vertex_score_sink.h"
#include "cache/layout/pass_layout.h"
#include "gnn/infer/layer_sharing.h"
#include "gnn/infer/layerwise_options.h"
#include "gnn/models/model.h"
#include "rhizome/graph.h"
#include "rhizome/infer_options.h"
#include "rhizome/job_control.h"

namespace rhizome {
inline namespace internal {

class DeviceTiles;
class InferenceWorkers;

/// The input of a layerwise run, and its scratch folder. All references and pointers are borrowed.
struct LayerwiseInput {
  const GraphSnapshot& graph;
  const Model& model;
  const ClassLabels* labels = nullptr;  ///< null: no accuracy is counted
  VertexScoreSink* sink = nullptr;      ///< receives the scores of all rows, if not null
  Path scratch;                         ///< a folder for the arrays of the layers
  InferenceLog* log = nullptr;          ///< null: a killed run starts over

  /// Processes that compute the chunks of the layers; null: this process does. Requires a log, and
  /// excludes LayerwiseOptions::targets. Does not change results.
  InferenceWorkers* workers = nullptr;

  /// Device that computes the products; null: the CPU does. Excludes workers.
  DeviceTiles* device = nullptr;

  /// Connection to other processes that compute parts of each layer; null: this process computes
  /// everything. Excludes a log, workers, LayerwiseOptions::targets and
  /// LayerwiseOptions::write_output. Requires LayerwiseOptions::chunk_rows, with the same value in
  /// all processes. The last layer's array then has only the chunks of this process, and the sink
  /// receives the scores of their rows.
  LayerSharing* sharing = nullptr;
};

struct LayerwiseResult {
  std::vector<InferLayerReport> layers;  ///< of layers computed in this run; zeros for others
  InferLayerCosts inputs;                ///< of the input pass, if this run computed it
  AccuracyCounts accuracy;               ///< if labels were given
  std::uint64_t resumed_chunks = 0;
  std::uint64_t non_finite_rows = 0;  ///< of the output, if it is written (LayerOutput)
  WrittenArray output;
};

/// Computes every vertex layer by layer. With inputs by type, an input pass (InputPass) writes the
/// array that the first layer reads; with workers, this process runs it. Each layer is one pass
/// over all rows in order: it reads the array of the previous layer chunk by chunk and writes its
/// own array below `scratch`. No vertex is computed twice.
///
/// The rows that a block of targets needs are copied to a stage, one stageful at a time, and summed
/// in ascending order of rows. Each sum is computed by one thread, and a row's product depends only
/// on that row. So the bytes of the result are the same for any cache policy, cache size, stage,
/// block size and number of threads, and for a run that was killed and resumed from its log.
///
/// Source: layerwise inference as in GLISP (section III-D), with Belady's schedule over chunks.
/// Unlike GLISP, sums remain in memory while the source is scanned, for blocks of targets as large
/// as memory allows: the bytes read are the source's size times the number of blocks, in sequential
/// order.
/// Memory: the cache, and LayerSizes::WorkingBytes.
/// Errors: kInvalidArgument, the features do not fit the model; any error of the store;
/// kInterrupted.
Result<LayerwiseResult> RunLayerwise(const LayerwiseInput& input, const LayerwiseOptions& options,
                                     const JobControl& control);

/// Chunks [begin, end) of the array that a layer (counted from 0) writes.
struct LayerPart {
  std::uint32_t layer = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Computes a part of a job that another process runs with the same options, except for memory and
/// threads. The order of rows and the previous layer's array come from the job's log
/// (InferenceLog::Read). Calls `progress.tell` for each chunk. Errors: see RunLayerwise.
Result<InferLayerReport> RunLayerPart(const LayerwiseInput& input, const LayerwiseOptions& options,
                                      const LayerPart& part, ChunkProgress progress,
                                      const JobControl& control);

/// The reads of a layer, and the row order of the array that it writes.
struct LayerReads {
  ArrayEntry source;
  std::uint64_t chunks = 0;        ///< of the source
  std::uint64_t cache_chunks = 0;  ///< chunks that the cache holds
  std::uint64_t requests = 0;
  std::uint64_t reads = 0;
  RowRule layout = RowRule::kStored;
};

/// Computes, for each layer, exactly the figures that RunLayerwise would report, without running
/// it. `options.output` must be complete.
Result<std::vector<LayerReads>> PlanLayerwise(const GraphSnapshot& graph, const Model& model,
                                              const LayerwiseOptions& options,
                                              const JobControl& control);

/// Checks that `array` fits the model and the graph. Errors: kInvalidArgument, its number of
/// columns differs from the model's inputs, or its number of rows from the number of vertices.
Status CheckFeatures(const ArrayEntry& array, const Model& model, const GraphSnapshot& graph);

}  // namespace internal
}  // namespace rhizome
