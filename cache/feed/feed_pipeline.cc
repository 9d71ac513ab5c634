#include "cache/feed/feed_pipeline.h"

#include <fmt/format.h>

#include <atomic>
#include <utility>
#include <variant>

#include "cache/feed/array_feed.h"
#include "cache/feed/input_division.h"
#include "cache/feed/row_types.h"
#include "cache/feed/superbatch.h"
#include "cache/job/bounded_queue.h"
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
  std::vector<Trace> traces;  ///< one for each array, until the policies are made from them

  /// One for each array; empty: the policies of the previous superbatch continue.
  std::vector<std::unique_ptr<Policy>> policies;
};

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

/// Minimum read buffers of one of several arrays.
constexpr std::size_t kMinStagingBytes = std::size_t{1} << 20;

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
/// The sampling thread owns sampler_ and next_seeds_, the thread that schedules makes the
/// schedules of feeds_, and the reading thread reads through them. They communicate only through
/// the queues. A stage that fails finishes its output queue with the error and cancels its input
/// queue, so that no thread waits for a thread that has ended.
class FeedPipeline::Impl {
 public:
  Impl(const GraphSnapshot& graph, const FeedPipelineOptions& options, NextSeeds next_seeds,
       const JobControl& control, MinibatchSampler sampler, InputDivision division,
       std::vector<std::unique_ptr<ArrayFeed>> feeds)
      : fs_(graph.store().fs()),
        options_(options),
        control_(control),
        division_(std::move(division)),
        row_types_(graph),
        next_seeds_(std::move(next_seeds)),
        sampler_(std::move(sampler)),
        feeds_(std::move(feeds)),
        ahead_reads_(feeds_.size()) {}

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
    for (const auto& feed : feeds_) feed->cache().Cancel();
    EndReading();
    static_cast<void>(sampling_.Join());
    static_cast<void>(scheduling_.Join());
    static_cast<void>(reading_.Join());
  }

  Result<std::optional<Minibatch>> Next();
  RowReaderStats reader_stats() const;

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
  void EndReading();
  Result<std::optional<Superbatch>> SampleSuperbatch();
  Status SampleTogether(std::span<const SeedBatch> batches, SuperbatchWriter& writer,
                        Superbatch& superbatch);
  void RunReading();
  Status ReadAll();
  Status ReadSuperbatch(Superbatch superbatch);
  Result<bool> EnterPipeline();
  Result<bool> ReadAhead();
  Status StartSchedules(Superbatch& superbatch);
  Status ReadFeatures(Minibatch& minibatch, std::vector<RowReads>& reads);
  Status HoldInputs(Minibatch& minibatch);
  double UpdateSeconds() const;
  void SetStarved(bool starved) {
    for (const auto& feed : feeds_) feed->cache().SetStarved(starved);
  }

  // Constant after construction.
  FileSystem& fs_;
  const FeedPipelineOptions options_;
  const JobControl& control_;
  const InputDivision division_;
  const RowTypes row_types_;

  // Used by the sampling thread.
  NextSeeds next_seeds_;
  std::optional<SeedBatch> begins_next_;  // first seeds of the next superbatch
  const MinibatchSampler sampler_;
  std::uint64_t superbatch_count_ = 0;
  std::uint64_t sample_count_ = 0;

  // Used by the reading thread, and by the thread that schedules. (The caller calls SetStarved.)
  const std::vector<std::unique_ptr<ArrayFeed>> feeds_;  // one for each array

  // Used by the reading thread.
  std::uint64_t read_count_ = 0;
  std::uint64_t entered_ = 0;          // number of minibatches that have entered the pipeline
  double ahead_seconds_ = 0;           // spent on reading ahead for the next superbatch
  std::vector<RowReads> ahead_reads_;  // of each array, for the next superbatch

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
  if (starved) SetStarved(true);
  RHIZOME_ASSIGN_OR_RETURN(std::optional<Minibatch> minibatch, minibatches_.Pop());
  if (starved) SetStarved(false);
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
  if (options_.on_superbatch)
    RHIZOME_RETURN_IF_ERROR(options_.on_superbatch(superbatch.traces.front()));
  const std::vector<Trace> traces = std::exchange(superbatch.traces, {});
  // An online policy keeps what it has learnt, unless the pool loses its rows.
  if (!KnowsTheFuture(options_.policy) && superbatch.number > 0 && !in_turns()) return Status::Ok();
  for (std::size_t a = 0; a < feeds_.size(); ++a) {
    RHIZOME_ASSIGN_OR_RETURN(superbatch.policies.emplace_back(),
                             feeds_[a]->MakeSchedule(traces[a], in_turns()));
  }
  superbatch.costs.front().schedule_seconds = timer.Stop();
  return Status::Ok();
}

