#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "cache/disk_cache/chunk_source.h"
#include "cache/disk_cache/disk_cache.h"
#include "cache/layout/pass_cost.h"
#include "cache/layout/pass_lists.h"
#include "rhizome/policy.h"
#include "storage/base/stopwatch.h"
#include "tools/bench/gnn/bench_infer.h"
#include "tools/bench/gnn/infer_comparison.h"
#include "tools/cli/json.h"

namespace rhizome {
namespace {

constexpr std::uint64_t kCacheChunkBytes = std::uint64_t{32} << 10;  // the size of inner chunks

/// An array in memory that answers with a latency, like a remote machine.
class FarArray final : public ChunkSource {
 public:
  static Result<std::unique_ptr<FarArray>> Load(const ChunkArray& array, std::uint64_t chunk_rows,
                                                double latency_ms) {
    const ArrayEntry& entry = array.entry();
    auto far = std::make_unique<FarArray>();
    far->rows_ = entry.rows;
    far->row_bytes_ = entry.row_bytes();
    far->chunk_rows_ = chunk_rows;
    far->latency_ = std::chrono::duration<double, std::milli>(latency_ms);
    far->bytes_.resize(entry.rows * entry.row_bytes());
    for (std::uint64_t chunk = 0; chunk < entry.chunk_count(); ++chunk) {
      const std::size_t at = chunk * entry.chunk_rows * entry.row_bytes();
      const std::span<std::byte> rows =
          std::span(far->bytes_).subspan(at, array.RowsInChunk(chunk) * entry.row_bytes());
      RHIZOME_RETURN_IF_ERROR(array.ReadChunk(chunk, rows));
    }
    return far;
  }
  std::string name() const override { return "far array"; }
  std::uint64_t rows() const override { return rows_; }
  std::uint64_t row_bytes() const override { return row_bytes_; }
  std::uint64_t chunk_rows() const override { return chunk_rows_; }
  Result<std::uint64_t> Version() override { return 1; }
  Result<std::uint64_t> ReadChunk(std::uint64_t chunk, std::span<std::byte> out) override {
    Fetch(chunk * chunk_rows_, out);
    return out.size();
  }

  /// Copies rows from `first_row` on, after the latency.
  void Fetch(std::uint64_t first_row, std::span<std::byte> out) const {
    std::this_thread::sleep_for(latency_);
    std::memcpy(out.data(), bytes_.data() + first_row * row_bytes_, out.size());
  }

 private:
  std::uint64_t rows_ = 0;
  std::uint64_t row_bytes_ = 0;
  std::uint64_t chunk_rows_ = 0;
  std::chrono::duration<double, std::milli> latency_{0};
  std::vector<std::byte> bytes_;
};

/// The pass of a worker, planned in advance: its lists, the positions of its rows, and the chunks
/// that its blocks read.
struct Worker {
  PassLists lists;
  PassLayout layout;
  Trace blocks;
  std::uint64_t frames = 0;  // frames of its memory cache
};

class FarPass {
 public:
  FarPass(const BenchInferOptions& options, const GraphSnapshot& graph, FarArray& source,
          std::uint64_t cache_chunk_rows, Path folder)
      : options_(options),
        graph_(graph),
        source_(source),
        folder_(std::move(folder)),
        shape_{.block_rows = options.block_rows, .chunk_rows = cache_chunk_rows} {}

  Status Plan(const JobControl& control) {
    for (std::uint32_t p = 0; p < graph_.partition_count(); ++p) {
      RHIZOME_RETURN_IF_ERROR(
          control.Report({.phase = "plan", .done = p, .total = graph_.partition_count()}));
      Worker worker;
      RHIZOME_ASSIGN_OR_RETURN(worker.lists,
                               DrawPassLists(graph_, TargetsOf(graph_, static_cast<PartitionId>(p)),
                                             {.fanout = options_.fanout,
                                              .seed = options_.graph.seed,
                                              .threads = options_.graph.threads},
                                             control));
      const std::uint64_t chunks = ChunksOf(worker.lists.rows.size(), shape_.chunk_rows);
      worker.frames =
          static_cast<std::uint64_t>(options_.cache_share * static_cast<double>(chunks));
      RHIZOME_ASSIGN_OR_RETURN(
          const LayoutChoice choice,
          ChooseLayout(worker.lists, {.shape = shape_, .cache_chunks = worker.frames}));
      worker.layout = LayOut(worker.lists, choice.costs[choice.chosen].rule, shape_.block_rows);
      worker.blocks = ChunkTrace(worker.lists, worker.layout, shape_);
      requests_ += worker.blocks.keys.size();
      // The same layout with chunks of the source: fewer requests than for the source's own order.
      far_requests_ +=
          ChunkTrace(worker.lists, worker.layout,
                     {.block_rows = shape_.block_rows, .chunk_rows = source_.chunk_rows()})
              .keys.size();
      cached_chunks_ += chunks;
      workers_.push_back(std::move(worker));
    }
    return Status::Ok();
  }

