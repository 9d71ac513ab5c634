#include "gnn/full_graph/full_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "cache/feed/score_table.h"
#include "gnn/full_graph/full_report.h"
#include "gnn/ops/dense.h"
#include "index/graph/graph_memory.h"
#include "storage/base/bytes_left.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

/// Memory that libtorch and the allocator take at first use.
constexpr std::uint64_t kSlackBytes = 72 * kMiB;

/// Memory of an open store of any size: the catalogue, buffers, initial weights.
constexpr std::uint64_t kOpenedBytes = 10 * kMiB;

/// Bytes per row: degrees in both directions, factors, and the planner's marks.
constexpr std::uint64_t kBytesOfRow = 24;

/// Copies of the weights: gradients, two in the optimiser, the best weights, and copies in a
/// checkpoint.
constexpr std::uint64_t kCopiesOfWeights = 8;

/// Bounds for the chunk size of the widest array, and the part of the memory (1 / kChunkShare) that
/// a chunk takes between these bounds.
constexpr std::uint64_t kMinChunkBytes = kMiB / 4;
constexpr std::uint64_t kMaxPassChunkBytes = 4 * kMiB;
constexpr std::uint64_t kChunkShare = 64;

/// Each chunk is a file. Chunks smaller than the memory allows are used only if they save more than
/// 1 / kWorthSmallChunks of the bytes moved.
constexpr std::uint64_t kWorthSmallChunks = 16;

constexpr std::uint64_t kMinStageBytes = kMiB;
constexpr std::uint64_t kMaxStageBytes = 16 * kMiB;
constexpr std::uint64_t kStageShare = 16;

constexpr std::uint64_t kFeatureAheadBytes = 4 * kMiB;
constexpr std::uint64_t kMaxMarksBytes = 256 * kMiB;

SpillKind KindOf(SpillRule rule) {
  switch (rule) {
    case SpillRule::kNone:
      return SpillKind::kNone;
    case SpillRule::kLru:
      return SpillKind::kLru;
    case SpillRule::kLruLive:
      return SpillKind::kLruLive;
    case SpillRule::kBelady:
      return SpillKind::kBelady;
    case SpillRule::kDp:
      return SpillKind::kDp;
    case SpillRule::kDpTensor:
      return SpillKind::kDpTensor;
    case SpillRule::kAuto:
      break;
  }
  return SpillKind::kAuto;
}

SumsRule RuleOf(FullSums sums) {
  if (sums == FullSums::kStore) return SumsRule::kStore;
  return sums == FullSums::kRecompute ? SumsRule::kRecompute : SumsRule::kAuto;
}

/// Returns the memory for the marks of aggregations that are counted together. The memory of the
/// passes is free while aggregations are counted.
std::uint64_t MarksBytes(std::uint64_t capacity_bytes) {
  return std::min(capacity_bytes / 4, kMaxMarksBytes);
}

std::uint32_t ThreadsOf(const TrainOptions& options) {
  return std::max<std::uint32_t>(options.resources.threads, 1);
}

/// Returns the memory that a training holds before its first pass: graph, labels and sets. It is
/// computed, not measured: measured memory differs from run to run, and between a training and a
/// caller that only plans, but all of them must get the same plan.
Result<std::uint64_t> HeldByJob(const TrainJob& job) {
  RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t graph, HeldByGraph(*job.graph));
  const auto bytes = [](const auto& numbers) { return numbers.size() * sizeof(*numbers.data()); };
  return kOpenedBytes + graph + bytes(job.labels.label) + bytes(job.labels.split) +
         bytes(job.labels.flags) + bytes(job.labels.values) + bytes(job.train) + bytes(job.valid);
}

struct NoScores final : VertexScoreSink {
  void Take(std::span<const Row>, std::span<const float>) override {}
};

}  // namespace

Result<std::unique_ptr<FullJob>> FullJob::Open(const TrainJob& job, const TrainOptions& options,
                                               const Path& folder, const StepState* from,
                                               const JobControl& control) {
  RHIZOME_RETURN_IF_ERROR(CheckFullGraph(*job.model, job.graph->vertex_count()));
  std::unique_ptr<FullJob> full(new FullJob(job, options));
  full->space_ = std::make_unique<ScratchSpace>(job.store->fs(), folder);
  full->loss_ = std::make_unique<TaskLoss>(job.labels, job.class_weights,
                                           options.learning.loss.label_smoothing);
  full->weights_ = WeightsOfSets(job.labels, *full->loss_);
  RHIZOME_RETURN_IF_ERROR(full->OpenFeatures());
  RHIZOME_ASSIGN_OR_RETURN(full->sides_, OpenFullSides(job, options, control));
  full->ground_ = std::make_unique<PassContext>(PassContext{.graph = *job.graph,
                                                            .features = *full->features_,
                                                            .forward = full->sides_->forward,
                                                            .backward = full->sides_->backward,
                                                            .sizes = {}});
  RHIZOME_ASSIGN_OR_RETURN(full->held_bytes_, HeldByJob(job));
  RHIZOME_RETURN_IF_ERROR(full->Divide(from, control));
  return full;
}

