#include "cache/ranks/rank_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "cache/feed/feed_profile.h"
#include "cache/feed/labels.h"
#include "cache/feed/resolve_sampling.h"
#include "cache/feed/task_labels.h"
#include "cache/policy/schedule_history.h"
#include "cache/pool/prefill_piece.h"
#include "cache/pool/rank_schedule.h"
#include "cache/ranks/home_epochs.h"
#include "cache/ranks/rank_clock.h"
#include "cache/ranks/rank_pool.h"
#include "cache/ranks/rank_seconds.h"
#include "cache/ranks/remote_cache_policies.h"
#include "cache/ranks/row_costs.h"
#include "cache/ranks/row_homes.h"
#include "cache/ranks/row_messages.h"
#include "rhizome/feature_cache.h"
#include "rhizome/transport.h"
#include "storage/base/exceptions.h"
#include "storage/base/stopwatch.h"

namespace rhizome {
namespace {

/// Bytes of a rank's tables per row of the graph: positions in the vertex order, in both
/// directions, and the home.
constexpr std::uint64_t kOrderBytes = 16;
constexpr std::uint64_t kHomeBytes = 4;
constexpr std::uint64_t kSumBytes = 4;  // per own row: a checksum

/// Returns the options with values for everything that is optional.
RankPlanOptions WithDefaults(RankPlanOptions options) {
  constexpr std::uint64_t kPoolBytes = std::uint64_t{256} << 20;
  MinibatchOptions& minibatch = options.minibatch;
  if (!minibatch.ranks) minibatch.ranks.emplace();
  if (!minibatch.feed.cache_bytes) minibatch.feed.cache_bytes = kPoolBytes;
  if (!minibatch.feed.overlap) minibatch.feed.overlap = Overlap::kAll;
  if (minibatch.feed.superbatch == 0 && minibatch.ranks->prefetch.policy != Prefetch::kEpoch)
    minibatch.feed.superbatch = kRankSuperbatch;
  return options;
}

Status CheckOptions(const RankPlanOptions& options) {
  const auto refuse = [](std::string text) { return Status::InvalidArgument(std::move(text)); };
  if (options.ranks.empty()) return refuse("no number of ranks is given");
  if (options.minibatch.batch_size == 0 || options.epochs == 0)
    return refuse("batch size, epochs and superbatch must be at least 1");
  if (options.epochs > EpochPlan::kMaxEpochs)
    return refuse(
        fmt::format("{} epochs; at most {} are possible", options.epochs, EpochPlan::kMaxEpochs));
  if (!(options.minibatch.ranks->link.bits_per_second > 0 &&
        options.minibatch.ranks->link.latency_seconds >= 0))
    return refuse("the bandwidth of a link must be above 0, and its latency at least 0");
  if (!(options.processors >= 0 && options.row_seconds >= 0 && options.own_seconds >= 0 &&
        options.compute_seconds >= 0 && options.read_seconds.value_or(0) >= 0))
    return refuse("processors and seconds of a plan must be at least 0");
  return Status::Ok();
}

/// Returns the bytes of schedules per access, computed as in training.
std::uint64_t AccessBytes(const RankPlanOptions& options) {
  FeedPipelineOptions feed;
  SetSamplers(options.seed, options.threads, feed.sampler);
  return ScheduleBytesPerAccess(feed);
}

/// The graph and the features that are planned for.
struct PlannedGraph {
  const GraphSnapshot& graph;
  const ArrayEntry& features;
};

/// The minibatches of all homes, step by step.
struct PlannedSuperbatch {
  Trace rows;
  std::vector<std::uint32_t> home_of;  // by minibatch
  std::vector<std::uint64_t> step_of;  // by minibatch, over all epochs
  std::vector<bool> learns;            // by minibatch
  std::vector<double> sampling;        // by minibatch, in seconds
};

/// State of the plan for one number of ranks, while superbatches are replayed.
class RankSet {
 public:
  RankSet(std::uint32_t ranks, const RowHomes& homes, const RankPlanOptions& options,
          const RankPlanReport& report, const PlannedGraph& planned)
      : options_(options),
        report_(report),
        rank_of_(homes.RanksOfRows(planned.graph, planned.features, ranks)),
        plan_{.shares = {}},
        access_bytes_(AccessBytes(options)),
        seconds_(options, report.row_bytes),
        clock_(ranks, *options.minibatch.feed.overlap, options.processors) {
    plan_.shares.resize(ranks);
    for (std::uint32_t r = 0; r < ranks; ++r) {
      const HomeRange own = HomesOfRank(r, homes.count, ranks);
      share(r).first_home = own.first;
      share(r).homes = own.count;
    }
    for (const std::uint16_t home : homes.of_row) ++ShareOf(home).rows;
    const std::uint64_t frames = std::min<std::uint64_t>(
        *options.minibatch.feed.cache_bytes / report.row_bytes, rank_of_.size());
    for (std::uint32_t r = 0; r < ranks; ++r) {
      share(r).pool_bytes = frames * report.row_bytes;
      share(r).topology_bytes = planned.graph.topology_bytes();
      share(r).table_bytes = rank_of_.size() * (kOrderBytes + kHomeBytes) +
                             share(r).rows * kSumBytes + HistoryBytes(frames);
    }
  }

