#include "rhizome/gnn/full_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "rhizome/cache/resolve_sampling.h"
#include "rhizome/cache/row_degrees.h"
#include "rhizome/cache/score_table.h"
#include "rhizome/storage/bytes_left.h"

namespace rhizome::inline internal {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

/// Memory that libtorch and the allocator take when they first work.
constexpr std::uint64_t kSlackBytes = 72 * kMiB;

/// Bytes of each row: degrees of both sides, factors, and the planner's marks.
constexpr std::uint64_t kBytesOfRow = 24;

/// Copies of the weights: gradients, two of the optimiser's, the best, and those of a checkpoint.
constexpr std::uint64_t kCopiesOfWeights = 8;

/// Bytes of the widest array's chunk.
constexpr std::uint64_t kLeastChunkBytes = kMiB / 4;
constexpr std::uint64_t kMostChunkBytes = 4 * kMiB;

constexpr std::uint64_t kLeastStageBytes = kMiB;
constexpr std::uint64_t kMostStageBytes = 16 * kMiB;
constexpr std::uint64_t kFeatureAheadBytes = 4 * kMiB;
constexpr std::uint64_t kLeastBlockBytes = kMiB;

/// Arrays stay in memory by so many parts of their chunks.
constexpr std::uint64_t kParts = 8;

Direction OtherSide(Direction direction) {
  if (direction == Direction::kBoth) return Direction::kBoth;
  return direction == Direction::kIn ? Direction::kOut : Direction::kIn;
}

/// Checks that the store keeps the lists against those that layers walk.
Status CheckBothSides(const GenerationInfo& info, Direction against) {
  const auto wanted = static_cast<unsigned>(against);
  if (info.symmetric || (static_cast<unsigned>(info.directions) & wanted) == wanted)
    return Status::Ok();
  const std::string_view missing = info.directions == Direction::kIn ? "out" : "in";
  return Status::InvalidArgument(
      fmt::format("the store keeps no {}-edges, and --full-graph gathers gradients against the "
                  "direction that layers walk; ingest it with --directions both, or with "
                  "--undirected",
                  missing));
}

/// The factors by which a row's sum counts its neighbours, and those of their own ends.
Result<RowFactors> MakeFactors(const ReducePiece& reduce, const GraphSnapshot& graph,
                               const PassDrawOptions& draw,
                               std::span<const std::uint32_t> degrees) {
  RowFactors factors;
  if (reduce.by == Reduction::kSum && !reduce.symmetric) return factors;  // ones
  std::vector<float> weighted;
  if (draw.weights && !draw.no_edges) {
    RHIZOME_ASSIGN_OR_RETURN(weighted, WeightedDegrees(graph, draw.direction));
  }
  const std::size_t rows = graph.vertex_count();
  factors.target.resize(rows);
  if (reduce.own_joins) factors.own.resize(rows);
  if (reduce.symmetric) factors.source.resize(rows);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::uint32_t degree = draw.no_edges ? 0 : degrees[row];
    const float weight = weighted.empty() ? static_cast<float>(degree) : weighted[row];
    const float own_scale =
        reduce.symmetric ? (weighted.empty() ? GcnScale(degree) : GcnScale(weight)) : 1;
    const TargetScales scales =
        ScalesOf(reduce, {.listed = degree, .degree = degree, .weight = weight}, own_scale);
    factors.target[row] = scales.target;
    if (reduce.own_joins) factors.own[row] = scales.self;
    if (reduce.symmetric) factors.source[row] = own_scale;
  }
  return factors;
}

}  // namespace

Result<std::unique_ptr<FullJob>> FullJob::Open(const TrainJob& job, const TrainOptions& options,
                                               const Path& folder, std::uint64_t held_bytes,
                                               const JobControl& control) {
  RHIZOME_RETURN_IF_ERROR(CheckFullGraph(*job.model, job.graph->vertex_count()));
  std::unique_ptr<FullJob> full(new FullJob(job, options));
  full->space_ = std::make_unique<ScratchSpace>(job.store->fs(), folder);
  full->loss_ =
      std::make_unique<TaskLoss>(job.labels, job.class_weights, options.loss.label_smoothing);
  full->weights_ = WeightsOfSets(job.labels, *full->loss_);
  RHIZOME_RETURN_IF_ERROR(full->OpenFeatures());
  RHIZOME_RETURN_IF_ERROR(full->OpenSides(control));
  full->ground_ = std::make_unique<PassGround>(PassGround{.graph = *job.graph,
                                                          .features = *full->features_,
                                                          .forward = full->forward_,
                                                          .backward = full->backward_,
                                                          .sizes = {}});
  RHIZOME_RETURN_IF_ERROR(full->Divide(held_bytes, control));
  RHIZOME_RETURN_IF_ERROR(full->Count(control));
  return full;
}

