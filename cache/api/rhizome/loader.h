#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/feature_cache.h"
#include "rhizome/graph.h"
#include "rhizome/graph_types.h"
#include "rhizome/job_control.h"
#include "rhizome/job_report.h"
#include "rhizome/minibatch_options.h"
#include "rhizome/resource_options.h"
#include "rhizome/sampler.h"
#include "rhizome/status.h"
#include "rhizome/task_metrics.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

/// Feature rows of a minibatch: float16 if the array is float16 and not normalized, otherwise
/// converted to float32. Row i belongs to the vertex with local number i. Rows are not
/// copied: they are in the memory of a cache, at any positions of its table, and do not move or
/// change while this object exists. (Or the object has its own memory, see Own.)
/// Threads: const functions from any number of threads.
/// Ownership: holds rows of the cache, which must outlive this object. Holding them for long
/// reduces the space for later minibatches.
class FeatureRows {
 public:
  FeatureRows() = default;

  /// Uses rows of a cache. `type` and `dim` must describe how the cache stores its rows.
  FeatureRows(HeldRows held, DataType type, std::size_t dim);

  /// As above, for vertices that share rows: vertex i has row row_of[i] of `held`.
  FeatureRows(HeldRows held, DataType type, std::size_t dim, std::vector<std::uint32_t> row_of);

  /// Allocates own memory for the rows, with unspecified contents. Errors: kOutOfMemory.
  static Result<FeatureRows> Own(DataType type, std::size_t rows, std::size_t dim);

  DataType type() const { return type_; }  ///< kFloat32 or kFloat16
  std::size_t rows() const { return rows_; }
  std::size_t dim() const { return dim_; }  ///< columns
  std::size_t row_bytes() const { return dim_ * DataTypeBytes(type_); }

  /// Returns row i in its stored form, row_bytes() bytes.
  std::span<const std::byte> row(std::size_t i) const {
    const std::size_t at = place().empty() ? i : place()[i];
    return table().subspan(at * row_bytes(), row_bytes());
  }

  /// Returns row i of float32 rows, dim() numbers. Aborts the process if the rows have another
  /// type.
  std::span<const float> floats(std::size_t i) const;

  /// Copies all rows to `out`, of shape [rows(), dim()], row-major; float16 is converted to
  /// float32, exactly. Errors: kInvalidArgument, `out` has a different size.
  Status CopyTo(std::span<float> out) const;

  /// Direct access for code that reads rows by index: row i is row place()[i] of the table, or row
  /// i if place() is empty. No other row of the table may be read.
  std::span<const std::byte> table() const {
    return own_.empty() ? held_.table() : std::span<const std::byte>(own_);
  }
  std::span<const std::uint32_t> place() const {
    return place_.empty() ? held_.slots() : std::span<const std::uint32_t>(place_);
  }

  /// Returns all rows of an object created by Own, as float32.
  std::span<float> own_floats() const;

 private:
  void PlaceInWiderRows();

  DataType type_ = DataType::kFloat32;
  std::size_t dim_ = 0;
  std::size_t rows_ = 0;
  HeldRows held_;
  std::vector<std::uint32_t> place_;  // empty: the slots of held_
  std::span<std::byte> own_;          // rows of an object created by Own
  std::shared_ptr<void> own_memory_;
};

/// Features of the vertices of a minibatch whose types share an array.
struct MinibatchInput {
  std::string array;                         ///< name of the array
  std::vector<std::uint32_t> vertices = {};  ///< local numbers, ascending
  FeatureRows features = {};                 ///< row i belongs to vertices[i]
  RowReads reads = {};                       ///< part of Minibatch::costs
};

/// An edge of a link minibatch; its ends are local numbers of seeds.
struct MinibatchPair {
  std::uint32_t src = 0;
  std::uint32_t dst = 0;
  TypeId type = 0;
  friend bool operator==(const MinibatchPair&, const MinibatchPair&) = default;
};

/// Vertices that replace ends of one vertex type, as local numbers of seeds.
struct MinibatchNegatives {
  TypeId type = 0;  ///< vertex type of the replaced ends
  std::vector<std::uint32_t> vertices = {};
  friend bool operator==(const MinibatchNegatives&, const MinibatchNegatives&) = default;
};

/// A sampled subgraph with the features of its vertices: the input of one training step. Vertices
/// have local numbers in order of discovery: the seeds first, in the given order, then hop by hop.
/// Numbers and lists correspond to SampledSubgraph (rhizome/sampler.h), in fewer bytes.
///
/// Shapes: n = rows.size() vertices, m = neighbors.size() edges.
/// Threads: a value type; it may be moved to another thread.
/// Ownership: `features` hold the loader's memory; everything else is owned.
struct Minibatch {
  std::uint64_t epoch = 0;   ///< set by a Loader: epoch, from 0
  std::uint64_t number = 0;  ///< set by a Loader: index within the epoch, from 0

