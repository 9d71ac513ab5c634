#include "rhizome/gnn/loader.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>
#include <utility>

#include "rhizome/gnn/bounded_queue.h"
#include "rhizome/gnn/feature_rows.h"
#include "rhizome/gnn/superbatch.h"

namespace rhizome {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Minibatches gathered ahead of the one that is computed on.
constexpr std::size_t kGatheredAhead = 2;

/// A sampled and scheduled superbatch, on its way to the gathering thread.
struct Superbatch {
  Path path;
  std::vector<SuperbatchEntry> entries;
  std::vector<MinibatchCosts> costs;
  std::unique_ptr<Policy> policy;
};

/// What the cache did since `before`.
void AddReads(const GatherStats& now, const GatherStats& before, MinibatchCosts& costs) {
  costs.rows_requested += now.rows_requested - before.rows_requested;
  costs.pool_hits += now.pool_hits - before.pool_hits;
  costs.rows_read += now.rows_read - before.rows_read;
  costs.bytes_read += now.bytes_read - before.bytes_read;
  costs.reads_issued += now.reads_issued - before.reads_issued;
}

}  // namespace

/// The sampling thread owns sampler_ and next_seeds_, the gathering thread cache_; they meet in the
/// two queues only. A stage that fails finishes its own queue with the error and cancels the one
/// before it, so that no thread waits for one that has ended.
class Loader::Impl {
 public:
  Impl(const Graph& graph, const LoaderOptions& options, NextSeeds next_seeds,
       const JobControl& control, MinibatchSampler sampler, std::unique_ptr<FeatureCache> cache,
       FeatureDecoder decoder)
      : fs_(graph.store().fs()),
        options_(options),
        control_(control),
        decoder_(decoder),
        next_seeds_(std::move(next_seeds)),
        sampler_(std::move(sampler)),
        cache_(std::move(cache)),
        sampling_([this] { superbatches_.Finish(SampleAll()); }),
        gathering_([this] { RunGathering(); }) {}

  ~Impl() {
    minibatches_.Cancel();
    superbatches_.Cancel();
    sampling_.join();
    gathering_.join();
  }

  Result<std::optional<Minibatch>> Next() { return minibatches_.Pop(); }
  RowReaderStats reader_stats() const { return cache_->reader_stats(); }

 private:
  Status SampleAll();
  Result<std::optional<Superbatch>> SampleSuperbatch();
  void RunGathering();
  Status GatherAll();
  Status GatherSuperbatch(Superbatch superbatch);
  Status GatherFeatures(Minibatch& minibatch);

  // Constant after construction.
  FileSystem& fs_;
  const LoaderOptions options_;
  const JobControl& control_;
  const FeatureDecoder decoder_;

  // The sampling thread's.
  NextSeeds next_seeds_;
  const MinibatchSampler sampler_;
  std::uint64_t superbatch_count_ = 0;

  // The gathering thread's (the sampling thread asks the constant frame count).
  const std::unique_ptr<FeatureCache> cache_;
  std::vector<std::byte> stored_rows_;

  // Self-synchronised.
  BoundedQueue<Superbatch> superbatches_{1};
  BoundedQueue<Minibatch> minibatches_{kGatheredAhead};

  // Last, so that they start when all else is there.
  std::thread sampling_;
  std::thread gathering_;
};

Status Loader::Impl::SampleAll() {
  // Waiting for room first keeps at most two superbatches: one in use, one ready.
  while (superbatches_.WaitForRoom()) {
    RHIZOME_ASSIGN_OR_RETURN(std::optional<Superbatch> superbatch, SampleSuperbatch());
    if (!superbatch) return Status::Ok();
    superbatches_.Push(*std::move(superbatch));
  }
  return Status::Ok();
}

Result<std::optional<Superbatch>> Loader::Impl::SampleSuperbatch() {
  std::optional<SeedBatch> seeds = next_seeds_();
  if (!seeds) return std::optional<Superbatch>();
  Superbatch superbatch;
  superbatch.path = options_.scratch / fmt::format("superbatch-{:06}", ++superbatch_count_);
  RHIZOME_ASSIGN_OR_RETURN(SuperbatchWriter writer, SuperbatchWriter::Create(fs_, superbatch.path));
  Trace trace;
  while (seeds) {
    RHIZOME_RETURN_IF_ERROR(control_.CheckCancelled());
    const Clock::time_point start = Clock::now();
    RHIZOME_ASSIGN_OR_RETURN(const Minibatch minibatch, sampler_.Sample(*seeds));
    RHIZOME_RETURN_IF_ERROR(writer.Append(minibatch));
    trace.AddStep(minibatch.rows);
    superbatch.costs.push_back({.sample_seconds = SecondsSince(start)});
    if (superbatch.costs.size() == options_.superbatch) break;
    seeds = next_seeds_();
  }
  RHIZOME_ASSIGN_OR_RETURN(superbatch.entries, writer.Finish());
  const Clock::time_point start = Clock::now();
  superbatch.policy = MakePolicy({.kind = options_.policy,
                                  .frame_count = cache_->frame_count(),
                                  .key_count = cache_->row_count(),
                                  .unit_bytes = cache_->array().row_bytes(),
                                  .cost = cache_->read_cost()},
                                 trace);
  superbatch.costs.front().schedule_seconds = SecondsSince(start);
  return std::optional<Superbatch>(std::move(superbatch));
}

