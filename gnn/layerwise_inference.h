#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rhizome/gnn/inference_log.h"
#include "rhizome/gnn/labels.h"
#include "rhizome/gnn/layer_output.h"
#include "rhizome/gnn/model.h"
#include "rhizome/index/graph.h"
#include "rhizome/storage/job_control.h"

namespace rhizome {

struct LayerwiseOptions {
  std::string features;
  std::vector<std::int64_t> fanouts;  ///< one a layer; empty: all neighbours
  ArrayEntry output;                  ///< name, codec and attributes of the last layer's array
  bool scores = false;                ///< the output holds class scores instead of embeddings
  bool write_output = true;           ///< false: only the accuracy is wanted
  PolicyKind policy = PolicyKind::kBelady;
  std::uint64_t cache_bytes = 0;
  std::uint64_t block_rows = 1024;
  std::uint64_t chunk_rows = 0;  ///< of every array that is written; 0: chosen
  std::uint64_t seed = 1;
  std::uint32_t threads = 1;
  std::shared_ptr<const NeighborSource> neighbors = nullptr;  ///< nullptr: the graph, in memory
};

struct LayerwiseResult {
  std::vector<InferLayerReport> layers;  ///< of layers that were computed now; zeros for the others
  AccuracyCounts accuracy;               ///< where labels were given
  std::uint64_t resumed_chunks = 0;
  WrittenArray output;
};

/// Computes every vertex layer by layer: K passes over all rows in order, each reading the array of
/// the layer before chunk by chunk and writing its own below `scratch`. No vertex is computed twice
/// and no list of neighbour rows is ever held whole: a chunk is added to all sums that need it and
/// let go.
///
/// A sum is taken in ascending order of rows, by one thread, for tiles of fixed rows; so the bytes
/// of the result are the same for any policy, cache, block size and number of threads, and for a
/// run that was killed and resumed (`log`, may be null).
///
/// Source: layerwise inference as in GLISP (section III-E), with Belady's schedule over chunks.
/// Memory: the cache, a few chunks beside it, and two rows of floats for each row of a block.
/// Errors: kInvalidArgument, features that do not fit the model or a wrong number of fanouts; those
/// of the store; kInterrupted.
Result<LayerwiseResult> RunLayerwise(const Graph& graph, const Model& model, const Labels* labels,
                                     const Path& scratch, InferenceLog* log,
                                     const LayerwiseOptions& options, const JobControl& control);

/// The array that inference writes: [vertices, hidden] or [vertices, classes] float32.
/// Errors: kInvalidArgument, not one fanout a layer, or rows that are too wide.
Result<ArrayEntry> MakeOutputEntry(const Graph& graph, const Model& model,
                                   const LayerwiseOptions& options);

/// The array that a layer (from 0) writes. `options.output` is complete, as MakeOutputEntry makes
/// it.
ArrayEntry LayerEntry(const Graph& graph, const Model& model, std::uint32_t layer,
                      const LayerwiseOptions& options);

/// Errors: kInvalidArgument, the array's columns are not what the model reads.
Status CheckFeatures(const ArrayEntry& array, const Model& model, const Graph& graph);

}  // namespace rhizome
