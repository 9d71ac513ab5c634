#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rhizome/chunk_array.h"
#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "rhizome/graph.h"
#include "rhizome/graph_types.h"
#include "rhizome/job_report.h"
#include "rhizome/neighbor_sampling.h"
#include "rhizome/policy.h"
#include "rhizome/resource_options.h"
#include "rhizome/task_metrics.h"
#include "rhizome/train_options.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

enum class InferMode : std::uint8_t { kLayerwise, kSamplewise };

/// Experimental settings of layerwise inference. None of them changes the result.
struct InferTuning {
  PolicyKind cache = PolicyKind::kBelady;

  /// Serve the chunks of a block that are in memory before reading the others.
  bool cached_first = false;
  std::optional<std::uint64_t> cache_bytes = {};  ///< default: the rest of memory_bytes
  std::uint64_t block_rows = 0;                   ///< targets per block; 0: as many as memory holds

  /// Order of the rows between two layers; absent: chosen by counting reads.
  std::optional<RowRule> layout = {};
  std::optional<std::uint64_t> neighbor_cache_bytes = {};  ///< for lists on disk; default: none
};

/// Child processes that compute one range of a layer at a time each. They share memory and threads,
/// and produce the same bytes.
struct InferWorkers {
  /// Criterion by which a layer is cut into ranges.
  enum class Ranges : std::uint8_t {
    kLearned,  ///< predicted cost, if the predicted gain exceeds the model's error
    kEdges,    ///< number of edges; costs are learned anyway
  };

  std::uint32_t count = 0;  ///< 0: none, this process computes everything

  /// The command that starts a child. One argument is appended: the child's memory limit in bytes
  /// (0: no limit). The command must call GnnEntry::ServeInfer with the same options and that
  /// number, and must not use its standard streams itself.
  std::vector<std::string> command = {};

  /// File with costs of ranges, learned from earlier jobs and updated by this one (cost_model.h).
  /// It is read if it exists, and written after each layer. It affects how a layer is cut into
  /// ranges, but no byte of the result. Empty: costs are learned within this job only.
  Path costs = {};
  Ranges ranges = Ranges::kLearned;
};

/// The result that InferOptions::take receives: an array [vertices, columns] float32, by row. It is
/// borrowed for the call.
struct InferResult {
  const GraphSnapshot& graph;
  const ChunkArray& array;
  Task task = Task::kMulticlass;              ///< task for which the model was trained
  std::vector<std::string> class_names = {};  ///< of the model, by class; empty: no names
};

struct InferOptions {
  Path store = {};
  Path scratch;  ///< replaces the store's scratch folder (StoreOptions), if not empty

  /// Compute on a state that a reader holds until the job has begun (StoreOptions::at). The result
  /// is published as if the job had begun at that state: in the current generation, with vertices
  /// that were added since treated as new. Unset: the last commit.
  std::optional<StorePoint> at = {};
  Path model_file;

  /// The data that the model reads. The accuracy is reported if the store has labels and split.
  /// Layerwise mode rejects time constraints, and hops that walk different edge types.
  DataOptions data = {};
  InferMode mode = InferMode::kLayerwise;

  /// Number of neighbours drawn in each layer, the seeds' own first; empty: all neighbours in every
  /// layer.
  std::vector<std::int64_t> fanouts;

  std::uint64_t seed = 1;

  /// Store class scores instead of embeddings (the last hidden layer).
  bool scores = false;
  std::string out;  ///< name of the array that is published

  /// Receives the finished array instead of the store. Nothing is published then, `out` only names
  /// the scratch folder, and the chunks of a killed run are not kept.
  std::function<Status(const InferResult&)> take = {};
  bool new_version = false;  ///< publish as the next version of the array
  bool live = false;         ///< make out@live name the new version
  /// Then drop all versions except the newest `keep` ones and aliased ones; 0: keep all.
  std::uint64_t keep = 0;

  /// Time to wait for the writer's lock at the end. With 0, the job fails before its work if the
  /// store is open for writing.
  double wait_seconds = 0;

  /// Chunk rows of the result and of the arrays between layers, rounded up to a multiple of 128; 0:
  /// chosen automatically.
  std::uint64_t chunk_rows = 0;

  /// Rows of an inner chunk, if chunks of the result are shards; 0: no shards; kChosenInnerRows:
  /// chosen automatically.
  std::uint64_t inner_rows = 0;
  Codec codec{.kind = CodecKind::kBloscLz4, .level = 5};

  ResourceOptions resources = {};  ///< `io`: reader of lists on disk

