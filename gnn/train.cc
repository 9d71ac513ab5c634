#include "rhizome/gnn/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>

#include "rhizome/gnn/compute_threads.h"
#include "rhizome/gnn/epoch_plan.h"
#include "rhizome/gnn/job_scratch.h"
#include "rhizome/gnn/layerwise_inference.h"
#include "rhizome/gnn/learner.h"
#include "rhizome/gnn/lists_on_disk.h"
#include "rhizome/gnn/loader.h"
#include "rhizome/gnn/memory_plan.h"
#include "rhizome/gnn/process_memory.h"
#include "rhizome/gnn/simd.h"
#include "rhizome/storage/check.h"

namespace rhizome {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Memory for what libtorch and the allocator take when they first work.
constexpr std::uint64_t kSlackBytes = std::uint64_t{48} << 20;

/// Bytes of trace and schedule for one access while a superbatch is scheduled.
constexpr std::uint64_t kScheduleBytesPerAccess = 48;

/// Minibatches whose features are in memory at once: in the loader, and computed on.
constexpr std::uint64_t kMinibatchesAlive = kMinibatchesAhead + 1;

struct TrainJob {
  std::unique_ptr<Store> store;
  std::unique_ptr<Graph> graph;
  Labels labels;
  std::vector<VertexId> train;
  std::vector<VertexId> valid;
  ArrayEntry features;
  std::optional<Model> model;
};

Status CheckOptions(const TrainOptions& options) {
  if (!options.model.no_edges && options.fanouts.size() != options.model.layers) {
    return Status::InvalidArgument(
        fmt::format("{} fanouts for {} layers; give one for each layer, such as --fanout 10,10",
                    options.fanouts.size(), options.model.layers));
  }
  if (options.batch_size == 0 || options.epochs == 0) {
    return Status::InvalidArgument("batch size and epochs must be at least 1");
  }
  if (!(options.learning_rate > 0) || !(options.weight_decay >= 0)) {
    return Status::InvalidArgument(
        "the learning rate must be positive, the weight decay not negative");
  }
  // Better to learn now than after hours that a result cannot be written.
  for (const Path& path : {options.out, options.trace}) {
    if (path.empty()) continue;
    const Result<OutputFile> probe = OutputFile::Create(path);
    if (!probe) return probe.error();
  }
  return Status::Ok();
}

Result<TrainJob> OpenJob(const TrainOptions& options) {
  RHIZOME_RETURN_IF_ERROR(CheckOptions(options));
  TrainJob job;
  RHIZOME_ASSIGN_OR_RETURN(job.store,
                           Store::Open(FileSystem::Posix(), options.store, Store::Mode::kRead));
  RHIZOME_ASSIGN_OR_RETURN(job.graph, Graph::Open(*job.store, {.topology = options.topology}));
  RHIZOME_ASSIGN_OR_RETURN(const auto features, job.store->OpenArray(options.features));
  job.features = features->entry();
  RHIZOME_ASSIGN_OR_RETURN(job.labels, ReadLabels(*job.graph, options.labels, options.split));
  job.train = job.labels.Members(*job.graph, Split::kTrain);
  job.valid = job.labels.Members(*job.graph, Split::kValid);
  if (job.train.empty()) {
    return Fail(Status::InvalidArgument(
        fmt::format("array {} puts no vertex into the training set (value 0)", options.split)));
  }
  const ModelShape shape{.spec = options.model,
                         .inputs = static_cast<std::int64_t>(job.features.dim),
                         .classes = job.labels.classes};
  RHIZOME_ASSIGN_OR_RETURN(job.model, Model::Create(shape, options.seed));
  RHIZOME_RETURN_IF_ERROR(CheckFeatures(job.features, *job.model, *job.graph));
  return job;
}

MinibatchSamplerOptions SamplerOptionsOf(const TrainOptions& options) {
  return {.fanouts = options.fanouts,
          .no_edges = options.model.no_edges,
          .degrees = options.model.kind == ModelKind::kGcn,
          .seed = options.seed,
          .threads = std::max<std::uint32_t>(options.threads, 1)};
}

/// Null where lists are in memory, or not read at all.
Result<std::unique_ptr<ListsOnDisk>> OpenLists(const TrainJob& job, const TrainOptions& options,
                                               std::uint64_t cache_bytes,
                                               const JobControl& control) {
  if (options.topology == TopologyPlace::kMemory || options.model.no_edges)
    return std::unique_ptr<ListsOnDisk>();
  return ListsOnDisk::Open(*job.graph, cache_bytes, options.io, control);
}

std::shared_ptr<const NeighborSource> SourceOf(const std::unique_ptr<ListsOnDisk>& lists) {
  return lists == nullptr ? nullptr : lists->source();
}

/// Samples the first minibatch to learn how large they are.
Result<MemoryNeeds> MeasureNeeds(const TrainJob& job, const TrainOptions& options,
                                 const EpochPlan& plan, std::uint64_t base_bytes,
                                 const JobControl& control) {
  EpochPlan probe = plan;
  RHIZOME_ASSIGN_OR_RETURN(const auto lists, OpenLists(job, options, 0, control));
  RHIZOME_ASSIGN_OR_RETURN(
      const MinibatchSampler sampler,
      MinibatchSampler::Create(*job.graph, SamplerOptionsOf(options), SourceOf(lists)));
  RHIZOME_ASSIGN_OR_RETURN(const Minibatch minibatch, sampler.Sample(*probe.Next()));
  // A quarter more than the first one, as others may be larger.
  const std::uint64_t rows = minibatch.rows.size() + minibatch.rows.size() / 4;
  const std::uint64_t edges = minibatch.csr.neighbors.size() + minibatch.csr.neighbors.size() / 4;
  const std::uint64_t floats =
      static_cast<std::uint64_t>(job.model->shape().inputs) * sizeof(float);
  const auto hidden = static_cast<std::uint64_t>(options.model.hidden) * sizeof(float);
  MemoryNeeds needs;
  needs.working_bytes = kSlackBytes + RowReaderOptions().staging_bytes + 4 * job.features.rows +
                        kMinibatchesAlive * (rows * (floats + 40) + edges * 24) +
                        rows * job.features.row_bytes() +
                        rows * (hidden + floats) * 4 * options.model.layers / 2;
  needs.schedule_bytes = rows * kScheduleBytesPerAccess;
  needs.cacheable_bytes = job.features.rows * job.features.row_bytes();
  if (lists != nullptr) {
    const NeighborCache::Needs cache = NeighborCache::NeedsOf(*job.graph, Direction::kIn);
    needs.neighbor_full_bytes = cache.full_bytes;
    needs.neighbor_table_bytes = cache.table_bytes;
    needs.neighbor_build_bytes = cache.build_bytes;
    needs.working_bytes += ListsOnDisk::WorkingBytes(edges);
  }
  needs.minibatches = (plan.train_batches() + plan.valid_batches()) * options.epochs;
  const std::uint64_t now = ResidentBytes();
  needs.held_bytes = now > base_bytes ? now - base_bytes : 0;
  return needs;
}

LoaderOptions MakeLoaderOptions(const TrainOptions& options, const MemoryPlan& memory,
                                const Path& scratch) {
  LoaderOptions loader;
  loader.sampler = SamplerOptionsOf(options);
  loader.features = options.features;
  loader.normalize = options.model.normalize_features;
  loader.policy = options.cache;
  loader.cache_bytes = memory.cache_bytes;
  loader.superbatch = memory.superbatch;
  loader.io = options.io;
  loader.scratch = scratch;
  return loader;
}

void AddCosts(const MinibatchCosts& costs, EpochReport& epoch) {
  epoch.sample_seconds += costs.sample_seconds;
  epoch.schedule_seconds += costs.schedule_seconds;
  epoch.switch_seconds += costs.switch_seconds;
  epoch.gather_seconds += costs.gather_seconds;
  epoch.update_seconds += costs.update_seconds;
  epoch.rows_requested += costs.rows_requested;
  epoch.pool_hits += costs.pool_hits;
  epoch.rows_kept += costs.rows_kept;
  epoch.rows_read += costs.rows_read;
  epoch.bytes_read += costs.bytes_read;
  epoch.reads_issued += costs.reads_issued;
}

/// Runs the epochs and keeps the best weights.
class TrainingRun {
 public:
  TrainingRun(TrainJob& job, const TrainOptions& options, const EpochPlan& plan, Loader& loader,
              StageTrace* trace)
      : job_(job),
        options_(options),
        plan_(plan),
        loader_(loader),
        trace_(trace),
        learner_(*job.model, job.labels, options.learning_rate, options.weight_decay,
                 options.seed) {}

