#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rhizome/cache/job_report.h"
#include "rhizome/cache/neighbor_sampling.h"
#include "rhizome/cache/pass_layout.h"
#include "rhizome/cache/policy.h"
#include "rhizome/cache/task_metrics.h"
#include "rhizome/gnn/compute_on.h"
#include "rhizome/index/external_id.h"
#include "rhizome/index/graph.h"
#include "rhizome/index/graph_types.h"
#include "rhizome/storage/chunk_array.h"
#include "rhizome/storage/codec.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/io_queue.h"
#include "rhizome/storage/store_point.h"

namespace RHIZOME_API rhizome {

enum class InferMode : std::uint8_t { kLayerwise, kSamplewise };

/// How a layerwise inference is computed: for experiments. None of it changes the result.
struct InferTuning {
  PolicyKind cache = PolicyKind::kBelady;

  /// Serve the chunks of a block that are in memory before the others are read.
  bool cached_first = false;
  std::optional<std::uint64_t> cache_bytes = {};  ///< default: what memory_bytes leaves
  std::uint64_t block_rows = 0;  ///< targets of a block; 0: as many as memory holds

  /// Order of the rows between two layers; absent: chosen by counting.
  std::optional<RowRule> layout = {};
  std::optional<std::uint64_t> neighbor_cache_bytes = {};  ///< of lists on disk; default: none
  IoMaker io = IoMaker::kAuto;                             ///< reader of lists on disk
};

/// Child processes that compute a partition at a time each, share memory and threads, and make the
/// same bytes.
struct InferWorkers {
  /// Ranges of a layer are cut by one of these.
  enum class Ranges : std::uint8_t {
    kLearned,  ///< by learned costs, where these promise more than they are usually off by
    kEdges,    ///< by numbers of edges; costs are learned all the same
  };

  std::uint32_t count = 0;  ///< 0: none, this process does it all

  /// The command that starts a child, to which one argument is added: the bytes of memory that it
  /// may take (0: no limit). It must call GnnEntry::ServeInfer with the same options and that
  /// number, and leave its standard streams alone.
  std::vector<std::string> command = {};

  /// A file of costs of ranges, learned from earlier jobs and kept up by this one (cost_model.h):
  /// read if it is there, and written after each layer. What it holds decides how a layer is cut
  /// into ranges, and changes no byte of the result. Empty: costs are learned within the job alone.
  Path costs = {};
  Ranges ranges = Ranges::kLearned;
};

/// The result that InferOptions::take is given: an array [vertices, columns] float32, by row. It is
/// borrowed for the call.
struct InferResult {
  const GraphSnapshot& graph;
  const ChunkArray& array;
  Task task = Task::kMulticlass;  ///< that the model was trained for
};

struct InferOptions {
  Path store;
  Path scratch;  ///< replaces the store's scratch folder (StoreOptions), if not empty

  /// Compute on the state that somebody holds until the job has begun (StoreOptions::at). The
  /// result is published as that of a job that began then: in the generation of the day, and
  /// vertices that came since have the rows of new ones. Unset: the last commit.
  std::optional<StorePoint> at = {};
  Path model_file;
  std::string features = "feat";
  std::string labels = "label";  ///< accuracy is reported if the store has labels and split
  std::string split = "split";
  InferMode mode = InferMode::kLayerwise;

  /// Neighbours drawn in each layer, the seeds' own first; empty: all neighbours in every layer.
  std::vector<std::int64_t> fanouts;

  /// How they are drawn; as in TrainOptions. Layerwise, hops that walk different edge types are
  /// refused, and times.
  NeighborSampling sampling = {};
  std::optional<bool> edge_weights = {};  ///< as TrainOptions::edge_weights
  std::uint64_t seed = 1;

  /// Store class scores instead of embeddings (the last hidden layer).
  bool scores = false;
  std::string out;  ///< name of the array that is published

