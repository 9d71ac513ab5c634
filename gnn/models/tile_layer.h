#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <span>
#include <vector>

#include "rhizome/cache/aggregate_kernels.h"
#include "rhizome/cache/block_plan.h"
#include "rhizome/cache/block_stager.h"
#include "rhizome/gnn/conv_layer.h"
#include "rhizome/gnn/dense.h"

namespace rhizome::inline internal {

/// The weights of a layer in the form that multiplies tiles.
struct TileWeights {
  explicit TileWeights(const ConvLayer& layer)
      : kind(layer.kind), weight(layer.TileWeight()), bias(layer.bias) {}
  ModelKind kind;
  torch::Tensor weight;  // [out, width]
  torch::Tensor bias;    // [out]
};

/// Targets [first, first + count) of a block; at most kDenseRows of them are multiplied at once.
struct TargetRange {
  std::size_t first = 0;
  std::size_t count = 0;
};

/// Computes one block of a layer: it is aggregated window by window from staged rows and multiplied
/// in tiles of kDenseRows targets. Sums are taken by ascending row, whatever the windows are.
/// Threads: each function may run for different targets at once.
/// Ownership: borrows all arguments.
class TileLayer {
 public:
  /// `dim` is the number of columns read. `row_scale` is GCN's factor of each row of the graph, and
  /// `degrees` [targets] is for GCN only. `sums` [targets, dim], with any contents, is used for a
  /// block of several windows.
  TileLayer(const BlockLists& lists, const TileWeights& weights, std::size_t dim,
            std::span<const float> row_scale, std::vector<std::uint32_t> degrees,
            std::span<float> sums);

  /// Adds a staged window to the sums of some targets. Windows are added in ascending order, each
  /// for all targets before the next. Not for a block of one window.
  void AddWindow(std::size_t window, const StagedRows& staged, const TargetRange& range);

  /// Computes the rows of `range`, [kDenseRows, out]; rows after the last target are unspecified.
  /// The targets' own rows must be staged, in the only window or after all others. `own_first` is
  /// the first target whose own row the window holds, if it is a window of own rows.
  torch::Tensor Finish(const StagedRows& staged, const TargetRange& range, std::size_t own_first);

 private:
  bool sage() const { return weights_.kind == ModelKind::kSage; }
  bool one_window() const { return !lists_.numbers.empty(); }
  SumArgs RowArgs(const StagedRows& staged) const;
  void CopyOwn(const StagedRows& staged, const TargetRange& range, std::size_t own_first,
               float* out, std::size_t stride) const;

  const BlockLists& lists_;
  const TileWeights& weights_;
  const std::size_t dim_;
  const std::span<const float> row_scale_;
  const std::vector<std::uint32_t> degrees_;
  const std::span<float> sums_;       // [targets, dim]; for several windows
  std::vector<std::uint32_t> added_;  // [targets]: end of the part of each list that is in `sums_`
};

}  // namespace rhizome::inline internal