  /// Creates the pools of all ranks. Call once, before Play.
  Status MakePools(const PrefetchLookahead& outlook, const HomeEpochs& epochs);

  std::uint32_t ranks() const { return static_cast<std::uint32_t>(plan_.shares.size()); }
  std::uint32_t RankOf(std::uint32_t home) const {
    return RankOfHome(home, report_.homes, ranks());
  }
  RankShare& ShareOf(std::uint32_t home) { return share(RankOf(home)); }

  Status Play(const PlannedSuperbatch& superbatch);

  RankPlan Finish() && {
    plan_.seconds = clock_.Finish();
    return std::move(plan_);
  }

 private:
  RankShare& share(std::uint32_t rank) { return plan_.shares[rank]; }
  std::uint64_t HistoryBytes(std::uint64_t frames) const {
    const std::uint64_t schedules = frames * RankSchedules::kBytesPerFrame;
    const std::uint64_t keeper = options_.minibatch.ranks->prefetch.policy == Prefetch::kBelady
                                     ? 0
                                     : rank_of_.size() * RemoteCachePolicy::kBytesPerKey;
    if (options_.minibatch.feed.prior == Prior::kNone) return schedules + keeper;
    return schedules + keeper + rank_of_.size() * ScheduleHistory::kBytesPerKey +
           frames * ScheduleHistory::kBytesPerFrame;
  }
  Trace TraceOf(std::uint32_t rank, const PlannedSuperbatch& superbatch);
  void Book(std::uint32_t rank, const std::vector<RankFetches>& fetched, std::uint64_t minibatches);
  double ServedRows(std::uint32_t rank, const std::vector<std::vector<RankFetches>>& phases,
                    bool before) const;
  SuperbatchTimes TimesOf(std::uint32_t rank, const PlannedSuperbatch& superbatch,
                          const std::vector<std::vector<RankFetches>>& phases) const;