Result<std::optional<Superbatch>> FeedPipeline::Impl::SampleSuperbatch() {
  std::optional<SeedBatch> seeds = std::exchange(begins_next_, std::nullopt);
  if (!seeds) {
    RHIZOME_ASSIGN_OR_RETURN(seeds, next_seeds_());
  }
  if (!seeds) return std::optional<Superbatch>();
  Superbatch superbatch;
  superbatch.number = superbatch_count_++;
  superbatch.traces.resize(feeds_.size());
  superbatch.path = options_.scratch / fmt::format("superbatch-{:06}", superbatch.number);
  RHIZOME_ASSIGN_OR_RETURN(SuperbatchWriter writer, SuperbatchWriter::Create(fs_, superbatch.path));
  while (seeds) {
    std::vector<SeedBatch> together;
    while (seeds) {
      together.push_back(*std::move(seeds));
      if (superbatch.costs.size() + together.size() == options_.superbatch) {
        seeds.reset();
        break;
      }
      RHIZOME_ASSIGN_OR_RETURN(seeds, next_seeds_());
      if (seeds && seeds->begins_superbatch) begins_next_ = std::exchange(seeds, std::nullopt);
      if (together.size() >= options_.swept) break;
    }
    RHIZOME_RETURN_IF_ERROR(SampleTogether(together, writer, superbatch));
  }
  RHIZOME_ASSIGN_OR_RETURN(superbatch.entries, writer.Finish());
  RHIZOME_DCHECK(
      superbatch.entries.size() == superbatch.costs.size() &&
      (feeds_.empty() || superbatch.entries.size() == superbatch.traces.front().steps()));
  if (options_.on_drawn) options_.on_drawn();
  return std::optional<Superbatch>(std::move(superbatch));
}

/// Samples minibatches together and appends them to a superbatch.
Status FeedPipeline::Impl::SampleTogether(std::span<const SeedBatch> batches,
                                          SuperbatchWriter& writer, Superbatch& superbatch) {
  RHIZOME_RETURN_IF_ERROR(control_.CheckCancelled());
  if (stopping_.load()) return Status::Interrupted("the minibatches are not needed any more");
  const StageTimer timer(options_.trace, Stage::kSample, sample_count_);
  sample_count_ += batches.size();
  const std::size_t first = superbatch.costs.size();
  RHIZOME_RETURN_IF_ERROR(sampler_.SampleTogether(batches, [&](Minibatch& minibatch) -> Status {
    RHIZOME_RETURN_IF_ERROR(writer.Append(minibatch));
    division_.AddStep(minibatch, superbatch.traces);
    if (options_.on_sampled) options_.on_sampled(minibatch);
    superbatch.costs.emplace_back();
    return Status::Ok();
  }));
  const double seconds = timer.Stop() / static_cast<double>(batches.size());
  for (std::size_t i = first; i < superbatch.costs.size(); ++i)
    superbatch.costs[i].sample_seconds = seconds;
  return Status::Ok();
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
      for (const auto& feed : feeds_) feed->cache().Discard();
      used_.Advance();
    }
  }
}

