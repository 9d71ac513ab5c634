#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/cache/feature_cache.h"
#include "rhizome/cache/pass_layout.h"
#include "rhizome/cache/policy.h"
#include "rhizome/index/graph.h"
#include "rhizome/index/sampler.h"
#include "rhizome/storage/io_queue.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/store.h"

// The one torch-free door into librhizome_gnn: a program that links only librhizome loads the
// library with dlopen and asks for kGnnEntrySymbol.

namespace rhizome {

enum class ModelKind : std::uint8_t { kSage, kGcn };

/// What a network looks like; stored as JSON in the metadata of its safetensors file.
struct ModelSpec {
  ModelKind kind = ModelKind::kSage;
  std::uint32_t layers = 2;
  std::int64_t hidden = 128;
  double dropout = 0.5;

  /// Divide each input row by the sum of its absolute values first (the Planetoid convention).
  bool normalize_features = false;

  /// Ignore the edges: the same layers on each vertex alone. The baseline that shows what edges are
  /// worth.
  bool no_edges = false;
};

/// What goes on at once in a training.
enum class Overlap : std::uint8_t {
  /// Superbatch k + 1 is sampled and scheduled while superbatch k is trained on; caches of lists
  /// and
  /// of features share the memory.
  kAll,

  /// Superbatch k + 1 is sampled while superbatch k is scheduled, then k is trained on: each cache
  /// has the memory to itself in its turn (Ginex, section 3.1). Less is read where memory is short,
  /// at
  /// the price of nothing being sampled while the network computes.
  kChangeset,
};
inline std::string_view OverlapName(Overlap overlap) {
  return overlap == Overlap::kAll ? "all" : "changeset";
}

/// Takes a sentence that the user should read before a job goes on.
using JobNote = std::function<void(std::string_view)>;

struct TrainOptions {
  Path store;
  ModelSpec model;
  std::string features = "feat";
  std::string labels = "label";
  std::string split = "split";
  std::vector<std::int64_t> fanouts = {10, 10};  ///< kAllNeighbors: the whole neighbourhood
  std::uint64_t batch_size = 1000;
  std::uint32_t epochs = 10;
  double learning_rate = 0.01;
  double weight_decay = 0;
  std::uint64_t seed = 1;
  std::uint32_t threads = 1;

  /// Bound on the whole process beyond its bare footprint, in bytes; 0: no limit.
  std::uint64_t memory_bytes = 0;
  PolicyKind cache = PolicyKind::kBelady;
  std::optional<std::uint64_t> cache_bytes;  ///< default: what `memory_bytes` leaves, at most 1 GiB
  IoMaker io = IoMaker::kAuto;

  /// kDirect: neighbour lists stay on disk, behind a cache of those that are most worth it.
  TopologyPlace topology = TopologyPlace::kMemory;
  std::optional<std::uint64_t> neighbor_cache_bytes;  ///< default: chosen, at most 256 MiB; 0: none
  std::uint32_t superbatch = 0;                       ///< minibatches; 0: chosen
  std::optional<Overlap> overlap = {};                ///< default: chosen
  std::uint64_t steps = 0;    ///< training minibatches of an epoch at most; 0: all
  bool test = true;           ///< accuracies of the kept weights, with all neighbours, at the end
  std::string job = "train";  ///< names scratch/<job>
  Path scratch;               ///< in place of the store's scratch (StoreOptions), if not empty

  /// Minibatches after which all that the run has learnt is written to scratch/<job>; 0: never.
  std::uint64_t checkpoint_every = 0;
  bool resume = false;  ///< go on from what a killed run of the same job wrote, if it did
  Path out;             ///< model file, safetensors; empty: not written
  Path trace;           ///< when each stage ran, as Chrome trace events; empty: not written
  JobNote note = {};    ///< told what of the graph the network ignores, if anything
};

struct EpochReport {
  double loss = 0;
  double seconds = 0;
  double sample_seconds = 0;
  double schedule_seconds = 0;
  double switch_seconds = 0;
  double gather_seconds = 0;
  double update_seconds = 0;
  double compute_seconds = 0;
  double stall_seconds = 0;  ///< the network waited for its next minibatch
  std::uint64_t rows_requested = 0;
  std::uint64_t pool_hits = 0;
  std::uint64_t rows_kept = 0;  ///< of the pool's prefill, there from the superbatch before
  std::uint64_t rows_read = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t reads_issued = 0;
  double valid_accuracy = 0;
};

/// How neighbour lists were read from disk while training, not while measuring accuracy at the end.
struct ListReadsReport {
  std::uint64_t cache_bytes = 0;   ///< of the neighbour cache
  std::uint64_t cached_lists = 0;  ///< in it
  double cache_seconds = 0;        ///< to build it
  std::uint64_t cache_loads = 0;   ///< from its dump (Overlap::kChangeset)
  std::uint64_t entries = 0;       ///< neighbours looked up
  std::uint64_t lists = 0;         ///< lists that they were looked up in
  std::uint64_t hits = 0;          ///< of those, from the cache
  std::uint64_t reads = 0;
  std::uint64_t bytes_read = 0;
  double mean_depth = 0;
  IoMaker maker = IoMaker::kAuto;
  bool direct = false;
};

/// How a training divides its memory, in bytes: estimates from its first minibatch, made before it
/// starts.
struct TrainMemory {
  std::uint64_t held = 0;            ///< topology, order, labels
  std::uint64_t working = 0;         ///< minibatches in flight, activations, read buffers
  std::uint64_t schedules = 0;       ///< of the superbatch in use and the one that is made
  std::uint64_t cache = 0;           ///< the buffer pool
  std::uint64_t neighbor_cache = 0;  ///< 0 where lists are in memory
};

/// What was learnt from the first minibatches to choose the superbatch.
struct TrainProfileReport {
  struct Tried {
    std::uint32_t superbatch = 0;
    std::uint64_t cache_bytes = 0;  ///< that it leaves
    double read_seconds = 0;        ///< of a minibatch, by a replay
  };
  std::uint64_t minibatches = 0;  ///< sampled
  std::uint32_t depth = 0;        ///< reads in flight at most; measured, if anything was tried
  std::vector<Tried> tried;       ///< empty: the superbatch was given, or there were too few
};

struct TrainReport {
  TrainProfileReport profile;
  std::vector<EpochReport> epochs;
  IoMaker maker = IoMaker::kAuto;
  bool direct = false;
  double mean_depth = 0;
  std::optional<ListReadsReport> list_reads;  ///< where lists are on disk