Status FullJob::OpenFeatures() {
  RHIZOME_ASSIGN_OR_RETURN(features_array_, job_.store->OpenArray(options_.data.features));
  RHIZOME_ASSIGN_OR_RETURN(
      const FeatureDecoder decoder,
      FeatureDecoder::Create(features_array_->entry(), options_.model.normalize_features));
  const std::uint32_t threads = ThreadsOf(options_);
  features_ = std::make_unique<FeatureSource>(FeatureSource{
      .array = *features_array_,
      .decoder = decoder,
      .delta = DeltaRows::Of(job_.graph->Snapshot(), features_array_->entry()),
      .reader = {.threads = threads,
                 .direct = options_.resources.memory_bytes != 0,
                 .ahead =
                     ChunkReader::AheadFor(features_array_->entry(), threads, kFeatureAheadBytes)},
      .rows = job_.graph->vertex_count(),
      .bytes_read = feature_bytes_read_});
  return Status::Ok();
}

/// Creates the arrays, and the network that works on them.
void FullJob::Arrange(const PassSizes& sizes) {
  ground_->sizes = sizes;
  network_.reset();
  arrays_.clear();
  const std::uint64_t rows = job_.graph->vertex_count();
  for (ScratchShape& shape : ArraysOf(*job_.model, rows, sizes.chunk_rows)) {
    const std::string name = shape.name;
    const auto id = static_cast<std::uint32_t>(arrays_.size());
    arrays_[name] = std::make_unique<ScratchArray>(*space_, std::move(shape), id);
  }
  network_ = std::make_unique<FullNetwork>(*job_.model, job_.labels, *loss_, weights_, arrays_);
}

std::vector<ScratchArray*> FullJob::Arrays() const {
  std::vector<ScratchArray*> arrays(arrays_.size());
  for (const auto& [name, array] : arrays_) arrays[array->id()] = array.get();
  return arrays;
}

FullJob::Fixed FullJob::FixedBytes() const {
  std::uint64_t weights = 0;
  for (const torch::Tensor& weight : job_.model->Parameters())
    weights += static_cast<std::uint64_t>(weight.numel()) * sizeof(float);
  return {.process = kSlackBytes,
          .graph = job_.graph->vertex_count() * kBytesOfRow +
                   ScoreTable::BytesFor(job_.labels, job_.train.size() + job_.valid.size()) +
                   (sides_->lists != nullptr
                        ? 2 * ListsOnDisk::WorkingBytes(
                                  {.fanouts = {kAllNeighbors}, .threads = ThreadsOf(options_)},
                                  kSampledEdges)
                        : 0),
          .model = weights * kCopiesOfWeights};
}

/// Returns the out-of-memory error, which lists the uses of memory and the memory needed.
Status FullJob::TooSmall(std::uint64_t limit_bytes, std::string_view pass,
                         std::uint64_t pass_bytes) const {
  const Fixed fixed = FixedBytes();
  const auto in_mib = [](std::uint64_t bytes) {
    return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / static_cast<double>(kMiB));
  };
  return Status::OutOfMemory(fmt::format(
      "a memory limit of {} MiB is too small to train on the full graph: pass \"{}\" needs at "
      "least {} MiB. This includes {} for libtorch and an open store, {} for graph, labels and "
      "scores, {} for the copies of the weights, and {} for the sums and rows of the pass",
      limit_bytes / kMiB, pass, (held_bytes_ + fixed.all() + pass_bytes) / kMiB + 1,
      in_mib(fixed.process + kOpenedBytes), in_mib(held_bytes_ - kOpenedBytes + fixed.graph),
      in_mib(fixed.model), in_mib(pass_bytes)));
}

