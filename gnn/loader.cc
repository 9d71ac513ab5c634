#include "rhizome/gnn/loader.h"

#include <fmt/format.h>

#include <thread>
#include <utility>
#include <variant>

#include "rhizome/gnn/bounded_queue.h"
#include "rhizome/gnn/feature_rows.h"
#include "rhizome/gnn/superbatch.h"
#include "rhizome/storage/mutex.h"

namespace rhizome {
namespace {

/// A sampled and scheduled superbatch, on its way to the reading thread.
struct Superbatch {
  std::uint64_t number = 0;
  Path path;
  std::vector<SuperbatchEntry> entries;
  std::vector<MinibatchCosts> costs;
  std::unique_ptr<Policy> policy;
};

/// A minibatch whose misses were read, on its way to the copying thread.
struct ReadMinibatchRows {
  std::uint64_t number = 0;
  Minibatch minibatch;
  FeatureMatrix stored;  ///< rows as they are stored, where networks take them in another type
  GatherStep step;
};

/// What the cache did since `before`.
void AddReads(const GatherStats& now, const GatherStats& before, MinibatchCosts& costs) {
  costs.rows_requested += now.rows_requested - before.rows_requested;
  costs.pool_hits += now.pool_hits - before.pool_hits;
  costs.rows_kept += now.rows_kept - before.rows_kept;
  costs.rows_read += now.rows_read - before.rows_read;
  costs.bytes_read += now.bytes_read - before.bytes_read;
  costs.reads_issued += now.reads_issued - before.reads_issued;
}

/// How many minibatches have left a stage, for one thread that waits for another's.
class PassCount {
 public:
  void Add() {
    const MutexLock lock(mutex_);
    ++count_;
    changed_.NotifyAll();
  }
  /// Waits until there were `count`, or no more will come.
  void WaitFor(std::uint64_t count) {
    const MutexLock lock(mutex_);
    while (count_ < count && !ended_) changed_.Wait(mutex_);
  }
  void End() {
    const MutexLock lock(mutex_);
    ended_ = true;
    changed_.NotifyAll();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::uint64_t count_ RHIZOME_GUARDED_BY(mutex_) = 0;
  bool ended_ RHIZOME_GUARDED_BY(mutex_) = false;
};

}  // namespace

/// The sampling thread owns sampler_ and next_seeds_; the reading thread starts and fetches from
/// cache_, which the copying thread finishes; they meet in the queues only, and where the reading
/// thread waits for the copies of a superbatch before it starts the next. A stage that fails
/// finishes its own queue with the error and cancels the one before it, so that no thread waits for
/// one that has ended.
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
        reading_([this] { RunReading(); }),
        copying_([this] { RunCopying(); }) {}

  ~Impl() {
    minibatches_.Cancel();
    EndReading();
    sampling_.join();
    reading_.join();
    copying_.join();
  }

  Result<std::optional<Minibatch>> Next();
  void Recycle(Minibatch minibatch);
  RowReaderStats reader_stats() const { return cache_->reader_stats(); }

 private:
  Status SampleAll();
  Result<std::optional<Superbatch>> SampleSuperbatch();
  void RunReading();
  Status ReadAll();
  Status ReadSuperbatch(Superbatch superbatch);
  Result<ReadMinibatchRows> ReadFeatures(Minibatch minibatch);
  void EndReading();
  void RunCopying();
  Status CopyAll();
  void CopyFeatures(ReadMinibatchRows& read);
  FeatureMatrix TakeSpare();

  // Constant after construction.
  FileSystem& fs_;
  const LoaderOptions options_;
  const JobControl& control_;
  const FeatureDecoder decoder_;

  // The sampling thread's.
  NextSeeds next_seeds_;
  const MinibatchSampler sampler_;
  std::uint64_t superbatch_count_ = 0;
  std::uint64_t sample_count_ = 0;

  // The reading and the copying thread's, as it says itself (the sampling thread asks constants).
  const std::unique_ptr<FeatureCache> cache_;
  std::uint64_t read_count_ = 0;  // the reading thread's

  // Self-synchronised.
  BoundedQueue<Superbatch> superbatches_{1};
  BoundedQueue<std::monostate> room_{kMinibatchesAhead};  // one for each minibatch in the loader
  BoundedQueue<ReadMinibatchRows> read_{kMinibatchesAhead};
  BoundedQueue<Minibatch> minibatches_{kMinibatchesAhead};
  PassCount copied_;
  Mutex spare_mutex_;
  std::vector<FeatureMatrix> spare_ RHIZOME_GUARDED_BY(spare_mutex_);

