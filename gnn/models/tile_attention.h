#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cache/kernels/attention_kernels.h"
#include "gnn/models/layer.h"
#include "gnn/models/tile_rows.h"
#include "gnn/ops/torch.h"

namespace rhizome {
inline namespace internal {

/// Attention over the lists of a block, in layerwise inference. It is computed either from a single
/// window (Compute) or window by window (Begin, Add, Finish), with the same bits. Threads: each
/// function may run concurrently for different lists. Ownership: borrows all arguments.
class TileAttention {
 public:
  /// `state`: [lists, Layer::state_columns()] with any contents, or empty for a block of one
  /// window. The sums, [lists, width], are its first part.
  TileAttention(const Layer& layer, std::size_t lists, std::span<float> state);

  /// The targets of a tile.
  struct Targets {
    Layer::Entered entered;  ///< their own rows, kDenseRows rows
    torch::Tensor prepared;  ///< the same rows as they are reduced, [kDenseRows, width]; with
                             ///< ConvPieces::relates undefined

    /// With ConvPieces::relates: the row of each list; empty: rows and lists have the same numbers.
    std::vector<std::uint32_t> row_of_list = {};
  };

  /// Destination of sums.
  struct Sums {
    float* rows;         ///< [lists, width]
    std::size_t stride;  ///< floats from row to row
  };

  /// Stores the queries of a tile's lists, and adds the targets' own edges (self-loops).
  void Begin(const Targets& targets, const TargetRange& range);

  /// Adds the rows of a window to the sums.
  void Add(const WindowRows& staged, const TileLists& lists, const TargetRange& range);

  /// Completes sums: `sums.rows` has the sums of all windows.
  void Finish(const TargetRange& range, const Sums& sums) const;

  /// Computes attention from one window that holds all rows, including the targets' own.
  void Compute(const WindowRows& staged, const TileLists& lists, const Targets& targets,
               std::size_t count, const Sums& sums) const;

 private:
  struct OwnRows;
  OwnRows Asking(const Targets& targets) const;
  AttendArgs KernelArgs() const;
  AttendArgs RowArgs(const WindowRows& staged) const;
  AttendArgs StateArgs(AttendArgs args, const TargetRange& range) const;

  const Layer& layer_;
  const ReducePiece reduce_;
  const std::size_t heads_;
  const std::size_t width_;  // of all heads together
  const torch::Tensor score_vectors_;
  // State that lists keep from window to window, one row per list.
  float* sums_ = nullptr;          // [lists, width]
  float* maxima_ = nullptr;        // [lists, heads]
  float* denominators_ = nullptr;  // [lists, heads]
  float* queries_ = nullptr;       // [lists, query columns]
};

}  // namespace internal
}  // namespace rhizome