Status FullJob::OpenFeatures() {
  RHIZOME_ASSIGN_OR_RETURN(features_array_, job_.store->OpenArray(options_.features));
  RHIZOME_ASSIGN_OR_RETURN(
      const FeatureDecoder decoder,
      FeatureDecoder::Create(features_array_->entry(), options_.model.normalize_features));
  const std::uint32_t threads = std::max<std::uint32_t>(options_.threads, 1);
  features_ = std::make_unique<FeatureSource>(FeatureSource{
      .array = *features_array_,
      .decoder = decoder,
      .delta = DeltaRows::Of(job_.graph->Snapshot(), features_array_->entry()),
      .reader = {.threads = threads,
                 .direct = options_.memory_bytes != 0,
                 .ahead =
                     ChunkReader::AheadFor(features_array_->entry(), threads, kFeatureAheadBytes)},
      .rows = job_.graph->vertex_count()});
  return Status::Ok();
}

/// Opens the lists that layers walk, and those of the other side, and counts both.
Status FullJob::OpenSides(const JobControl& control) {
  const GraphSnapshot& graph = *job_.graph;
  PassDrawOptions& draw = forward_.draw;
  draw.no_edges = options_.model.no_edges;
  draw.seed = options_.seed;
  draw.threads = std::max<std::uint32_t>(options_.threads, 1);
  if (!draw.no_edges) {
    draw.direction = job_.sampling.sampler.direction;
    draw.weights = job_.sampling.edge_weights;
  }
  backward_.draw = draw;
  backward_.draw.direction = OtherSide(draw.direction);
  if (draw.no_edges) {
    RHIZOME_ASSIGN_OR_RETURN(factors_,
                             MakeFactors(job_.model->layer(0).pieces().reduce, graph, draw, {}));
  } else {
    RHIZOME_RETURN_IF_ERROR(CheckBothSides(graph.info(), backward_.draw.direction));
    RHIZOME_ASSIGN_OR_RETURN(forward_.degrees, Degrees(graph, draw.direction));
    RHIZOME_ASSIGN_OR_RETURN(backward_.degrees, Degrees(graph, backward_.draw.direction));
    RHIZOME_ASSIGN_OR_RETURN(
        factors_, MakeFactors(job_.model->layer(0).pieces().reduce, graph, draw, forward_.degrees));
    RHIZOME_ASSIGN_OR_RETURN(lists_,
                             ListsOnDisk::Open(graph, draw.direction, 0, {}, options_.io, control));
    RHIZOME_ASSIGN_OR_RETURN(other_lists_, ListsOnDisk::Open(graph, backward_.draw.direction, 0, {},
                                                             options_.io, control));
    if (lists_ != nullptr) forward_.draw.neighbors = lists_->source();
    if (other_lists_ != nullptr) backward_.draw.neighbors = other_lists_->source();
  }
  forward_.factors = {.source = factors_.source, .target = factors_.target, .own = factors_.own};
  // The way back: an edge counts as much, read from its other end.
  backward_.factors = {.source = factors_.target, .target = factors_.source, .own = factors_.own};
  return Status::Ok();
}

/// Cuts passes to these sizes, with the first `eighths` parts of all arrays in memory.
void FullJob::Arrange(const PassSizes& sizes, std::uint64_t eighths) {
  ground_->sizes = sizes;
  network_.reset();
  arrays_.clear();
  const std::uint64_t rows = job_.graph->vertex_count();
  for (ScratchShape& shape : ArraysOf(*job_.model, rows, sizes.chunk_rows)) {
    const std::uint64_t resident = shape.chunks() * eighths / kParts;
    const std::string name = shape.name;
    arrays_[name] = std::make_unique<ScratchArray>(*space_, std::move(shape), resident);
  }
  network_ = std::make_unique<FullNetwork>(*job_.model, job_.labels, *loss_, weights_, arrays_);
}

/// Goes over the passes of an epoch that is measured.
Status FullJob::ForPasses(const std::function<Status(const GraphPass&, bool measures)>& use) {
  const auto user = [&](bool measures) {
    return [&use, measures](const GraphPass& pass) -> Result<TileSums> {
      RHIZOME_RETURN_IF_ERROR(use(pass, measures));
      return TileSums(pass.sums);
    };
  };
  RHIZOME_RETURN_IF_ERROR(network_->Learn(0, nullptr, user(false)));
  struct NoSink final : VertexScoreSink {
    void Take(std::span<const Row>, std::span<const float>) override {}
  } sink;
  RHIZOME_RETURN_IF_ERROR(network_->Evaluate(sink, user(true)));
  return Status::Ok();
}