  /// Of the epoch that was kept, the best on the validation set. Absent: not measured
  /// (options.test), or no vertex is in that set.
  std::optional<double> valid_accuracy;
  std::optional<double> test_accuracy;
  std::optional<double> majority_accuracy;  ///< of the training set's most frequent class, always
  std::uint32_t best_epoch = 0;
  std::uint32_t superbatch = 0;
  Overlap overlap = Overlap::kAll;
  TrainMemory memory;
  std::uint64_t valid_vertices = 0;       ///< in the validation set; 0: no accuracy of an epoch
  std::vector<std::string> ignored;       ///< of the graph, as IgnoredFacts says it
  std::uint64_t minibatches = 0;          ///< of an epoch
  std::uint64_t resumed_minibatches = 0;  ///< done before this run
  std::uint64_t base_memory_bytes = 0;
  std::uint64_t peak_memory_bytes = 0;
  std::string model;  ///< path of the model file, or empty
};

enum class InferMode : std::uint8_t { kLayerwise, kSamplewise };

struct InferOptions {
  Path store;
  Path scratch;  ///< in place of the store's scratch (StoreOptions), if not empty
  Path model_file;
  std::string out;  ///< name of the array that is published

  bool new_version = false;  ///< where there is such an array, publish its next version
  bool live = false;         ///< and let out@live stand for it at once
  std::uint64_t keep = 0;    ///< then drop versions but the newest so many and the aliased; 0: none
  std::string features = "feat";
  std::string labels = "label";  ///< accuracy is reported where the store has labels and split
  std::string split = "split";
  InferMode mode = InferMode::kLayerwise;

  /// Per layer; empty: all neighbours in every layer.
  std::vector<std::int64_t> fanouts;

  /// What is stored: the last hidden layer (embeddings) or the class scores.
  bool scores = false;
  std::uint64_t memory_bytes = 0;
  PolicyKind cache = PolicyKind::kBelady;

  /// Of the chunks that a block needs those in memory are taken first.
  bool cached_first = false;
  std::optional<std::uint64_t> cache_bytes;
  std::uint64_t block_rows = 0;  ///< targets of one block; 0: as many as memory holds

  /// Rows of a chunk of the result and of the arrays between layers, rounded up to 128; 0: chosen.
  std::uint64_t chunk_rows = 0;

  /// Chunks of the result are shards of chunks of so many rows; 0: they are not, kChosenInnerRows:
  /// chosen.
  std::uint64_t inner_rows = 0;

  /// In which order rows between two layers stand; absent: chosen by counting.
  std::optional<RowRule> layout = {};

  /// kDirect: neighbour lists stay on disk, behind a cache of those that are most worth it.
  TopologyPlace topology = TopologyPlace::kMemory;
  std::optional<std::uint64_t> neighbor_cache_bytes;  ///< default: what is left of memory; 0: none
  IoMaker io = IoMaker::kAuto;                        ///< of lists on disk

  /// Compute only what later commits can have changed since the newest version of `out`, where that
  /// was computed in the same way, and make the next version.
  bool incremental = false;
  std::uint64_t seed = 1;
  std::uint32_t threads = 1;
  bool resume = false;  ///< go on with what a killed run of the same job left

