#pragma once

#include <memory>
#include <span>
#include <vector>

#include "index/topology/adjacency.h"
#include "rhizome/graph.h"
#include "rhizome/sampler.h"

namespace rhizome {
inline namespace internal {

/// Reads lists that Graph holds in memory, where each partition may be compressed or plain. It
/// decodes single entries in place, and a whole list if many of its entries are requested.
/// Ownership: shares the generation with `graph`.
class CompressedNeighbors final : public NeighborSource {
 public:
  /// `direction` is kIn or kOut, and stored; the graph's lists must be resident.
  CompressedNeighbors(const GraphSnapshot& graph, Direction direction);

  /// Errors: kCorruption, only if memory was overwritten, because Graph::Open has decoded every
  /// list.
  Status LookUp(std::span<const EntryRef> entries, std::span<Row> rows) const override;

 private:
  Status LookUpList(std::span<const EntryRef> entries, std::span<Row> rows,
                    std::vector<LocalId>& scratch) const;

  Direction direction_;
  std::shared_ptr<const GraphParts> parts_;
  std::vector<const Adjacency*> partitions_;
};

/// Returns the reader of the lists that `graph` holds in memory, in either codec.
/// Errors: kInvalidArgument, the lists are on disk (DirectNeighbors reads them).
Result<std::shared_ptr<const NeighborSource>> ResidentNeighbors(const GraphSnapshot& graph,
                                                                Direction direction);

}  // namespace internal
}  // namespace rhizome