  Status Run(TrainReport& report, const JobControl& control) {
    for (std::uint32_t epoch = 0; epoch < options_.epochs; ++epoch) {
      RHIZOME_ASSIGN_OR_RETURN(const EpochReport done, RunEpoch(epoch, control));
      report.epochs.push_back(done);
      KeepIfBest(done, epoch, report);
    }
    job_.model->RestoreWeights(best_weights_);
    return Status::Ok();
  }

 private:
  Result<EpochReport> RunEpoch(std::uint32_t epoch, const JobControl& control) {
    EpochReport report;
    const Clock::time_point start = Clock::now();
    BatchOutcome train, valid;
    const std::uint64_t batches = plan_.train_batches() + plan_.valid_batches();
    for (std::uint64_t batch = 0; batch < batches; ++batch) {
      const std::uint64_t number = epoch * batches + batch;
      const StageTimer wait(trace_, Stage::kWait, number);
      RHIZOME_ASSIGN_OR_RETURN(std::optional<Minibatch> minibatch, loader_.Next());
      RHIZOME_CHECK(minibatch.has_value());  // the plan gives the loader as many
      report.stall_seconds += wait.Stop();
      const bool is_valid = EpochPlan::Decode(minibatch->tag).is_valid;
      const StageTimer compute(trace_, Stage::kCompute, number);
      const BatchOutcome outcome =
          is_valid ? learner_.Evaluate(*minibatch) : learner_.Learn(*minibatch);
      report.compute_seconds += compute.Stop();
      if (!std::isfinite(outcome.loss_sum)) return Fail(Diverged(epoch, batch));
      Add(outcome, is_valid ? valid : train);
      AddCosts(minibatch->costs, report);
      loader_.Recycle(*std::move(minibatch));
      report.loss = train.loss_sum / static_cast<double>(train.seeds);
      RHIZOME_RETURN_IF_ERROR(control.Report({.phase = "train",
                                              .done = number + 1,
                                              .total = options_.epochs * batches,
                                              .detail = Detail(report, SecondsSince(start))}));
    }
    if (valid.seeds > 0) {
      report.valid_accuracy = static_cast<double>(valid.correct) / static_cast<double>(valid.seeds);
      valid_loss_ = valid.loss_sum / static_cast<double>(valid.seeds);
    }
    report.seconds = SecondsSince(start);
    return report;
  }

