#include "gnn/full_graph/full_times.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "cache/feed/vertex_score_sink.h"
#include "cache/kernels/simd.h"
#include "gnn/ops/dense.h"
#include "gnn/passes/max_aggregation.h"
#include "storage/base/stopwatch.h"

// EstimateTimes:
//   1. MeasureDisk writes and reads a few chunks, if the plan moves any bytes.
//   2. CopyRate measures copies in memory.
//   3. StepTrial times a tile of each pass of both steps, and aggregations of random rows
//      (GatherTrial).
//   4. The seconds of an epoch are the sum over passes of the longer of compute and disk time.

namespace rhizome {
inline namespace internal {
namespace {

/// A trial is repeated for at least this time.
constexpr double kTrialSeconds = 0.01;

constexpr std::uint64_t kTrialChunks = 8;
constexpr std::uint64_t kTrialColumns = 256;
constexpr std::uint64_t kTrialChunkRows = 4096;

constexpr std::size_t kTrialTargets = 256;
constexpr std::size_t kTrialEdges = 16;  // per target
constexpr std::uint64_t kTrialWindowBytes = std::uint64_t{16} << 20;

/// Returns the mean seconds of a call of `work`, after a first call that is not timed.
template <typename Work>
double SecondsOf(const Work& work) {
  work();
  const Stopwatch watch;
  std::uint32_t times = 0;
  do {
    work();
    ++times;
  } while (watch.seconds() < kTrialSeconds);
  return watch.seconds() / times;
}

/// Transfer rates in bytes per second.
struct DiskRates {
  double read = 0;
  double write = 0;
};

Result<DiskRates> MeasureDisk(FileSystem& fs, const Path& folder) {
  RHIZOME_RETURN_IF_ERROR(CreateDirectories(fs, folder));
  ScratchSpace space(fs, folder);
  ScratchArray array(space,
                     {.name = "trial",
                      .rows = kTrialChunks * kTrialChunkRows,
                      .dim = kTrialColumns,
                      .chunk_rows = kTrialChunkRows},
                     0);
  array.Begin(0, {});
  const auto bytes = static_cast<double>(array.shape().AllBytes());
  RHIZOME_ASSIGN_OR_RETURN(const std::shared_ptr<float[]> values, array.Take(0));
  std::memset(values.get(), 0, array.shape().LargestBytes());
  const Stopwatch writing;
  for (std::uint64_t chunk = 0; chunk < kTrialChunks; ++chunk)
    RHIZOME_RETURN_IF_ERROR(array.Store(chunk, values.get()));
  const double written = writing.seconds();
  const Stopwatch reading;
  for (std::uint64_t chunk = 0; chunk < kTrialChunks; ++chunk)
    RHIZOME_RETURN_IF_ERROR(array.Load(chunk));
  return DiskRates{.read = bytes / reading.seconds(), .write = bytes / written};
}

/// Times an aggregation over random rows of a window and random lists.
class GatherTrial {
 public:
  explicit GatherTrial(const GatherShape& shape)
      : shape_(shape),
        rows_(std::clamp<std::uint64_t>(kTrialWindowBytes / (shape.dim * sizeof(float)), 1,
                                        shape.planner.stage_rows)),
        x_(torch::rand({static_cast<std::int64_t>(rows_), static_cast<std::int64_t>(shape.dim)})),
        state_(kTrialTargets * shape.state_columns(), 0.0F),
        ends_(kTrialTargets + 1),
        slots_(kTrialTargets * kTrialEdges),
        numbers_(rows_) {
    std::mt19937_64 random(1);
    std::iota(numbers_.begin(), numbers_.end(), 0);
    for (std::size_t t = 0; t <= kTrialTargets; ++t)
      ends_[t] = static_cast<std::uint32_t>(t * kTrialEdges);
    for (std::uint32_t& slot : slots_) slot = static_cast<std::uint32_t>(random() % rows_);
    for (std::size_t t = 0; t < kTrialTargets; ++t)
      std::sort(slots_.begin() + ends_[t], slots_.begin() + ends_[t + 1]);
  }

  double SecondsOfEdge() {
    return SecondsOf([this] { Gather(); }) / static_cast<double>(kTrialTargets * kTrialEdges);
  }

 private:
  void Gather() {
    const GatherWindow window{.x = x_.const_data_ptr<float>(),
                              .stride = shape_.dim,
                              .width = shape_.width,
                              .lists = {.begins = ends_.data(),
                                        .ends = ends_.data() + 1,
                                        .slots = slots_.data(),
                                        .slots_end = ends_.back()},
                              .count = kTrialTargets};
    switch (shape_.by) {
      case AggregationKind::kSum:
        return Sum(window);
      case AggregationKind::kMax:
        return AddMaxima(window, numbers_, state_.data());
      case AggregationKind::kMaxGradient:
        return AddMaxGradients(window, 0, state_.data());
      case AggregationKind::kAttend:
        return AddAttention(shape_.heads, window, {.of_rows = numbers_.data()}, state_.data());
      case AggregationKind::kAttendGradient:
        return AddAttentionGradient(shape_.heads, window, {.of_rows = numbers_.data()},
                                    state_.data());
      case AggregationKind::kAttendQueryGradient:
        return AddQueryGradient(shape_.heads, window, {.of_rows = numbers_.data()}, state_.data());
    }
  }

  void Sum(const GatherWindow& window) {
    SumArgs args{.x = window.x, .x_stride = window.stride, .dim = window.width};
    window.lists.WalkedBy(args);
    args.keep = true;
    args.out = state_.data();
    args.out_stride = window.width;
    Kernels().sum(args, 0, window.count);
  }

  const GatherShape& shape_;
  const std::uint64_t rows_;
  const torch::Tensor x_;
  std::vector<float> state_;
  std::vector<std::uint32_t> ends_;
  std::vector<std::uint32_t> slots_;
  std::vector<std::uint32_t> numbers_;
};

/// Estimates the compute seconds of the passes of a step, in order.
class StepTrial {
 public:
  StepTrial(const FullJob& full, bool measures, double copy_rate, std::uint32_t threads)
      : ground_(full.ground()),
        step_(full.StepOf(measures)),
        copy_rate_(copy_rate),
        threads_(threads) {}

  /// Times a tile of the next pass, and records the estimate for the whole pass.
  Result<TileSums> Take(const GraphPass& pass, const JobControl& control) {
    RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
    TileSums sums(pass.sums);
    const auto rows = static_cast<std::int64_t>(ground_.rows());
    // A tile in the middle, which is a full tile if there is one.
    PassTile tile = TileOf(pass, std::min(kDenseRows, rows), rows / kDenseRows / 2 * kDenseRows);
    const double of_tile = SecondsOf([&] {
      sums = TileSums(pass.sums);
      pass.body(tile, sums);
    });
    double seconds = of_tile * static_cast<double>(rows) / static_cast<double>(tile.count);
    for (const PassGather& gather : pass.gathers) seconds += SecondsOfGather(gather);
    seconds_.push_back(seconds / threads_);
    return sums;
  }

  const std::vector<double>& seconds() const { return seconds_; }

 private:
  PassTile TileOf(const GraphPass& pass, std::int64_t count, std::int64_t first) const {
    const auto random = [count](std::uint64_t columns) {
      return torch::rand({count, static_cast<std::int64_t>(columns)});
    };
    PassTile tile;
    tile.first = first;
    tile.count = count;
    for (const PassInput& input : pass.inputs)
      tile.inputs.push_back(random(ground_.ColumnsOf(input)));
    for (const PassGather& gather : pass.gathers) tile.gathered.push_back(random(gather.columns()));
    for (const ScratchArray* const array : pass.outputs)
      tile.outputs.push_back(random(array->shape().dim));
    return tile;
  }

  /// Assumes that each block copies nearly all rows to its windows.
  double SecondsOfGather(const PassGather& gather) const {
    const GatherShape shape = ground_.ShapeOf(gather, step_.block_bytes[seconds_.size()]);
    const std::uint64_t edges = MostEdgesOf(shape.planner.draw, ground_.graph);
    const auto copied = static_cast<double>(shape.blocks.size() * ground_.rows() * shape.dim) *
                        static_cast<double>(sizeof(float));
    return GatherTrial(shape).SecondsOfEdge() * static_cast<double>(edges) + copied / copy_rate_;
  }

  const PassContext& ground_;
  const FullStepPlan& step_;
  const double copy_rate_;
  const double threads_;
  std::vector<double> seconds_;
};

double CopyRate() {
  const torch::Tensor from = torch::rand({kTrialWindowBytes / sizeof(float)});
  torch::Tensor to = torch::empty_like(from);
  return static_cast<double>(kTrialWindowBytes) / SecondsOf([&] { to.copy_(from); });
}

struct NoTrialScores final : VertexScoreSink {
  void Take(std::span<const Row>, std::span<const float>) override {}
};

std::uint64_t BytesOf(const std::vector<FullGraphPass::Moved>& moved) {
  std::uint64_t bytes = 0;
  for (const FullGraphPass::Moved& one : moved) bytes += one.bytes;
  return bytes;
}

void AddDisk(const DiskRates& rates, FullGraphPass& pass) {
  const auto read = static_cast<double>(BytesOf(pass.reads) + pass.feature_bytes);
  const auto written = static_cast<double>(BytesOf(pass.writes));
  if (rates.read > 0) pass.disk_seconds = read / rates.read + written / rates.write;
}

}  // namespace

Status EstimateTimes(FullJob& full, const Path& folder, std::uint32_t threads, bool measured,
                     FullGraphReport& report, const JobControl& control) {
  const bool moves = report.planned_bytes > 0 || report.feature_bytes > 0;
  DiskRates rates;
  if (moves) {
    FileSystem& fs = full.space().fs();
    const Result<DiskRates> tried = MeasureDisk(fs, folder);
    if (tried) {
      RHIZOME_RETURN_IF_ERROR(RemoveTree(fs, folder));
      rates = *tried;
    } else {  // for example a read-only store, which can still be planned for
      static_cast<void>(RemoveTree(fs, folder));
      report.disk_problem = tried.error().message();
    }
  }
  const double copy_rate = CopyRate();
  StepTrial learn(full, /*measures=*/false, copy_rate, threads);
  RHIZOME_RETURN_IF_ERROR(full.network().Learn(
      0, nullptr, [&](const GraphPass& pass) { return learn.Take(pass, control); }));
  std::vector<double> seconds = learn.seconds();
  StepTrial measure(full, /*measures=*/true, copy_rate, threads);
  NoTrialScores sink;
  RHIZOME_RETURN_IF_ERROR(full.network().Evaluate(
      sink, [&](const GraphPass& pass) { return measure.Take(pass, control); }));
  seconds.insert(seconds.end(), measure.seconds().begin(), measure.seconds().end());
  report.disk_read_rate = rates.read;
  report.disk_write_rate = rates.write;
  for (std::size_t p = 0; p < report.passes.size(); ++p) {
    FullGraphPass& pass = report.passes[p];
    pass.compute_seconds = seconds[p];
    AddDisk(rates, pass);
    if (measured || !pass.measures)
      report.seconds += std::max(pass.compute_seconds, pass.disk_seconds);
  }
  return Status::Ok();
}

}  // namespace internal
}  // namespace rhizome