/// The memory that the passes take, and the bytes that live arrays have at once.
struct FullJob::Need {
  std::uint64_t working_bytes = 0;   ///< of the pass that takes most, without resident chunks
  std::string widest;                ///< its name
  std::uint64_t resident_bytes = 0;  ///< of chunks in memory
  std::uint64_t disk_bytes = 0;
  std::uint64_t moved_bytes = 0;  ///< about, in an epoch
};

FullJob::Need FullJob::Needed() {
  Need need;
  const JobControl control;
  std::uint64_t resident = 0, disk = 0;
  std::vector<const ScratchArray*> live;
  const auto resident_of = [](const ScratchArray& array) {
    std::uint64_t chunks = 0;
    while (chunks < array.shape().chunks() && array.IsResident(chunks)) ++chunks;
    return array.shape().BytesAfter(0) - array.shape().BytesAfter(chunks);
  };
  static_cast<void>(ForPasses([&](const GraphPass& pass, bool) -> Status {
    for (const ScratchArray* const array : pass.outputs) {
      if (std::find(live.begin(), live.end(), array) != live.end()) continue;
      live.push_back(array);
      resident += resident_of(*array);
      disk += array->shape().BytesAfter(0) - resident_of(*array);
    }
    const std::uint64_t bytes =
        BytesOfPass(pass, *ground_, std::max<std::uint32_t>(options_.threads, 1));
    if (bytes > need.working_bytes) need.widest = pass.name;
    need.working_bytes = std::max(need.working_bytes, bytes);
    need.resident_bytes = std::max(need.resident_bytes, resident);
    need.disk_bytes = std::max(need.disk_bytes, disk);
    for (const ScratchArray* const array : pass.dropped) {
      const auto found = std::find(live.begin(), live.end(), array);
      if (found == live.end()) continue;
      live.erase(found);
      resident -= resident_of(*array);
      disk -= array->shape().BytesAfter(0) - resident_of(*array);
    }
    RHIZOME_ASSIGN_OR_RETURN(const PassCount count,
                             CountPass(pass, *ground_, /*exact=*/false, control));
    for (const auto& [array, read] : count.read) need.moved_bytes += read;
    for (const auto& [array, written] : count.written) need.moved_bytes += written;
    return Status::Ok();
  }));
  return need;
}