  /// What a person wants to know of a running epoch.
  static std::string Detail(const EpochReport& epoch, double seconds) {
    const auto rows = static_cast<double>(epoch.rows_requested);
    return fmt::format("loss {:.4f}, {:.0f} k rows/s, {:.0f} MB/s, {:.0f} % hits", epoch.loss,
                       rows / seconds / 1e3, static_cast<double>(epoch.bytes_read) / seconds / 1e6,
                       rows == 0 ? 0 : 100 * static_cast<double>(epoch.pool_hits) / rows);
  }

  Status Diverged(std::uint32_t epoch, std::uint64_t batch) const {
    return Status::InvalidArgument(
        fmt::format("the loss of epoch {}, minibatch {} is not a number: look for NaN or huge "
                    "values in array {}, or try a smaller learning rate than {}",
                    epoch + 1, batch + 1, options_.features, options_.learning_rate));
  }

  static void Add(const BatchOutcome& outcome, BatchOutcome& sum) {
    sum.loss_sum += outcome.loss_sum;
    sum.seeds += outcome.seeds;
    sum.correct += outcome.correct;
  }

  /// Without a validation set the last epoch is as good as any.
  void KeepIfBest(const EpochReport& epoch, std::uint32_t number, TrainReport& report) {
    const bool first = best_weights_.empty();
    const bool better = epoch.valid_accuracy > best_accuracy_ ||
                        (epoch.valid_accuracy == best_accuracy_ && valid_loss_ < best_loss_);
    if (!first && !better && plan_.valid_batches() > 0) return;
    best_weights_ = job_.model->CopyWeights();
    best_accuracy_ = epoch.valid_accuracy;
    best_loss_ = valid_loss_;
    report.best_epoch = number + 1;
  }