  /// Compute only the rows that later commits can have changed since the newest version of `out`,
  /// if that was computed in the same way, and publish the next version. The result has the same
  /// bytes as a full run, except after a compaction (InferReport::kept_across_compaction).
  bool incremental = false;
  bool resume = false;        ///< continue a killed run of the same job
  InferWorkers workers = {};  ///< layerwise mode only, not incremental

  /// kCuda: the first CUDA device computes products, the CPU computes sums and attention. Numbers
  /// are close to the CPU's, but not equal. Layerwise mode only, without workers.
  ComputeOn device = ComputeOn::kCpu;

  /// Device memory for weights and rows, in bytes; default: half of the free memory.
  std::optional<std::uint64_t> device_memory_bytes = {};
  JobNote note = {};  ///< receives InferReport::ignored and InferReport::non_finite
  InferTuning tuning = {};
};

/// Reads, writes and times of computing a layer. They are summed over processes.
struct InferLayerCosts {
  std::uint64_t chunk_requests = 0;
  std::uint64_t chunk_reads = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;  ///< written by this run
  double plan_seconds = 0;          ///< counting reads before the layer
  /// Reading, verifying and decoding; sum of all threads, concurrent with the rest.
  double read_seconds = 0;
  double copy_seconds = 0;       ///< copying rows to the stage, concurrent with the rest
  double fill_seconds = 0;       ///< waiting for rows
  double model_seconds = 0;      ///< aggregation and products
  double sum_seconds = 0;        ///< part of model_seconds: sums over several windows
  double write_seconds = 0;      ///< on separate threads, concurrent with the rest
  std::uint64_t chunk_hits = 0;  ///< requests served from the cache, prefilled chunks too
  std::uint64_t vertices = 0;    ///< computed by this run
  std::uint64_t blocks = 0;      ///< groups of vertices that were computed together

  /// Returns the share of requests that hit the cache. Prefilled chunks count as hits although they
  /// were read; chunk_reads counts all reads.
  double hit_rate() const {
    return chunk_requests == 0
               ? 0
               : static_cast<double>(chunk_hits) / static_cast<double>(chunk_requests);
  }

  /// Same contract as RowReads::Each.
  template <typename Visit, typename... Costs>
  static void Each(const Visit& visit, Costs&... costs) {
    visit("chunk_requests", costs.chunk_requests...);
    visit("chunk_reads", costs.chunk_reads...);
    visit("bytes_read", costs.bytes_read...);
    visit("bytes_written", costs.bytes_written...);
    visit("plan_seconds", costs.plan_seconds...);
    visit("read_seconds", costs.read_seconds...);
    visit("copy_seconds", costs.copy_seconds...);
    visit("fill_seconds", costs.fill_seconds...);
    visit("model_seconds", costs.model_seconds...);
    visit("sum_seconds", costs.sum_seconds...);
    visit("write_seconds", costs.write_seconds...);
    visit("chunk_hits", costs.chunk_hits...);
    visit("vertices", costs.vertices...);
    visit("blocks", costs.blocks...);
  }
};

/// The ranges of rows that workers received. Rows are in the order in which the layer is computed.
struct InferRanges {
  bool learned = false;             ///< equal predicted cost; false: equal numbers of edges
  std::string because;              ///< a sentence: the criterion and its reason
  std::string model;                ///< name of the layer's cost model
  std::vector<std::uint64_t> cuts;  ///< [ranges + 1] rows; chunks finished before count as 0

  /// Weights of the cost model after this layer, in CPU seconds.
  std::vector<std::pair<std::string, double>> weights;

  /// [ranges] CPU seconds: predicted before the layer began (empty: the model had no data yet), and
  /// measured by workers. -1: not measured, because a worker died.
  std::vector<double> predicted;
  std::vector<double> measured;

  /// Set if the model had data. `predicted_gain`: cost of the most expensive range of equal edges,
  /// divided by the cost of the most expensive range of equal predicted cost, minus 1. `doubt`: the
  /// model's own error, which the gain had to exceed.
  std::optional<double> predicted_gain;
  std::optional<double> doubt;

  /// Set if the parts of ranges that were measured separately had predictions. `error`: mean
  /// absolute error, relative to the mean cost. `r2`: share of the variance that was predicted.
  std::optional<double> error;
  std::optional<double> r2;
};

struct InferLayerReport : InferLayerCosts {
  /// CPU seconds of a part of the layer. Rows are in the order of computation.
  struct Cost {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    double cpu_seconds = 0;
  };
  std::vector<Cost> costs;
  std::optional<InferRanges> ranges;  ///< only with workers