  /// Given the finished array instead of the store: nothing is published then, `out` only names the
  /// scratch folder, and what a killed run left is not kept.
  std::function<Status(const InferResult&)> take = {};
  bool new_version = false;  ///< publish the next version if there is such an array
  bool live = false;         ///< and let out@live name it at once
  /// then drop all versions except the newest so many and aliased ones; 0: none
  std::uint64_t keep = 0;

  /// Rows of a chunk of the result and of the arrays between layers, rounded up to 128; 0: chosen.
  std::uint64_t chunk_rows = 0;

  /// Rows of an inner chunk, if chunks of the result are shards; 0: they are not; kChosenInnerRows:
  /// chosen.
  std::uint64_t inner_rows = 0;
  Codec codec{.kind = CodecKind::kBloscLz4, .level = 5};

  /// Memory limit of the whole process beyond its bare footprint, in bytes; 0: no limit.
  std::uint64_t memory_bytes = 0;
  std::uint32_t threads = 1;

  /// kDirect: neighbour lists stay on disk.
  TopologyPlace topology = TopologyPlace::kMemory;

  /// Compute only what later commits can have changed since the newest version of `out`, if that
  /// was computed in the same way, and publish the next version.
  bool incremental = false;
  bool resume = false;        ///< continue with what a killed run of the same job left
  InferWorkers workers = {};  ///< layerwise, not incremental

  /// kCuda: products are computed on the first CUDA device, sums and attention on the processor.
  /// Numbers are near the processor's, not the same. Layerwise, without workers.
  ComputeOn device = ComputeOn::kCpu;

  /// Memory of the device for weights and rows, in bytes; default: half of what is free.
  std::optional<std::uint64_t> device_memory_bytes = {};
  JobNote note = {};  ///< told InferReport::ignored and InferReport::non_finite
  InferTuning tuning = {};
};

/// The reads, writes and times of computing a layer; they add up over processes.
struct InferLayerCosts {
  std::uint64_t chunk_requests = 0;
  std::uint64_t chunk_reads = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;  ///< written by this run
  double plan_seconds = 0;          ///< counting what will be read, beforehand
  /// reading, verifying and decoding, of all threads, in parallel with the rest
  double read_seconds = 0;
  double copy_seconds = 0;       ///< copying rows to the stage, in parallel with the rest
  double fill_seconds = 0;       ///< waiting for rows
  double model_seconds = 0;      ///< aggregation and products
  double sum_seconds = 0;        ///< of model_seconds: sums over more than one window
  double write_seconds = 0;      ///< on threads of its own, in parallel with the rest
  std::uint64_t chunk_hits = 0;  ///< of the requests, in the cache; prefilled ones too
  std::uint64_t vertices = 0;    ///< computed; those of an earlier run not among them
  std::uint64_t blocks = 0;      ///< groups of vertices that were computed together

  /// Returns the share of the requests that are chunk_hits. Prefilled chunks are among them
  /// although they were read: chunk_reads has all that was read.
  double hit_rate() const {
    return chunk_requests == 0
               ? 0
               : static_cast<double>(chunk_hits) / static_cast<double>(chunk_requests);
  }

  /// As RowReads::Each.
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

/// The ranges of rows, in the order in which a layer is computed, that workers were given.
struct InferRanges {
  bool learned = false;             ///< of equal predicted cost; else of equal numbers of edges
  std::string because;              ///< of which, and why: a sentence without a full stop
  std::string model;                ///< the name of the layer's cost model
  std::vector<std::uint64_t> cuts;  ///< [ranges + 1] rows; chunks that were done before count as 0
  std::vector<std::pair<std::string, double>> weights;  ///< CPU seconds, after this layer

  /// [ranges] CPU seconds: as the model predicted them before the layer was begun (empty: it knew
  /// nothing yet), and as workers measured them. -1: not measured, as a worker died.
  std::vector<double> predicted;
  std::vector<double> measured;

  /// If the model knew something: the predicted gain of its cut, which is the cost of the largest
  /// range of equal edges over that of the largest of equal predicted cost, less 1; and what that
  /// had to exceed, the model's own error.
  std::optional<double> predicted_gain;
  std::optional<double> doubt;

