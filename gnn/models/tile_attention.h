#pragma once

#include <cstddef>
#include <span>

#include "rhizome/cache/attention_kernels.h"
#include "rhizome/gnn/layer.h"
#include "rhizome/gnn/tile_rows.h"
#include "rhizome/gnn/torch.h"

namespace rhizome::inline internal {

/// The attention of the targets of a block, in layerwise inference: either from one window at once
/// (Compute), or window by window (Begin, Add, Finish), with the same bits.
/// Threads: each function may run for different targets at once.
/// Ownership: borrows all arguments.
class TileAttention {
 public:
  /// `state`: [targets, Layer::state_columns()], with any contents, or empty for a block of one
  /// window. It begins with the sums, [targets, width].
  TileAttention(const Layer& layer, std::size_t targets, std::span<float> state);

  /// Takes what the targets of a tile ask, and their own edges. `entered`: their kDenseRows own
  /// rows.
  void Begin(const Layer::Entered& entered, const TargetRange& range);

  /// Adds the rows of a window to the sums.
  void Add(const WindowRows& staged, const TileLists& lists, const TargetRange& range);

  /// Completes sums, which stand in `out`, rows `stride` numbers apart.
  void Finish(const TargetRange& range, float* out, std::size_t stride) const;

  /// Does all of it from one window that has all rows, the targets' own among them: `entered` as
  /// for Begin, `prepared` the same as they are reduced, [kDenseRows, width].
  void Compute(const WindowRows& staged, const TileLists& lists, const Layer::Entered& entered,
               torch::Tensor prepared, std::size_t count, float* out, std::size_t stride) const;

 private:
  struct OwnRows;
  OwnRows Asking(const Layer::Entered& own, torch::Tensor prepared) const;
  AttendArgs KernelArgs() const;
  AttendArgs RowArgs(const WindowRows& staged) const;
  AttendArgs StateArgs(AttendArgs args, const TargetRange& range) const;

  const Layer& layer_;
  const ReducePiece reduce_;
  const std::size_t heads_;
  const std::size_t width_;  // of all heads together
  const torch::Tensor score_vectors_;
  // The state that targets keep from window to window, a row of each for each target.
  float* sums_ = nullptr;          // [targets, width]
  float* maxima_ = nullptr;        // [targets, heads]
  float* denominators_ = nullptr;  // [targets, heads]
  float* queries_ = nullptr;       // [targets, query columns]
};

}  // namespace rhizome::inline internal