  /// Set by a Loader: Sampler::Sample draws this subgraph for these seeds if `batch` is this tag.
  std::uint64_t tag = 0;
  std::uint64_t seed_count = 0;

  std::vector<Row> rows;                     ///< [n], positions of the vertices in arrays;
                                             ///< distinct, or distinct within one seed's subgraph
                                             ///< if disjoint
  std::vector<VertexId> vertices;            ///< [n], set by a Loader
  std::vector<std::uint64_t> hop_offsets;    ///< [hops + 2]; hop 0 holds the seeds
  std::vector<std::uint32_t> offsets = {0};  ///< [lists + 1]; list v holds the edges drawn for
                                             ///< vertex v (Frontier::kAgain: see hop_lists)
  std::vector<std::uint32_t> neighbors;      ///< [m], local numbers
  std::vector<TypeId> types;                 ///< [m]; empty: one edge type, or not requested
  std::vector<float> weights;                ///< [m]; empty: as `types`
  std::vector<EdgeId> edges;                 ///< [m]; empty unless SamplerOptions::edge_ids
  std::vector<std::uint64_t> hop_lists;      ///< [hops + 1] with Frontier::kAgain, else empty: hop
                                             ///< h drew lists [hop_lists[h], hop_lists[h + 1])
  std::vector<std::uint32_t> seed_of;        ///< [n] if disjoint: index of the seed
  std::vector<std::uint32_t> degrees;        ///< [n], degrees in the whole graph, if requested
  std::vector<float> weighted_degrees;       ///< [n], weight sums of all edges in the whole graph
                                             ///< that are walked, if requested
  std::vector<std::int64_t> seed_times;      ///< [seed_count], set by a Loader of temporal samples
  std::vector<std::int32_t> labels;          ///< [seed_count], if requested
  std::vector<TypeId> vertex_types;          ///< [n]; empty: one vertex type, or not requested
  std::vector<MinibatchPair> pairs;          ///< edges to learn, if asked for; else empty

  /// By side (0: sources are replaced, 1: destinations), then by the vertex type of the replaced
  /// ends, ascending. Empty without negatives.
  std::array<std::vector<MinibatchNegatives>, 2> negatives;
  FeatureRows features;                ///< [n, feature columns], if all types share an array
  std::vector<MinibatchInput> inputs;  ///< otherwise, one for each array, in order of type
  MinibatchCosts costs;

  /// Returns the list of the vertex with local number v < lists. Only for Frontier::kOnce, where
  /// each vertex is expanded once.
  std::span<const std::uint32_t> NeighborsOf(std::size_t v) const {
    return std::span(neighbors).subspan(offsets[v], offsets[v + 1] - offsets[v]);
  }
};

/// Options of a Loader. `sampler.fanouts`, either `features` or `inputs`, and one of `seeds`,
/// `split` and `pairs` are required.
struct LoaderOptions {
  /// How to sample around the seeds; all options of Sampler are supported except `induced`. The
  /// `seed` also determines the order of the seed vertices.
  SamplerOptions sampler = {};

  /// Array of feature rows, of numbers or bool, with layout kRow. float32 and float16 are used as
  /// stored; other types are converted to float32, which rounds float64 and integers beyond 2^24. A
  /// null becomes NaN. With `normalize`, every row is divided by the sum of its absolute values
  /// (rows of zeros remain zero) and converted to float32.
  std::string features = {};
  bool normalize = false;

  /// Instead of `features`: the array of each vertex type, with the same conversions. The cache
  /// memory is divided among the arrays so that the fewest bytes are read. A type that is not named
  /// gets the only array of floats that is bound to it, else the array of floats that all types
  /// have (`feat` if there are several), else none. Minibatches have `vertex_types`, and `inputs`
  /// unless all types have the same array.
  std::vector<FeatureInput> inputs = {};

  /// The vertices that an epoch visits, each once. Either `seeds`, which must be distinct, or the
  /// set `set` of the array `split`, of dtype uint8 with one column.
  std::vector<VertexId> seeds = {};
  std::string split = {};
  Split set = Split::kTrain;

