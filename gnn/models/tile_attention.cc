#include "gnn/models/tile_attention.h"

#include <cstring>
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

TileAttention::TileAttention(const Layer& layer, std::size_t targets, std::span<float> state)
    : layer_(layer),
      reduce_(layer.pieces().reduce),
      heads_(static_cast<std::size_t>(reduce_.attention.heads)),
      width_(static_cast<std::size_t>(layer.pieces().width)),
      score_vectors_(layer.pieces().score_columns() == 0 ? layer.ScoreVectors() : torch::Tensor()) {
  if (state.empty()) return;
  sums_ = state.data();
  maxima_ = sums_ + targets * width_;
  denominators_ = maxima_ + targets * heads_;
  queries_ = denominators_ + targets * heads_;
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

TileAttention::OwnRows TileAttention::Asking(const Layer::Entered& own,
                                             torch::Tensor prepared) const {
  OwnRows rows{.prepared = std::move(prepared), .scores = {}, .query = {}};
  if (layer_.pieces().score_columns() > 0) rows.scores = layer_.SourceScores(rows.prepared);
  rows.query = layer_.Query(own, rows.prepared);
  return rows;
}

void TileAttention::Begin(const Layer::Entered& entered, const TargetRange& range) {
  const OwnRows own = Asking(entered, layer_.Prepare(entered).contiguous());
  const EmptyLists nothing(range.count);
  AttendArgs args = StateArgs(KernelArgs(), range);
  std::memcpy(queries_ + range.first * args.query_stride, own.query.data_ptr<float>(),
              range.count * args.query_stride * sizeof(float));
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

void TileAttention::Finish(const TargetRange& range, float* out, std::size_t stride) const {
  const EmptyLists nothing(range.count);
  AttendArgs args = StateArgs(KernelArgs(), range);
  nothing.WalkedBy(args);
  args.keep = true;
  args.finish = true;
  args.out = out;
  args.out_stride = stride;
  Kernels().attend(args, 0, range.count);
}

void TileAttention::Compute(const WindowRows& staged, const TileLists& lists,
                            const Layer::Entered& entered, torch::Tensor prepared,
                            std::size_t count, float* out, std::size_t stride) const {
  const OwnRows own = Asking(entered, std::move(prepared));
  std::vector<float> maxima(count * heads_);
  std::vector<float> denominators(count * heads_);
  AttendArgs args = RowArgs(staged);
  lists.WalkedBy(args);
  own.Join(reduce_, args);
  args.query = own.query.data_ptr<float>();
  args.maximum = maxima.data();
  args.denominator = denominators.data();
  args.finish = true;
  args.out = out;
  args.out_stride = stride;
  Kernels().attend(args, 0, count);
}

}  // namespace internal
}  // namespace rhizome