  TrainJob& job_;
  const TrainOptions& options_;
  const EpochPlan& plan_;
  Loader& loader_;
  StageTrace* const trace_;
  Learner learner_;
  std::vector<torch::Tensor> best_weights_;
  double best_accuracy_ = 0;
  double best_loss_ = std::numeric_limits<double>::infinity();
  double valid_loss_ = 0;  // of the last epoch
};

/// Accuracy on the test set of always answering the training set's most frequent class.
double MajorityAccuracy(const Labels& labels) {
  std::map<std::int32_t, std::uint64_t> counts;
  for (std::size_t row = 0; row < labels.label.size(); ++row) {
    if (labels.split[row] == Split::kTrain) ++counts[labels.label[row]];
  }
  const auto most =
      std::max_element(counts.begin(), counts.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  AccuracyCounts accuracy;
  for (std::size_t row = 0; row < labels.label.size(); ++row) {
    accuracy.Add(labels.split[row], labels.label[row] == most->first);
  }
  return accuracy.Share(Split::kTest);
}

/// Accuracy of the kept weights with all neighbours, computed layer by layer in scratch.
Status Measure(const TrainJob& job, const TrainOptions& options, const MemoryPlan& memory,
               const Path& scratch, TrainReport& report, const JobControl& control) {
  // All lists are read in order, each twice a layer: no cache of a part of them would help.
  RHIZOME_ASSIGN_OR_RETURN(const auto lists, OpenLists(job, options, 0, control));
  LayerwiseOptions layerwise;
  layerwise.features = options.features;
  layerwise.output.name = "evaluation";
  layerwise.output.codec = {.kind = CodecKind::kBloscLz4, .level = 1};
  layerwise.write_output = false;
  layerwise.cache_bytes = memory.cache_bytes;
  layerwise.seed = options.seed;
  layerwise.neighbors = SourceOf(lists);
  layerwise.threads = std::max<std::uint32_t>(options.threads, 1);
  RHIZOME_ASSIGN_OR_RETURN(const LayerwiseResult result,
                           RunLayerwise(*job.graph, *job.model, &job.labels, scratch / "evaluation",
                                        nullptr, layerwise, control));
  report.valid_accuracy = result.accuracy.Share(Split::kValid);
  report.test_accuracy = result.accuracy.Share(Split::kTest);
  return Status::Ok();
}

Status RunEpochs(TrainJob& job, const TrainOptions& options, const EpochPlan& plan,
                 const MemoryPlan& memory, const Path& scratch, TrainReport& report,
                 const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(const auto lists,
                           OpenLists(job, options, memory.neighbor_cache_bytes, control));
  LoaderOptions loader_options = MakeLoaderOptions(options, memory, scratch);
  loader_options.neighbors = SourceOf(lists);
  StageTrace trace;
  if (!options.trace.empty()) loader_options.trace = &trace;
  // The loader asks a copy, on its own thread, for what the run counts on this one.
  RHIZOME_ASSIGN_OR_RETURN(
      const std::unique_ptr<Loader> loader,
      Loader::Open(
          *job.graph, loader_options, [seeds = plan]() mutable { return seeds.Next(); }, control));
  TrainingRun run(job, options, plan, *loader, loader_options.trace);
  RHIZOME_RETURN_IF_ERROR(run.Run(report, control));
  const RowReaderStats reads = loader->reader_stats();
  report.maker = reads.maker;
  report.direct = reads.direct;
  report.mean_depth = reads.mean_depth;
  if (lists != nullptr) report.list_reads = lists->report();
  if (!options.trace.empty()) RHIZOME_RETURN_IF_ERROR(trace.Write(options.trace));
  return Status::Ok();
}

}  // namespace

Result<TrainReport> TrainModel(const TrainOptions& options, const JobControl& control) {
  TrainReport report;
  report.base_memory_bytes = ResidentBytes();
  RHIZOME_RETURN_IF_ERROR(CheckSimdSetting());
  SetComputeThreads(options.threads);
  RHIZOME_ASSIGN_OR_RETURN(TrainJob job, OpenJob(options));
  RHIZOME_ASSIGN_OR_RETURN(const std::unique_ptr<JobScratch> scratch,
                           JobScratch::Open(job.store->fs(), options.store, options.job,
                                            JobScratch::Leftovers::kRemove));
  const EpochPlan plan(job.train, job.valid, options.batch_size, options.epochs, options.seed);
  RHIZOME_ASSIGN_OR_RETURN(const MemoryNeeds needs,
                           MeasureNeeds(job, options, plan, report.base_memory_bytes, control));
  RHIZOME_ASSIGN_OR_RETURN(const MemoryPlan memory,
                           PlanMemory(options.memory_bytes,
                                      {.cache_bytes = options.cache_bytes,
                                       .superbatch = options.superbatch,
                                       .neighbor_cache_bytes = options.neighbor_cache_bytes},
                                      needs));
  report.superbatch = memory.superbatch;
  RHIZOME_RETURN_IF_ERROR(
      RunEpochs(job, options, plan, memory, scratch->folder(), report, control));
  report.majority_accuracy = MajorityAccuracy(job.labels);
  RHIZOME_RETURN_IF_ERROR(Measure(job, options, memory, scratch->folder(), report, control));
  if (!options.out.empty()) {
    RHIZOME_RETURN_IF_ERROR(SaveSafetensors(options.out, job.model->ToFile()));
    report.model = options.out.string();
  }
  report.peak_memory_bytes = PeakResidentBytes();
  return report;
}

}  // namespace rhizome
