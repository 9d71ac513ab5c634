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

/// A layer's weights as tiles are multiplied by them.
struct TileWeights {
  explicit TileWeights(const ConvLayer& layer)
      : kind(layer.kind), weight(layer.TileWeight()), bias(layer.bias) {}
  ModelKind kind;
  torch::Tensor weight;  // [out, width]
  torch::Tensor bias;    // [out]
};

/// Targets [first, first + count) of a block; at most kDenseRows where they are multiplied.
struct TargetRange {
  std::size_t first = 0;
  std::size_t count = 0;
};

/// One block of a layer, aggregated window by window from staged rows and multiplied in tiles of
/// kDenseRows targets. Sums are taken by ascending row, whatever the windows are.
/// Threads: the same function may run for different targets at once. Ownership: borrows all.
class TileLayer {
 public:
  /// `dim`: columns read. `row_scale`: GCN's factor of each row of the graph. `degrees` [targets],
  /// GCN only. `sums` [targets, dim], whatever they are, for a block of several windows.
  TileLayer(const BlockLists& lists, const TileWeights& weights, std::size_t dim,
            std::span<const float> row_scale, std::vector<std::uint32_t> degrees,
            std::span<float> sums);

  /// Adds what is staged of a window to the sums of some targets. Windows in ascending order, each
  /// for all targets before the next; not for a block of one window.
  void AddWindow(std::size_t window, const StagedRows& staged, const TargetRange& range);

  /// With the targets' own rows staged, in the one window or after all others: their rows,
  /// [kDenseRows, out]; those behind the last are of no use. `own_first`: the first target whose
  /// own row the window has, where it is one of own rows.
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
  const std::span<float> sums_;       // [targets, dim]; of several windows
  std::vector<std::uint32_t> added_;  // [targets]: up to where a list is in `sums_`
};

}  // namespace rhizome::inline internal
