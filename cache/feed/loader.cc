#include "rhizome/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cache/feed/epoch_plan.h"
#include "cache/feed/feed_pipeline.h"
#include "cache/feed/feed_profile.h"
#include "cache/feed/inputs.h"
#include "cache/feed/labels.h"
#include "cache/feed/link_seeds.h"
#include "cache/feed/ramped_seeds.h"
#include "cache/feed/resolve_sampling.h"
#include "cache/job/job_scratch.h"
#include "index/delta/graph_parts.h"
#include "storage/base/exceptions.h"
#include "storage/base/logger.h"
#include "storage/base/stopwatch.h"

namespace rhizome {
namespace {

/// Memory for read buffers: a share of the limit, within these bounds.
constexpr std::uint64_t kStagingShare = 8;
constexpr std::uint64_t kMinStagingBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kMaxStagingBytes = std::uint64_t{16} << 20;

/// Maximum number of open loaders with the same name.
constexpr int kMaxLoaders = 1000;

constexpr std::uint32_t kMaxRanks = std::uint32_t{1} << 20;

constexpr std::uint64_t kMaxNegatives = std::uint64_t{1} << 20;

/// Checks that seed times are given if and only if sampling is temporal.
Status CheckTimes(const LoaderOptions& options) {
  const std::size_t given = options.seed_times.size();
  const bool by_array = !options.seed_time_array.empty();
  const bool is_temporal = options.sampler.times != nullptr;
  if (given > 0 && by_array)
    return Status::InvalidArgument(
        "loader: both times of seeds and an array of times are given; give only one of them");
  if (is_temporal != (given > 0 || by_array)) {
    return Status::InvalidArgument(is_temporal
                                       ? "loader: temporal sampling needs a time for each seed; "
                                         "give times, or an array of times of vertices"
                                       : "loader: times of seeds are given, but no times of edges; "
                                         "give the edge attribute with times");
  }
  if (given > 0 && given != options.seeds.size()) {
    return Status::InvalidArgument(
        fmt::format("loader: {} times were given for {} seeds; give one for each", given,
                    options.seeds.size()));
  }
  return Status::Ok();
}

/// Checks what is given only with pairs, and what is not given with them.
Status CheckPairOptions(const LoaderOptions& options) {
  const auto refuse = [](std::string_view what) {
    return Status::InvalidArgument(fmt::format("loader: {}", what));
  };
  if (options.pairs.empty()) {
    if (options.negatives > 0)
      return refuse("`negatives` replace the ends of `pairs`, and none are given");
    return Status::Ok();
  }
  if (!options.labels.empty())
    return refuse("`labels` belong to seeds, but `pairs` are given; give only one of them");
  if (options.sampler.times != nullptr)
    return refuse("temporal sampling needs a time for each seed, which `pairs` do not have");
  if (options.negatives > kMaxNegatives)
    return refuse(fmt::format("{} `negatives` for a pair; at most {} are possible",
                              options.negatives, kMaxNegatives));
  return Status::Ok();
}

Status CheckOptions(const LoaderOptions& options) {
  const auto refuse = [](std::string_view what) {
    return Status::InvalidArgument(fmt::format("loader: {}", what));
  };
  const SamplerOptions& sampler = options.sampler;
  if (sampler.fanouts.empty() && sampler.typed_fanouts.empty())
    return refuse(
        "no fanouts are given; give the number of neighbours to sample in each hop, such as {10, "
        "10}");
  if (sampler.induced)
    return refuse(
        "induced subgraphs are not supported; minibatches have exactly the sampled edges");
  if (options.features.empty() && options.inputs.empty())
    return refuse("no features are given; give the name of the array of features");
  if (!options.features.empty() && !options.inputs.empty())
    return refuse(
        "an array for all vertices and an array for each vertex type are given; give one of them");
  if (options.batch_size == 0) return refuse("the batch size is 0; it must be at least 1");
  if (options.epochs > EpochPlan::kMaxEpochs)
    return refuse(
        fmt::format("{} epochs; at most {} are possible", options.epochs, EpochPlan::kMaxEpochs));
  if ((options.seeds.empty() ? 0 : 1) + (options.split.empty() ? 0 : 1) +
          (options.pairs.empty() ? 0 : 1) !=
      1)
    return refuse("give one of `seeds`, `split` (the name of an array) and `pairs`");
  if (options.set > Split::kTest)
    return refuse("the set of the seeds must be train, valid or test");
  if (options.ranks == 0 || options.ranks > kMaxRanks || options.rank >= options.ranks)
    return refuse(
        fmt::format("rank {} of {} does not exist; there are 1 to {} ranks, counted from 0",
                    options.rank, options.ranks, kMaxRanks));
  RHIZOME_RETURN_IF_ERROR(CheckPairOptions(options));
  return CheckTimes(options);
}

/// Checks the seeds. Errors: kInvalidArgument, a vertex is listed twice, does not exist, or has no
/// label.
Status CheckSeeds(const GraphSnapshot& graph, const LoaderOptions& options,
                  const ClassLabels& labels) {
  std::vector<VertexId> sorted = options.seeds;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end())
    return Status::InvalidArgument(fmt::format("loader: seed {} is repeated", *twice));
  for (const VertexId vertex : sorted) {
    if (graph.IsDeleted(vertex)) {
      return Status::InvalidArgument(
          fmt::format("loader: seed {} is not a vertex of the graph, or was deleted", vertex));
    }
    if (labels.label.empty()) continue;
    RHIZOME_ASSIGN_OR_RETURN(const Row row, graph.RowOf(vertex));
    if (labels.label[static_cast<std::size_t>(row)] >= 0) continue;
    RHIZOME_ASSIGN_OR_RETURN(const ExternalId id, graph.ExternalIdOf(vertex));
    return Status::InvalidArgument(
        fmt::format("loader: seed {} has no label (-1) in array {}", ToString(id), options.labels));
  }
  return Status::Ok();
}

/// Returns the vertices of the plan of epochs: seeds, or the numbers of pairs.
Result<std::vector<VertexId>> SeedsOf(const GraphSnapshot& graph, const LoaderOptions& options,
                                      const ClassLabels& labels, const LinkSeeds* links) {
  if (links != nullptr) return links->numbers();
  if (options.split.empty()) {
    RHIZOME_RETURN_IF_ERROR(CheckSeeds(graph, options, labels));
    return options.seeds;
  }
  std::vector<VertexId> seeds = labels.Members(graph, options.set);
  if (seeds.empty()) {
    return Fail(Status::InvalidArgument(
        fmt::format("loader: there are no seeds: array {} puts no vertex into set {}",
                    options.split, static_cast<int>(options.set))));
  }
  return seeds;
}

/// Creates the plan of all epochs. An unlimited number of epochs becomes the maximum that a tag can
/// encode.
EpochPlan MakePlan(std::vector<VertexId> seeds, const LoaderOptions& options) {
  return EpochPlan(std::move(seeds), {},
                   {.batch_size = options.batch_size,
                    .epochs = options.epochs == 0 ? EpochPlan::kMaxEpochs : options.epochs,
                    .seed = options.sampler.seed,
                    .shuffle = options.shuffle,
                    .drop_last = options.drop_last,
                    .rank = options.rank,
                    .ranks = options.ranks});
}

/// Returns the seeds of a plan, from the first minibatch.
SeedStream StreamOf(const EpochPlan& plan, const std::shared_ptr<LinkSeeds>& links) {
  return {.next = WithLinks(links, [rest = plan]() mutable { return rest.Next(); }),
          .minibatches = plan.minibatches()};
}

using RowTimes = std::shared_ptr<const std::vector<std::int64_t>>;

/// Returns the times of vertices as seeds, by row; null unless sampling is temporal.
Result<RowTimes> TimesOf(const GraphSnapshot& graph, const LoaderOptions& options) {
  if (options.sampler.times == nullptr) return RowTimes();
  std::vector<std::int64_t> times;
  if (!options.seed_time_array.empty()) {
    RHIZOME_ASSIGN_OR_RETURN(times, ReadSeedTimes(graph, options.seed_time_array));
  } else {
    times.resize(graph.vertex_count(), 0);
  }
  for (std::size_t i = 0; i < options.seed_times.size(); ++i) {
    RHIZOME_ASSIGN_OR_RETURN(const Row row, graph.RowOf(options.seeds[i]));
    times[static_cast<std::size_t>(row)] = options.seed_times[i];
  }
  return std::make_shared<const std::vector<std::int64_t>>(std::move(times));
}

/// Checks that the plan has at least one minibatch, and that `first` is within its epochs.
Status CheckPlan(const EpochPlan& plan, const LoaderOptions& options) {
  if (plan.minibatches() == 0) {
    return Status::InvalidArgument(
        "loader: there are fewer seeds than the batch size (of all ranks), and drop_last omits "
        "them; use a smaller batch");
  }
  if (!plan.IsEven()) {
    return Status::InvalidArgument(
        fmt::format("loader: the seeds do not divide into as many minibatches for each of {} "
                    "ranks; use drop_last, or another batch size",
                    options.ranks));
  }
  if (options.first > plan.minibatches()) {
    return Status::InvalidArgument(
        fmt::format("loader: {} minibatches are to be skipped, but there are {}", options.first,
                    plan.minibatches()));
  }
  return Status::Ok();
}

/// Sets the array, or the arrays, of the features, and logs notes on types without one. Returns the
/// array of each type; empty if one array was given for all.
Result<std::vector<FeatureInput>> SetInputs(const GraphSnapshot& graph,
                                            const LoaderOptions& options,
                                            FeedPipelineOptions& pipeline) {
  pipeline.features = options.features;
  if (options.inputs.empty()) {
    RHIZOME_RETURN_IF_ERROR(CheckSharedInput(graph, options.features).WithContext("loader"));
    return std::vector<FeatureInput>();
  }
  auto resolved = ResolveInputs(graph, options.inputs);
  if (!resolved) return Fail(resolved.error().WithContext("loader"));
  for (const std::string& note : resolved->notes)
    graph.store().logger().Log(LogLevel::kWarning, "loader", note);
  pipeline.sampler.vertex_types = true;
  pipeline.features = resolved->shared();
  if (pipeline.features.empty()) pipeline.inputs = resolved->of_types;
  return std::move(resolved->of_types);
}

FeedPipelineOptions PipelineOptionsOf(const LoaderOptions& options, RowTimes times) {
  FeedPipelineOptions pipeline;
  pipeline.sampler = {.sampler = options.sampler,
                      .degrees = options.degrees,
                      .edge_types = true,
                      .edge_weights = true,
                      .seed_times = std::move(times)};
  pipeline.normalize = options.normalize;
  pipeline.policy = options.feed.cache;
  pipeline.prior = options.feed.prior;
  pipeline.overlap = options.feed.overlap.value_or(Overlap::kAll);
  pipeline.io = options.io;
  pipeline.staging_bytes =
      options.memory_bytes == 0
          ? kMaxStagingBytes
          : std::clamp(options.memory_bytes / kStagingShare, kMinStagingBytes, kMaxStagingBytes);
  return pipeline;
}

/// Returns whether rows and lists use memory in turn; nullopt: the plan chooses.
std::optional<bool> InTurn(const FeedOptions& feed) {
  if (!feed.overlap) return std::nullopt;
  return *feed.overlap == Overlap::kChangeset;
}

/// Returns the seeds of pairs; null without pairs.
Result<std::shared_ptr<LinkSeeds>> LinksOf(std::shared_ptr<const GraphSnapshot> graph,
                                           const LoaderOptions& options) {
  if (options.pairs.empty()) return std::shared_ptr<LinkSeeds>();
  auto links = LinkSeeds::Create(std::move(graph), options.pairs,
                                 {.negatives = options.negatives,
                                  .sources = options.negative_sources,
                                  .seed = options.sampler.seed,
                                  .keep_seed_edges = options.keep_seed_edges});
  if (!links) return Fail(links.error().WithContext("loader"));
  return *std::move(links);
}

/// Returns the bytes that the loader uses independently of the minibatches: two copies of the seeds
/// in the plan and one that is passed on, the labels, and the tables of a sampler (see its header);
/// with pairs, these, and the table of another sampler for degrees.
std::uint64_t HeldBytes(const GraphSnapshot& graph, const LoaderOptions& options,
                        std::uint64_t seeds, const LinkSeeds* links) {
  const std::uint64_t vertices = graph.vertex_count();
  std::uint64_t bytes = 3 * seeds * sizeof(VertexId) + 4 * vertices;
  if (links != nullptr) {
    bytes += seeds * sizeof(VertexPair) + links->held_bytes();
    if (options.degrees && !options.keep_seed_edges) bytes += 4 * vertices;
  }
  if (!options.labels.empty()) bytes += vertices * sizeof(std::int32_t);
  if (options.sampler.times != nullptr) bytes += vertices * sizeof(std::int64_t);
  return bytes + SamplerTableBytes(graph, options.sampler);
}

/// Claims the scratch folder with the first name that no other loader uses.
Result<std::unique_ptr<JobScratch>> ClaimScratch(const Store& store, const std::string& job) {
  for (int number = 1;; ++number) {
    const std::string name = number == 1 ? job : fmt::format("{}-{}", job, number);
    auto scratch = JobScratch::Open(store, name, JobScratch::Leftovers::kRemove);
    const bool busy = !scratch && scratch.error().code() == StatusCode::kBusy;
    if (!busy || number == kMaxLoaders) return scratch;
  }
}

}  // namespace