  /// Instead of seeds: edges to learn. An epoch visits each once, and `batch_size` counts them.
  /// They need not be edges of the graph, and may repeat. The seeds of a minibatch are the distinct
  /// ends of its pairs, then its negatives, in order of first use (Minibatch::pairs). The edges
  /// between the two ends of a pair of the minibatch are left out of its subgraph and its degrees,
  /// in both directions and of any type, unless `keep_seed_edges` is set: otherwise a model would
  /// see the edge that it has to predict. Not with `labels` and temporal sampling.
  std::vector<VertexPair> pairs = {};
  bool keep_seed_edges = false;

  /// With `pairs`: the number K of vertices that replace each end of each pair
  /// (Minibatch::negatives). Among the pairs whose replaced end has the same vertex type, the i-th
  /// has the vertices [i * K, (i + 1) * K) of that type. A negative has the type of the end, is not
  /// deleted, and differs from the end, unless 16 more draws have not found another vertex. It is
  /// drawn from `negative_sources`, a mixture such as "uniform" or "degree^.75:.5,in-batch:.5"
  /// (docs/LINKS.md).
  std::uint64_t negatives = 0;
  std::string negative_sources = "uniform";

  /// Times of the seeds. Required if sampling is temporal (`sampler.times`), otherwise not allowed.
  /// Either `seed_times`, one per entry of `seeds`, or an int64 or int32 array with one column that
  /// holds the time of each vertex.
  std::vector<std::int64_t> seed_times = {};
  std::string seed_time_array = {};

  /// Array from which Minibatch::labels is filled, int32 or int64 with one column. Every seed must
  /// have a label. Empty: no labels.
  std::string labels = {};

  /// Whether to fill Minibatch::degrees: the degree of every vertex in the whole graph, in the
  /// direction that is walked.
  bool degrees = false;

  std::uint64_t batch_size = 1000;  ///< seeds per minibatch
  bool drop_last = false;           ///< drop the last minibatch of an epoch if it has fewer seeds
  bool shuffle = true;              ///< a new order for each epoch; if false, as given or by id

  /// Index of this loader among `ranks` loaders, one per process, that divide each epoch. All use
  /// the same options except `rank`. Each has equally many minibatches, so that they can run in
  /// step. As long as there are `batch_size` seeds for every rank, minibatch i of rank r is
  /// minibatch i * ranks + r of a single loader. The remaining seeds are divided evenly; if there
  /// are fewer than `ranks`, they are divided together with the round before. drop_last discards
  /// them. Range of `ranks`: [1, 2^20].
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;

  /// Number of epochs. Range [0, 2^23]; 0: unlimited. The first minibatches of the next epoch are
  /// prepared while the last ones of an epoch are in use. Use one Loader for all epochs, not one
  /// for each.
  std::uint32_t epochs = 1;

  /// Number of this rank's minibatches to skip at the start, over all epochs. Set it to the value
  /// of position() to resume a stopped job; the following minibatches are the same as without the
  /// stop.
  std::uint64_t first = 0;

  /// Memory limit of the loader in bytes: rows, schedules, prepared minibatches and one minibatch
  /// held by the caller (LoaderMemory). The open graph is not included. 0: no limit, and up to 1
  /// GiB for the cache.
  std::uint64_t memory_bytes = std::uint64_t{1} << 30;

  /// Cache, schedules and superbatches. Sizes that are absent are chosen within `memory_bytes`.
  FeedOptions feed = {};
  IoMaker io = IoMaker::kAuto;

  /// Name of the folder for samples below Store::scratch(). A number is appended if another loader
  /// uses the name. The folder is removed when the loader is destroyed.
  std::string job = "feed";
};

/// Cache memory of one of several arrays.
struct InputMemory {
  std::string array;
  std::uint64_t cache = 0;  ///< bytes
  friend bool operator==(const InputMemory&, const InputMemory&) = default;
};

/// Division of a loader's memory, in bytes; estimated from its first minibatch.
struct LoaderMemory {
  std::uint64_t held = 0;       ///< seeds, labels, tables of the sampler
  std::uint64_t working = 0;    ///< minibatches, rows outside the cache, read buffers, checksums
  std::uint64_t schedules = 0;  ///< schedules of the superbatch in use and the next one
  std::uint64_t cache = 0;      ///< cached feature rows
  std::uint64_t neighbor_cache = 0;  ///< 0 if lists are in memory; with kChangeset, shares the
                                     ///< memory of `cache`
  std::uint32_t superbatch = 0;      ///< number of minibatches per superbatch
  Overlap overlap = Overlap::kAll;
  std::vector<InputMemory> inputs = {};  ///< parts of `cache`, one for each of several arrays

  std::uint64_t total_bytes() const;
};

/// Reads of one of several arrays.
struct InputReads {
  std::string array;
  RowReads reads;
};