  /// Layerwise, not incremental: child processes that compute a partition at a time each, share
  /// memory and threads, and make the same bytes; 0: this process does it all. A child is
  /// `worker_command` with one more argument, the bytes of memory that it may take (0: no limit);
  /// it must call Infer with the same options and that number in `worker_of_bytes`, and leave its
  /// standard streams alone.
  std::uint32_t workers = 0;
  std::vector<std::string> worker_command = {};
  std::optional<std::uint64_t> worker_of_bytes = {};  ///< this process is such a child
  JobNote note = {};                                  ///< as TrainOptions::note
  Codec codec{.kind = CodecKind::kBloscLz4, .level = 5};
};

struct InferLayerReport {
  std::uint64_t chunk_requests = 0;
  std::uint64_t chunk_reads = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;  ///< by this run
  double plan_seconds = 0;   ///< what will be read, counted beforehand
  double read_seconds = 0;   ///< reading, checking and decoding, of all threads, beside the others
  double copy_seconds = 0;   ///< rows were brought together, beside the others
  double fill_seconds = 0;   ///< the network waited for its rows
  double model_seconds = 0;  ///< aggregation and products
  double sum_seconds = 0;    ///< of these, sums that need more than one window
  double write_seconds = 0;  ///< on a thread of its own, beside the others
  double hit_rate = 0;
  std::uint64_t computed = 0;  ///< vertices, those of an earlier run not among them
  std::uint64_t blocks = 0;    ///< of vertices that were computed together

  /// In which order the rows that it wrote stand, and what was counted to choose it: bytes of
  /// chunks that this layer and the next would read.
  struct Layout {
    std::string name;
    std::uint64_t bytes = 0;
  };
  std::string layout = "stored";
  std::vector<Layout> layouts;
};

struct InferReport {
  std::vector<InferLayerReport> layers;
  std::uint64_t vertices = 0;
  double seconds = 0;
  double cpu_seconds = 0;  ///< of all threads; not of workers
  double vertices_per_second = 0;
  std::optional<double> valid_accuracy;
  std::optional<double> test_accuracy;
  std::uint64_t resumed_chunks = 0;

  /// Vertices whose row was taken from the version before (incremental); and why none was.
  std::uint64_t kept = 0;
  std::string full_because;
  std::optional<ListReadsReport> list_reads;  ///< where lists are on disk
  std::uint64_t base_memory_bytes = 0;        ///< of this process, before it began

  /// The highest that each process of the job ever had, added up: this one's, and those of workers.
  /// What they share, such as the code of libraries, counts for each.
  std::uint64_t peak_memory_bytes = 0;
  std::uint64_t own_peak_memory_bytes = 0;
  std::vector<std::uint64_t> worker_peak_memory_bytes;

  std::string array;
  std::vector<std::string> ignored;  ///< of the graph, as IgnoredFacts says it

  /// A run before had made and published just this array (options.resume): nothing was done.
  bool published_before = false;
};

/// What a layer would read, counted before anything is computed (cache/pass_plan.h).
struct InferPlanLayer {
  std::string source;  ///< the array that it reads
  std::uint64_t chunk_rows = 0;
  std::uint64_t chunks = 0;
  std::uint64_t cache_chunks = 0;  ///< that the memory cache holds

  /// As Infer reads a local store: its chunk_requests and chunk_reads, and the order of the rows
  /// that it writes.
  std::uint64_t chunk_requests = 0;
  std::uint64_t chunk_reads = 0;
  std::string layout = "stored";

  /// As workers with disk caches of their own read.
  struct Layout {
    std::string name;
    std::uint64_t chunk_requests = 0;
    std::uint64_t chunk_reads = 0;
  };
  std::uint64_t worker_chunks = 0;          ///< that their disk caches hold, and are filled with
  std::vector<Layout> layouts;              ///< the same for all workers
  std::vector<std::string> chosen_layouts;  ///< by worker
  std::uint64_t chosen_requests = 0;
  std::uint64_t chosen_reads = 0;
};

struct InferPlan {
  std::vector<InferPlanLayer> layers;
  std::uint64_t vertices = 0;
  std::uint64_t workers = 0;
  std::uint64_t cache_bytes = 0;  ///< of the memory cache
  double seconds = 0;             ///< that counting took
};

/// The verbs of the library. Errors: those of the store; kInvalidArgument, arrays or model that do
/// not fit; kBusy, another job of this name runs; kInterrupted. Threads: one call at a time in a
/// process (libtorch's thread count is global).
class GnnEntry {
 public:
  virtual ~GnnEntry() = default;
  virtual Result<TrainReport> Train(const TrainOptions& options,
                                    const JobControl& control) const = 0;
  virtual Result<InferReport> Infer(const InferOptions& options,
                                    const JobControl& control) const = 0;

  /// Says what Infer would read in layerwise mode; makes nothing, `out` is not looked at.
  virtual Result<InferPlan> PlanInfer(const InferOptions& options,
                                      const JobControl& control) const = 0;
};

/// What to ask dlsym for: the function below.
inline constexpr const char* kGnnEntrySymbol = "rhizome_gnn_entry_v1";

}  // namespace rhizome

/// For programs that link the library (the CMake target rhizome::gnn). Lives as long as the
/// library.
extern "C" const rhizome::GnnEntry* rhizome_gnn_entry_v1();
