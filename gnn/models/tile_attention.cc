#include "gnn/models/tile_attention.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "cache/kernels/simd.h"
#include "storage/base/mutant.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Lists without edges, for Begin and Finish.
class EmptyLists {
 public:
  explicit EmptyLists(std::size_t count) : ends_(count, 0) {}
  void WalkedBy(AttendArgs& args) const { args.begins = args.ends = ends_.data(); }

 private:
  const std::vector<std::uint32_t> ends_;
};

}  // namespace

TileAttention::TileAttention(const Layer& layer, std::size_t lists, std::span<float> state)
    : layer_(layer),
      reduce_(layer.pieces().reduce),
      heads_(static_cast<std::size_t>(reduce_.attention.heads)),
      width_(static_cast<std::size_t>(layer.pieces().width)),
      score_vectors_(layer.pieces().score_columns() == 0 ? layer.ScoreVectors() : torch::Tensor()) {
  if (state.empty()) return;
  sums_ = state.data();
  maxima_ = sums_ + lists * width_;
  denominators_ = maxima_ + lists * heads_;
  queries_ = denominators_ + lists * heads_;
}

/// Returns the arguments that are the same for all windows.
AttendArgs TileAttention::KernelArgs() const {
  AttendArgs args;
  args.score = reduce_.attention.score;
  args.heads = heads_;
  args.width = width_ / heads_;
  args.query_stride = static_cast<std::size_t>(layer_.pieces().query_columns());
  args.attention = score_vectors_.defined() ? score_vectors_.data_ptr<float>() : nullptr;
  args.slope = reduce_.attention.slope;
  return args;
}

/// Adds the rows of a window to the arguments. The scores of a source follow its row.
AttendArgs TileAttention::RowArgs(const WindowRows& staged) const {
  AttendArgs args = KernelArgs();
  args.x = staged.reduced;
  args.x_stride = staged.reduced_stride;
  if (layer_.pieces().score_columns() > 0) {
    args.source = staged.reduced + width_;
    args.source_stride = staged.reduced_stride;
  }
  return args;
}

/// Adds the state of a tile's targets to the arguments.
AttendArgs TileAttention::StateArgs(AttendArgs args, const TargetRange& range) const {
  args.query = queries_ + range.first * args.query_stride;
  args.maximum = maxima_ + range.first * heads_;
  args.denominator = denominators_ + range.first * heads_;
  args.out = sums_ + range.first * width_;
  args.out_stride = width_;
  return args;
}

/// The targets' own rows in the forms that attention needs at the start.
struct TileAttention::OwnRows {
  torch::Tensor prepared;  // [kDenseRows, width]
  torch::Tensor scores;    // [kDenseRows, heads], for additive scores
  torch::Tensor query;     // [kDenseRows, query columns]

  /// Adds the own rows as the targets' first edges, if the layer has self-loops.
  void Join(const ReducePiece& reduce, AttendArgs& args) const {
    if (!reduce.own_joins) return;
    args.own = prepared.data_ptr<float>();
    args.own_stride = static_cast<std::size_t>(prepared.size(1));
    if (!scores.defined()) return;
    args.own_source = scores.data_ptr<float>();
    args.own_source_stride = args.heads;
  }
};

TileAttention::OwnRows TileAttention::Asking(const Targets& targets) const {
  OwnRows rows{.prepared = targets.prepared, .scores = {}, .query = {}};
  if (layer_.pieces().score_columns() > 0) rows.scores = layer_.SourceScores(rows.prepared);
  rows.query = layer_.Query(targets.entered, rows.prepared);
  return rows;
}

void TileAttention::Begin(const Targets& targets, const TargetRange& range) {
  const OwnRows own = Asking(targets);
  const EmptyLists nothing(range.count);
  AttendArgs args = StateArgs(KernelArgs(), range);
  const float* const query = own.query.data_ptr<float>();
  for (std::size_t i = 0; i < range.count; ++i) {
    const std::size_t row = targets.row_of_list.empty() ? i : targets.row_of_list[i];
    std::copy_n(query + row * args.query_stride, args.query_stride,
                queries_ + (range.first + i) * args.query_stride);
  }
  nothing.WalkedBy(args);
  own.Join(reduce_, args);
  Kernels().attend(args, 0, range.count);
}

void TileAttention::Add(const WindowRows& staged, const TileLists& lists,
                        const TargetRange& range) {
  AttendArgs args = StateArgs(RowArgs(staged), range);
  lists.WalkedBy(args);
  args.keep = true;
  args.finish = RHIZOME_MUTANT("sums are divided in every window");
  Kernels().attend(args, 0, range.count);
}

void TileAttention::Finish(const TargetRange& range, const Sums& sums) const {
  const EmptyLists nothing(range.count);
  AttendArgs args = StateArgs(KernelArgs(), range);
  nothing.WalkedBy(args);
  args.keep = true;
  args.finish = true;
  args.out = sums.rows;
  args.out_stride = sums.stride;
  Kernels().attend(args, 0, range.count);
}

void TileAttention::Compute(const WindowRows& staged, const TileLists& lists,
                            const Targets& targets, std::size_t count, const Sums& sums) const {
  const OwnRows own = Asking(targets);
  std::vector<float> maxima(count * heads_);
  std::vector<float> denominators(count * heads_);
  AttendArgs args = RowArgs(staged);
  lists.WalkedBy(args);
  own.Join(reduce_, args);
  args.query = own.query.data_ptr<float>();
  args.maximum = maxima.data();
  args.denominator = denominators.data();
  args.finish = true;
  args.out = sums.rows;
  args.out_stride = sums.stride;
  Kernels().attend(args, 0, count);
}

}  // namespace internal
}  // namespace rhizome
