#pragma once

#include <memory>
#include <span>
#include <vector>

#include "rhizome/index/adjacency.h"
#include "rhizome/index/graph.h"
#include "rhizome/index/neighbor_source.h"

namespace rhizome::inline internal {

/// The lists as Graph holds them in memory, compressed (or plain, partition by partition): single
/// entries are decoded where they stand, a list of which many are wanted as a whole.
/// Ownership: shares the generation with `graph`.
class CompressedNeighbors final : public NeighborSource {
 public:
  /// `direction` is kIn or kOut, and stored; the graph's lists are resident.
  CompressedNeighbors(const GraphSnapshot& graph, Direction direction);

  /// Errors: kCorruption, only if memory was overwritten: Graph::Open has decoded every list.
  Status LookUp(std::span<const EntryRef> entries, std::span<Row> rows) const override;

 private:
  Status LookUpList(std::span<const EntryRef> entries, std::span<Row> rows,
                    std::vector<LocalId>& scratch) const;

  Direction direction_;
  std::shared_ptr<const GraphParts> parts_;
  std::vector<const Adjacency*> partitions_;
};

/// What reads the lists of `graph` from memory, whatever their codec. Errors: kInvalidArgument, the
/// lists are on disk (DirectNeighbors reads them).
Result<std::shared_ptr<const NeighborSource>> ResidentNeighbors(const GraphSnapshot& graph,
                                                                Direction direction);

}  // namespace rhizome::inline internal