std::uint64_t LoaderMemory::total_bytes() const {
  const std::uint64_t caches =
      overlap == Overlap::kChangeset ? std::max(cache, neighbor_cache) : cache + neighbor_cache;
  return held + working + schedules + caches;
}

/// Implementation of the Loader on top of a FeedPipeline. Start performs these steps:
/// 1. Check the options; read labels, split and seed times; determine the seeds, or the pairs whose
///    ends and negatives are seeds (LinkSeeds).
/// 2. Plan the seeds of all epochs (EpochPlan) and divide the memory (PlanFeed).
/// 3. Claim a scratch folder, build the neighbour cache, and skip to `first`.
/// 4. Start the pipeline.
///
/// Next then delivers minibatches, ends epochs, and counts.
class Loader::Impl {
 public:
  Impl(std::shared_ptr<const GraphSnapshot> graph, const JobControl& control)
      : graph_(std::move(graph)), parts_(graph_->parts()), control_(control) {}

  Status Start(const LoaderOptions& options);
  Result<std::optional<Minibatch>> Next();

  std::uint64_t seed_count() const { return seed_count_; }
  std::uint64_t minibatches_of_epoch() const { return minibatches_of_epoch_; }
  std::int64_t classes() const { return labels_.classes; }
  std::uint64_t position() const { return position_; }
  const LoaderReport& report() const { return report_; }
  const LoaderMemory& memory() const { return memory_; }
  const std::vector<FeatureInput>& inputs() const { return inputs_; }