// Divides the memory: (1) what the job takes whatever passes do; (2) small chunks and stages, by
// what is left; (3) sums of blocks, so large that all passes fit; of several sizes the one with
// which least is moved, when what is then left holds parts of the arrays.
Status FullJob::Divide(std::uint64_t held_bytes, const JobControl& control) {
  const std::uint64_t rows = job_.graph->vertex_count();
  std::uint64_t weights = 0;
  for (const torch::Tensor& weight : job_.model->Parameters())
    weights += static_cast<std::uint64_t>(weight.numel()) * sizeof(float);
  const std::uint64_t fixed =
      held_bytes + kSlackBytes + rows * kBytesOfRow + weights * kCopiesOfWeights +
      ScoreTable::BytesFor(job_.labels, job_.train.size() + job_.valid.size()) +
      (lists_ != nullptr ? 2 * ListsOnDisk::WorkingBytes(kSampledEdges) : 0);
  const std::uint64_t limit = options_.memory_bytes == 0 ? std::numeric_limits<std::uint64_t>::max()
                                                         : options_.memory_bytes;
  const std::uint64_t left = BytesLeft(limit, fixed);
  std::uint64_t widest = 1;
  for (const ScratchShape& shape : ArraysOf(*job_.model, rows, 1))
    widest = std::max(widest, shape.dim);
  const auto sizes_for = [&](std::uint64_t bytes, std::uint64_t block_bytes) {
    const auto tile = static_cast<std::uint64_t>(kDenseRows);
    const std::uint64_t chunk_bytes = std::clamp(bytes / 64, kLeastChunkBytes, kMostChunkBytes);
    const std::uint64_t tiles =
        std::max<std::uint64_t>(chunk_bytes / (widest * sizeof(float) * tile), 1);
    return PassSizes{.chunk_rows = std::min(tiles * tile, (rows + tile - 1) / tile * tile),
                     .block_bytes = block_bytes,
                     .stage_bytes = std::clamp(bytes / 16, kLeastStageBytes, kMostStageBytes),
                     .ahead = 2};
  };
  Arrange(sizes_for(0, kLeastBlockBytes), 0);
  const Need least = Needed();
  if (least.working_bytes > left) {
    return Status::OutOfMemory(fmt::format(
        "a memory limit of {} MiB is too small to train on the full graph: pass \"{}\" needs at "
        "least {} MiB, {} MiB of them for graph, labels and weights",
        limit / kMiB, least.widest, (fixed + least.working_bytes) / kMiB + 1, fixed / kMiB + 1));
  }
  struct Choice {
    PassSizes sizes;
    std::uint64_t parts = 0;
    std::uint64_t moved = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t memory = 0, disk = 0;
  } best;
  for (const std::uint64_t share : {32, 16, 8, 4, 2, 1}) {
    RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
    const PassSizes sizes =
        sizes_for(left, std::max(kLeastBlockBytes, std::min(left, kMiB << 20) / share));
    Arrange(sizes, kParts);
    Need need = Needed();
    if (need.working_bytes > left) continue;
    std::uint64_t parts = options_.spill == SpillRule::kNone ? 0 : kParts;
    while (parts > 0 && need.resident_bytes / kParts * parts > left - need.working_bytes) --parts;
    if (parts < kParts) {
      Arrange(sizes, parts);
      need = Needed();
    }
    const std::uint64_t bytes = need.working_bytes + need.resident_bytes;
    if (bytes <= left && need.moved_bytes < best.moved)
      best = {sizes, parts, need.moved_bytes, fixed - held_bytes + bytes, need.disk_bytes};
    if (best.moved == 0) break;
  }
  if (best.memory == 0) {  // only the smallest sizes fit
    best = {sizes_for(0, kLeastBlockBytes), 0, least.moved_bytes,
            fixed - held_bytes + least.working_bytes, least.disk_bytes};
  }
  Arrange(best.sizes, best.parts);
  plan_.chunk_rows = best.sizes.chunk_rows;
  plan_.memory_bytes = best.memory;
  plan_.disk_bytes = best.disk;
  return Status::Ok();
}

/// Counts the passes exactly.
Status FullJob::Count(const JobControl& control) {
  for (const auto& [name, array] : arrays_) {
    const ScratchShape& shape = array->shape();
    std::uint64_t resident = 0;
    for (std::uint64_t chunk = 0; chunk < shape.chunks() && array->IsResident(chunk); ++chunk)
      resident += shape.BytesIn(chunk);
    plan_.arrays.push_back(
        {.name = name, .bytes = shape.BytesAfter(0), .resident_bytes = resident});
  }
  return ForPasses([&](const GraphPass& pass, bool measures) -> Status {
    // Passes over arrays that are in memory move nothing: their lists need not be walked.
    const bool counts =
        pass.gather && pass.gather->source.array != nullptr &&
        !pass.gather->source.array->IsResident(pass.gather->source.array->shape().chunks() - 1);
    RHIZOME_ASSIGN_OR_RETURN(const PassCount count, CountPass(pass, *ground_, counts, control));
    FullGraphPass planned;
    planned.name = pass.name;
    planned.measures = measures;
    planned.blocks = count.blocks;
    const auto add = [&](const PassInput& input, auto& to, const auto& bytes) {
      const std::string name = input.array == nullptr ? "features" : input.array->shape().name;
      for (const FullGraphPass::Moved& moved : to)
        if (moved.array == name) return;
      const auto found = bytes.find(name);
      to.push_back({name, found == bytes.end() ? 0 : found->second});
      if (!measures || !job_.valid.empty()) plan_.planned_bytes += to.back().bytes;
    };
    for (const PassInput& input : pass.inputs) add(input, planned.reads, count.read);
    if (pass.gather) add(pass.gather->source, planned.reads, count.read);
    for (ScratchArray* const array : pass.outputs) add({array}, planned.writes, count.written);
    plan_.passes.push_back(std::move(planned));
    return Status::Ok();
  });
}

Status FullJob::Prepare() {
  RHIZOME_RETURN_IF_ERROR(space_->Prepare());
  RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t free, job_.store->fs().FreeBytes(space_->folder()));
  if (free >= plan_.disk_bytes) return Status::Ok();
  return Status::OutOfSpace(fmt::format(
      "the arrays of an epoch take {} MiB in {}, where {} MiB are free; make room, give --scratch "
      "another disk, or more --memory",
      plan_.disk_bytes / kMiB + 1, space_->folder().string(), free / kMiB));
}

}  // namespace rhizome::inline internal