Status FeedPipeline::Impl::ReadSuperbatch(Superbatch superbatch) {
  RHIZOME_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, fs_.OpenRead(superbatch.path));
  WaitUntilAsked();
  RHIZOME_RETURN_IF_ERROR(StartSchedules(superbatch));
  std::vector<RowReads> reads = std::exchange(ahead_reads_, std::vector<RowReads>(feeds_.size()));
  for (std::size_t i = 0; i < superbatch.entries.size(); ++i) {
    RHIZOME_ASSIGN_OR_RETURN(const bool entered, EnterPipeline());
    if (!entered) break;
    RHIZOME_RETURN_IF_ERROR(control_.CheckCancelled());
    RHIZOME_ASSIGN_OR_RETURN(Minibatch minibatch, ReadMinibatch(*file, superbatch.entries[i]));
    minibatch.costs = superbatch.costs[i];
    if (options_.sampler.vertex_types || division_.by_type()) row_types_.Fill(minibatch);
    RHIZOME_RETURN_IF_ERROR(ReadFeatures(minibatch, reads));
    reads.assign(feeds_.size(), {});
    if (options_.complete) RHIZOME_RETURN_IF_ERROR(options_.complete(minibatch));
    if (!minibatches_.Push(std::move(minibatch))) break;
  }
  return fs_.RemoveFile(superbatch.path);
}

/// Reads the rest of the prefill of all arrays.
Status FeedPipeline::Impl::StartSchedules(Superbatch& superbatch) {
  const StageTimer timer(options_.trace, Stage::kSwitch, superbatch.number);
  for (std::size_t a = 0; a < superbatch.policies.size(); ++a) {
    RHIZOME_RETURN_IF_ERROR(feeds_[a]->cache().Start(std::move(superbatch.policies[a])));
    ahead_reads_[a] += feeds_[a]->TakeReads();
  }
  superbatch.costs.front().switch_seconds += timer.Stop() + std::exchange(ahead_seconds_, 0);
  return Status::Ok();
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
  if (next == nullptr || next->policies.empty()) return false;
  const StageTimer timer(options_.trace, Stage::kSwitch, next->number);
  for (std::size_t a = 0; a < feeds_.size(); ++a) {
    FeatureCache& cache = feeds_[a]->cache();
    if (!cache.announced()) cache.Announce(*next->policies[a]);
    RHIZOME_ASSIGN_OR_RETURN(const bool read, cache.ReadAhead());
    if (!read) continue;
    ahead_seconds_ += timer.Stop();
    ahead_reads_[a] += feeds_[a]->TakeReads();
    return true;
  }
  return false;
}

/// Holds the rows of a minibatch in all caches. `reads`: reads of each array that are booked on it
/// already.
Status FeedPipeline::Impl::ReadFeatures(Minibatch& minibatch, std::vector<RowReads>& reads) {
  const StageTimer timer(options_.trace, Stage::kRead, read_count_++);
  const double before = UpdateSeconds();
  if (division_.by_type()) {
    RHIZOME_RETURN_IF_ERROR(HoldInputs(minibatch));
  } else if (minibatch.seed_of.empty()) {
    RHIZOME_ASSIGN_OR_RETURN(minibatch.features,
                             feeds_.front()->Hold(minibatch.rows, std::nullopt));
  } else {
    DistinctRows distinct = DistinctRowsOf(minibatch.rows);
    RHIZOME_ASSIGN_OR_RETURN(minibatch.features,
                             feeds_.front()->Hold(distinct.rows, std::move(distinct.row_of)));
  }
  for (std::size_t a = 0; a < feeds_.size(); ++a) {
    reads[a] += feeds_[a]->TakeReads();
    static_cast<RowReads&>(minibatch.costs) += reads[a];
    if (division_.by_type()) minibatch.inputs[a].reads = reads[a];
  }
  minibatch.costs.update_seconds = UpdateSeconds() - before;
  minibatch.costs.gather_seconds = timer.Stop() - minibatch.costs.update_seconds;
  return Status::Ok();
}

