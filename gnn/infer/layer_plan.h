#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "cache/blocks/pass_order.h"
#include "cache/blocks/row_order.h"
#include "gnn/infer/layer_sizes.h"

namespace rhizome {
inline namespace internal {

/// The layers of a job, to be run or only counted: what each layer reads and writes, in which order
/// and in which pieces. Each layer has the row order of the array that it writes. The last layer
/// has one only if the job computes a subset of the rows. Threads: one at a time. Ownership:
/// borrows all arguments.
class LayerPlan {
 public:
  LayerPlan(const GraphSnapshot& graph, const Model& model, const ArrayEntry& features,
            const LayerwiseOptions& options)
      : graph_(graph),
        model_(model),
        features_(features),
        options_(options),
        sizes_(graph, model, options),
        orders_(sizes_.layers()),
        reads_(orders_.size()) {}

  /// Reads the degrees. Must be called before anything is planned.
  Status CountEdges();

  /// Finds the rows that each layer, and the input pass, must compute for
  /// LayerwiseOptions::targets, which must be set.
  Status FindTargets(const JobControl& control);

  /// Chooses the order of the rows in a layer's array.
  Result<OrderChoice> Choose(std::uint32_t layer, const JobControl& control) const;
  void SetOrder(std::uint32_t layer, RowOrder order) { orders_[layer] = std::move(order); }

  /// Sets the order of a layer, and the reads that were counted for it.
  void SetChoice(std::uint32_t layer, OrderChoice choice);

  /// Returns the reads of a whole layer without finished chunks, if they were counted. Each layer's
  /// reads can be taken once.
  std::optional<BlockReads> TakeReads(std::uint32_t layer) {
    return std::exchange(reads_[layer], std::nullopt);
  }

  std::uint32_t count() const { return static_cast<std::uint32_t>(orders_.size()); }
  ArrayEntry Written(std::uint32_t layer) const;

  /// Returns the entry of the array that the input pass writes, and the order of its rows. For
  /// models with inputs by type.
  ArrayEntry FirstRows() const;
  const RowOrder& first_order() const { return first_order_; }

  ArrayEntry SourceOf(std::uint32_t layer) const;

  /// Returns the pass of a layer, which borrows from this object.
  PassReads Pass(std::uint32_t layer) const;

  /// [rows] sums of the weights of each row's edges, or empty: unweighted edges.
  std::span<const float> weighted_degrees() const { return weighted_degrees_; }

 private:
  const GraphSnapshot& graph_;
  const Model& model_;
  const ArrayEntry features_;
  const LayerwiseOptions& options_;
  const LayerSizes sizes_;
  RowOrder first_order_;  // of the array that the input pass writes
  std::vector<RowOrder> orders_;
  std::vector<std::optional<BlockReads>> reads_;
  std::vector<std::uint32_t> degrees_;   // [rows]; empty without edges
  std::vector<float> weighted_degrees_;  // [rows]; for symmetric sums with weights
};

}  // namespace internal
}  // namespace rhizome
