#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rhizome/cache/aggregate_kernels.h"
#include "rhizome/cache/block_plan.h"
#include "rhizome/cache/block_stager.h"
#include "rhizome/gnn/layer.h"
#include "rhizome/gnn/tile_attention.h"
#include "rhizome/gnn/tile_rows.h"
#include "rhizome/gnn/torch.h"
#include "rhizome/gnn/window_lists.h"

namespace rhizome::inline internal {

/// Computes the targets of one layer of a network (Layer) that are planned together: they are
/// reduced window by window from staged rows and updated in tiles of kDenseRows targets. Sums are
/// taken by ascending row, whatever the windows are.
/// Threads: each function may run for different targets at once.
/// Ownership: borrows all arguments.
class TileLayer {
 public:
  /// `row_scale` is the factor of each row of the graph in a symmetric sum, and `degrees` [targets]
  /// is for reductions that need them. `state` [targets, Layer::state_columns()], with any
  /// contents, is used if there are several windows.
  TileLayer(const BlockLists& lists, const Layer& layer, std::span<const float> row_scale,
            std::vector<std::uint32_t> degrees, std::span<float> state);

  /// Begins the attention of some targets with a window of their own rows, the first of which is
  /// that of target `own_first`. For all targets before AddWindow; not for a block of one window.
  void Begin(const WindowRows& staged, const TargetRange& range, std::size_t own_first);

  /// Adds a staged window to the reductions of some targets. Windows are numbered from the first
  /// that is reduced, and added in ascending order, each for all targets before the next. Not for a
  /// block of one window.
  void AddWindow(std::size_t window, const WindowRows& staged, const TargetRange& range);

  /// Computes the rows of `range`, [kDenseRows, raw_out]; rows after the last target are
  /// unspecified. If the layer reads own rows then, they must be staged, in the only window or
  /// after all others. `own_first` is the first target whose own row the window holds, if it is a
  /// window of own rows.
  torch::Tensor Finish(const WindowRows& staged, const TargetRange& range, std::size_t own_first);

  /// The same without the update: what Layer::Finish takes, with zeros after the last target.
  struct Reduced {
    torch::Tensor raw;       ///< undefined if the layer does not read own rows then
    Layer::Entered entered;  ///< of `raw`; with Entering::kIfNeeded only if the reduction took it
    torch::Tensor tile;
  };
  enum class Entering : bool { kIfNeeded, kAlways };
  Reduced Reduce(const WindowRows& staged, const TargetRange& range, std::size_t own_first,
                 Entering entering);

 private:
  bool one_window() const { return !lists_.numbers.empty(); }
  bool takes_max() const { return reduce_.by == Reduction::kMax; }
  bool weighs() const { return reduce_.weighs() && !lists_.weights.empty(); }
  SumArgs RowArgs(const WindowRows& staged) const;
  MaxArgs MaxRowArgs(const WindowRows& staged) const;
  torch::Tensor OwnTile(const float* rows, std::size_t stride, std::size_t columns,
                        const TargetRange& range, std::size_t own_first) const;
  void CopyOwn(const float* rows, std::size_t row_stride, std::size_t columns,
               const TargetRange& range, std::size_t own_first, float* out,
               std::size_t stride) const;
  void ReduceSums(const WindowRows& staged, const TargetRange& range, const torch::Tensor& own,
                  float* out, std::size_t stride) const;
  void ReduceMaxima(const WindowRows& staged, const TargetRange& range, float* out,
                    std::size_t stride) const;

  const BlockLists& lists_;
  const Layer& layer_;
  const ReducePiece reduce_;
  const std::size_t width_;  // of a reduced row
  const std::span<const float> row_scale_;
  const std::vector<std::uint32_t> degrees_;
  const std::span<float> state_;            // sums first, [targets, width]; for several windows
  std::optional<TileAttention> attention_;  // of layers that attend
  WindowLists window_lists_;
};

/// Prepares the rows [0, count) of a window, raw [count, raw] -> out [count,
/// Layer::prepared_columns()], on the compute threads.
void PrepareWindow(const Layer& layer, const float* raw, std::size_t count, float* out);

}  // namespace rhizome::inline internal