void Loader::Impl::RunGathering() {
  const Status status = GatherAll();
  superbatches_.Cancel();
  minibatches_.Finish(status);
}

Status Loader::Impl::GatherAll() {
  while (true) {
    RHIZOME_ASSIGN_OR_RETURN(std::optional<Superbatch> superbatch, superbatches_.Pop());
    if (!superbatch) return Status::Ok();
    RHIZOME_RETURN_IF_ERROR(GatherSuperbatch(*std::move(superbatch)));
  }
}

Status Loader::Impl::GatherSuperbatch(Superbatch superbatch) {
  RHIZOME_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, fs_.OpenRead(superbatch.path));
  const GatherStats before = cache_->stats();
  const Clock::time_point start = Clock::now();
  RHIZOME_RETURN_IF_ERROR(cache_->Start(std::move(superbatch.policy)));
  superbatch.costs.front().switch_seconds = SecondsSince(start);
  AddReads(cache_->stats(), before, superbatch.costs.front());
  for (std::size_t i = 0; i < superbatch.entries.size(); ++i) {
    RHIZOME_RETURN_IF_ERROR(control_.CheckCancelled());
    RHIZOME_ASSIGN_OR_RETURN(Minibatch minibatch, ReadMinibatch(*file, superbatch.entries[i]));
    minibatch.costs = superbatch.costs[i];
    RHIZOME_RETURN_IF_ERROR(GatherFeatures(minibatch));
    if (!minibatches_.Push(std::move(minibatch))) break;
  }
  return fs_.RemoveFile(superbatch.path);
}

Status Loader::Impl::GatherFeatures(Minibatch& minibatch) {
  const GatherStats before = cache_->stats();
  const Clock::time_point start = Clock::now();
  const std::size_t count = minibatch.rows.size();
  minibatch.features.resize(count * decoder_.dim());
  if (decoder_.is_identity()) {
    RHIZOME_RETURN_IF_ERROR(
        cache_->Gather(minibatch.rows, std::as_writable_bytes(std::span(minibatch.features))));
  } else {
    stored_rows_.resize(count * decoder_.stored_row_bytes());
    RHIZOME_RETURN_IF_ERROR(cache_->Gather(minibatch.rows, stored_rows_));
    decoder_.Decode(stored_rows_, minibatch.features);
  }
  const GatherStats after = cache_->stats();
  minibatch.costs.update_seconds = after.update_seconds - before.update_seconds;
  minibatch.costs.gather_seconds = SecondsSince(start) - minibatch.costs.update_seconds;
  AddReads(after, before, minibatch.costs);
  return Status::Ok();
}

Result<std::unique_ptr<Loader>> Loader::Open(const Graph& graph, const LoaderOptions& options,
                                             NextSeeds next_seeds, const JobControl& control) {
  FeatureCacheOptions cache_options{.capacity_bytes = options.cache_bytes, .reader = {}};
  cache_options.reader.io.maker = options.io;
  cache_options.reader.staging_bytes = options.staging_bytes;
  RHIZOME_ASSIGN_OR_RETURN(std::unique_ptr<FeatureCache> cache,
                           FeatureCache::Open(graph, options.features, cache_options));
  RHIZOME_ASSIGN_OR_RETURN(const FeatureDecoder decoder,
                           FeatureDecoder::Create(cache->array(), options.normalize));
  RHIZOME_ASSIGN_OR_RETURN(MinibatchSampler sampler,
                           MinibatchSampler::Create(graph, options.sampler, options.neighbors));
  auto impl = std::make_unique<Impl>(graph, options, std::move(next_seeds), control,
                                     std::move(sampler), std::move(cache), decoder);
  return std::unique_ptr<Loader>(new Loader(std::move(impl)));
}

Loader::Loader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Loader::~Loader() = default;
Result<std::optional<Minibatch>> Loader::Next() { return impl_->Next(); }
RowReaderStats Loader::reader_stats() const { return impl_->reader_stats(); }

}  // namespace rhizome