  // Last, so that they start when all else is there.
  std::thread sampling_;
  std::thread reading_;
  std::thread copying_;
};

Result<std::optional<Minibatch>> Loader::Impl::Next() {
  RHIZOME_ASSIGN_OR_RETURN(std::optional<Minibatch> minibatch, minibatches_.Pop());
  // There is one for each minibatch, unless all was cancelled; then nobody asks for room.
  if (minibatch) static_cast<void>(room_.Pop());
  return minibatch;
}

void Loader::Impl::Recycle(Minibatch minibatch) {
  const MutexLock lock(spare_mutex_);
  spare_.push_back(std::move(minibatch.features));
}

FeatureMatrix Loader::Impl::TakeSpare() {
  const MutexLock lock(spare_mutex_);
  if (spare_.empty()) return {};
  FeatureMatrix taken = std::move(spare_.back());
  spare_.pop_back();
  return taken;
}

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
  superbatch.number = superbatch_count_++;
  superbatch.path = options_.scratch / fmt::format("superbatch-{:06}", superbatch.number);
  RHIZOME_ASSIGN_OR_RETURN(SuperbatchWriter writer, SuperbatchWriter::Create(fs_, superbatch.path));
  Trace trace;
  while (seeds) {
    RHIZOME_RETURN_IF_ERROR(control_.CheckCancelled());
    const StageTimer timer(options_.trace, Stage::kSample, sample_count_++);
    RHIZOME_ASSIGN_OR_RETURN(const Minibatch minibatch, sampler_.Sample(*seeds));
    RHIZOME_RETURN_IF_ERROR(writer.Append(minibatch));
    trace.AddStep(minibatch.rows);
    superbatch.costs.push_back({.sample_seconds = timer.Stop()});
    if (superbatch.costs.size() == options_.superbatch) break;
    seeds = next_seeds_();
  }
  RHIZOME_ASSIGN_OR_RETURN(superbatch.entries, writer.Finish());
  const StageTimer timer(options_.trace, Stage::kSchedule, superbatch.number);
  superbatch.policy = MakePolicy({.kind = options_.policy,
                                  .frame_count = cache_->frame_count(),
                                  .key_count = cache_->row_count(),
                                  .unit_bytes = cache_->array().row_bytes(),
                                  .cost = cache_->read_cost()},
                                 trace);
  superbatch.costs.front().schedule_seconds = timer.Stop();
  return std::optional<Superbatch>(std::move(superbatch));
}

void Loader::Impl::RunReading() {
  const Status status = ReadAll();
  superbatches_.Cancel();
  read_.Finish(status);
}

/// Lets the reading thread end, wherever it waits, and through it the sampling thread.
void Loader::Impl::EndReading() {
  read_.Cancel();
  room_.Cancel();
  copied_.End();
  superbatches_.Cancel();
}

Status Loader::Impl::ReadAll() {
  while (true) {
    RHIZOME_ASSIGN_OR_RETURN(std::optional<Superbatch> superbatch, superbatches_.Pop());
    if (!superbatch) return Status::Ok();
    RHIZOME_RETURN_IF_ERROR(ReadSuperbatch(*std::move(superbatch)));
  }
}

Status Loader::Impl::ReadSuperbatch(Superbatch superbatch) {
  RHIZOME_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, fs_.OpenRead(superbatch.path));
  copied_.WaitFor(read_count_);
  const GatherStats before = cache_->stats();
  const StageTimer timer(options_.trace, Stage::kSwitch, superbatch.number);
  RHIZOME_RETURN_IF_ERROR(cache_->Start(std::move(superbatch.policy)));
  superbatch.costs.front().switch_seconds = timer.Stop();
  AddReads(cache_->stats(), before, superbatch.costs.front());
  for (std::size_t i = 0; i < superbatch.entries.size(); ++i) {
    if (!room_.Push({})) break;
    RHIZOME_RETURN_IF_ERROR(control_.CheckCancelled());
    RHIZOME_ASSIGN_OR_RETURN(Minibatch minibatch, ReadMinibatch(*file, superbatch.entries[i]));
    minibatch.costs = superbatch.costs[i];
    RHIZOME_ASSIGN_OR_RETURN(ReadMinibatchRows read, ReadFeatures(std::move(minibatch)));
    if (!read_.Push(std::move(read))) break;
  }
  return fs_.RemoveFile(superbatch.path);
}

Result<ReadMinibatchRows> Loader::Impl::ReadFeatures(Minibatch minibatch) {
  ReadMinibatchRows read{
      .number = read_count_++, .minibatch = std::move(minibatch), .stored = {}, .step = {}};
  Minibatch& made = read.minibatch;
  const StageTimer timer(options_.trace, Stage::kRead, read.number);
  const GatherStats before = cache_->stats();
  made.features = TakeSpare();
  RHIZOME_RETURN_IF_ERROR(made.features.Resize(decoder_.type(), made.rows.size(), decoder_.dim()));
  const bool in_place = decoder_.type() == decoder_.stored_type();
  if (!in_place) {
    RHIZOME_RETURN_IF_ERROR(
        read.stored.Resize(decoder_.stored_type(), made.rows.size(), decoder_.dim()));
  }
  const FeatureMatrix& rows = in_place ? made.features : read.stored;
  RHIZOME_RETURN_IF_ERROR(cache_->Fetch(made.rows, rows.bytes(), read.step));
  AddReads(cache_->stats(), before, made.costs);
  made.costs.gather_seconds = timer.Stop();
  return read;
}

void Loader::Impl::RunCopying() {
  const Status status = CopyAll();
  EndReading();
  minibatches_.Finish(status);
}

Status Loader::Impl::CopyAll() {
  while (true) {
    RHIZOME_ASSIGN_OR_RETURN(std::optional<ReadMinibatchRows> read, read_.Pop());
    if (!read) return Status::Ok();
    CopyFeatures(*read);
    copied_.Add();
    if (!minibatches_.Push(std::move(read->minibatch))) return Status::Ok();
  }
}

void Loader::Impl::CopyFeatures(ReadMinibatchRows& read) {
  const StageTimer timer(options_.trace, Stage::kCopy, read.number);
  Minibatch& made = read.minibatch;
  cache_->Finish(read.step);
  if (decoder_.type() == decoder_.stored_type()) {
    decoder_.DecodeInPlace(made.features);
  } else {
    decoder_.Decode(read.stored.bytes(), made.features.floats());
  }
  made.costs.update_seconds = read.step.update_seconds;
  made.costs.gather_seconds += timer.Stop() - read.step.update_seconds;
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
void Loader::Recycle(Minibatch minibatch) { impl_->Recycle(std::move(minibatch)); }
RowReaderStats Loader::reader_stats() const { return impl_->reader_stats(); }

}  // namespace rhizome
