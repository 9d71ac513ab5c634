#pragma once

#include <cstddef>
#include <span>

#include "cache/kernels/attention_kernels.h"
#include "gnn/models/layer.h"
#include "gnn/models/tile_rows.h"
#include "gnn/ops/torch.h"

namespace rhizome {
inline namespace internal {

/// Attention of the targets of a block, in layerwise inference. It is computed either from a single
/// window (Compute) or window by window (Begin, Add, Finish), with the same bits.
/// Threads: each function may run concurrently for different targets.
/// Ownership: borrows all arguments.
class TileAttention {
 public:
  /// `state`: [targets, Layer::state_columns()] with any contents, or empty for a block of one
  /// window. The sums, [targets, width], are its first part.
  TileAttention(const Layer& layer, std::size_t targets, std::span<float> state);

  /// Stores the queries of a tile's targets, and adds their own edges (self-loops). `entered`: the
  /// own rows of the tile, kDenseRows rows.
  void Begin(const Layer::Entered& entered, const TargetRange& range);

  /// Adds the rows of a window to the sums.
  void Add(const WindowRows& staged, const TileLists& lists, const TargetRange& range);

  /// Completes the sums and writes them to `out`, with `stride` floats from row to row.
  void Finish(const TargetRange& range, float* out, std::size_t stride) const;

  /// Computes attention from one window that holds all rows, including the targets' own. `entered`:
  /// as for Begin. `prepared`: the same rows as they are reduced, [kDenseRows, width].
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
  // State that targets keep from window to window, one row per target.
  float* sums_ = nullptr;          // [targets, width]
  float* maxima_ = nullptr;        // [targets, heads]
  float* denominators_ = nullptr;  // [targets, heads]
  float* queries_ = nullptr;       // [targets, query columns]
};

}  // namespace internal
}  // namespace rhizome
