#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "rhizome/cache/block_plan.h"
#include "rhizome/cache/chunk_reader.h"
#include "rhizome/cache/pass_order.h"
#include "rhizome/cache/row_order.h"
#include "rhizome/gnn/layerwise_inference.h"

namespace rhizome {

/// The layers of a job, whether they are run or only counted: what each reads and writes, in which
/// order and in which pieces. An order is that of the array that a layer writes; the last layer has
/// none, unless only some rows are wanted.
/// Threads: one at a time.
/// Ownership: borrows all arguments.
class Layers {
 public:
  Layers(const GraphSnapshot& graph, const Model& model, const ArrayEntry& features,
         const LayerwiseOptions& options)
      : graph_(graph),
        model_(model),
        features_(features),
        options_(options),
        orders_(model.shape().spec.layers),
        reads_(orders_.size()) {}

  /// Reads the degrees. Call before anything is planned.
  Status CountEdges();

  /// If only some rows are wanted, finds the rows that each layer must compute.
  Status FindTargets(const JobControl& control);

  /// Chooses the order of the rows in a layer's array.
  Result<OrderChoice> Choose(std::uint32_t layer, const JobControl& control) const;
  void SetOrder(std::uint32_t layer, RowOrder order) { orders_[layer] = std::move(order); }

  /// Sets the order of a layer together with the counts made for it.
  void SetChoice(std::uint32_t layer, OrderChoice choice);

  /// Returns the reads of a layer of which nothing is done, if they have been counted. Can be taken
  /// once.
  std::optional<BlockReads> TakeReads(std::uint32_t layer) {
    return std::exchange(reads_[layer], std::nullopt);
  }

  std::uint32_t count() const { return static_cast<std::uint32_t>(orders_.size()); }
  const RowOrder& order(std::uint32_t layer) const { return orders_[layer]; }
  ArrayEntry Entry(std::uint32_t layer) const;
  ArrayEntry SourceOf(std::uint32_t layer) const;
  std::uint64_t CacheChunks(std::uint32_t layer) const;

  BlockPlannerOptions Planner(std::uint32_t layer) const;
  std::uint64_t RowsOfBlock(std::uint32_t layer) const;
  std::uint64_t EdgesOfBlock(std::uint32_t layer) const;
  ChunkReaderOptions Reader(std::uint32_t layer) const;

 private:
  PassDrawOptions Draw(std::uint32_t layer) const;
  PassReads Reads(std::uint32_t layer) const;

  const GraphSnapshot& graph_;
  const Model& model_;
  const ArrayEntry features_;
  const LayerwiseOptions& options_;
  std::vector<RowOrder> orders_;
  std::vector<std::optional<BlockReads>> reads_;
  std::vector<std::uint32_t> degrees_;  // [rows]; none without edges
};

}  // namespace rhizome
