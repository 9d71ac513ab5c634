#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rhizome/cache/inference_log.h"
#include "rhizome/cache/labels.h"
#include "rhizome/cache/layer_output.h"
#include "rhizome/cache/pass_layout.h"
#include "rhizome/gnn/infer_options.h"
#include "rhizome/gnn/model.h"
#include "rhizome/index/graph.h"
#include "rhizome/storage/job_control.h"

namespace rhizome::inline internal {

class InferenceWorkers;

struct LayerwiseOptions {
  std::string features;
  std::vector<std::int64_t> fanouts;  ///< one a layer; empty: all neighbours
  ArrayEntry output;                  ///< name, codec and attributes of the last layer's array
  bool scores = false;                ///< the output holds class scores instead of embeddings
  bool write_output = true;           ///< false: only the accuracy is wanted

  /// Rows of the last layer that are wanted, ascending and at least one; absent: all. The output
  /// then has no others.
  std::optional<std::vector<std::uint32_t>> targets = {};

  /// In which order the rows of the arrays between layers stand; absent: chosen by counting.
  /// Without a log: stored. Does not change results.
  std::optional<RowRule> layout = RowRule::kStored;
  std::uint64_t layout_bytes = ~std::uint64_t{0};  ///< memory for counting, before a cache is taken
  PolicyKind policy = PolicyKind::kBelady;
  std::uint64_t cache_bytes = 0;
  bool cached_first = false;  ///< ChunkReaderOptions

  /// Targets that are computed together: each block reads every chunk that it needs once, so the
  /// fewer there are the less is read. 0: as many as `block_bytes` hold. Does not change results.
  std::uint64_t block_rows = 0;
  std::uint64_t block_bytes = std::uint64_t{64} << 20;  ///< for the sums and lists of a block

  /// Of the rows that a window of a block works on, at least a row; there are two such stages. Does
  /// not change results.
  std::uint64_t stage_bytes = std::uint64_t{8} << 20;

  /// Of decoded chunks that wait to be staged, at least two; ChunkReader::WorkingBytes.
  std::uint64_t ahead_bytes = std::uint64_t{16} << 20;
  std::uint64_t chunk_rows = 0;  ///< of every array that is written; 0: chosen
  std::uint64_t seed = 1;
  std::uint32_t threads = 1;
  std::uint32_t writers = 1;  ///< threads that encode and write chunks
  bool direct = false;        ///< chunks are not read through the page cache
  std::shared_ptr<const NeighborSource> neighbors = nullptr;  ///< nullptr: the graph, in memory

  /// Processes that compute the layers' chunks; nullptr: this one does. With a log, and without
  /// `targets`. Borrowed. Does not change results.
  InferenceWorkers* workers = nullptr;
};

struct LayerwiseResult {
  std::vector<InferLayerReport> layers;  ///< of layers that were computed now; zeros for the others
  AccuracyCounts accuracy;               ///< where labels were given
  std::uint64_t resumed_chunks = 0;
  WrittenArray output;
};

/// Computes every vertex layer by layer: K passes over all rows in order, each reading the array of
/// the layer before chunk by chunk and writing its own below `scratch`. No vertex is computed
/// twice.
///
/// The rows that a block of targets needs are brought together on a stage, as many as it holds at a
/// time, and summed up in ascending order of rows, a sum by one thread; a row's product depends on
/// that row alone. So the bytes of the result are the same for any policy, cache, stage, block size
/// and number of threads, and for a run that was killed and resumed (`log`, may be null).
///
/// Source: layerwise inference as in GLISP (section III-D), with Belady's schedule over chunks.
/// That sums stay in memory while the source goes by, block by block of targets as large as memory
/// allows, is ours: what is read is the source times the number of blocks, and in order.
/// Memory: the cache, and WorkingBytes.
/// Errors: kInvalidArgument, features that do not fit the model or a wrong number of fanouts; those
/// of the store; kInterrupted.
Result<LayerwiseResult> RunLayerwise(const GraphSnapshot& graph, const Model& model,
                                     const ClassLabels* labels, const Path& scratch,
                                     InferenceLog* log, const LayerwiseOptions& options,
                                     const JobControl& control);

/// Chunks [begin, end) of what a layer (from 0) writes.
struct LayerPart {
  std::uint32_t layer = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Computes a part of a job that another process runs with the same options but for memory and
/// threads: its log (InferenceLog::Read) says in which order rows stand and where the layer before
/// is; `progress.tell` is told of each chunk. Errors: those of RunLayerwise.
Result<InferLayerReport> RunLayerPart(const GraphSnapshot& graph, const Model& model,
                                      const ClassLabels* labels, const Path& scratch,
                                      InferenceLog& log, const LayerwiseOptions& options,
                                      const LayerPart& part, ChunkProgress progress,
                                      const JobControl& control);

/// What a layer will read, and in which order it will write.
struct LayerReads {
  ArrayEntry source;
  std::uint64_t chunks = 0;        ///< of the source
  std::uint64_t cache_chunks = 0;  ///< that the cache holds
  std::uint64_t requests = 0;
  std::uint64_t reads = 0;
  RowRule layout = RowRule::kStored;
};

/// Counts, by layer, exactly what RunLayerwise would report, without computing anything.
Result<std::vector<LayerReads>> PlanLayerwise(const GraphSnapshot& graph, const Model& model,
                                              const ArrayEntry& features,
                                              const LayerwiseOptions& options,
                                              const JobControl& control);

/// Targets of a block of a layer (from 0) that reads `source`, at most.
std::uint64_t BlockRows(const GraphSnapshot& graph, const Model& model, const ArrayEntry& source,
                        std::uint32_t layer, const LayerwiseOptions& options);

/// A block ends sooner where its targets have more edges: lists of vertices of many edges that
/// stand together, as in PDS order, take no more memory than others.
std::uint64_t BlockEdgeLimit(const GraphSnapshot& graph, const Model& model,
                             const ArrayEntry& source, std::uint32_t layer,
                             const LayerwiseOptions& options);

/// Memory of the widest layer beside the cache, but for lists on disk.
std::uint64_t WorkingBytes(const GraphSnapshot& graph, const Model& model,
                           const ArrayEntry& features, const LayerwiseOptions& options);

/// The largest array that a layer reads, decoded.
std::uint64_t CacheableBytes(const GraphSnapshot& graph, const Model& model,
                             const ArrayEntry& features, const LayerwiseOptions& options);

/// The array that inference writes: [vertices, hidden] or [vertices, classes] float32.
/// Errors: kInvalidArgument, not one fanout a layer, or rows that are too wide.
Result<ArrayEntry> MakeOutputEntry(const GraphSnapshot& graph, const Model& model,
                                   const LayerwiseOptions& options);

/// The array that a layer (from 0) writes. `options.output` is complete, as MakeOutputEntry makes
/// it.
ArrayEntry LayerEntry(const GraphSnapshot& graph, const Model& model, std::uint32_t layer,
                      const LayerwiseOptions& options);

/// Errors: kInvalidArgument, the array's columns are not what the model reads.
Status CheckFeatures(const ArrayEntry& array, const Model& model, const GraphSnapshot& graph);

}  // namespace rhizome::inline internal
