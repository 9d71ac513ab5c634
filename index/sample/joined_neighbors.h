#pragma once

#include <array>
#include <memory>

#include "rhizome/index/graph.h"
#include "rhizome/index/neighbor_source.h"
#include "rhizome/index/walked_sides.h"

namespace rhizome::inline internal {

/// The source of a sampler that walks both directions of a graph that is not symmetric: it looks
/// entries of the out-lists up in one source, those of the in-lists in another.
class JoinedNeighbors final : public NeighborSource {
 public:
  JoinedNeighbors(const GraphSnapshot& graph, std::shared_ptr<const NeighborSource> out,
                  std::shared_ptr<const NeighborSource> in);

  /// Errors: those of the two sources.
  Status LookUp(std::span<const EntryRef> entries, std::span<Row> rows) const override;
  bool wants_whole_hops() const override;

 private:
  const WalkedSides sides_;
  const std::array<std::shared_ptr<const NeighborSource>, 2> sources_;
};

}  // namespace rhizome::inline internal