 private:
  void Describe(const FeedPlan& feed);
  void Complete(Minibatch& minibatch) const;
  void Count(const Minibatch& minibatch);

  // Constant after Start.
  const std::shared_ptr<const GraphSnapshot> graph_;
  const std::shared_ptr<const GraphParts> parts_;
  const JobControl& control_;
  ClassLabels labels_;
  RowTimes times_;
  std::uint32_t ranks_ = 1;
  std::uint64_t seed_count_ = 0;
  std::uint64_t minibatches_of_epoch_ = 0;
  LoaderMemory memory_;
  std::vector<FeatureInput> inputs_;  // by type; empty: one array for all

  // Used by the caller's thread.
  std::uint64_t position_ = 0;
  bool epoch_ended_ = false;  // and Next has returned nullopt for it
  LoaderReport report_;

  // The folder is removed after the threads that use it have stopped.
  std::unique_ptr<JobScratch> scratch_;
  std::unique_ptr<FeedPipeline> pipeline_;
};

Status Loader::Impl::Start(const LoaderOptions& options) {
  RHIZOME_RETURN_IF_ERROR(CheckOptions(options));
  RHIZOME_RETURN_IF_ERROR(control_.CheckCancelled());
  RHIZOME_ASSIGN_OR_RETURN(labels_, ReadLabels(*graph_, options.labels, options.split));
  RHIZOME_ASSIGN_OR_RETURN(const auto links, LinksOf(graph_, options));
  RHIZOME_ASSIGN_OR_RETURN(std::vector<VertexId> seeds,
                           SeedsOf(*graph_, options, labels_, links.get()));
  labels_.split = {};
  RHIZOME_ASSIGN_OR_RETURN(times_, TimesOf(*graph_, options));
  ranks_ = options.ranks;
  seed_count_ = seeds.size();
  EpochPlan plan = MakePlan(std::move(seeds), options);
  RHIZOME_RETURN_IF_ERROR(CheckPlan(plan, options));
  minibatches_of_epoch_ = plan.train_batches();

  FeedPipelineOptions pipeline = PipelineOptionsOf(options, times_);
  RHIZOME_ASSIGN_OR_RETURN(inputs_, SetInputs(*graph_, options, pipeline));
  const FeedJob job{
      .graph = *graph_,
      .pipeline = std::move(pipeline),
      .fixed = {.cache_bytes = options.feed.cache_bytes,
                .superbatch = options.feed.superbatch,
                .neighbor_cache_bytes = options.feed.neighbor_cache_bytes,
                .in_turn = InTurn(options.feed)},
      .memory_bytes = options.memory_bytes,
      .held_bytes = [&] { return HeldBytes(*graph_, options, seed_count_, links.get()); },
      .compute_bytes = {},
      .minibatches = options.epochs == 0 ? minibatches_of_epoch_ : 0,
      .starts_soon = true};
  RHIZOME_ASSIGN_OR_RETURN(FeedPlan feed, PlanFeed(job, StreamOf(plan, links), control_));
  Describe(feed);
  RHIZOME_ASSIGN_OR_RETURN(scratch_, ClaimScratch(graph_->store(), options.job));
  RHIZOME_RETURN_IF_ERROR(feed.Prepare(*graph_, scratch_->folder(), control_));
  feed.pipeline.complete = [this](Minibatch& minibatch) {
    Complete(minibatch);
    return Status::Ok();
  };

  plan.Skip(options.first);
  position_ = options.first;
  report_.epoch = position_ / minibatches_of_epoch_;
  // A length that the caller chose is used from the first minibatch on. With kChangeset, each
  // superbatch empties the cache, so short ones are expensive.
  const bool ramps = options.feed.superbatch == 0 && feed.pipeline.overlap != Overlap::kChangeset;
  const std::uint32_t ramp = ramps ? feed.pipeline.superbatch : 0;
  RHIZOME_ASSIGN_OR_RETURN(
      pipeline_,
      FeedPipeline::Open(*graph_, feed.pipeline,
                         WithLinks(links, RampedSeeds(std::move(plan), ramp, options.epochs == 0)),
                         control_));
  return Status::Ok();
}