  /// Row order of the array that the layer wrote, and the candidates that were compared, by the
  /// bytes of chunks that this layer and the next one would read.
  struct Layout {
    std::string name;
    std::uint64_t bytes = 0;
  };
  std::string layout = "stored";
  std::vector<Layout> layouts;

  std::string kind;                   ///< kind of network
  std::uint64_t passes = 0;           ///< passes over the vertices, each in ascending order of rows
  std::uint64_t projected_bytes = 0;  ///< unused, always 0
};

/// The device of an inference.
struct InferDeviceReport {
  std::string name;
  int sm = 0;  ///< compute capability, 90 for 9.0
  std::uint64_t memory_bytes = 0;
  std::uint64_t batch_rows = 0;  ///< rows that are multiplied at once
  std::uint64_t upload_bytes = 0;
  std::uint64_t download_bytes = 0;
};

struct InferReport {
  std::optional<InferDeviceReport> device;  ///< set if a device computed products
  std::vector<InferLayerReport> layers;

  /// For models with an array for each vertex type, in layerwise mode: the pass that computes the
  /// rows of the first layer.
  std::optional<InferLayerCosts> inputs;
  std::string kind;  ///< kind of network
  std::uint64_t vertices = 0;
  double seconds = 0;
  double cpu_seconds = 0;  ///< all threads of this process, without workers
  double vertices_per_second = 0;
  std::optional<double> valid_accuracy;
  std::optional<double> test_accuracy;
  std::uint64_t resumed_chunks = 0;

  /// Number of vertices whose row was reused from the previous version (incremental), and why no
  /// version could be reused.
  std::uint64_t kept = 0;
  std::string full_because;

  /// The reused rows were computed before a compaction. They can differ from the rows of a full run
  /// by rounding, because a compaction may change the order in which neighbours are summed.
  bool kept_across_compaction = false;
  std::optional<ListReadsReport> list_reads;  ///< only if lists are on disk
  std::uint64_t base_memory_bytes = 0;        ///< memory of this process before the job

  /// Sum of the peak memory of the job's processes: this one and the workers. Memory that they
  /// share, such as the code of libraries, is counted for each of them.
  std::uint64_t peak_memory_bytes = 0;
  std::uint64_t own_peak_memory_bytes = 0;
  std::vector<std::uint64_t> worker_peak_memory_bytes;

  std::string array;

  /// Rows of an array that contain NaN or infinite values, without rows of deleted vertices.
  struct NonFinite {
    std::string array;
    std::uint64_t rows = 0;
    ExternalId first;  ///< external id of the one with the lowest vertex number
  };

  /// Rows of the result, followed by rows of the features if these have any. Empty: the result has
  /// no such rows.
  std::vector<NonFinite> non_finite;
  std::vector<std::string> ignored;      ///< parts of the graph that were ignored (IgnoredFacts)
  Direction direction = Direction::kIn;  ///< direction of the lists that were walked
  bool edge_weights = false;             ///< whether layers used them

  /// An earlier run had already published exactly this array (InferOptions::resume), so this run
  /// computed nothing.
  bool published_before = false;
};

/// The reads of a layer, counted before anything is computed (cache/layout/pass_plan.h).
struct InferPlanLayer {
  std::string source;  ///< the array that the layer reads
  std::uint64_t chunk_rows = 0;
  std::uint64_t chunks = 0;
  std::uint64_t cache_chunks = 0;  ///< chunks that the memory cache holds

  /// Figures of Infer over a local store: its chunk_requests and chunk_reads, and the order of the
  /// rows that the layer writes.
  std::uint64_t chunk_requests = 0;
  std::uint64_t chunk_reads = 0;
  std::string layout = "stored";

  /// Figures for workers with separate disk caches, for one layout.
  struct Layout {
    std::string name;
    std::uint64_t chunk_requests = 0;
    std::uint64_t chunk_reads = 0;
  };
  /// Number of chunks that the workers' disk caches hold; they are filled beforehand.
  std::uint64_t worker_chunks = 0;
  std::vector<Layout> layouts;              ///< the same for all workers
  std::vector<std::string> chosen_layouts;  ///< by worker
  std::uint64_t chosen_requests = 0;
  std::uint64_t chosen_reads = 0;
};

struct InferPlan {
  std::vector<InferPlanLayer> layers;
  std::uint64_t vertices = 0;
  std::uint64_t workers = 0;
  std::uint64_t cache_bytes = 0;  ///< size of the memory cache
  double seconds = 0;             ///< time of counting
};

}  // namespace rhizome