  const RankPlanOptions& options_;
  const RankPlanReport& report_;
  std::vector<std::uint16_t> rank_of_;  // by row
  std::vector<std::unique_ptr<RankPool>> pools_;
  RankPlan plan_;
  const std::uint64_t access_bytes_;
  const RankSeconds seconds_;
  RankClock clock_;
};

Status RankSet::MakePools(const PrefetchLookahead& outlook, const HomeEpochs& epochs) {
  const RowsOverRanks costs =
      WithCosts({}, options_.disk, options_.minibatch.ranks->link, report_.row_bytes);
  for (std::uint32_t r = 0; r < ranks(); ++r) {
    RHIZOME_ASSIGN_OR_RETURN(RemoteCachePolicyFactory keeper,
                             outlook.RemotePolicyFactoryOfRank(
                                 {.rank_of = rank_of_, .rank = r},
                                 {.first = share(r).first_home, .count = share(r).homes}, epochs,
                                 options_.minibatch.feed.superbatch, report_.row_bytes));
    pools_.push_back(std::make_unique<RankPool>(
        RankPoolOptions{
            .rank = r,
            .ranks = ranks(),
            .frame_count = static_cast<std::uint32_t>(share(r).pool_bytes / report_.row_bytes),
            .prior = options_.minibatch.feed.prior,
            .local_cost = costs.local_cost,
            .remote_cost = costs.remote_cost,
            .keeper = std::move(keeper),
            .piece_rows = PrefillPiece(report_.row_bytes),
            .request_rows = RequestRows(report_.row_bytes)},
        rank_of_));
  }
  return Status::Ok();
}

/// Returns the requests of a rank's minibatches, and counts them.
Trace RankSet::TraceOf(std::uint32_t rank, const PlannedSuperbatch& superbatch) {
  RankShare& one = share(rank);
  const RowRanks view{.rank_of = rank_of_, .rank = rank};
  Trace trace;
  for (std::size_t i = 0; i < superbatch.home_of.size(); ++i) {
    if (RankOf(superbatch.home_of[i]) != rank) continue;
    const std::span<const CacheKey> rows = superbatch.rows.step(i);
    trace.AddStep(rows);
    one.rows_requested += rows.size();
    for (const CacheKey row : rows) one.remote_rows_requested += !view.IsOwn(row);
  }
  return trace;
}

/// Adds the rows that a rank fetches and serves in a superbatch to its counts and times.
void RankSet::Book(std::uint32_t rank, const std::vector<RankFetches>& fetched,
                   std::uint64_t minibatches) {
  std::uint64_t remote = 0, requests = 0, served = 0, served_requests = 0;
  for (std::uint32_t other = 0; other < ranks(); ++other) {
    if (other == rank) continue;
    remote += fetched[rank].rows_of[other];
    requests += fetched[rank].requests_to[other];
    served += fetched[other].rows_of[rank];
    served_requests += fetched[other].requests_to[rank];
  }
  const auto asking = [](std::uint64_t rows, std::uint64_t messages) {
    return messages * kMessageHeaderBytes + rows * kRequestRowBytes;
  };
  const auto answering = [&](std::uint64_t rows, std::uint64_t messages) {
    return messages * kMessageHeaderBytes + rows * (report_.row_bytes + kReplyChecksumBytes);
  };
  const std::uint64_t in = answering(remote, requests) + asking(served, served_requests);
  const std::uint64_t out = asking(remote, requests) + answering(served, served_requests);
  const std::uint64_t disk = fetched[rank].rows_of[rank];
  RankShare& one = share(rank);
  one.disk_rows += disk;
  one.remote_rows += remote;
  one.served_rows += served;
  one.requests += requests;
  one.served_requests += served_requests;
  one.bytes_in += in;
  one.bytes_out += out;
  one.disk_seconds += seconds_.Reading(static_cast<double>(disk + served));
  one.in_seconds +=
      LinkSeconds(options_.minibatch.ranks->link, in) +
      2 * options_.minibatch.ranks->link.latency_seconds * static_cast<double>(requests);
  one.out_seconds += LinkSeconds(options_.minibatch.ranks->link, out);
  one.compute_seconds += options_.compute_seconds * static_cast<double>(minibatches);
}

/// Returns the rows that other ranks request from `rank`, either for their prefill (`before`) or
/// for their minibatches. `phases`, by rank: the fetches of the prefill, then of each minibatch.
double RankSet::ServedRows(std::uint32_t rank, const std::vector<std::vector<RankFetches>>& phases,
                           bool before) const {
  double rows = 0;
  for (std::uint32_t other = 0; other < ranks(); ++other) {
    if (other == rank || phases[other].empty()) continue;
    const auto first = phases[other].begin() + (before ? 0 : 1);
    const auto last = before ? first + 1 : phases[other].end();
    for (auto phase = first; phase != last; ++phase)
      rows += static_cast<double>(phase->rows_of[rank]);
  }
  return rows;
}

/// Returns the durations of a rank's superbatch. `phases`: as for ServedRows.
SuperbatchTimes RankSet::TimesOf(std::uint32_t rank, const PlannedSuperbatch& superbatch,
                                 const std::vector<std::vector<RankFetches>>& phases) const {
  SuperbatchTimes times;
  const std::vector<RankFetches>& own = phases[rank];
  if (own.empty()) return times;
  const double served_before = ServedRows(rank, phases, /*before=*/true);
  const double served_each =
      ServedRows(rank, phases, /*before=*/false) / static_cast<double>(own.size() - 1);
  times.prefill = seconds_.Moving(rank, own.front(), served_before);
  times.prefill_work = seconds_.Work(rank, own.front(), served_before);
  std::size_t n = 1;
  for (std::size_t i = 0; i < superbatch.home_of.size(); ++i) {
    if (RankOf(superbatch.home_of[i]) != rank) continue;
    times.preparing += superbatch.sampling[i];
    times.minibatches.push_back({.step = superbatch.step_of[i] - superbatch.step_of.front(),
                                 .moving = seconds_.Moving(rank, own[n], served_each),
                                 .compute = options_.compute_seconds,
                                 .work = seconds_.Work(rank, own[n], served_each),
                                 .exchange = seconds_.Exchange(
                                     ranks(), superbatch.learns[i] ? options_.gradient_bytes : 0)});
    ++n;
  }
  return times;
}

Status RankSet::Play(const PlannedSuperbatch& superbatch) {
  if (superbatch.home_of.empty()) return Status::Ok();
  std::vector<RankFetches> fetched;
  std::vector<std::vector<RankFetches>> phases(ranks());
  std::vector<std::uint64_t> minibatches;
  std::vector<double> scheduling;
  for (std::uint32_t r = 0; r < ranks(); ++r) {
    const Trace trace = TraceOf(r, superbatch);
    const Stopwatch watch;
    RHIZOME_ASSIGN_OR_RETURN(RankFetches one, pools_[r]->Play(trace, &phases[r]));
    scheduling.push_back(watch.seconds());
    fetched.push_back(std::move(one));
    minibatches.push_back(trace.steps());
    share(r).minibatches += trace.steps();
    share(r).schedule_bytes = std::max(share(r).schedule_bytes, trace.keys.size() * access_bytes_);
  }
  std::vector<SuperbatchTimes> times;
  for (std::uint32_t r = 0; r < ranks(); ++r) {
    Book(r, fetched, minibatches[r]);
    SuperbatchTimes& one = times.emplace_back(TimesOf(r, superbatch, phases));
    one.preparing += scheduling[r];
    // The measured times of this planning vary between runs. They are used only if processors are
    // modelled.
    if (options_.processors == 0) one.preparing = 0;
  }
  clock_.Add(std::move(times));
  return Status::Ok();
}

/// Plans for all numbers of ranks at once. Steps of Plan: (1) check the options and read the homes
/// of all rows; (2) create the minibatches of all homes (MakeEpochs); (3) resolve sampling and
/// prepare the policies for remote rows; (4) create the pools of every rank for every number of
/// ranks; (5) sample the epochs one superbatch at a time and replay each on all pools (PlayEpochs).
class RankPlanner {
 public:
  RankPlanner(const GraphSnapshot& graph, const RankPlanOptions& options, const JobControl& control)
      : graph_(graph), options_(WithDefaults(options)), control_(control) {}