void Loader::Impl::Describe(const FeedPlan& feed) {
  memory_ = {.held = feed.needs.held_bytes,
             .working = feed.needs.working_bytes,
             .schedules = feed.memory.superbatch * feed.needs.schedule_bytes,
             .cache = feed.memory.cache_bytes,
             .neighbor_cache = feed.memory.neighbor_cache_bytes,
             .superbatch = feed.memory.superbatch,
             .overlap = feed.pipeline.overlap,
             .inputs = feed.inputs};
}

/// Adds what the pipeline does not know: epoch, number, vertices, times and labels. Runs on the
/// reading thread.
void Loader::Impl::Complete(Minibatch& minibatch) const {
  const EpochPlan::Tag tag = EpochPlan::Decode(minibatch.tag);
  minibatch.epoch = tag.epoch;
  minibatch.number = tag.batch / ranks_;
  minibatch.vertices.reserve(minibatch.rows.size());
  for (const Row row : minibatch.rows) minibatch.vertices.push_back(parts_->VertexAt(row));
  const auto each_seed = [&minibatch](const auto& of_row, auto& of_seed) {
    for (std::size_t i = 0; i < minibatch.seed_count; ++i)
      of_seed.push_back(of_row[static_cast<std::size_t>(minibatch.rows[i])]);
  };
  if (times_ != nullptr) each_seed(*times_, minibatch.seed_times);
  if (!labels_.label.empty()) each_seed(labels_.label, minibatch.labels);
}

