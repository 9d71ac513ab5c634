#include "gnn/ranks/train_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cache/feed/feed_profile.h"
#include "cache/job/process_memory.h"
#include "cache/ranks/home_epochs.h"
#include "cache/ranks/rank_plan.h"
#include "cache/ranks/rank_rows.h"
#include "cache/ranks/remote_cache_policies.h"
#include "cache/ranks/row_homes.h"
#include "gnn/ops/torch_guard.h"
#include "gnn/options/training_options.h"
#include "gnn/ranks/measure_ranks.h"
#include "gnn/ranks/rank_steps.h"
#include "gnn/train/train.h"
#include "gnn/train/train_feed.h"
#include "storage/base/check.h"
#include "storage/remote/rank_calls.h"
#include "storage/store/build_id.h"

namespace rhizome {
inline namespace internal {
namespace {

Status CheckOptions(const TrainOptions& options) {
  const MinibatchOptions& minibatch = *options.minibatch();
  const PrefetchOptions& prefetch = minibatch.ranks->prefetch;
  const auto refuse = [](const char* text) { return Status::InvalidArgument(text); };
  if (minibatch.device) return refuse("training over ranks runs on the CPU: omit `device`");
  if (minibatch.feed.overlap && *minibatch.feed.overlap == Overlap::kChangeset)
    return refuse("training over ranks samples during computation: omit `overlap=changeset`");
  if (minibatch.feed.cache != PolicyKind::kBelady)
    return refuse("over ranks, `prefetch` selects the policy of the pool: omit `cache`");
  if (NeedsLists(prefetch.policy) && options.data.topology == TopologyPlace::kDirect) {
    return Status::InvalidArgument(
        fmt::format("`prefetch={}` needs the lists of all rows in memory: omit `topology=direct`",
                    PrefetchName(prefetch.policy)));
  }
  return CheckPrefetch(prefetch, minibatch.feed.superbatch);
}

/// The length of a superbatch, which is the same on all ranks.
struct SuperbatchLength {
  std::uint64_t steps = 0;      // as for HomeSeeds; 0: an epoch
  std::uint64_t max_steps = 0;  // maximum number of steps
};

SuperbatchLength LengthOf(const TrainOptions& options, const EpochCounts& counts) {
  const MinibatchOptions& minibatch = *options.minibatch();
  const std::uint32_t steps =
      minibatch.feed.superbatch == 0 ? kRankSuperbatch : minibatch.feed.superbatch;
  SuperbatchLength length{.steps = SuperbatchSteps(minibatch.ranks->prefetch, steps),
                          .max_steps = steps};
  if (length.steps == 0) length.max_steps = counts.train + counts.valid;
  return length;
}

/// Returns the options of this rank. Only rank 0 writes files for the caller and calls its
/// functions.
TrainOptions OptionsOf(const TrainOptions& options) {
  TrainOptions own = options;
  const std::uint32_t rank = TransportOf(options)->rank();
  if (rank == 0) return own;
  own.job.name = fmt::format("{}-rank{}", options.job.name, rank);
  own.job.out.clear();
  own.job.note = {};
  own.job.on_stop = {};
  own.minibatch()->trace.clear();
  return own;
}

/// Checks that all ranks have the same build, graph state and options.
Status AgreeOnJob(const OneTraining& one, Transport& transport) {
  RHIZOME_RETURN_IF_ERROR(
      Agree(transport, std::array<RankFact, 1>{{{"build", std::string(BuildId())}}}));
  RHIZOME_RETURN_IF_ERROR(
      AgreeOnState(transport, one.job.graph->point(), StateOfJob(one.job, one.options)));
  std::vector<RankFact> facts = FactsOfRanks(one.options);
  facts.push_back({"the job", one.run.job});
  return Agree(transport, facts);
}

Result<HomeEpochs> MakeEpochs(const OneTraining& one, const RowHomes& homes) {
  const GraphSnapshot& graph = *one.job.graph;
  RHIZOME_ASSIGN_OR_RETURN(auto train, homes.Divide(graph, one.job.train));
  RHIZOME_ASSIGN_OR_RETURN(auto valid, homes.Divide(graph, one.job.valid));
  return HomeEpochs(std::move(train), std::move(valid),
                    {.batch_size = one.options.minibatch()->batch_size,
                     .seed = one.options.learning.seed,
                     .epochs = one.options.learning.epochs,
                     .valid_every = one.options.learning.eval_every,
                     .max_train_steps = one.options.minibatch()->steps});
}

/// Returns a plan with the minibatch size of the largest home. Every rank divides its memory by
/// this plan.
EpochPlan LargestMinibatches(const OneTraining& one, const HomeEpochs& epochs) {
  std::uint64_t most = 1;
  for (std::uint32_t home = 0; home < epochs.homes(); ++home)
    most = std::max(most, epochs.SeedsOf(home, /*is_valid=*/false, 0));
  return EpochPlan(one.job.train, one.job.valid,
                   {.batch_size = most, .seed = one.options.learning.seed});
}

/// Copies rank 0's checkpoint to all ranks, if the training resumes and there is one.
Status ShareCheckpoint(const OneTraining& one, Transport& transport) {
  if (!one.options.job.resume) return Status::Ok();
  FileSystem& fs = one.job.store->fs();
  std::vector<std::byte> bytes;
  if (transport.rank() == 0) {
    Result<std::vector<std::byte>> read = ReadWholeFile(fs, one.run.checkpoint, kMaxRankBytes);
    if (!read && read.error().code() != StatusCode::kNotFound) return read.error();
    if (read) bytes = *std::move(read);
  }
  RHIZOME_ASSIGN_OR_RETURN(bytes, Broadcast(transport, bytes));
  if (transport.rank() == 0) return Status::Ok();
  const Status removed = fs.RemoveFile(one.run.checkpoint);
  if (!removed.ok() && removed.code() != StatusCode::kNotFound) return removed;
  return bytes.empty() ? Status::Ok() : WriteWholeFile(fs, one.run.checkpoint, bytes);
}

static_assert(std::is_trivially_copyable_v<RankFigures>);

/// Collects the reports of all ranks on rank 0.
Status GatherReports(const RankFigures& own, Transport& transport,
                     std::vector<RankReport>& reports) {
  RHIZOME_ASSIGN_OR_RETURN(const auto all,
                           GatherAtFirst(transport, std::as_bytes(std::span(&own, 1))));
  reports.clear();
  for (const std::vector<std::byte>& bytes : all) {
    RHIZOME_CHECK(bytes.size() == sizeof(RankFigures));  // all ranks have one build
    RankReport& report = reports.emplace_back();
    std::memcpy(static_cast<RankFigures*>(&report), bytes.data(), sizeof(RankFigures));
    report.host = transport.HostOf(static_cast<std::uint32_t>(reports.size() - 1));
  }
  return Status::Ok();
}

/// Adds to an I/O error, such as a lost rank, in which step it occurred and how to resume.
Status WithWayOn(const Status& status, const OneTraining& one, const TrainingRun& run) {
  if (status.code() != StatusCode::kIoError) return status;
  const std::uint64_t every = one.options.job.checkpoint_every, done = run.progress().done;
  const std::uint64_t kept =
      every == 0 ? 0 : std::max(done - done % every, one.report.resumed_minibatches);
  return {status.code(),
          fmt::format("{} (in step {}; {})", status.message(), done + 1,
                      every == 0  ? std::string("no checkpoints were requested")
                      : kept == 0 ? std::string("no checkpoint was written yet")
                                  : fmt::format("`resume` continues after step {}", kept))};
}

RankFigures FiguresOf(const OneTraining& one, const RankSteps& steps, const HomeEpochs& epochs,
                      const RankRows& rows, const RowReaderStats& reads) {
  RankFigures figures{rows.Counts(reads.rows)};
  const HomeRange own = steps.homes();
  figures.first_home = own.first;
  figures.homes = own.count;
  for (std::uint32_t home = own.first; home < own.first + own.count; ++home)
    figures.training_vertices += epochs.TrainingVertices(home).size();
  figures.pool_bytes = one.report.memory.cache;
  figures.peak_memory_bytes = PeakResidentBytes();
  for (const EpochReport& epoch : one.report.epochs) {
    figures.compute_seconds += epoch.compute_seconds;
    figures.stall_seconds += epoch.stall_seconds;
  }
  figures.wait_seconds = steps.wait_seconds();
  figures.serve_seconds = rows.serve_seconds();
  return figures;
}

/// Runs the epochs of this rank with one seed, and completes the report.
Status RunEpochs(const OneTraining& one, const HomeEpochs& epochs, const RankRows& rows,
                 FeedPlan feed) {
  const auto& [job, options, scratch, run_options, held, report, control, device, learned] = one;
  Transport& transport = *TransportOf(options);
  FileSystem& fs = job.store->fs();
  RHIZOME_ASSIGN_OR_RETURN(const Path superbatches, MakeSuperbatchFolder(fs, scratch));
  RHIZOME_RETURN_IF_ERROR(feed.Prepare(*job.graph, superbatches, control));
  // Ranks stop together after a step, not when each of them is asked to. So cancellation of
  // `control` does not reach the run directly.
  JobControl shared([&control = control](const JobControl::Progress& progress) {
    static_cast<void>(control.Report(progress));
  });
  TrainingRunOptions of_rank = run_options;
  if (transport.rank() != 0) of_rank.checkpoint.clear();
  of_rank.checkpoint_at_end |=
      options.learning.test;  // measuring may be interrupted or lose a rank
  StageTrace trace;
  const Path& trace_file = options.minibatch()->trace;
  if (!trace_file.empty()) feed.pipeline.trace = &trace;
  RankSteps steps(*job.model, job.labels, of_rank.learner, epochs, transport,
                  {.asked = control, .shared = shared}, feed.pipeline.trace);
  TrainingRun run(*job.model, job.labels, of_rank, epochs.counts(), steps);
  RHIZOME_RETURN_IF_ERROR(ShareCheckpoint(one, transport));
  RHIZOME_RETURN_IF_ERROR(ResumeTraining(one, run));
  HomeSeeds seeds(epochs, steps.homes().first, steps.homes().count,
                  LengthOf(options, epochs.counts()).steps);
  seeds.Skip(run.progress().done);
  RHIZOME_ASSIGN_OR_RETURN(
      const std::unique_ptr<FeedPipeline> pipeline,
      FeedPipeline::Open(
          *job.graph, feed.pipeline, [seeds]() mutable { return seeds.Next(); }, shared));
  steps.ReadFrom(*pipeline);
  const Status status = run.Run(shared);
  TakeProgress(run, report);
  TakeReads(feed, *pipeline, report);
  if (!status.ok()) {
    // All ranks have stopped. The others wait until rank 0, which has weights to write, leaves: a
    // launcher may end rank 0 when it sees another rank end.
    if (transport.rank() != 0 && status.code() == StatusCode::kInterrupted)
      static_cast<void>(Barrier(transport));
    return WithWayOn(status, one, run);
  }
  RHIZOME_RETURN_IF_ERROR(FinishTraining(one, run));
  // Ranks that are not done yet may ask for rows until all reach this point.
  RHIZOME_RETURN_IF_ERROR(Barrier(transport));
  const RankFigures figures = FiguresOf(one, steps, epochs, rows, pipeline->reader_stats());
  RHIZOME_RETURN_IF_ERROR(GatherReports(figures, transport, report.ranks));
  if (!trace_file.empty()) RHIZOME_RETURN_IF_ERROR(trace.Write(trace_file));
  return RemoveTree(fs, superbatches);
}

/// Trains on this rank with one seed:
///   1. Checks that all ranks have the same job, and divides the homes among them.
///   2. Opens the rows of this rank, with the cache policy for rows of other ranks.
///   3. Plans the feed and its memory.
///   4. Runs the epochs (RunEpochs).
///   5. Evaluates the kept weights over all ranks, if that is asked for.
Status TrainThisRank(const OneTraining& one) {
  const auto& [job, options, scratch, run, held, report, control, device, learned] = one;
  Transport& transport = *TransportOf(options);
  RHIZOME_RETURN_IF_ERROR(AgreeOnJob(one, transport));
  RHIZOME_ASSIGN_OR_RETURN(const RowHomes homes, RowHomesOf(*job.graph));
  RHIZOME_RETURN_IF_ERROR(CheckRanks(transport.ranks(), homes));
  RHIZOME_ASSIGN_OR_RETURN(const HomeEpochs epochs, MakeEpochs(one, homes));
  const HomeRange own = HomesOfRank(transport.rank(), homes.count, transport.ranks());
  const SuperbatchLength length = LengthOf(options, epochs.counts());
  const RankOptions& settings = *options.minibatch()->ranks;
  RHIZOME_ASSIGN_OR_RETURN(const std::unique_ptr<RankRows> rows,
                           RankRows::Create(*job.graph, options.data.features, homes, transport,
                                            settings.link, options.resources.io));
  FeedPipelineOptions pipeline = TrainingPipeline(one);
  {
    RHIZOME_ASSIGN_OR_RETURN(const PrefetchLookahead outlook,
                             PrefetchLookahead::Create(settings.prefetch, *job.graph,
                                                       pipeline.sampler.sampler, control));
    RHIZOME_RETURN_IF_ERROR(rows->Keep(outlook, epochs, length.max_steps));
  }
  rows->Feed(pipeline);
  RHIZOME_ASSIGN_OR_RETURN(
      FeedPlan feed, PlanTrainingFeed(one, LargestMinibatches(one, epochs), std::move(pipeline),
                                      static_cast<std::uint32_t>(length.max_steps * own.count)));
  const std::uint64_t cache_bytes = feed.memory.cache_bytes;
  report.superbatch = static_cast<std::uint32_t>(length.max_steps);
  report.minibatches = epochs.counts().train + epochs.counts().valid;
  RHIZOME_RETURN_IF_ERROR(RunEpochs(one, epochs, *rows, std::move(feed)));
  if (!options.learning.test) return Status::Ok();
  RHIZOME_RETURN_IF_ERROR(EvaluateOverRanks(one, cache_bytes, transport));
  return Barrier(transport);
}

}  // namespace

Result<TrainReport> TrainOverRanks(const TrainOptions& options, const JobControl& control) {
  const auto train = [&]() -> Result<TrainReport> {
    RHIZOME_RETURN_IF_ERROR(CheckOptions(options));
    return TrainModel(OptionsOf(options), TrainThisRank, control);
  };
  // The other ranks are notified of every error.
  Result<TrainReport> report = GuardedTorch(train);
  if (!report) TransportOf(options)->Leave(report.error());
  return report;
}

}  // namespace internal
}  // namespace rhizome
