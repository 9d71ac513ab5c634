#include "rhizome/gnn/tile_layer.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "rhizome/cache/compute_threads.h"
#include "rhizome/cache/simd.h"
#include "rhizome/gnn/dense.h"
#include "rhizome/storage/check.h"

namespace rhizome::inline internal {
namespace {

/// The number that a maximum begins with while nothing is in it.
constexpr float kNothing = -std::numeric_limits<float>::infinity();

constexpr auto kTile = static_cast<std::size_t>(kDenseRows);

void ZeroRows(float* out, std::size_t first, std::size_t columns, std::size_t stride) {
  for (std::size_t i = first; i < kTile; ++i)
    std::memset(out + i * stride, 0, columns * sizeof(float));
}

void CopyRows(const float* in, std::size_t rows, std::size_t columns, float* out,
              std::size_t stride) {
  for (std::size_t i = 0; i < rows; ++i)
    std::memcpy(out + i * stride, in + i * columns, columns * sizeof(float));
}

}  // namespace

void PrepareWindow(const Layer& layer, const float* raw, std::size_t count, float* out) {
  const auto columns = static_cast<std::size_t>(layer.shape().raw);
  const auto width = static_cast<std::size_t>(layer.pieces().width);
  const auto scores = static_cast<std::size_t>(layer.pieces().score_columns());
  const std::size_t stride = width + scores;
  ComputeFor((count + kTile - 1) / kTile, [&](std::size_t number) {
    const c10::InferenceMode guard;
    const std::size_t first = number * kTile;
    const std::size_t rows = std::min(kTile, count - first);
    // Every tile is of full size, so that the bits of a row depend on nothing else.
    torch::Tensor in = at::empty({kDenseRows, layer.shape().raw});
    std::memcpy(in.data_ptr<float>(), raw + first * columns, rows * columns * sizeof(float));
    ZeroRows(in.data_ptr<float>(), rows, columns, columns);
    const torch::Tensor made = layer.Prepare(in).contiguous();
    CopyRows(made.data_ptr<float>(), rows, width, out + first * stride, stride);
    if (scores == 0) return;
    const torch::Tensor scored = layer.SourceScores(made);
    CopyRows(scored.data_ptr<float>(), rows, scores, out + first * stride + width, stride);
  });
}

TileLayer::TileLayer(const BlockLists& lists, const Layer& layer, std::span<const float> row_scale,
                     std::vector<std::uint32_t> degrees, std::span<float> state)
    : lists_(lists),
      layer_(layer),
      reduce_(layer.pieces().reduce),
      width_(static_cast<std::size_t>(layer.pieces().width)),
      row_scale_(row_scale),
      degrees_(std::move(degrees)),
      sums_(state.data()),
      maxima_(sums_ + lists.targets.size() * width_),
      denominators_(maxima_ + lists.targets.size() * heads()),
      queries_(denominators_ + lists.targets.size() * heads()),
      score_vectors_(attends() && layer.pieces().score_columns() == 0 ? layer.ScoreVectors()
                                                                      : torch::Tensor()) {
  if (one_window()) return;
  const std::size_t targets = lists.targets.size();
  RHIZOME_CHECK(state.size() >= targets * static_cast<std::size_t>(layer.state_columns()));
  // The first window begins every sum; a maximum begins with nothing.
  if (takes_max()) {
    std::fill_n(sums_, targets * width_, kNothing);
  } else if (lists.sum_windows() == 0 && !attends()) {
    std::fill_n(sums_, targets * width_, 0.0F);
  }
  added_.assign(lists.offsets.begin(), lists.offsets.end() - 1);
}

SumArgs TileLayer::RowArgs(const WindowRows& staged) const {
  SumArgs args;
  args.x = staged.reduced;
  args.x_stride = staged.reduced_stride;
  args.dim = width_;
  args.source_scale = staged.scale.empty() ? nullptr : staged.scale.data();
  return args;
}

void TileLayer::AddWindow(std::size_t window, const WindowRows& staged, const TargetRange& range) {
  // The parts of the lists that are in the window, as slots of the stage.
  thread_local std::vector<std::uint32_t> offsets;
  thread_local std::vector<std::uint32_t> slots;
  thread_local std::vector<float> weights;
  const auto first = static_cast<std::uint32_t>(window * lists_.stage_rows);
  const std::uint64_t end = (window + 1) * lists_.stage_rows;
  offsets.assign(1, 0);
  slots.clear();
  weights.clear();
  for (std::size_t t = range.first; t < range.first + range.count; ++t) {
    std::uint32_t e = added_[t];
    for (; e < lists_.offsets[t + 1] && lists_.neighbors[e] < end; ++e) {
      slots.push_back(lists_.neighbors[e] - first);
      if (weighs()) weights.push_back(lists_.weights[e]);
    }
    added_[t] = e;
    offsets.push_back(static_cast<std::uint32_t>(slots.size()));
  }
  float* const out = sums_ + range.first * width_;
  if (takes_max()) {
    MaxArgs args;
    args.x = staged.reduced;
    args.x_stride = staged.reduced_stride;
    args.dim = width_;
    args.begins = offsets.data();
    args.ends = offsets.data() + 1;
    args.index = slots.data();
    args.index_end = offsets.back();
    args.keep = true;
    args.out = out;
    args.out_stride = width_;
    Kernels().max(args, 0, range.count);
    return;
  }
  if (attends()) {
    AttendArgs args = AttentionArgs(staged);
    args.begins = offsets.data();
    args.ends = offsets.data() + 1;
    args.index = slots.data();
    args.index_end = offsets.back();
    args.query = queries_ + range.first * args.query_stride;
    args.maximum = maxima_ + range.first * heads();
    args.denominator = denominators_ + range.first * heads();
    args.keep = true;
    args.out = out;
    args.out_stride = width_;
    Kernels().attend(args, 0, range.count);
    return;
  }
  SumArgs args = RowArgs(staged);
  args.begins = offsets.data();
  args.ends = offsets.data() + 1;
  args.index = slots.data();
  args.index_end = offsets.back();
  args.edge_weight = weighs() ? weights.data() : nullptr;
  args.keep = window > 0;
  args.out = out;
  args.out_stride = width_;
  Kernels().sum(args, 0, range.count);
}

/// Copies numbers [0, columns) of the targets' own rows out of a window.
void TileLayer::CopyOwn(const float* rows, std::size_t row_stride, std::size_t columns,
                        const TargetRange& range, std::size_t own_first, float* out,
                        std::size_t stride) const {
  for (std::size_t i = 0; i < range.count; ++i) {
    const std::size_t t = range.first + i;
    const std::size_t slot = one_window() ? lists_.numbers[t] : t - own_first;
    std::memcpy(out + i * stride, rows + slot * row_stride, columns * sizeof(float));
  }
}

/// Returns the same as a tile, with zeros after the last target.
torch::Tensor TileLayer::OwnTile(const float* rows, std::size_t stride, std::size_t columns,
                                 const TargetRange& range, std::size_t own_first) const {
  torch::Tensor tile = at::empty({kDenseRows, static_cast<std::int64_t>(columns)});
  float* const out = tile.data_ptr<float>();
  CopyOwn(rows, stride, columns, range, own_first, out, columns);
  ZeroRows(out, range.count, columns, columns);
  return tile;
}

/// Fills in what is the same for all attention over a window.
AttendArgs TileLayer::AttentionArgs(const WindowRows& staged) const {
  const ConvPieces& pieces = layer_.pieces();
  AttendArgs args;
  args.score = reduce_.attention.score;
  args.x = staged.reduced;
  args.x_stride = staged.reduced_stride;
  args.heads = heads();
  args.width = width_ / heads();
  if (pieces.score_columns() > 0 && staged.reduced != nullptr) {  // they follow the reduced row
    args.source = staged.reduced + width_;
    args.source_stride = staged.reduced_stride;
  }
  args.query_stride = static_cast<std::size_t>(pieces.query_columns());
  args.attention = score_vectors_.defined() ? score_vectors_.data_ptr<float>() : nullptr;
  args.slope = reduce_.attention.slope;
  return args;
}

/// The own rows of targets, as attention begins with them.
struct TileLayer::OwnRows {
  torch::Tensor prepared;  // [kDenseRows, width]
  torch::Tensor scores;    // [kDenseRows, heads], if additive
  torch::Tensor query;     // [kDenseRows, query columns]

