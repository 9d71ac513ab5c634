#include "cache/feed/feed_pipeline.h"

#include <fmt/format.h>

#include <atomic>
#include <utility>
#include <variant>

#include "cache/feed/feature_decoder.h"
#include "cache/feed/superbatch.h"
#include "cache/job/bounded_queue.h"
#include "cache/policy/schedule_history.h"
#include "cache/pool/rank_schedule.h"
#include "rhizome/policy.h"
#include "storage/base/check.h"
#include "storage/base/exceptions.h"
#include "storage/base/mutex.h"
#include "storage/base/threads.h"

namespace rhizome {
inline namespace internal {
namespace {

/// A sampled superbatch that is passed to the reading thread. It is scheduled before it arrives
/// there.
struct Superbatch {
  std::uint64_t number = 0;
  Path path;
  std::vector<SuperbatchEntry> entries;
  std::vector<MinibatchCosts> costs;
  Trace trace;                     ///< valid until the policy is made from it
  std::unique_ptr<Policy> policy;  // null: the policy of the previous superbatch continues
};

/// Adds the reads of the cache since `before`.
void AddReads(const GatherStats& now, const GatherStats& before, RowReads& reads) {
  reads += now;
  reads -= before;
}

/// A counter by which one thread reports its progress to another.
class Progress {
 public:
  void Advance() {
    const MutexLock lock(mutex_);
    ++count_;
    changed_.NotifyAll();
  }
  /// Ends all waits. The count does not increase any more.
  void End() {
    const MutexLock lock(mutex_);
    ended_ = true;
    changed_.NotifyAll();
  }
  void WaitFor(std::uint64_t count) {
    const MutexLock lock(mutex_);
    while (count_ < count && !ended_) changed_.Wait(mutex_);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::uint64_t count_ RHIZOME_GUARDED_BY(mutex_) = 0;
  bool ended_ RHIZOME_GUARDED_BY(mutex_) = false;
};

/// Holding more than this multiple of the planned rows is an error.
constexpr std::uint64_t kHeldMargin = 16;
constexpr std::uint64_t kMaxSlots = std::uint64_t{1} << 31;

/// Returns the number of slots for rows that are held outside the cache. A minibatch holds at most
/// all rows of the graph.
HoldLimits HoldLimitsOf(const FeedPipelineOptions& options, std::uint64_t row_count) {
  const std::uint64_t most = std::min(kMaxSlots, kMinibatchesAlive * row_count);
  if (options.held_rows == 0) return {.slots = most, .most = most};
  return {.slots = std::min(options.held_rows, most),
          .most = std::min(options.held_rows * kHeldMargin, most)};
}

Status CheckOverRanks(const FeedPipelineOptions& options, std::uint64_t rows) {
  const std::optional<RowsOverRanks>& over_ranks = options.over_ranks;
  if (!over_ranks) return Status::Ok();
  if (over_ranks->keeper && options.overlap == Overlap::kChangeset)
    return Status::InvalidArgument(
        "`prefetch` other than belady cannot be combined with `overlap=changeset`; use another "
        "`overlap`");
  if (over_ranks->ranks.rank_of.size() < rows) {
    return Status::InvalidArgument(
        fmt::format("the table of ranks has {} rows, but the graph has {}; create the table again",
                    over_ranks->ranks.rank_of.size(), rows));
  }
  if (over_ranks->local_cost > 0 && over_ranks->remote_cost > 0) return Status::Ok();
  return Status::InvalidArgument("the costs of reading local and remote rows must be above 0");
}

}  // namespace

bool SchedulesApart(const FeedPipelineOptions& options) {
  constexpr std::uint32_t kStages = 4;  // sampling, scheduling, reading, and the caller
  return options.sampler.sampler.threads >= kStages;
}

bool KeepsHistory(const FeedPipelineOptions& options) {
  return options.prior != Prior::kNone && TakesPrior(options.policy) &&
         options.overlap != Overlap::kChangeset;
}

/// Implementation of the pipeline. Three or four threads take part.
/// 1. The sampling thread draws a superbatch into a scratch file (SampleAll). It also makes its
///    schedule, unless sampling and reading take turns or there is a scheduling thread.
/// 2. The scheduling thread, if SchedulesApart, makes the schedule of a superbatch while the next
///    one is drawn (ScheduleAll).
/// 3. The reading thread starts the schedule of each superbatch. Then, for each minibatch, it reads
///    the sampled graph back and holds its rows (ReadAll). While the caller is busy, it reads ahead
///    for the next superbatch.
/// 4. The caller receives minibatches (Next), which keep their rows in the cache until they are
///    destroyed.
///
/// The sampling thread owns sampler_ and next_seeds_, the thread that schedules owns history_ and
/// over_ranks_, and the reading thread owns cache_. They communicate only through the queues. A
/// stage that fails finishes its output queue with the error and cancels its input queue, so that
/// no thread waits for a thread that has ended.
class FeedPipeline::Impl {
 public:
  Impl(const GraphSnapshot& graph, const FeedPipelineOptions& options, NextSeeds next_seeds,
       const JobControl& control, MinibatchSampler sampler, std::unique_ptr<FeatureCache> cache,
       const FeatureDecoder& decoder)
      : fs_(graph.store().fs()),
        options_(options),
        control_(control),
        decoder_(decoder),
        next_seeds_(std::move(next_seeds)),
        sampler_(std::move(sampler)),
        cache_(std::move(cache)) {
    if (KeepsHistory(options)) history_.emplace(cache_->row_count());
    if (options.over_ranks && options.policy == PolicyKind::kBelady)
      over_ranks_.emplace(*options.over_ranks, cache_->frame_count());
  }

  Status Start() {
    RHIZOME_RETURN_IF_ERROR(sampling_.Start([this] {
      RunSampling();
      return Status::Ok();
    }));
    if (schedules_apart()) {
      RHIZOME_RETURN_IF_ERROR(scheduling_.Start([this] {
        RunScheduling();
        return Status::Ok();
      }));
    }
    return reading_.Start([this] {
      RunReading();
      return Status::Ok();
    });
  }

  ~Impl() {
    stopping_.store(true);
    minibatches_.Cancel();
    room_.Cancel();
    asked_.End();
    cache_->Cancel();
    EndReading();
    static_cast<void>(sampling_.Join());
    static_cast<void>(scheduling_.Join());
    static_cast<void>(reading_.Join());
  }

  Result<std::optional<Minibatch>> Next();
  RowReaderStats reader_stats() const { return cache_->reader_stats(); }

 private:
  bool in_turns() const { return options_.overlap == Overlap::kChangeset; }
  bool schedules_apart() const { return SchedulesApart(options_) && !in_turns(); }
  void WaitUntilAsked();
  void RunSampling();
  Status SampleAll();
  Status SampleInTurn(std::optional<Superbatch>& superbatch);
  void RunScheduling();
  Status ScheduleAll();
  Status Schedule(Superbatch& superbatch);
  Result<std::unique_ptr<Policy>> MakeSchedule(const Trace& trace);
  void EndReading();
  Result<std::optional<Superbatch>> SampleSuperbatch();
  void RunReading();
  Status ReadAll();
  Status ReadSuperbatch(Superbatch superbatch);
  Result<bool> EnterPipeline();
  Result<bool> ReadAhead();
  Status ReadFeatures(Minibatch& minibatch);

  // Constant after construction.
  FileSystem& fs_;
  const FeedPipelineOptions options_;
  const JobControl& control_;
  const FeatureDecoder decoder_;

  // Used by the sampling thread.
  NextSeeds next_seeds_;
  std::optional<SeedBatch> begins_next_;  // first seeds of the next superbatch
  const MinibatchSampler sampler_;
  std::uint64_t superbatch_count_ = 0;
  std::uint64_t sample_count_ = 0;

  // Used by the thread that schedules.
  std::optional<ScheduleHistory> history_;
  std::optional<RankSchedules> over_ranks_;

  // Used by the reading thread. (The sampling thread reads constants, the caller calls SetStarved.)
  const std::unique_ptr<FeatureCache> cache_;
  std::uint64_t read_count_ = 0;
  std::uint64_t entered_ = 0;   // number of minibatches that have entered the pipeline
  MinibatchCosts ahead_costs_;  // costs of reading ahead for the next superbatch

  // Self-synchronised. Minibatches hold rows of the cache, so their queue is destroyed before it.
  BoundedQueue<Superbatch> drawn_{1};  // passed to the scheduling thread
  BoundedQueue<Superbatch> superbatches_{1};
  BoundedQueue<std::monostate> room_{kMinibatchesAhead};  // one entry per minibatch in the pipeline
  BoundedQueue<Minibatch> minibatches_{kMinibatchesAhead};
  Progress sampled_;                    // number of sampled superbatches; for kChangeset
  Progress used_;                       // number of superbatches whose memory was released
  Progress asked_;                      // number of minibatches that were requested; for kNone
  std::atomic<bool> stopping_ = false;  // the object is being destroyed

  Thread sampling_;
  Thread scheduling_;
  Thread reading_;
};

Result<std::optional<Minibatch>> FeedPipeline::Impl::Next() {
  asked_.Advance();
  const bool starved = minibatches_.empty();
  if (starved) cache_->SetStarved(true);
  RHIZOME_ASSIGN_OR_RETURN(std::optional<Minibatch> minibatch, minibatches_.Pop());
  if (starved) cache_->SetStarved(false);
  // room_ has an entry for each minibatch, unless the pipeline was cancelled; in that case no
  // thread waits for an entry.
  if (minibatch) static_cast<void>(room_.Pop());
  return minibatch;
}

void FeedPipeline::Impl::RunSampling() {
  (schedules_apart() ? drawn_ : superbatches_).Finish(Guarded([this] { return SampleAll(); }));
  sampled_.End();
}

Status FeedPipeline::Impl::SampleAll() {
  BoundedQueue<Superbatch>& next = schedules_apart() ? drawn_ : superbatches_;
  // Waiting for space in the queue first bounds the number of superbatches: one in use, one ready
  // and, if there is a scheduling thread, one without a schedule.
  while (next.WaitForSpace()) {
    std::optional<Superbatch> superbatch;
    if (in_turns()) {
      RHIZOME_RETURN_IF_ERROR(SampleInTurn(superbatch));
    } else {
      RHIZOME_ASSIGN_OR_RETURN(superbatch, SampleSuperbatch());
      if (superbatch && !schedules_apart()) RHIZOME_RETURN_IF_ERROR(Schedule(*superbatch));
    }
    if (!superbatch) return Status::Ok();
    next.Push(*std::move(superbatch));
    sampled_.Advance();
  }
  return Status::Ok();
}

void FeedPipeline::Impl::RunScheduling() {
  superbatches_.Finish(Guarded([this] { return ScheduleAll(); }));
  drawn_.Cancel();
}

Status FeedPipeline::Impl::ScheduleAll() {
  while (superbatches_.WaitForSpace()) {
    RHIZOME_ASSIGN_OR_RETURN(std::optional<Superbatch> superbatch, drawn_.Pop());
    if (!superbatch) return Status::Ok();
    RHIZOME_RETURN_IF_ERROR(Schedule(*superbatch));
    superbatches_.Push(*std::move(superbatch));
  }
  return Status::Ok();
}

/// Samples the superbatch after the one that is used next, during sampling's turn of the memory.
Status FeedPipeline::Impl::SampleInTurn(std::optional<Superbatch>& superbatch) {
  used_.WaitFor(std::max<std::uint64_t>(superbatch_count_, 1) - 1);
  const StageTimer lending(options_.trace, Stage::kSwitch, superbatch_count_);
  if (options_.lists != nullptr) RHIZOME_RETURN_IF_ERROR(options_.lists->Lend());
  const double lent = lending.Stop();
  Result<std::optional<Superbatch>> sampled = SampleSuperbatch();
  if (options_.lists != nullptr) options_.lists->TakeBack();
  if (!sampled) return sampled.error();
  superbatch = *std::move(sampled);
  if (superbatch) superbatch->costs.front().switch_seconds += lent;
  return Status::Ok();
}

Status FeedPipeline::Impl::Schedule(Superbatch& superbatch) {
  const StageTimer timer(options_.trace, Stage::kSchedule, superbatch.number);
  if (options_.on_superbatch) RHIZOME_RETURN_IF_ERROR(options_.on_superbatch(superbatch.trace));
  // An online policy keeps what it has learnt, unless the pool loses its rows.
  if (!KnowsTheFuture(options_.policy) && superbatch.number > 0 && !in_turns()) {
    superbatch.trace = {};
    return Status::Ok();
  }
  RHIZOME_ASSIGN_OR_RETURN(superbatch.policy, MakeSchedule(superbatch.trace));
  superbatch.trace = {};
  superbatch.costs.front().schedule_seconds = timer.Stop();
  return Status::Ok();
}

Result<std::unique_ptr<Policy>> FeedPipeline::Impl::MakeSchedule(const Trace& trace) {
  ScheduleHistory* const history = history_ ? &*history_ : nullptr;
  if (over_ranks_) {
    if (in_turns()) over_ranks_->Empty();
    return over_ranks_->Make(trace, history);
  }
  return MakePolicy({.kind = options_.policy,
                     .frame_count = cache_->frame_count(),
                     .key_count = cache_->row_count(),
                     .unit_bytes = cache_->array().row_bytes(),
                     .cost = cache_->read_cost(),
                     .history = history},
                    trace);
}

Result<std::optional<Superbatch>> FeedPipeline::Impl::SampleSuperbatch() {
  std::optional<SeedBatch> seeds =
      begins_next_ ? std::exchange(begins_next_, std::nullopt) : next_seeds_();
  if (!seeds) return std::optional<Superbatch>();
  Superbatch superbatch;
  superbatch.number = superbatch_count_++;
  superbatch.path = options_.scratch / fmt::format("superbatch-{:06}", superbatch.number);
  RHIZOME_ASSIGN_OR_RETURN(SuperbatchWriter writer, SuperbatchWriter::Create(fs_, superbatch.path));
  while (seeds) {
    RHIZOME_RETURN_IF_ERROR(control_.CheckCancelled());
    if (stopping_.load())
      return Fail(Status::Interrupted("the minibatches are not needed any more"));
    const StageTimer timer(options_.trace, Stage::kSample, sample_count_++);
    RHIZOME_ASSIGN_OR_RETURN(const Minibatch minibatch, sampler_.Sample(*seeds));
    RHIZOME_RETURN_IF_ERROR(writer.Append(minibatch));
    AddStep(minibatch, superbatch.trace);
    superbatch.costs.emplace_back().sample_seconds = timer.Stop();
    if (superbatch.costs.size() == options_.superbatch) break;
    seeds = next_seeds_();
    if (seeds && seeds->begins_superbatch) begins_next_ = std::exchange(seeds, std::nullopt);
  }
  RHIZOME_ASSIGN_OR_RETURN(superbatch.entries, writer.Finish());
  RHIZOME_DCHECK(superbatch.entries.size() == superbatch.costs.size() &&
                 superbatch.entries.size() == superbatch.trace.steps());
  return std::optional<Superbatch>(std::move(superbatch));
}

void FeedPipeline::Impl::RunReading() {
  const Status status = Guarded([this] { return ReadAll(); });
  EndReading();
  minibatches_.Finish(status);
}

/// Ends all waits of the threads for each other.
void FeedPipeline::Impl::EndReading() {
  superbatches_.Cancel();
  drawn_.Cancel();
  used_.End();
  sampled_.End();
}

Status FeedPipeline::Impl::ReadAll() {
  while (true) {
    RHIZOME_ASSIGN_OR_RETURN(std::optional<Superbatch> superbatch, superbatches_.Pop());
    if (!superbatch) return Status::Ok();
    if (in_turns()) {
      RHIZOME_RETURN_IF_ERROR(Schedule(*superbatch));
      // Until then the sampling of the next superbatch uses the memory.
      sampled_.WaitFor(superbatch->number + 2);
    }
    RHIZOME_RETURN_IF_ERROR(ReadSuperbatch(*std::move(superbatch)));
    if (in_turns()) {
      cache_->Discard();
      used_.Advance();
    }
  }
}

Status FeedPipeline::Impl::ReadSuperbatch(Superbatch superbatch) {
  RHIZOME_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, fs_.OpenRead(superbatch.path));
  WaitUntilAsked();
  const GatherStats before = cache_->stats();
  const StageTimer timer(options_.trace, Stage::kSwitch, superbatch.number);
  if (superbatch.policy != nullptr)
    RHIZOME_RETURN_IF_ERROR(cache_->Start(std::move(superbatch.policy)));
  ahead_costs_.switch_seconds += timer.Stop();
  AddReads(cache_->stats(), before, ahead_costs_);
  superbatch.costs.front() += std::exchange(ahead_costs_, {});
  for (std::size_t i = 0; i < superbatch.entries.size(); ++i) {
    RHIZOME_ASSIGN_OR_RETURN(const bool entered, EnterPipeline());
    if (!entered) break;
    RHIZOME_RETURN_IF_ERROR(control_.CheckCancelled());
    RHIZOME_ASSIGN_OR_RETURN(Minibatch minibatch, ReadMinibatch(*file, superbatch.entries[i]));
    minibatch.costs = superbatch.costs[i];
    RHIZOME_RETURN_IF_ERROR(ReadFeatures(minibatch));
    if (options_.complete) RHIZOME_RETURN_IF_ERROR(options_.complete(minibatch));
    if (!minibatches_.Push(std::move(minibatch))) break;
  }
  return fs_.RemoveFile(superbatch.path);
}

/// With Overlap::kNone, waits until the caller requests the next minibatch.
void FeedPipeline::Impl::WaitUntilAsked() {
  if (options_.overlap == Overlap::kNone) asked_.WaitFor(entered_ + 1);
}

/// Waits until the pipeline has space for a minibatch, and reads ahead while waiting. Returns false
/// if cancelled.
Result<bool> FeedPipeline::Impl::EnterPipeline() {
  WaitUntilAsked();
  ++entered_;
  if (options_.overlap == Overlap::kNone) return room_.Push({});
  while (!room_.TryPush({})) {
    RHIZOME_ASSIGN_OR_RETURN(const bool read, ReadAhead());
    if (!read) return room_.Push({});
  }
  return true;
}

/// Reads a piece of the next superbatch's prefill if that superbatch is ready. Returns false if no
/// read is possible yet.
Result<bool> FeedPipeline::Impl::ReadAhead() {
  const Superbatch* const next = superbatches_.Peek();
  if (next == nullptr || next->policy == nullptr) return false;
  if (!cache_->announced()) cache_->Announce(*next->policy);
  const GatherStats before = cache_->stats();
  const StageTimer timer(options_.trace, Stage::kSwitch, next->number);
  RHIZOME_ASSIGN_OR_RETURN(const bool read, cache_->ReadAhead());
  if (!read) return false;
  ahead_costs_.switch_seconds += timer.Stop();
  AddReads(cache_->stats(), before, ahead_costs_);
  return true;
}

Status FeedPipeline::Impl::ReadFeatures(Minibatch& minibatch) {
  const StageTimer timer(options_.trace, Stage::kRead, read_count_++);
  const GatherStats before = cache_->stats();
  HeldRows held;
  if (minibatch.seed_of.empty()) {
    RHIZOME_RETURN_IF_ERROR(cache_->Hold(minibatch.rows, held));
    minibatch.features = FeatureRows(std::move(held), decoder_.type(), decoder_.dim());
  } else {
    DistinctRows distinct = DistinctRowsOf(minibatch);
    RHIZOME_RETURN_IF_ERROR(cache_->Hold(distinct.rows, held));
    minibatch.features =
        FeatureRows(std::move(held), decoder_.type(), decoder_.dim(), std::move(distinct.row_of));
  }
  const GatherStats after = cache_->stats();
  AddReads(after, before, minibatch.costs);
  minibatch.costs.update_seconds = after.update_seconds - before.update_seconds;
  minibatch.costs.gather_seconds = timer.Stop() - minibatch.costs.update_seconds;
  return Status::Ok();
}

Result<std::unique_ptr<FeedPipeline>> FeedPipeline::Open(const GraphSnapshot& graph,
                                                         const FeedPipelineOptions& options,
                                                         NextSeeds next_seeds,
                                                         const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(const auto array, graph.store().OpenArray(options.features));
  RHIZOME_ASSIGN_OR_RETURN(const FeatureDecoder decoder,
                           FeatureDecoder::Create(array->entry(), options.normalize));
  FeatureCacheOptions cache_options;
  cache_options.capacity_bytes = options.cache_bytes;
  cache_options.held = HoldLimitsOf(options, graph.vertex_count());
  cache_options.kept_row_bytes = decoder.row_bytes();
  if (!decoder.takes_as_stored()) {
    cache_options.on_arrival = [decoder](std::span<std::byte> row) { decoder.DecodeRow(row); };
  }
  cache_options.read_cost = options.read_cost;
  cache_options.fetcher = options.fetcher;
  cache_options.reader.io.maker = options.io;
  cache_options.reader.io.depth = options.depth;
  cache_options.reader.staging_bytes = options.staging_bytes;
  RHIZOME_ASSIGN_OR_RETURN(std::unique_ptr<FeatureCache> cache,
                           FeatureCache::Open(graph, options.features, cache_options));
  RHIZOME_RETURN_IF_ERROR(CheckOverRanks(options, cache->row_count()));
  auto neighbors = options.lists == nullptr ? nullptr : options.lists->source();
  RHIZOME_ASSIGN_OR_RETURN(MinibatchSampler sampler,
                           MinibatchSampler::Create(graph, options.sampler, std::move(neighbors)));
  auto impl = std::make_unique<Impl>(graph, options, std::move(next_seeds), control,
                                     std::move(sampler), std::move(cache), decoder);
  RHIZOME_RETURN_IF_ERROR(impl->Start());
  return std::unique_ptr<FeedPipeline>(new FeedPipeline(std::move(impl)));
}

FeedPipeline::FeedPipeline(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
FeedPipeline::~FeedPipeline() = default;
Result<std::optional<Minibatch>> FeedPipeline::Next() { return impl_->Next(); }
RowReaderStats FeedPipeline::reader_stats() const { return impl_->reader_stats(); }

}  // namespace internal
}  // namespace rhizome
