#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cache/blocks/block_plan.h"
#include "cache/blocks/block_stager.h"
#include "cache/kernels/aggregate_kernels.h"
#include "gnn/models/layer.h"
#include "gnn/models/related_rows.h"
#include "gnn/models/tile_attention.h"
#include "gnn/models/tile_rows.h"
#include "gnn/models/window_lists.h"
#include "gnn/ops/torch.h"

namespace rhizome {
inline namespace internal {

/// Facts about the targets of a block that their reduction needs, besides rows and lists.
struct TargetFacts {
  std::vector<std::uint32_t> degrees = {};  ///< [targets], for reductions that need them
  std::vector<TypeId> types = {};           ///< [targets], with ConvPieces::by_vertex_type
};

/// Computes the targets of a block in one layer of a network (Layer). Targets are reduced window by
/// window from staged rows, and updated in tiles of kDenseRows targets. Sums are taken in ascending
/// order of rows, independent of the windows.
/// Threads: each function may run concurrently for different targets.
/// Ownership: borrows all arguments.
class TileLayer {
 public:
  /// `row_scale`: factor of each row of the graph, for symmetric sums. `state` [targets or groups,
  /// Layer::state_columns()], with any contents: used if there are several windows.
  TileLayer(const BlockLists& lists, const Layer& layer, std::span<const float> row_scale,
            TargetFacts facts, std::span<float> state);

  /// Begins the attention of some targets with a window of own rows; its first row belongs to
  /// target `own_first`. Must be called for all targets before AddWindow. Not for a block of one
  /// window.
  void Begin(const WindowRows& staged, const TargetRange& range, std::size_t own_first);

  /// Adds a staged window to the reductions of some targets. Windows are numbered from the first
  /// one that is reduced, and must be added in ascending order, each for all targets before the
  /// next. Not for a block of one window.
  void AddWindow(std::size_t window, const WindowRows& staged, const TargetRange& range);

  /// Adds the current run of related rows to the reductions of a tile, in place of AddWindow for
  /// layers with ConvPieces::relates.
  void AddRelated(const RelatedRows& related, const TargetRange& range);

  /// Computes the rows of `range`, [kDenseRows, raw_out]; rows after the last target are
  /// unspecified. If the layer reads own rows after the reduction, they must be staged, in the only
  /// window or after all others. `own_first`: first target whose own row the window holds, if it is
  /// a window of own rows.
  torch::Tensor Finish(const WindowRows& staged, const TargetRange& range, std::size_t own_first);

  /// The inputs of Layer::Finish, with zeros after the last target.
  struct Reduced {
    torch::Tensor raw;       ///< undefined if Layer::Finish does not read own rows
    Layer::Entered entered;  ///< `raw` entered; with kIfNeeded only if the reduction used it
    torch::Tensor tile;
    GroupedRows groups;
    std::vector<std::uint32_t> group_begin;
    std::vector<TypeId> types;
  };
  enum class Entering : bool { kIfNeeded, kAlways };
  /// As Finish, but without the update.
  Reduced Reduce(const WindowRows& staged, const TargetRange& range, std::size_t own_first,
                 Entering entering);

 private:
  bool one_window() const { return !lists_.numbers.empty(); }
  TargetRange ListsOf(const TargetRange& range) const;
  std::vector<std::uint32_t> LinkedOf(const TargetRange& range) const;
  bool takes_max() const { return reduce_.by == Reduction::kMax; }
  bool weighs() const { return reduce_.weighs() && !lists_.weights.empty(); }
  SumArgs RowArgs(const WindowRows& staged) const;
  MaxArgs MaxRowArgs(const WindowRows& staged) const;
  std::vector<std::uint32_t> GroupBeginOf(const TargetRange& range) const;
  GroupedLists GroupsOf(const TargetRange& range, std::span<const std::uint32_t> begin) const;
  std::vector<TypeId> TypesOf(const TargetRange& range) const;
  torch::Tensor OwnTile(const float* rows, std::size_t stride, std::size_t columns,
                        const TargetRange& range, std::size_t own_first) const;
  void CopyOwn(const float* rows, std::size_t row_stride, std::size_t columns,
               const TargetRange& range, std::size_t own_first, float* out,
               std::size_t stride) const;
  void ReduceSums(const WindowRows& staged, const TargetRange& range, const torch::Tensor& own,
                  float* out, std::size_t stride) const;
  void ReduceGroups(const WindowRows& staged, const TargetRange& range, Reduced& reduced) const;
  void FinishRelated(const TargetRange& range, float* out, std::size_t stride) const;
  void ReduceMaxima(const WindowRows& staged, const TargetRange& range, float* out,
                    std::size_t stride) const;

  const BlockLists& lists_;
  const Layer& layer_;
  const ReducePiece reduce_;
  const std::size_t width_;  // columns of a reduced row
  const std::span<const float> row_scale_;
  const TargetFacts facts_;
  const std::span<float> state_;            // sums first, [targets, width]; for several windows
  std::optional<TileAttention> attention_;  // for layers with attention
  WindowLists window_lists_;
};

/// Prepares rows [0, count) of a window on the compute threads: raw [count, raw] -> out [count,
/// Layer::prepared_columns()]. `types` [count], with ConvPieces::by_vertex_type.
void PrepareWindow(const Layer& layer, const float* raw, std::span<const TypeId> types,
                   std::size_t count, float* out);

}  // namespace internal
}  // namespace rhizome
