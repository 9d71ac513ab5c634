#pragma once

#include <memory>
#include <span>
#include <vector>

#include "index/topology/adjacency.h"
#include "rhizome/graph.h"
#include "rhizome/sampler.h"

namespace rhizome {
inline namespace internal {

/// The plain lists of a generation, as Graph holds them in memory.
/// Ownership: shares the generation with `graph`.
class PlainNeighbors final : public NeighborSource {
 public:
  /// `direction` is kIn or kOut, and stored.
  PlainNeighbors(const GraphSnapshot& graph, Direction direction);

  Status LookUp(std::span<const EntryRef> entries, std::span<Row> rows) const override;

 private:
  std::shared_ptr<const GraphParts> parts_;
  std::vector<const Adjacency*> partitions_;
  std::vector<const LocalId*> neighbors_;  // by partition
};

}  // namespace internal
}  // namespace rhizome
