#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <span>
#include <vector>

#include "rhizome/gnn/block_plan.h"
#include "rhizome/gnn/dense.h"
#include "rhizome/gnn/layers.h"

namespace rhizome {

/// A layer's weights as tiles are multiplied by them.
struct TileWeights {
  explicit TileWeights(const ConvLayer& layer)
      : kind(layer.kind), weight(layer.TileWeight()), bias(layer.bias) {}
  ModelKind kind;
  torch::Tensor weight;  // [out, width]
  torch::Tensor bias;    // [out]
};

/// One block of a layer, aggregated window by window from staged rows and multiplied in tiles of
/// kDenseRows targets. Sums are taken by ascending row, whatever the windows are.
/// Threads: the same function may run for different tiles at once. Ownership: borrows all.
class TileLayer {
 public:
  /// `stage`: [stage rows, dim], with `stage_scale`, GCN's factor of each row; empty for others.
  /// `row_scale`: the same by row of the graph. `degrees` [targets], GCN only.
  TileLayer(const BlockLists& lists, const TileWeights& weights, const torch::Tensor& stage,
            std::span<const float> stage_scale, std::span<const float> row_scale,
            std::vector<std::uint32_t> degrees);

  std::size_t tiles() const {
    return (lists_.targets.size() + kDenseRows - 1) / static_cast<std::size_t>(kDenseRows);
  }

  /// Adds what is staged of a window that is not the last.
  void AddWindow(std::size_t window, std::size_t tile);

  /// With the last window staged: the tile's rows, [kDenseRows, out]; those behind the last target
  /// are of no use.
  torch::Tensor Finish(std::size_t tile);

 private:
  struct Range {
    std::size_t first;
    std::size_t count;
  };
  Range RangeOf(std::size_t tile) const;
  bool sage() const { return weights_.kind == ModelKind::kSage; }
  void Sum(std::size_t window, const Range& range, bool keep, float* out, std::size_t stride,
           const float* target_scale, const float* own, const float* own_scale) const;
  void CopyOwn(std::size_t window, const Range& range, float* out, std::size_t stride) const;

  const BlockLists& lists_;
  const TileWeights& weights_;
  const std::size_t dim_;
  const float* const stage_;
  const std::span<const float> stage_scale_;
  const std::span<const float> row_scale_;
  const std::vector<std::uint32_t> degrees_;
  torch::Tensor
      sums_;           // [targets, dim], of windows before the last; undefined where there are none
  torch::Tensor own_;  // as `sums_`: rows that were staged then
};

}  // namespace rhizome