Result<std::optional<Minibatch>> Loader::Impl::Next() {
  RHIZOME_RETURN_IF_ERROR(control_.CheckCancelled());
  if (report_.minibatches > 0 && position_ % minibatches_of_epoch_ == 0 && !epoch_ended_) {
    epoch_ended_ = true;
    return std::optional<Minibatch>();
  }
  const Stopwatch watch;
  RHIZOME_ASSIGN_OR_RETURN(std::optional<Minibatch> minibatch, pipeline_->Next());
  if (!minibatch) return minibatch;
  if (epoch_ended_) report_ = {.epoch = minibatch->epoch};
  epoch_ended_ = false;
  report_.wait_seconds += watch.seconds();
  Count(*minibatch);
  return minibatch;
}

void Loader::Impl::Count(const Minibatch& minibatch) {
  ++position_;
  ++report_.minibatches;
  report_.seeds += minibatch.seed_count;
  report_.costs += minibatch.costs;
  report_.inputs.resize(minibatch.inputs.size());
  for (std::size_t a = 0; a < minibatch.inputs.size(); ++a) {
    report_.inputs[a].array = minibatch.inputs[a].array;
    report_.inputs[a].reads += minibatch.inputs[a].reads;
  }
}

Result<std::unique_ptr<Loader>> Loader::Open(const Graph& graph, const LoaderOptions& options,
                                             const JobControl& control) try {
  auto impl = std::make_unique<Impl>(graph.Snapshot(), control);
  RHIZOME_RETURN_IF_ERROR(impl->Start(options));
  return std::unique_ptr<Loader>(new Loader(std::move(impl)));
} catch (...) {
  return Fail(StatusOfException());
}

Loader::Loader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Loader::~Loader() = default;
Result<std::optional<Minibatch>> Loader::Next() { return impl_->Next(); }
std::uint64_t Loader::seed_count() const { return impl_->seed_count(); }
std::uint64_t Loader::minibatches_of_epoch() const { return impl_->minibatches_of_epoch(); }
std::int64_t Loader::classes() const { return impl_->classes(); }
std::uint64_t Loader::position() const { return impl_->position(); }
LoaderReport Loader::report() const { return impl_->report(); }
const LoaderMemory& Loader::memory() const { return impl_->memory(); }
const std::vector<FeatureInput>& Loader::inputs() const { return impl_->inputs(); }

}  // namespace rhizome
