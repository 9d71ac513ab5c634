#include "tools/bench/cache/bench_pool_disk.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <map>
#include <semaphore>
#include <thread>

#include "rhizome/chunk_array.h"
#include "rhizome/feature_cache.h"
#include "rhizome/policy.h"
#include "storage/base/stopwatch.h"
#include "tools/bench/harness/bench_common.h"
#include "tools/cli/json.h"

namespace rhizome {
namespace {

/// Measurements of one pass over the trace.
struct PoolPass {
  double seconds = 0;
  double cpu_seconds = 0;
  double schedule_seconds = 0;
  double prefill_seconds = 0;
  double exposed_seconds = 0;  ///< time that steps waited for their rows, except for the first step
  GatherStats stats;
};

// Minibatches queued between the reading and the computing thread.
constexpr std::ptrdiff_t kAhead = 2;
constexpr std::size_t kSteps = kAhead + 1;

/// Reads the rows of a trace like a Loader: one thread reads missing rows to where they are used,
/// another one consumes complete minibatches. Computing is simulated by sleeping.
class PipelinedGather {
 public:
  PipelinedGather(FeatureCache& cache, const Trace& trace, double step_seconds)
      : cache_(cache), trace_(trace), step_seconds_(step_seconds) {}

  /// Returns the seconds that all steps but the first waited.
  Result<double> Run() {
    std::thread reading([this] { ReadAll(); });
    double exposed = 0;
    for (std::size_t s = 0; s < trace_.steps(); ++s) {
      const Stopwatch watch;
      ready_.acquire();
      if (s > 0) exposed += watch.seconds();
      if (step_seconds_ > 0)
        std::this_thread::sleep_for(std::chrono::duration<double>(step_seconds_));
      steps_[s % kSteps] = HeldRows();
      room_.release();
    }
    reading.join();
    if (!status_.ok()) return Fail(status_);
    return exposed;
  }

 private:
  void ReadAll() {
    for (std::size_t s = 0; s < trace_.steps(); ++s) {
      room_.acquire();
      // After an error, the remaining steps are skipped, so that both threads end.
      if (status_.ok()) status_ = cache_.Hold(trace_.step(s), steps_[s % kSteps]);
      ready_.release();
    }
  }

  FeatureCache& cache_;
  const Trace& trace_;
  const double step_seconds_;
  std::array<HeldRows, kSteps> steps_;
  std::counting_semaphore<> room_{kSteps};
  std::counting_semaphore<> ready_{0};
  Status status_;  // owned by the reading thread until it is joined
};

std::uint64_t LargestStep(const Trace& trace) {
  std::size_t most = 0;
  for (std::size_t s = 0; s < trace.steps(); ++s) most = std::max(most, trace.step(s).size());
  return most;
}

class Contest {
 public:
  Contest(const BenchPoolOptions& options, const Store& store, const Trace& trace)
      : options_(options), store_(store), trace_(trace) {}

  Status Open() {
    RHIZOME_ASSIGN_OR_RETURN(rows_, store_.OpenArray(options_.array));
    RHIZOME_ASSIGN_OR_RETURN(cost_, MeasureReadCost(*rows_, {}));
    cost_.fixed_gap_bytes = options_.cost.fixed_gap_bytes;
    return Status::Ok();
  }

  const ArrayEntry& entry() const { return rows_->entry(); }
  const ReadCost& cost() const { return cost_; }

  Result<PoolPass> Run(PolicyKind kind, std::uint64_t pool_bytes) const {
    const std::uint64_t held = kSteps * LargestStep(trace_);
    FeatureCacheOptions cache_options{
        .capacity_bytes = pool_bytes, .held = {.slots = held, .most = held}, .reader = {}};
    cache_options.read_cost = cost_;
    RHIZOME_ASSIGN_OR_RETURN(const auto cache,
                             FeatureCache::Open(store_, options_.array, cache_options));
    PipelinedGather gather(*cache, trace_, options_.step_seconds);
    PoolPass pass;
    const double cpu = ProcessCpuSeconds();
    const Stopwatch watch;
    RHIZOME_ASSIGN_OR_RETURN(auto policy, MakePolicy({.kind = kind,
                                                      .frame_count = cache->frame_count(),
                                                      .key_count = cache->row_count(),
                                                      .unit_bytes = entry().row_bytes(),
                                                      .cost = cost_},
                                                     trace_));
    pass.schedule_seconds = watch.seconds();
    RHIZOME_RETURN_IF_ERROR(cache->Start(std::move(policy)));
    pass.prefill_seconds = watch.seconds() - pass.schedule_seconds;
    RHIZOME_ASSIGN_OR_RETURN(pass.exposed_seconds, gather.Run());
    pass.seconds = watch.seconds();
    pass.cpu_seconds = ProcessCpuSeconds() - cpu;
    pass.stats = cache->stats();
    return pass;
  }

  /// Returns rows per second read from memory-mapped files, initially not in the page cache. Uses
  /// as many minibatches from the beginning of the trace as fit into a few seconds.
  Result<double> RunMapped() const {
    DropFromPageCache();
    FeatureCacheOptions cache_options{.capacity_bytes = 0, .held = {}, .reader = {}};
    cache_options.reader.io.maker = IoMaker::kMapped;
    RHIZOME_ASSIGN_OR_RETURN(const auto cache,
                             FeatureCache::Open(store_, options_.array, cache_options));
    std::vector<std::byte> out;
    const Stopwatch watch;
    std::uint64_t rows = 0;
    for (std::size_t s = 0; s < trace_.steps() && watch.seconds() < kMappedSeconds; ++s) {
      out.resize(trace_.step(s).size() * entry().row_bytes());
      RHIZOME_RETURN_IF_ERROR(cache->Gather(trace_.step(s), out));
      rows += trace_.step(s).size();
    }
    return static_cast<double>(rows) / watch.seconds();
  }