/// Records the passes of both steps with the current arrays.
Status FullJob::Record(StepPlanner& learn, StepPlanner& measure) {
  const std::uint32_t layers = job_.model->layers();
  std::vector<bool> recomputed;
  for (std::uint32_t layer = 0; layer < layers; ++layer)
    recomputed.push_back(CanRecomputeSums(*job_.model, layer));
  const auto learning = [this](std::vector<bool> again) {
    return [this, again = std::move(again)](const PassUser& use) -> Status {
      network_->SetRecomputed(again);
      const Result<double> loss = network_->Learn(0, nullptr, use);
      network_->SetRecomputed(std::vector<bool>(again.size(), false));
      return loss ? Status::Ok() : loss.error();
    };
  };
  const bool any = std::find(recomputed.begin(), recomputed.end(), true) != recomputed.end();
  RHIZOME_RETURN_IF_ERROR(learn.Record(learning(std::vector<bool>(layers, false)),
                                       any ? ForStep(learning(recomputed)) : nullptr));
  return measure.Record(
      [this](const PassUser& use) -> Status {
        NoScores sink;
        const Result<double> loss = network_->Evaluate(sink, use);
        return loss ? Status::Ok() : loss.error();
      },
      nullptr);
}

/// Returns the sizes of chunks and stages when `bytes` of memory are left. A resumed step (`from`)
/// keeps its chunk size.
PassSizes FullJob::SizesFor(std::uint64_t bytes, const StepState* from) const {
  const std::uint64_t rows = job_.graph->vertex_count();
  std::uint64_t widest = 1;
  for (const ScratchShape& shape : ArraysOf(*job_.model, rows, 1))
    widest = std::max(widest, shape.dim);
  const auto tile = static_cast<std::uint64_t>(kDenseRows);
  const std::uint64_t chunk_bytes =
      std::clamp(bytes / kChunkShare, kMinChunkBytes, kMaxPassChunkBytes);
  const std::uint64_t tiles =
      std::max<std::uint64_t>(chunk_bytes / (widest * sizeof(float) * tile), 1);
  return {.chunk_rows = from != nullptr ? from->chunk_rows
                                        : std::min(tiles * tile, (rows + tile - 1) / tile * tile),
          .stage_bytes = std::clamp(bytes / kStageShare, kMinStageBytes, kMaxStageBytes)};
}

FullJob::Divided FullJob::TakeDivided() {
  return {.sizes = ground_->sizes,
          .arrays = std::move(arrays_),
          .network = std::move(network_),
          .learn = std::move(learn_),
          .measure = std::move(measure_),
          .report = std::move(report_)};
}

void FullJob::Use(Divided divided) {
  ground_->sizes = divided.sizes;
  arrays_ = std::move(divided.arrays);
  network_ = std::move(divided.network);
  learn_ = std::move(divided.learn);
  measure_ = std::move(divided.measure);
  report_ = std::move(divided.report);
}

/// Returns whether the current plan saves enough bytes to be preferred to `best`, which has larger
/// chunks.
bool FullJob::Pays(const std::optional<Divided>& best) const {
  if (!best) return true;
  const auto bytes_of = [](const FullGraphReport& r) { return r.planned_bytes + r.feature_bytes; };
  const std::uint64_t bytes = bytes_of(best->report);
  return bytes_of(report_) < bytes - bytes / kWorthSmallChunks;
}

// Divides the memory limit:
//   1. Subtracts the memory that does not depend on passes (HeldByJob, FixedBytes).
//   2. Chooses the sizes of chunks and stages by the memory that is left. Tries smaller sizes, too,
//      and uses them if the passes do not fit otherwise, or if they save enough bytes (Pays).
//   3. Plans both steps, which divides the rest between the sums of blocks and the chunks that stay
//      in memory.
Status FullJob::Divide(const StepState* from, const JobControl& control) {
  const std::uint64_t fixed = held_bytes_ + FixedBytes().all();
  const std::uint64_t limit = options_.resources.memory_bytes == 0
                                  ? std::numeric_limits<std::uint64_t>::max()
                                  : options_.resources.memory_bytes;
  const std::uint64_t left = BytesLeft(limit, fixed);
  StepPlanner::Least least;
  Status failed;
  std::optional<Divided> best;
  for (const std::uint64_t bytes : {left, left / 4, std::uint64_t{0}}) {
    const PassSizes sizes = SizesFor(bytes, from);
    if (best && sizes.chunk_rows == best->sizes.chunk_rows) continue;
    Arrange(sizes);
    const auto counts = std::make_shared<GatherCounts>(*ground_, MarksBytes(left), control);
    const StepPlannerOptions options{.capacity_bytes = left,
                                     .threads = ThreadsOf(options_),
                                     .spill = KindOf(options_.full_graph()->spill),
                                     .sums = RuleOf(options_.full_graph()->sums)};
    StepPlanner learn(*ground_, arrays_, counts, options);
    StepPlanner measure(*ground_, arrays_, counts, options);
    RHIZOME_RETURN_IF_ERROR(Record(learn, measure));
    least = learn.least().bytes >= measure.least().bytes ? learn.least() : measure.least();
    if (least.bytes > left) continue;
    failed =
        Plan(std::min(left, std::max(learn.BytesForAll(), measure.BytesForAll())), from, control);
    if (failed.code() == StatusCode::kOutOfMemory) continue;  // dp-tensor needs whole arrays
    RHIZOME_RETURN_IF_ERROR(failed);
    report_.memory_bytes = fixed - held_bytes_ + PeakBytes(*learn_, *measure_);
    if (Pays(best)) best = TakeDivided();
    if (best->report.planned_bytes == 0) break;
  }
  if (best) {
    Use(*std::move(best));
    return Status::Ok();
  }
  RHIZOME_RETURN_IF_ERROR(failed);
  return TooSmall(limit, least.pass, least.bytes);
}