  /// The parts of ranges that were measured on their own, if they were predicted, have this mean
  /// absolute error as a share of their mean, and this share of their variance was predicted.
  std::optional<double> error;
  std::optional<double> r2;
};

struct InferLayerReport : InferLayerCosts {
  /// CPU seconds of parts of the layer, by row in the order of computation.
  struct Cost {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    double cpu_seconds = 0;
  };
  std::vector<Cost> costs;
  std::optional<InferRanges> ranges;  ///< only with workers

  /// The order of the rows that the layer wrote, and the candidates that were counted: bytes of
  /// chunks that this layer and the next would read.
  struct Layout {
    std::string name;
    std::uint64_t bytes = 0;
  };
  std::string layout = "stored";
  std::vector<Layout> layouts;

  std::string kind;                   ///< of the layer, or samplewise of all of them
  std::uint64_t passes = 0;           ///< over its vertices, each in ascending order of rows
  std::uint64_t projected_bytes = 0;  ///< of projected rows that it wrote as an array of its own
};

/// The device of an inference.
struct InferDeviceReport {
  std::string name;
  int sm = 0;  ///< compute capability, 90 for 9.0
  std::uint64_t memory_bytes = 0;
  std::uint64_t batch_rows = 0;  ///< that are multiplied at once
  std::uint64_t upload_bytes = 0;
  std::uint64_t download_bytes = 0;
};

struct InferReport {
  std::optional<InferDeviceReport> device;  ///< if one computed products
  std::vector<InferLayerReport> layers;
  std::string kind;  ///< of the network
  std::uint64_t vertices = 0;
  double seconds = 0;
  double cpu_seconds = 0;  ///< of all threads, without workers
  double vertices_per_second = 0;
  std::optional<double> valid_accuracy;
  std::optional<double> test_accuracy;
  std::uint64_t resumed_chunks = 0;

  /// Number of vertices whose row was taken from the previous version (incremental), and why none
  /// was.
  std::uint64_t kept = 0;
  std::string full_because;
  std::optional<ListReadsReport> list_reads;  ///< only if lists are on disk
  std::uint64_t base_memory_bytes = 0;        ///< of this process, before the job

  /// The sum over the processes of the job, this one and the workers, of the peak memory of each.
  /// Memory that they share, such as the code of libraries, counts for each.
  std::uint64_t peak_memory_bytes = 0;
  std::uint64_t own_peak_memory_bytes = 0;
  std::vector<std::uint64_t> worker_peak_memory_bytes;

  std::string array;

  /// Rows of an array with a value that is NaN or infinite, without those of deleted vertices.
  struct NonFinite {
    std::string array;
    std::uint64_t rows = 0;
    ExternalId first;  ///< of the vertex with the lowest number among them
  };

  /// The rows of the result; then those of the features, if they have such rows, too. Empty: the
  /// result has none.
  std::vector<NonFinite> non_finite;
  std::vector<std::string> ignored;      ///< parts of the graph that were ignored (IgnoredFacts)
  Direction direction = Direction::kIn;  ///< the lists that were walked
  bool edge_weights = false;             ///< whether layers used them

  /// An earlier run had published exactly this array (InferOptions::resume), so nothing was done.
  bool published_before = false;
};

/// The reads of a layer, counted before anything is computed (cache/layout/pass_plan.h).
struct InferPlanLayer {
  std::string source;  ///< the array that the layer reads
  std::uint64_t chunk_rows = 0;
  std::uint64_t chunks = 0;
  std::uint64_t cache_chunks = 0;  ///< chunks that the memory cache holds

  /// For Infer over a local store: its chunk_requests and chunk_reads, and the order of the rows
  /// that it writes.
  std::uint64_t chunk_requests = 0;
  std::uint64_t chunk_reads = 0;
  std::string layout = "stored";

  /// For workers with disk caches of their own.
  struct Layout {
    std::string name;
    std::uint64_t chunk_requests = 0;
    std::uint64_t chunk_reads = 0;
  };
  /// chunks that their disk caches hold and are filled with
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