  /// Returns reads per second of fio, with the size of a row and the depth that the cache uses.
  Result<double> RunReference(const Path& scratch, std::uint64_t seed) const {
    FioJob job = RowReadsJob(*rows_);
    job.seconds = options_.reference_seconds;
    job.seed = seed;
    return RunFio(job, scratch);
  }

 private:
  static constexpr double kMappedSeconds = 4;

  void DropFromPageCache() const {
    for (std::uint64_t chunk = 0; chunk < entry().chunk_count(); ++chunk) {
      const Path path = rows_->root() / (*rows_->ChunkFile(chunk))->path;
      const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
      if (file < 0) continue;  // best effort, for the contestants that follow
      ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
      ::close(file);
    }
  }

  const BenchPoolOptions& options_;
  const Store& store_;
  const Trace& trace_;
  std::unique_ptr<ChunkArray> rows_;
  ReadCost cost_;
};

double MedianPass(const std::vector<PoolPass>& passes, double PoolPass::*field) {
  std::vector<double> values;
  for (const PoolPass& pass : passes) values.push_back(pass.*field);
  return Median(std::move(values));
}

Json PassJson(const std::vector<PoolPass>& passes, const Trace& trace, std::uint64_t row_bytes,
              double reference) {
  const auto requests = static_cast<double>(trace.keys.size());
  const auto steps = static_cast<double>(trace.steps());
  const double seconds = MedianPass(passes, &PoolPass::seconds);
  const GatherStats& stats = passes.front().stats;  // equal in every pass
  const double useful = requests * static_cast<double>(row_bytes);
  return {{"seconds", seconds},
          {"rows_per_second", std::round(requests / seconds)},
          {"over_reference", reference == 0 ? Json() : Json(requests / seconds / reference)},
          {"rows_read", stats.rows_read},
          {"reads", stats.reads_issued},
          {"bytes_per_useful", static_cast<double>(stats.bytes_read) / useful},
          {"schedule_seconds", MedianPass(passes, &PoolPass::schedule_seconds)},
          {"prefill_seconds", MedianPass(passes, &PoolPass::prefill_seconds)},
          {"cpu_us_per_row", MedianPass(passes, &PoolPass::cpu_seconds) / requests * 1e6},
          {"exposed_ms_per_step",
           MedianPass(passes, &PoolPass::exposed_seconds) / std::max(steps - 1, 1.0) * 1e3}};
}

}  // namespace

// Measures the policies on disk: in each round, runs the trace with every pool size and policy,
// then through mapped files if requested, then fio. Reports medians.
Result<Json> BenchPoolOnDisk(const BenchPoolOptions& options, const Store& store,
                             const Trace& trace, const JobControl& control) {
  Contest contest(options, store, trace);
  RHIZOME_RETURN_IF_ERROR(contest.Open());
  RHIZOME_ASSIGN_OR_RETURN(const ScratchFolder scratch, ScratchFolder::Create(options.graph.dir));
  std::map<std::pair<std::uint64_t, PolicyKind>, std::vector<PoolPass>> passes;
  std::vector<double> fio, mapped;
  std::string fio_missing;
  for (std::uint32_t round = 0; round < options.rounds; ++round) {
    for (const std::uint64_t pool_bytes : options.pool_bytes) {
      for (const PolicyKind kind : options.policies) {
        RHIZOME_RETURN_IF_ERROR(
            control.Report({.phase = "gather", .done = round, .total = options.rounds}));
        RHIZOME_ASSIGN_OR_RETURN(const PoolPass pass, contest.Run(kind, pool_bytes));
        passes[{pool_bytes, kind}].push_back(pass);
      }
    }
    if (options.mapped) {
      RHIZOME_ASSIGN_OR_RETURN(const double rate, contest.RunMapped());
      mapped.push_back(rate);
    }
    if (!fio_missing.empty()) continue;
    const Result<double> rate = contest.RunReference(scratch.path(), options.graph.seed + round);
    if (!rate && rate.error().code() != StatusCode::kUnsupported) return Fail(rate.error());
    if (rate) fio.push_back(*rate);
    if (!rate) fio_missing = rate.error().message();
  }
  const double reference = Median(fio);
  Json json = {{"array", options.array},
               {"rounds", options.rounds},
               {"requests", trace.keys.size()},
               {"reference", reference},
               {"reference_name", "fio randread of one row's size, reads/s"},
               {"reference_rounds", fio},
               {"seconds_per_read", contest.cost().seconds_per_read},
               {"bytes_per_second", contest.cost().bytes_per_second},
               {"gap_bytes", contest.cost().gap_bytes()},
               {"step_seconds", options.step_seconds}};
  if (!fio_missing.empty()) json["reference_missing"] = fio_missing;
  if (!mapped.empty()) json["mapped_rows_per_second"] = std::round(Median(mapped));
  auto pools = Json::array();
  for (const std::uint64_t pool_bytes : options.pool_bytes) {
    Json pool = {{"pool_bytes", pool_bytes}};
    for (const PolicyKind kind : options.policies) {
      pool[std::string(PolicyName(kind))] =
          PassJson(passes[{pool_bytes, kind}], trace, contest.entry().row_bytes(), reference);
    }
    pools.push_back(std::move(pool));
  }
  json["pools"] = std::move(pools);
  return json;
}

}  // namespace rhizome