/// Plans both steps with `capacity_bytes` for passes and for chunks that stay in memory.
Status FullJob::Plan(std::uint64_t capacity_bytes, const StepState* from,
                     const JobControl& control) {
  const auto counts = std::make_shared<GatherCounts>(*ground_, MarksBytes(capacity_bytes), control);
  StepPlannerOptions options{.capacity_bytes = capacity_bytes,
                             .threads = ThreadsOf(options_),
                             .spill = KindOf(options_.full_graph()->spill),
                             .sums = RuleOf(options_.full_graph()->sums)};
  if (from != nullptr) options.stored_sums = from->stored_sums;
  StepPlanner learn(*ground_, arrays_, counts, options);
  StepPlanner measure(*ground_, arrays_, counts, options);
  RHIZOME_RETURN_IF_ERROR(Record(learn, measure));
  learn.Choose();
  measure.Choose();
  RHIZOME_RETURN_IF_ERROR(
      control.Report({.phase = "plan", .done = 0, .total = 2, .detail = "to learn"}));
  RHIZOME_ASSIGN_OR_RETURN(learn_, learn.Plan());
  RHIZOME_RETURN_IF_ERROR(
      control.Report({.phase = "plan", .done = 1, .total = 2, .detail = "to measure"}));
  RHIZOME_ASSIGN_OR_RETURN(measure_, measure.Plan());
  SetRecomputed();
  report_ = DescribeSteps(*learn_, *measure_, /*measured=*/!job_.valid.empty());
  report_.chunk_rows = ground_->sizes.chunk_rows;
  return Status::Ok();
}

/// Sets which sums the network recomputes, as in the plan.
void FullJob::SetRecomputed() {
  std::vector<bool> recomputed(job_.model->layers(), false);
  for (std::size_t p = 0; p < learn_->plan.passes.size(); ++p) {
    if (learn_->plan.passes[p].sums != FullGraphPlan::Sums::kRecomputed) continue;
    const std::string& name = learn_->sequence.arrays[*learn_->sequence.passes[p].sums].name;
    for (std::uint32_t layer = 0; layer < recomputed.size(); ++layer)
      if (NameOfArray(kSums, layer) == name) recomputed[layer] = true;
  }
  network_->SetRecomputed(std::move(recomputed));
}

Status FullJob::Prepare(const StepState* from) {
  FileSystem& fs = job_.store->fs();
  if (from == nullptr) RHIZOME_RETURN_IF_ERROR(RemoveTree(fs, space_->folder()));
  RHIZOME_RETURN_IF_ERROR(CreateDirectories(fs, space_->folder()));
  std::set<Path> wanted_files;
  for (const auto& [name, array] : arrays_) {
    if (from == nullptr) break;
    const auto found = from->files.find(name);
    if (found == from->files.end()) continue;
    for (const ScratchFile& file : found->second)
      wanted_files.insert(array->FileOf(from->step, file.chunk));
  }
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, fs.List(space_->folder()));
  for (const DirectoryEntry& entry : entries) {
    const Path path = space_->folder() / entry.name;
    if (!wanted_files.contains(path)) RHIZOME_RETURN_IF_ERROR(RemoveTree(fs, path));
  }
  RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t free, fs.FreeBytes(space_->folder()));
  const std::uint64_t wanted = 2 * report_.disk_bytes;
  if (free >= wanted) return Status::Ok();
  return Status::OutOfSpace(fmt::format(
      "the arrays of an epoch need {} MiB in {}, twice the size that exists at once, but {} MiB "
      "are free; free disk space, put `scratch` on another disk, or raise `memory_bytes`",
      wanted / kMiB + 1, space_->folder().string(), free / kMiB));
}

}  // namespace internal
}  // namespace rhizome