  Result<RankPlanReport> Plan();

 private:
  Result<HomeEpochs> MakeEpochs();
  Status PlayEpochs(const HomeEpochs& epochs, const MinibatchSampler& sampler);
  Status Play(PlannedSuperbatch& superbatch);

  const GraphSnapshot& graph_;
  const RankPlanOptions options_;
  const JobControl& control_;
  RowHomes homes_;
  RankPlanReport report_;
  std::vector<RankSet> sets_;
};

Result<HomeEpochs> RankPlanner::MakeEpochs() {
  RHIZOME_ASSIGN_OR_RETURN(const ClassLabels labels, ReadLabels(graph_, "", options_.data.split));
  const std::vector<VertexId> train = labels.Members(graph_, Split::kTrain);
  RHIZOME_RETURN_IF_ERROR(CheckTrainingSet(train, options_.data.split));
  RHIZOME_ASSIGN_OR_RETURN(auto of_home, homes_.Divide(graph_, train));
  RHIZOME_ASSIGN_OR_RETURN(auto valid,
                           homes_.Divide(graph_, labels.Members(graph_, Split::kValid)));
  report_.training_vertices = train.size();
  return HomeEpochs(std::move(of_home), std::move(valid),
                    {.batch_size = options_.minibatch.batch_size,
                     .seed = options_.seed,
                     .epochs = options_.epochs,
                     .valid_every = options_.eval_every,
                     .max_train_steps = options_.minibatch.steps});
}

Status RankPlanner::Play(PlannedSuperbatch& superbatch) {
  for (RankSet& set : sets_) RHIZOME_RETURN_IF_ERROR(set.Play(superbatch));
  superbatch = {};
  return Status::Ok();
}

Status RankPlanner::PlayEpochs(const HomeEpochs& epochs, const MinibatchSampler& sampler) {
  HomeSeeds seeds(
      epochs, 0, epochs.homes(),
      SuperbatchSteps(options_.minibatch.ranks->prefetch, options_.minibatch.feed.superbatch));
  PlannedSuperbatch superbatch;
  while (const std::optional<SeedBatch> batch = seeds.Next()) {
    RHIZOME_RETURN_IF_ERROR(
        control_.Report({.phase = "sample", .done = seeds.step(), .total = epochs.counts().all()}));
    if (batch->begins_superbatch) RHIZOME_RETURN_IF_ERROR(Play(superbatch));
    const Stopwatch sampling;
    RHIZOME_ASSIGN_OR_RETURN(const Minibatch minibatch, sampler.Sample(*batch));
    superbatch.sampling.push_back(sampling.seconds());
    superbatch.step_of.push_back(seeds.step());
    AddStep(minibatch, superbatch.rows);
    superbatch.home_of.push_back(epochs.Decode(batch->tag).home);
    superbatch.learns.push_back(!epochs.Decode(batch->tag).is_valid);
    for (RankSet& set : sets_)
      set.ShareOf(superbatch.home_of.back()).edges += minibatch.neighbors.size();
  }
  return Play(superbatch);
}

Result<RankPlanReport> RankPlanner::Plan() {
  RHIZOME_RETURN_IF_ERROR(CheckOptions(options_));
  if (!options_.data.inputs.empty())
    return Fail(Status::Unsupported(
        "an array for each vertex type (`features`) is not supported with training over ranks yet; "
        "name one array"));
  RHIZOME_ASSIGN_OR_RETURN(homes_, RowHomesOf(graph_));
  for (const std::uint32_t ranks : options_.ranks)
    RHIZOME_RETURN_IF_ERROR(CheckRanks(ranks, homes_));
  RHIZOME_ASSIGN_OR_RETURN(const auto features, graph_.store().OpenArray(options_.data.features));
  report_.homes = homes_.count;
  report_.homes_by = homes_.by;
  report_.vertices = graph_.vertex_count();
  report_.row_bytes = std::max<std::uint64_t>(features->entry().row_bytes(), 1);
  RHIZOME_ASSIGN_OR_RETURN(const HomeEpochs epochs, MakeEpochs());
  report_.steps = epochs.counts().train;
  report_.valid_steps = epochs.counts().valid;
  RHIZOME_ASSIGN_OR_RETURN(
      MinibatchSamplerOptions sampling,
      ResolveSampling(options_.data.sampling, {}, options_.minibatch.fanouts, graph_));
  RHIZOME_RETURN_IF_ERROR(SetValidSampler(options_.minibatch.eval_fanouts,
                                          options_.minibatch.fanouts.size(), sampling));
  RHIZOME_ASSIGN_OR_RETURN(const PrefetchLookahead outlook,
                           PrefetchLookahead::Create(options_.minibatch.ranks->prefetch, graph_,
                                                     sampling.sampler, control_));
  SetSamplers(options_.seed, options_.threads, sampling);
  sampling.degrees = sampling.weighted_degrees = false;
  RHIZOME_ASSIGN_OR_RETURN(const MinibatchSampler sampler,
                           MinibatchSampler::Create(graph_, sampling, nullptr));
  sets_.reserve(options_.ranks.size());
  for (const std::uint32_t ranks : options_.ranks) {
    sets_.emplace_back(ranks, homes_, options_, report_, PlannedGraph{graph_, features->entry()});
    RHIZOME_RETURN_IF_ERROR(sets_.back().MakePools(outlook, epochs));
    for (std::uint32_t home = 0; home < homes_.count; ++home)
      sets_.back().ShareOf(home).training_vertices += epochs.TrainingVertices(home).size();
  }
  RHIZOME_RETURN_IF_ERROR(PlayEpochs(epochs, sampler));
  for (RankSet& set : sets_) report_.plans.push_back(std::move(set).Finish());
  return std::move(report_);
}

}  // namespace

ReadCost ReadsOfRanks(IoMaker io) {
  if (io != IoMaker::kMapped) return {};
  return {.seconds_per_read = 0.3e-6, .bytes_per_second = 2e9, .fixed_gap_bytes = 0};
}

Status CheckRanksOf(const Path& path, std::uint32_t ranks) {
  RHIZOME_ASSIGN_OR_RETURN(const auto store,
                           Store::Open(FileSystem::Posix(), path, Store::Mode::kRead));
  RHIZOME_ASSIGN_OR_RETURN(const RowHomes homes, CountHomes(store->manifest()));
  return CheckRanks(ranks, homes);
}

Result<RankPlanReport> PlanRanks(const GraphSnapshot& graph, const RankPlanOptions& options,
                                 const JobControl& control) try {
  return RankPlanner(graph, options, control).Plan();
} catch (...) {
  return Fail(StatusOfException());
}

}  // namespace rhizome