  /// Returns the seconds to read, without caches, all chunks that the blocks request: either chunks
  /// of the size of the caches, or the fewer and larger chunks of the source. Extrapolated from one
  /// second of reading.
  double ReadFar(bool of_source) const {
    const std::uint64_t chunk_rows = of_source ? source_.chunk_rows() : shape_.chunk_rows;
    const std::uint64_t chunks = source_.rows() / chunk_rows;  // complete chunks
    const Stopwatch watch;
    std::atomic<std::uint64_t> read = 0;
    std::vector<std::thread> threads;
    for (std::uint32_t t = 0; t < options_.in_flight; ++t) {
      threads.emplace_back([&, t] {
        std::vector<std::byte> chunk(chunk_rows * source_.row_bytes());
        for (std::uint64_t i = t; watch.seconds() < 1; i += options_.in_flight, ++read)
          source_.Fetch(i % chunks * chunk_rows, chunk);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return watch.seconds() * static_cast<double>(of_source ? far_requests_ : requests_) /
           static_cast<double>(read);
  }

  struct Times {
    double seconds = 0;     // reading, or the whole layer
    double cpu = 0;         // processor time of reading
    double fill = 0;        // filling the caches, if done separately
    double first_fill = 0;  // first fill, before any computing can begin
    double unhidden = 0;    // other fills, as far as not hidden by computing
    double sums = 0;        // a checksum, so that the compiler keeps the sums
    std::uint64_t disk_reads = 0;
    std::uint64_t source_reads = 0;
    std::uint64_t disk_bytes = 0;
  };

  /// Reads all requested chunks through the caches, which are filled before. As many workers run
  /// concurrently as there are threads.
  Result<Times> ReadThroughCaches(const JobControl& control) {
    Times times;
    std::vector<std::unique_ptr<DiskCache>> caches;
    for (std::size_t w = 0; w < workers_.size(); ++w) {
      const Stopwatch filling;
      RHIZOME_ASSIGN_OR_RETURN(caches.emplace_back(), Fill(w, control));
      times.fill += filling.seconds();
      times.source_reads += caches.back()->stats().source_reads;
      times.disk_bytes += caches.back()->stats().disk_bytes;
    }
    std::vector<Times> of_worker(workers_.size());
    std::vector<Status> status(workers_.size());
    std::atomic<std::size_t> next = 0;
    const Stopwatch watch;
    std::vector<std::thread> threads;
    for (std::uint32_t t = 0; t < std::max(options_.graph.threads, 1U); ++t) {
      threads.emplace_back([&] {
        for (std::size_t w = next++; w < workers_.size(); w = next++) {
          const double cpu = ThreadCpuSeconds();
          status[w] = RunWorker(workers_[w], *caches[w], /*compute=*/false, of_worker[w]);
          of_worker[w].cpu = ThreadCpuSeconds() - cpu;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    times.seconds = watch.seconds();
    for (std::size_t w = 0; w < workers_.size(); ++w) {
      RHIZOME_RETURN_IF_ERROR(status[w]);
      times.cpu += of_worker[w].cpu;
      times.disk_reads += of_worker[w].disk_reads;
    }
    return times;
  }

  /// Computes a layer, the sums of neighbours. The cache of the next worker is filled while a
  /// worker computes.
  Result<Times> RunLayer(const JobControl& control) {
    Times times;
    const Stopwatch watch;
    {
      DiskCachesAhead caches(workers_.size(), [&](std::size_t w) { return Fill(w, control); });
      for (const Worker& worker : workers_) {
        RHIZOME_ASSIGN_OR_RETURN(const auto cache, caches.Next());
        RHIZOME_RETURN_IF_ERROR(RunWorker(worker, *cache, /*compute=*/true, times));
      }
      times.first_fill = caches.first_seconds();
      times.unhidden = caches.unhidden_seconds();
    }
    times.seconds = watch.seconds();
    return times;
  }

  std::uint64_t requests() const { return requests_; }
  std::uint64_t far_requests() const { return far_requests_; }
  std::uint64_t cached_chunks() const { return cached_chunks_; }

 private:
  Result<std::unique_ptr<DiskCache>> Fill(std::size_t w, const JobControl& control) {
    return DiskCache::Fill(FileSystem::Posix(), source_, workers_[w].lists.rows,
                           workers_[w].layout.position,
                           {.folder = folder_,
                            .chunk_rows = shape_.chunk_rows,
                            .in_flight = options_.in_flight,
                            .memory_bytes = options_.limit_bytes / 2},
                           control);
  }

  Status RunWorker(const Worker& worker, const DiskCache& cache, bool compute, Times& times) {
    const Trace steps = InArrivalOrder(worker.blocks);
    RHIZOME_ASSIGN_OR_RETURN(const auto policy,
                             MakePolicy({.kind = PolicyKind::kBelady,
                                         .frame_count = static_cast<std::uint32_t>(worker.frames),
                                         .key_count = cache.chunk_count(),
                                         .cost = {}},
                                        steps));
    std::vector<std::vector<std::byte>> frames(worker.frames);
    const auto read = [&](std::uint64_t chunk, std::vector<std::byte>& out) {
      ++times.disk_reads;
      out.resize(cache.RowsInChunk(chunk) * source_.row_bytes());
      return cache.ReadChunk(chunk, out);
    };
    for (const auto& [key, frame] : policy->Prefill())
      RHIZOME_RETURN_IF_ERROR(read(static_cast<std::uint64_t>(key), frames[frame]));
    StepPlan plan;
    std::vector<std::byte> passing;
    for (std::size_t block = 0; block < worker.blocks.steps(); ++block) {
      if (compute) BeginBlock(worker, block);
      for (const CacheKey key : worker.blocks.step(block)) {
        RHIZOME_RETURN_IF_ERROR(policy->Step(std::span(&key, 1), plan));
        const std::vector<std::byte>* held = &passing;
        if (!plan.hits.empty()) {
          held = &frames[plan.hits.front().frame];
        } else {
          RHIZOME_RETURN_IF_ERROR(read(static_cast<std::uint64_t>(key), passing));
          for (const StepPlan::Place& insert : plan.inserts) {
            std::swap(frames[insert.frame], passing);
            held = &frames[insert.frame];
          }
        }
        if (compute) AddChunk(static_cast<std::uint64_t>(key), *held);
      }
      if (compute) times.sums += sums_.front();
    }
    return Status::Ok();
  }

  /// Sorts the edges of a block by the positions of their rows.
  void BeginBlock(const Worker& worker, std::size_t block) {
    const std::size_t first = block * shape_.block_rows;
    const std::size_t last =
        std::min<std::size_t>(first + shape_.block_rows, worker.layout.order.size());
    edges_.clear();
    for (std::size_t i = first; i < last; ++i)
      for (const LocalRow row : worker.lists.ReadsOf(worker.layout.order[i]))
        edges_.emplace_back(worker.layout.position[row], static_cast<std::uint32_t>(i - first));
    std::sort(edges_.begin(), edges_.end());
    next_edge_ = 0;
    sums_.assign((last - first) * source_.row_bytes() / sizeof(float), 0);
  }

  void AddChunk(std::uint64_t chunk, const std::vector<std::byte>& rows) {
    const std::size_t dim = source_.row_bytes() / sizeof(float);
    const std::uint64_t begin = chunk * shape_.chunk_rows;
    for (; next_edge_ < edges_.size(); ++next_edge_) {
      const auto [position, target] = edges_[next_edge_];
      if (position >= begin + shape_.chunk_rows) return;
      const auto* row = reinterpret_cast<const float*>(rows.data()) + (position - begin) * dim;
      float* sum = sums_.data() + target * dim;
      for (std::size_t d = 0; d < dim; ++d) sum[d] += row[d];
    }
  }

  const BenchInferOptions& options_;
  const GraphSnapshot& graph_;
  FarArray& source_;
  const Path folder_;
  const PassShape shape_;
  std::vector<Worker> workers_;
  std::uint64_t requests_ = 0;      // requests for chunks of the disk caches
  std::uint64_t far_requests_ = 0;  // requests for chunks of the source, without caches
  std::uint64_t cached_chunks_ = 0;

  // State of the current block.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges_;  // position, target
  std::size_t next_edge_ = 0;
  std::vector<float> sums_;  // [targets, dim]
};

}  // namespace

// Measures a source with a high latency: loads the array into memory (FarArray), plans the pass of
// each worker, and in each round measures reads without caches, with chunks of the caches and of
// the source, reads through filled caches, and a whole layer.
Status BenchInferFar(const BenchInferOptions& options, InferComparison& contest,
                     const JobControl& control, Json& json) {
  RHIZOME_ASSIGN_OR_RETURN(const auto array, contest.store().OpenArray(options.features));
  if (array->entry().dtype != DataType::kFloat32) {
    return Status::InvalidArgument(
        fmt::format("array {}: the part 'far' needs float32 rows", options.features));
  }
  const std::uint64_t chunk_rows = BenchChunkRows(options, array->entry().rows);
  const std::uint64_t cache_chunk_rows =
      std::bit_floor(std::max<std::uint64_t>(kCacheChunkBytes / array->entry().row_bytes(), 1));
  RHIZOME_ASSIGN_OR_RETURN(const auto source,
                           FarArray::Load(*array, chunk_rows, options.latency_ms));
  FarPass pass(options, contest.graph(), *source, cache_chunk_rows, contest.scratch() / "far");
  RHIZOME_RETURN_IF_ERROR(pass.Plan(control));
  std::vector<double> far;
  std::vector<double> far_large;
  std::vector<double> ratios_large;
  std::vector<double> near;
  std::vector<double> ratios;
  std::vector<double> with_fill;
  std::vector<double> layer;
  std::vector<double> unhidden;
  std::vector<double> with_first;
  FarPass::Times reads;
  for (std::uint32_t round = 0; round < options.rounds; ++round) {
    RHIZOME_RETURN_IF_ERROR(
        control.Report({.phase = "far", .done = round, .total = options.rounds}));
    far.push_back(pass.ReadFar(/*of_source=*/false));
    far_large.push_back(pass.ReadFar(/*of_source=*/true));
    RHIZOME_ASSIGN_OR_RETURN(reads, pass.ReadThroughCaches(control));
    near.push_back(reads.seconds);
    ratios.push_back(far.back() / reads.seconds);
    ratios_large.push_back(far_large.back() / reads.seconds);
    with_fill.push_back(far.back() / (reads.seconds + reads.fill));
    RHIZOME_ASSIGN_OR_RETURN(const FarPass::Times times, pass.RunLayer(control));
    layer.push_back(times.seconds);
    unhidden.push_back(times.unhidden / times.seconds);
    with_first.push_back((times.unhidden + times.first_fill) / times.seconds);
  }
  Json result = {{"latency_ms", options.latency_ms},
                 {"in_flight", options.in_flight},
                 {"chunk_rows", chunk_rows},
                 {"source_chunks", source->chunk_count()},
                 {"far_requests", pass.far_requests()},
                 {"cache_chunk_rows", cache_chunk_rows},
                 {"chunk_requests", pass.requests()},
                 {"cached_chunks", pass.cached_chunks()},
                 {"source_reads", reads.source_reads},
                 {"disk_reads", reads.disk_reads},
                 {"disk_bytes", reads.disk_bytes},
                 {"far_seconds", Median(far)},
                 {"cached_seconds", Median(near)},
                 {"cached_cpu_seconds", reads.cpu},
                 {"fill_seconds", reads.fill},
                 {"far_seconds_of_source_chunks", Median(far_large)},
                 {"ratio", Median(ratios)},
                 {"ratio_to_source_chunks", Median(ratios_large)},
                 {"ratio_with_fill", Median(with_fill)},
                 {"layer_seconds", Median(layer)},
                 {"unhidden_fill_of_layer", Median(unhidden)},
                 {"with_first_fill_of_layer", Median(with_first)}};
  json["far_over_caches"] = result["ratio"];
  json["far"] = std::move(result);
  return Status::Ok();
}

}  // namespace rhizome