/// Counts and times of an epoch so far.
struct LoaderReport {
  std::uint64_t epoch = 0;
  std::uint64_t minibatches = 0;        ///< delivered minibatches
  std::uint64_t seeds = 0;              ///< seeds of those minibatches
  MinibatchCosts costs = {};            ///< sum of hits, misses, bytes and seconds of each stage
  double wait_seconds = 0;              ///< time that the caller waited in Next
  std::vector<InputReads> inputs = {};  ///< parts of `costs`, one for each of several arrays
};

/// Delivers minibatches to a program: sampled subgraphs with the feature rows (and labels) of their
/// vertices, read from disk. For graphs whose features exceed memory. Minibatches are sampled ahead
/// into a scratch file, one *superbatch* at a time. The row cache therefore knows the coming
/// requests and keeps the rows that are needed soonest (Belady's rule). Concurrently, the previous
/// superbatch is read in deep batches of direct reads, and the caller computes.
///
/// Minibatch k of epoch e depends on the graph as of Open, the seeds (or the pairs and the options
/// of negatives), `batch_size`, `shuffle`, `drop_last`, the ranks and the sampler's options. It
/// does not depend on threads, memory, policy, superbatch, or earlier requests. Its subgraph equals
/// the result of Sampler::Sample for its seeds and Minibatch::tag (and Minibatch::seed_times); with
/// pairs, of Sampler::SampleInto with the pairs to leave out.
///
/// Source: Ginex (VLDB 2022): superbatches as inspector and executor (section 3.1), the neighbour
/// cache (3.2), and the optimal feature cache (3.3, 3.4). Unlike Ginex, which samples a superbatch
/// while the previous one is scheduled, this loader also samples during training, and the caller
/// computes on the cache's own rows.
///
/// Memory: LoaderOptions::memory_bytes; on disk, two superbatches of samples.
/// Threads: one call at a time; the loader runs two threads, plus the threads of the sampler.
/// JobControl::Cancel may be called from any thread. A forked child must not use or destroy the
/// loader.
/// Ownership: keeps a snapshot of the graph. `control` and the FileSystem must outlive the loader,
/// and the loader must outlive all minibatches that it delivered.
class Loader {
 public:
  /// Samples the first minibatch, divides the memory, and starts to prepare minibatches. `control`
  /// is checked for cancellation, now and later; the loader does not report progress to it.
  /// Errors: kInvalidArgument, no fanouts, options that are out of range or exclude each other, no
  /// seeds, a seed that is repeated, is not a vertex or has no label (named in the message), a pair
  /// with an end that is not a vertex, or that no other vertex can replace, an unknown source of
  /// negatives, fewer
  /// seeds than minibatches, an array of wrong dtype, shape or layout; kNotFound, no such array;
  /// an array of `inputs` of another vertex type, an unknown type, or one that is named twice;
  /// kOutOfMemory, the limit is too small (the message states the required memory); any error of
  /// Sampler::Create, of reading arrays (kCorruption, kIoError) and of writing the scratch files
  /// (kOutOfSpace, kPermissionDenied); kInterrupted.
  static Result<std::unique_ptr<Loader>> Open(const Graph& graph, const LoaderOptions& options,
                                              const JobControl& control);

  /// Stops its threads, at any point of their work, and removes its scratch folder.
  ~Loader();

  /// Returns the next minibatch. Returns nullopt once at the end of each epoch, and on every call
  /// after the last epoch. Destroy minibatches that are no longer needed before the call: their
  /// rows occupy space that new minibatches need.
  /// Errors: kInterrupted, cancelled; any error of sampling, reading or the scratch files, after
  /// everything before them was delivered; kOutOfMemory, too many minibatches are held. After an
  /// error no more minibatches are delivered.
  Result<std::optional<Minibatch>> Next();

  /// Returns the number of seeds, or of pairs, per epoch, of all ranks, before drop_last.
  std::uint64_t seed_count() const;
  std::uint64_t minibatches_of_epoch() const;  ///< for this rank
  std::int64_t classes() const;                ///< 1 + the largest label in the array; 0: no labels
  std::uint64_t position()
      const;  ///< minibatches delivered in all epochs, including LoaderOptions::first

  /// Returns the array of each vertex type, in the order of Graph::vertex_types, with the defaults
  /// of LoaderOptions::inputs; empty if `inputs` were not given.
  const std::vector<FeatureInput>& inputs() const;

  /// Reports on the current epoch, or on the epoch that Next has just ended. An epoch that began at
  /// LoaderOptions::first is counted from there.
  LoaderReport report() const;
  const LoaderMemory& memory() const;

 private:
  class Impl;
  explicit Loader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rhizome