  /// Makes them the first edges of targets, if they are.
  void Join(const ReducePiece& reduce, AttendArgs& args) const {
    if (!reduce.own_joins) return;
    args.own = prepared.data_ptr<float>();
    args.own_stride = static_cast<std::size_t>(prepared.size(1));
    if (!scores.defined()) return;
    args.own_source = scores.data_ptr<float>();
    args.own_source_stride = args.heads;
  }
};

TileLayer::OwnRows TileLayer::EnterOwn(const torch::Tensor& raw, torch::Tensor prepared) const {
  OwnRows own{.prepared = std::move(prepared), .scores = {}, .query = {}};
  if (layer_.pieces().score_columns() > 0) own.scores = layer_.SourceScores(own.prepared);
  own.query = layer_.Query(raw, own.prepared);
  return own;
}

void TileLayer::Begin(const WindowRows& staged, const TargetRange& range, std::size_t own_first) {
  const auto columns = static_cast<std::size_t>(layer_.shape().raw);
  const torch::Tensor raw = OwnTile(staged.raw, columns, columns, range, own_first);
  const OwnRows own = EnterOwn(raw, layer_.Prepare(raw).contiguous());
  AttendArgs args = AttentionArgs(staged);
  const std::size_t asked = args.query_stride;
  std::memcpy(queries_ + range.first * asked, own.query.data_ptr<float>(),
              range.count * asked * sizeof(float));
  const std::vector<std::uint32_t> nothing(range.count, 0);
  args.begins = args.ends = nothing.data();
  args.query = queries_ + range.first * asked;
  own.Join(reduce_, args);
  args.maximum = maxima_ + range.first * heads();
  args.denominator = denominators_ + range.first * heads();
  args.out = sums_ + range.first * width_;
  args.out_stride = width_;
  Kernels().attend(args, 0, range.count);
}

/// Completes the attention of a tile. `raw`: the targets' own rows, for a block of one window.
void TileLayer::ReduceAttention(const WindowRows& staged, const TargetRange& range,
                                const torch::Tensor& raw, float* out, std::size_t stride) const {
  AttendArgs args = AttentionArgs(staged);
  args.finish = true;
  args.out = out;
  args.out_stride = stride;
  if (!one_window()) {
    const std::vector<std::uint32_t> nothing(range.count, 0);
    args.begins = args.ends = nothing.data();
    args.query = queries_ + range.first * args.query_stride;
    args.maximum = maxima_ + range.first * heads();
    args.denominator = denominators_ + range.first * heads();
    args.keep = true;
    Kernels().attend(args, 0, range.count);
    return;
  }
  const OwnRows own =
      EnterOwn(raw, OwnTile(staged.reduced, staged.reduced_stride, width_, range, 0));
  own.Join(reduce_, args);
  std::vector<float> maxima(range.count * heads());
  std::vector<float> denominators(range.count * heads());
  args.begins = lists_.offsets.data() + range.first;
  args.ends = args.begins + 1;
  args.index = lists_.neighbors.data();
  args.index_end = lists_.offsets[range.first + range.count];
  args.query = own.query.data_ptr<float>();
  args.maximum = maxima.data();
  args.denominator = denominators.data();
  Kernels().attend(args, 0, range.count);
}

/// Completes the sums of a tile. `own`: the targets' own rows, if they join the sum.
void TileLayer::ReduceSums(const WindowRows& staged, const TargetRange& range,
                           const torch::Tensor& own, float* out, std::size_t stride) const {
  std::vector<float> target_scale(range.count);
  std::vector<float> own_scale(range.count);
  for (std::size_t i = 0; i < range.count; ++i) {
    const std::size_t t = range.first + i;
    const std::uint32_t begin = lists_.offsets[t], end = lists_.offsets[t + 1];
    const DrawnList list{
        .listed = end - begin,
        .degree = degrees_.empty() ? 0 : degrees_[t],
        .weight = WeightOf(weighs() ? lists_.weights : std::span<const float>(), begin, end)};
    const TargetScales scales =
        ScalesOf(reduce_, list,
                 row_scale_.empty() ? 1 : row_scale_[static_cast<std::size_t>(lists_.targets[t])]);
    target_scale[i] = scales.target;
    own_scale[i] = scales.self;
  }
  SumArgs args = RowArgs(staged);
  args.begins = lists_.offsets.data() + range.first;
  // over several windows the sums are complete by now
  args.ends = args.begins + (one_window() ? 1 : 0);
  args.index = lists_.neighbors.data();
  // Lists are contiguous, so rows of later targets may be prefetched.
  args.index_end = one_window() ? lists_.offsets[range.first + range.count] : 0;
  args.edge_weight = weighs() && one_window() ? lists_.weights.data() : nullptr;
  args.target_scale = target_scale.data();
  args.keep = !one_window();
  args.out = out;
  args.out_stride = stride;
  if (own.defined()) {
    args.initial = own.data_ptr<float>();
    args.initial_stride = width_;
    args.initial_rows = range.count;
    args.initial_scale = own_scale.data();
  }
  Kernels().sum(args, 0, range.count);
}

void TileLayer::ReduceMaxima(const WindowRows& staged, const TargetRange& range, float* out,
                             std::size_t stride) const {
  if (one_window()) {
    MaxArgs args;
    args.x = staged.reduced;
    args.x_stride = staged.reduced_stride;
    args.dim = width_;
    args.begins = lists_.offsets.data() + range.first;
    args.ends = args.begins + 1;
    args.index = lists_.neighbors.data();
    args.index_end = lists_.offsets[range.first + range.count];
    args.out = out;
    args.out_stride = stride;
    Kernels().max(args, 0, range.count);
    return;
  }
  for (std::size_t i = 0; i < range.count; ++i) {
    const std::size_t t = range.first + i;
    if (lists_.offsets[t] == lists_.offsets[t + 1]) std::fill_n(out + i * stride, width_, 0.0F);
  }
}

torch::Tensor TileLayer::Finish(const WindowRows& staged, const TargetRange& range,
                                std::size_t own_first) {
  const auto own_width = static_cast<std::size_t>(layer_.own_columns());
  const std::size_t stride = own_width + width_;
  torch::Tensor tile = at::empty({kDenseRows, static_cast<std::int64_t>(stride)});
  float* const out = tile.data_ptr<float>();
  float* const reduced = out + own_width;
  torch::Tensor raw;
  const auto columns = static_cast<std::size_t>(layer_.shape().raw);
  if (own_width > 0 && layer_.own_is_raw()) {
    // The tile begins with the raw rows, so they are copied to their place at once.
    raw = tile.narrow(1, 0, layer_.own_columns());
    CopyOwn(staged.raw, columns, columns, range, own_first, out, stride);
    ZeroRows(out, range.count, columns, stride);
  } else if (layer_.finish_reads_own() || (attends() && one_window())) {
    raw = OwnTile(staged.raw, columns, columns, range, own_first);
  }
  for (std::size_t i = 0; i < range.count && !one_window(); ++i) {
    std::memcpy(reduced + i * stride, sums_ + (range.first + i) * width_, width_ * sizeof(float));
  }
  if (takes_max()) {
    ReduceMaxima(staged, range, reduced, stride);
  } else if (attends()) {
    ReduceAttention(staged, range, raw, reduced, stride);
  } else {
    torch::Tensor own;
    if (reduce_.own_joins) own = layer_.prepares() ? layer_.Prepare(raw).contiguous() : raw;
    ReduceSums(staged, range, own, reduced, stride);
  }
  ZeroRows(reduced, range.count, width_, stride);
  return layer_.Finish(raw, tile);
}

}  // namespace rhizome::inline internal