Status FeedPipeline::Impl::HoldInputs(Minibatch& minibatch) {
  auto vertices = division_.Divide(minibatch);
  for (std::size_t a = 0; a < feeds_.size(); ++a) {
    RowsToRead read = RowsOf(minibatch, vertices[a]);
    MinibatchInput& input = minibatch.inputs.emplace_back();
    input.array = feeds_[a]->array();
    input.vertices = std::move(vertices[a]);
    RHIZOME_ASSIGN_OR_RETURN(input.features, feeds_[a]->Hold(read.rows, std::move(read.row_of)));
  }
  return Status::Ok();
}

double FeedPipeline::Impl::UpdateSeconds() const {
  double seconds = 0;
  for (const auto& feed : feeds_) seconds += feed->cache().stats().update_seconds;
  return seconds;
}

RowReaderStats FeedPipeline::Impl::reader_stats() const {
  if (feeds_.empty()) return {};
  RowReaderStats all = feeds_.front()->cache().reader_stats();
  double depth_sum = all.mean_depth * static_cast<double>(all.reads);
  for (std::size_t a = 1; a < feeds_.size(); ++a) {
    const RowReaderStats one = feeds_[a]->cache().reader_stats();
    all.rows += one.rows;
    all.reads += one.reads;
    all.read_bytes += one.read_bytes;
    all.direct = all.direct || one.direct;
    depth_sum += one.mean_depth * static_cast<double>(one.reads);
  }
  if (feeds_.size() > 1 && all.reads > 0)
    all.mean_depth = depth_sum / static_cast<double>(all.reads);
  return all;
}

namespace {

/// Opens the caches of all arrays.
Result<std::vector<std::unique_ptr<ArrayFeed>>> OpenFeeds(const GraphSnapshot& graph,
                                                          const FeedPipelineOptions& options,
                                                          const InputDivision& division) {
  const std::vector<std::string>& arrays = division.arrays();
  std::vector<std::unique_ptr<ArrayFeed>> feeds;
  for (std::size_t a = 0; a < arrays.size(); ++a) {
    InputShare share{.cache_bytes = options.cache_bytes / arrays.size(),
                     .held_rows = options.held_rows,
                     .read_cost = options.read_cost};
    if (a < options.shares.size()) share = options.shares[a];
    RHIZOME_ASSIGN_OR_RETURN(feeds.emplace_back(),
                             ArrayFeed::Open(graph, options, arrays[a], share,
                                             StagingBytesOf(options.staging_bytes, arrays.size())));
  }
  return feeds;
}

}  // namespace

std::size_t StagingBytesOf(std::size_t staging_bytes, std::size_t arrays) {
  return arrays <= 1 ? staging_bytes : std::max(staging_bytes / arrays, kMinStagingBytes);
}

Result<std::unique_ptr<FeedPipeline>> FeedPipeline::Open(const GraphSnapshot& graph,
                                                         const FeedPipelineOptions& options,
                                                         NextSeeds next_seeds,
                                                         const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(InputDivision division, InputDivision::Create(graph, options));
  RHIZOME_ASSIGN_OR_RETURN(auto feeds, OpenFeeds(graph, options, division));
  if (!feeds.empty())
    RHIZOME_RETURN_IF_ERROR(CheckOverRanks(options, feeds.front()->cache().row_count()));
  auto neighbors = options.lists == nullptr ? nullptr : options.lists->source();
  MinibatchSamplerOptions sampling = options.sampler;
  sampling.vertex_types = sampling.vertex_types || division.by_type();
  RHIZOME_ASSIGN_OR_RETURN(MinibatchSampler sampler,
                           MinibatchSampler::Create(graph, sampling, std::move(neighbors)));
  auto impl = std::make_unique<Impl>(graph, options, std::move(next_seeds), control,
                                     std::move(sampler), std::move(division), std::move(feeds));
  RHIZOME_RETURN_IF_ERROR(impl->Start());
  return std::unique_ptr<FeedPipeline>(new FeedPipeline(std::move(impl)));
}

FeedPipeline::FeedPipeline(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
FeedPipeline::~FeedPipeline() = default;
Result<std::optional<Minibatch>> FeedPipeline::Next() { return impl_->Next(); }
RowReaderStats FeedPipeline::reader_stats() const { return impl_->reader_stats(); }

}  // namespace internal
}  // namespace rhizome
