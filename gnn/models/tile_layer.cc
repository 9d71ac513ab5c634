#include "gnn/models/tile_layer.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

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

void PrepareWindow(const Layer& layer, const float* raw, std::span<const TypeId> types,
                   std::size_t count, float* out) {
  const auto columns = static_cast<std::size_t>(layer.shape().raw);
  const auto width = static_cast<std::size_t>(layer.pieces().source_columns());
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
    std::vector<TypeId> types_of_tile;
    if (!types.empty()) {
      types_of_tile.assign(kTile, 0);
      std::copy_n(types.begin() + first, rows, types_of_tile.begin());
    }
    const torch::Tensor made = layer.Prepare(layer.Enter({in, {}, types_of_tile})).contiguous();
    CopyRows(made.data_ptr<float>(), rows, width, out + first * stride, stride);
    if (scores == 0) return;
    const torch::Tensor scored = layer.SourceScores(made);
    CopyRows(scored.data_ptr<float>(), rows, scores, out + first * stride + width, stride);
  });
}

TileLayer::TileLayer(const BlockLists& lists, const Layer& layer, std::span<const float> row_scale,
                     TargetFacts facts, std::span<float> state)
    : lists_(lists),
      layer_(layer),
      reduce_(layer.pieces().reduce),
      width_(static_cast<std::size_t>(layer.pieces().width)),
      row_scale_(row_scale),
      facts_(std::move(facts)),
      state_(state),
      window_lists_(lists, reduce_.weighs()) {
  const std::size_t count = lists.state_count();
  if (layer.pieces().attends()) attention_.emplace(layer, count, state);
  if (one_window()) return;
  RHIZOME_CHECK(state.size() >= count * static_cast<std::size_t>(layer.state_columns()));
  // The first window initialises every sum. Maxima, and sums without windows, are initialised here.
  if (takes_max()) {
    std::fill_n(state.begin(), count * width_, kNothing);
  } else if (lists.sum_windows() == 0 && !attention_) {
    std::fill_n(state.begin(), count * width_, 0.0F);
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

/// Returns the lists of some targets: their groups, those that have edges if edges have relations,
/// or themselves.
TargetRange TileLayer::ListsOf(const TargetRange& range) const {
  if (!lists_.grouped() && !lists_.related()) return range;
  const std::span<const std::uint32_t> before =
      lists_.grouped() ? lists_.group_begin : lists_.linked_before;
  const std::size_t first = before[range.first];
  return {first, before[range.first + range.count] - first};
}

/// Returns the targets of a tile that have edges, counted from the first target.
std::vector<std::uint32_t> TileLayer::LinkedOf(const TargetRange& range) const {
  std::vector<std::uint32_t> linked;
  for (std::size_t i = 0; i < range.count; ++i) {
    const std::size_t t = range.first + i;
    if (lists_.offsets[t] < lists_.offsets[t + 1]) linked.push_back(static_cast<std::uint32_t>(i));
  }
  return linked;
}

/// Returns the first group of each target of a tile, counted from the first one, [kTile + 1];
/// empty if edges are not grouped. Rows of the tile after the last target have no groups.
std::vector<std::uint32_t> TileLayer::GroupBeginOf(const TargetRange& range) const {
  if (!lists_.grouped()) return {};
  const TargetRange groups = ListsOf(range);
  std::vector<std::uint32_t> begin(kTile + 1, static_cast<std::uint32_t>(groups.count));
  for (std::size_t i = 0; i < range.count; ++i)
    begin[i] = lists_.group_begin[range.first + i] - static_cast<std::uint32_t>(groups.first);
  return begin;
}

/// Returns the groups of a tile; `begin` is from GroupBeginOf.
GroupedLists TileLayer::GroupsOf(const TargetRange& range,
                                 std::span<const std::uint32_t> begin) const {
  if (begin.empty()) return {};
  const TargetRange groups = ListsOf(range);
  return {.group_begin = begin,
          .offsets = {},
          .relation = std::span(lists_.relation).subspan(groups.first, groups.count)};
}

/// Returns the vertex types of a tile, [kTile]; empty if the layer does not need them.
std::vector<TypeId> TileLayer::TypesOf(const TargetRange& range) const {
  std::vector<TypeId> types;
  if (facts_.types.empty()) return types;
  types.assign(kTile, 0);
  std::copy_n(facts_.types.begin() + static_cast<std::ptrdiff_t>(range.first), range.count,
              types.begin());
  return types;
}

void TileLayer::AddWindow(std::size_t window, const WindowRows& staged,
                          const TargetRange& targets) {
  const TargetRange range = ListsOf(targets);
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
  const TargetRange lists = ListsOf(range);
  if (lists.count == 0) return;
  const auto columns = static_cast<std::size_t>(layer_.shape().raw);
  const std::vector<TypeId> types = TypesOf(range);
  const Layer::Entered entered =
      layer_.Enter({OwnTile(staged.raw, columns, columns, range, own_first), {}, types});
  TileAttention::Targets targets{.entered = entered, .prepared = {}};
  if (lists_.related()) {
    targets.row_of_list = LinkedOf(range);
  } else {
    targets.prepared = layer_.Prepare(entered).contiguous();
  }
  attention_->Begin(targets, lists);
}

void TileLayer::AddRelated(const RelatedRows& related, const TargetRange& range) {
  const TileLists lists = related.ListsOf(range);
  if (lists.slots_end > 0) attention_->Add(related.rows(), lists, ListsOf(range));
}

/// Completes the attention of targets whose edges have relations. Targets without edges get zeros.
void TileLayer::FinishRelated(const TargetRange& range, float* out, std::size_t stride) const {
  const TargetRange lists = ListsOf(range);
  float* const sums = state_.data() + lists.first * width_;
  attention_->Finish(lists, {.rows = sums, .stride = width_});
  for (std::size_t i = 0; i < range.count; ++i) std::fill_n(out + i * stride, width_, 0.0F);
  const std::vector<std::uint32_t> linked = LinkedOf(range);
  for (std::size_t i = 0; i < linked.size(); ++i)
    std::copy_n(sums + i * width_, width_, out + linked[i] * stride);
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
        .degree = facts_.degrees.empty() ? 0 : facts_.degrees[t],
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

/// Reduces the groups of some targets to sums or means in Reduced::groups.
void TileLayer::ReduceGroups(const WindowRows& staged, const TargetRange& range,
                             Reduced& reduced) const {
  const TargetRange groups = ListsOf(range);
  const torch::Tensor rows =
      at::empty({static_cast<std::int64_t>(groups.count), static_cast<std::int64_t>(width_)});
  float* const out = rows.data_ptr<float>();
  if (!one_window()) std::copy_n(state_.data() + groups.first * width_, groups.count * width_, out);
  reduced.group_begin = GroupBeginOf(range);
  reduced.groups.rows = rows;
  reduced.groups.groups = GroupsOf(range, reduced.group_begin);
  std::vector<float> scale(groups.count);
  for (std::size_t i = 0; i < groups.count; ++i) {
    const std::uint32_t begin = lists_.group_offsets[groups.first + i];
    const std::uint32_t end = lists_.group_offsets[groups.first + i + 1];
    const std::span<const float> weights = weighs() ? lists_.weights : std::span<const float>();
    const DrawnList list{.listed = end - begin, .weight = WeightOf(weights, begin, end)};
    scale[i] = ScalesOf(reduce_, list, 1).target;
  }
  SumArgs args = RowArgs(staged);
  TileLists lists = window_lists_.Whole(groups);
  if (!one_window()) lists = {.begins = lists.begins, .ends = lists.begins};  // sums are complete
  lists.WalkedBy(args);
  args.edge_weight = lists.weights;
  args.target_scale = scale.data();
  args.keep = !one_window();
  args.out = out;
  args.out_stride = width_;
  Kernels().sum(args, 0, groups.count);
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
  return layer_.Finish(reduced.raw, reduced.entered, reduced.tile, nullptr, reduced.groups);
}

/// Reduces a tile in these steps: (1) copies the own rows that are needed, and enters them if
/// needed; (2) copies the state of the targets, if there are several windows; (3) computes or
/// completes the maxima, attention or sums; (4) zeroes the rows after the last target.
TileLayer::Reduced TileLayer::Reduce(const WindowRows& staged, const TargetRange& range,
                                     std::size_t own_first, Entering entering) {
  const auto own_width = static_cast<std::size_t>(layer_.own_columns());
  const std::size_t stride = own_width + (lists_.grouped() ? 0 : width_);
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
  std::vector<TypeId> types = TypesOf(range);
  if (raw.defined() && (is_reduced || entering == Entering::kAlways))
    entered = layer_.Enter({raw, {}, types});
  Reduced made{.raw = raw,
               .entered = entered,
               .tile = tile,
               .groups = {},
               .group_begin = {},
               .types = std::move(types)};
  made.groups.types = made.types;
  if (lists_.grouped()) {
    ReduceGroups(staged, range, made);
    return made;
  }
  for (std::size_t i = 0; i < range.count && !one_window() && !lists_.related(); ++i) {
    std::memcpy(reduced + i * stride, state_.data() + (range.first + i) * width_,
                width_ * sizeof(float));
  }
  if (takes_max()) {
    ReduceMaxima(staged, range, reduced, stride);
  } else if (lists_.related()) {
    FinishRelated(range, reduced, stride);
  } else if (attention_ && !one_window()) {
    attention_->Finish(range, {.rows = reduced, .stride = stride});
  } else if (attention_) {
    attention_->Compute(
        staged, window_lists_.Whole(range),
        {.entered = entered,
         .prepared = OwnTile(staged.reduced, staged.reduced_stride, width_, range, 0)},
        range.count, {.rows = reduced, .stride = stride});
  } else {
    torch::Tensor own;
    if (reduce_.own_joins) own = layer_.prepares() ? layer_.Prepare(entered).contiguous() : raw;
    ReduceSums(staged, range, own, reduced, stride);
  }
  ZeroRows(reduced, range.count, width_, stride);
  return made;
}

}  // namespace internal
}  // namespace rhizome
