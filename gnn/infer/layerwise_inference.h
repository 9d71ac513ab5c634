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

namespace rhizome {

class InferenceWorkers;

struct LayerwiseOptions {
  std::string features;
  std::vector<std::int64_t> fanouts;  ///< one for each layer; empty: all neighbours
  ArrayEntry output;                  ///< name, codec and attributes of the last layer's array
  bool scores = false;                ///< the output holds class scores instead of embeddings
  bool write_output = true;           ///< false: only the accuracy is computed

  /// The rows of the last layer that are wanted, ascending and at least one; the output has only
  /// these. Absent: all rows.
  std::optional<std::vector<std::uint32_t>> targets = {};

  /// Order of the rows in the arrays between layers; absent: chosen by counting. Without a log it
  /// is the stored order. Does not change results.
  std::optional<RowRule> layout = RowRule::kStored;
  /// memory for counting, before a cache is allocated
  std::uint64_t layout_bytes = ~std::uint64_t{0};
  PolicyKind policy = PolicyKind::kBelady;
  std::uint64_t cache_bytes = 0;
  bool cached_first = false;  ///< ChunkReaderOptions

  /// Number of targets that are computed together. Each block reads every chunk that it needs once,
  /// so fewer blocks read less. 0: as many as `block_bytes` hold. Does not change results.
  std::uint64_t block_rows = 0;
  std::uint64_t block_bytes = std::uint64_t{64} << 20;  ///< for the sums and lists of a block

  /// Bytes of the rows in a window of a block, at least one row; there are two such stages. Does
  /// not change results.
  std::uint64_t stage_bytes = std::uint64_t{8} << 20;

  /// Bytes of decoded chunks that wait to be staged, at least two chunks; see
  /// ChunkReader::WorkingBytes.
  std::uint64_t ahead_bytes = std::uint64_t{16} << 20;
  std::uint64_t chunk_rows = 0;  ///< of every array that is written; 0: chosen
  std::uint64_t seed = 1;
  std::uint32_t threads = 1;
  std::uint32_t writers = 1;  ///< threads that encode and write chunks
  bool direct = false;        ///< read chunks past the page cache
  std::shared_ptr<const NeighborSource> neighbors = nullptr;  ///< null: the graph, in memory

  /// Processes that compute the layers' chunks; null: this one computes them. Needs a log, and no
  /// `targets`. Borrowed. Does not change results.
  InferenceWorkers* workers = nullptr;
};

struct LayerwiseResult {
  std::vector<InferLayerReport> layers;  ///< of layers computed in this run; zeros for others
  AccuracyCounts accuracy;               ///< if labels were given
  std::uint64_t resumed_chunks = 0;
  WrittenArray output;
};

/// Computes every vertex layer by layer, in K passes over all rows in order. Each pass reads the
/// previous layer's array chunk by chunk and writes its own below `scratch`. No vertex is computed
/// twice.
///
/// The rows that a block of targets needs are copied to a stage, as many as it holds at a time, and
/// summed in ascending order of rows; one thread computes a sum, and a row's product depends on
/// that row alone. So the bytes of the result are the same for any policy, cache, stage, block size
/// and number of threads, and for a run that was killed and resumed (`log`, may be null).
///
/// Source: layerwise inference as in GLISP (section III-D), with Belady's schedule over chunks.
/// Ours is that sums stay in memory while the source is read, for blocks of targets as large as
/// memory allows, so that the source is read sequentially, once for each block.
/// Memory: the cache, and WorkingBytes.
/// Errors: kInvalidArgument, features that do not fit the model, or a wrong number of fanouts;
/// those of the store; kInterrupted.
Result<LayerwiseResult> RunLayerwise(const GraphSnapshot& graph, const Model& model,
                                     const ClassLabels* labels, const Path& scratch,
                                     InferenceLog* log, const LayerwiseOptions& options,
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
Result<InferLayerReport> RunLayerPart(const GraphSnapshot& graph, const Model& model,
                                      const ClassLabels* labels, const Path& scratch,
                                      InferenceLog& log, const LayerwiseOptions& options,
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

/// Counts, for each layer, exactly what RunLayerwise would report, without computing anything.
Result<std::vector<LayerReads>> PlanLayerwise(const GraphSnapshot& graph, const Model& model,
                                              const ArrayEntry& features,
                                              const LayerwiseOptions& options,
                                              const JobControl& control);

/// Returns the largest number of targets in a block of a layer (counted from 0) that reads
/// `source`.
std::uint64_t BlockRows(const GraphSnapshot& graph, const Model& model, const ArrayEntry& source,
                        std::uint32_t layer, const LayerwiseOptions& options);

/// Returns the largest number of edges in a block. A block ends early if its targets have more, so
/// that lists of adjacent high-degree vertices, as in PDS order, take no more memory than others.
std::uint64_t BlockEdgeLimit(const GraphSnapshot& graph, const Model& model,
                             const ArrayEntry& source, std::uint32_t layer,
                             const LayerwiseOptions& options);

/// Returns the memory of the widest layer beside the cache, without that of lists on disk.
std::uint64_t WorkingBytes(const GraphSnapshot& graph, const Model& model,
                           const ArrayEntry& features, const LayerwiseOptions& options);

/// Returns the decoded size of the largest array that a layer reads.
std::uint64_t CacheableBytes(const GraphSnapshot& graph, const Model& model,
                             const ArrayEntry& features, const LayerwiseOptions& options);

/// Returns the entry of the array that inference writes: [vertices, hidden] or [vertices, classes]
/// float32.
/// Errors: kInvalidArgument, not one fanout for each layer, or rows that are too wide.
Result<ArrayEntry> MakeOutputEntry(const GraphSnapshot& graph, const Model& model,
                                   const LayerwiseOptions& options);

/// Returns the entry of the array that a layer (counted from 0) writes. `options.output` must be
/// complete, as MakeOutputEntry makes it.
ArrayEntry LayerEntry(const GraphSnapshot& graph, const Model& model, std::uint32_t layer,
                      const LayerwiseOptions& options);

/// Checks that `array` fits the model and the graph. Errors: kInvalidArgument, its columns are not
/// those that the model reads, or its rows are not those of the vertices.
Status CheckFeatures(const ArrayEntry& array, const Model& model, const GraphSnapshot& graph);

}  // namespace rhizome
