#include "gnn/models/tile_layer.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "cache/job/compute_threads.h"
#include "cache/kernels/simd.h"
#include "gnn/ops/dense.h"
#include "storage/base/check.h"
#include "storage/base/mutant.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Initial value of a maximum.
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
    // Every tile has its full size, so that the bits of a row depend only on that row.
    torch::Tensor in = AnyTile(layer.shape().raw);
    std::memcpy(in.data_ptr<float>(), raw + first * columns, rows * columns * sizeof(float));
    ZeroRows(in.data_ptr<float>(), rows, columns, columns);
    const torch::Tensor made = layer.Prepare(layer.Enter(in)).contiguous();
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
      state_(state),
      window_lists_(lists, reduce_.weighs()) {
  const std::size_t targets = lists.targets.size();
  if (layer.pieces().attends()) attention_.emplace(layer, targets, state);
  if (one_window()) return;
  RHIZOME_CHECK(state.size() >= targets * static_cast<std::size_t>(layer.state_columns()));
  // The first window initialises every sum. Maxima, and sums without windows, are initialised here.
  if (takes_max()) {
    std::fill_n(state.begin(), targets * width_, kNothing);
  } else if (lists.sum_windows() == 0 && !attention_) {
    std::fill_n(state.begin(), targets * width_, 0.0F);
  }
}

SumArgs TileLayer::RowArgs(const WindowRows& staged) const {
  SumArgs args;
  args.x = staged.reduced;
  args.x_stride = staged.reduced_stride;
  args.dim = width_;
  args.source_scale = staged.scale.empty() ? nullptr : staged.scale.data();
  return args;
}

MaxArgs TileLayer::MaxRowArgs(const WindowRows& staged) const {
  MaxArgs args;
  args.x = staged.reduced;
  args.x_stride = staged.reduced_stride;
  args.dim = width_;
  return args;
}

void TileLayer::AddWindow(std::size_t window, const WindowRows& staged, const TargetRange& range) {
  const TileLists lists = window_lists_.In(window, range);
  if (attention_) return attention_->Add(staged, lists, range);
  float* const out = state_.data() + range.first * width_;
  if (takes_max()) {
    MaxArgs args = MaxRowArgs(staged);
    lists.WalkedBy(args);
    args.keep = true;
    args.out = out;
    args.out_stride = width_;
    return Kernels().max(args, 0, range.count);
  }
  SumArgs args = RowArgs(staged);
  lists.WalkedBy(args);
  args.edge_weight = lists.weights;
  args.keep = window > 0 && !RHIZOME_MUTANT("a window forgets those before");
  args.out = out;
  args.out_stride = width_;
  Kernels().sum(args, 0, range.count);
}

/// Copies columns [0, columns) of the targets' own rows from a window.
void TileLayer::CopyOwn(const float* rows, std::size_t row_stride, std::size_t columns,
                        const TargetRange& range, std::size_t own_first, float* out,
                        std::size_t stride) const {
  for (std::size_t i = 0; i < range.count; ++i) {
    const std::size_t t = range.first + i;
    const std::size_t slot = one_window() ? lists_.numbers[t] : t - own_first;
    std::memcpy(out + i * stride, rows + slot * row_stride, columns * sizeof(float));
  }
}

/// Returns the targets' own rows as a tile, with zeros after the last target.
torch::Tensor TileLayer::OwnTile(const float* rows, std::size_t stride, std::size_t columns,
                                 const TargetRange& range, std::size_t own_first) const {
  torch::Tensor tile = AnyTile(static_cast<std::int64_t>(columns));
  float* const out = tile.data_ptr<float>();
  CopyOwn(rows, stride, columns, range, own_first, out, columns);
  ZeroRows(out, range.count, columns, columns);
  return tile;
}

void TileLayer::Begin(const WindowRows& staged, const TargetRange& range, std::size_t own_first) {
  const auto columns = static_cast<std::size_t>(layer_.shape().raw);
  attention_->Begin(layer_.Enter(OwnTile(staged.raw, columns, columns, range, own_first)), range);
}

/// Completes the sums of a tile. `own`: the targets' own rows, if the sums include them.
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
  TileLists lists = window_lists_.Whole(range);
  if (!one_window()) lists = {.begins = lists.begins, .ends = lists.begins};  // sums are complete
  lists.WalkedBy(args);
  args.edge_weight = lists.weights;
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
    MaxArgs args = MaxRowArgs(staged);
    window_lists_.Whole(range).WalkedBy(args);
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
  Reduced reduced = Reduce(staged, range, own_first, Entering::kAlways);
  return layer_.Finish(reduced.raw, reduced.entered, reduced.tile);
}

/// Reduces a tile in these steps: (1) copies the own rows that are needed, and enters them if
/// needed; (2) copies the state of the targets, if there are several windows; (3) computes or
/// completes the maxima, attention or sums; (4) zeroes the rows after the last target.
TileLayer::Reduced TileLayer::Reduce(const WindowRows& staged, const TargetRange& range,
                                     std::size_t own_first, Entering entering) {
  const auto own_width = static_cast<std::size_t>(layer_.own_columns());
  const std::size_t stride = own_width + width_;
  torch::Tensor tile = AnyTile(static_cast<std::int64_t>(stride));
  float* const out = tile.data_ptr<float>();
  float* const reduced = out + own_width;
  torch::Tensor raw;
  const auto columns = static_cast<std::size_t>(layer_.shape().raw);
  if (own_width > 0 && layer_.own_is_raw()) {
    // The tile begins with the raw rows, so they are copied to their place directly.
    raw = tile.narrow(1, 0, layer_.own_columns());
    CopyOwn(staged.raw, columns, columns, range, own_first, out, stride);
    ZeroRows(out, range.count, columns, stride);
  } else if (layer_.finish_reads_own() || (attention_ && one_window())) {
    raw = OwnTile(staged.raw, columns, columns, range, own_first);
  }
  Layer::Entered entered;
  const bool is_reduced = attention_ ? one_window() : reduce_.own_joins && layer_.prepares();
  if (raw.defined() && (is_reduced || entering == Entering::kAlways)) entered = layer_.Enter(raw);
  for (std::size_t i = 0; i < range.count && !one_window(); ++i) {
    std::memcpy(reduced + i * stride, state_.data() + (range.first + i) * width_,
                width_ * sizeof(float));
  }
  if (takes_max()) {
    ReduceMaxima(staged, range, reduced, stride);
  } else if (attention_ && !one_window()) {
    attention_->Finish(range, reduced, stride);
  } else if (attention_) {
    attention_->Compute(staged, window_lists_.Whole(range), entered,
                        OwnTile(staged.reduced, staged.reduced_stride, width_, range, 0),
                        range.count, reduced, stride);
  } else {
    torch::Tensor own;
    if (reduce_.own_joins) own = layer_.prepares() ? layer_.Prepare(entered).contiguous() : raw;
    ReduceSums(staged, range, own, reduced, stride);
  }
  ZeroRows(reduced, range.count, width_, stride);
  return {.raw = raw, .entered = entered, .tile = tile};
}

}  // namespace internal
}  // namespace rhizome
