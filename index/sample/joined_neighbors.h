#pragma once

#include <array>
#include <memory>

#include "index/sample/sampled_directions.h"
#include "rhizome/graph.h"
#include "rhizome/sampler.h"

namespace rhizome {
inline namespace internal {

/// The source for a sampler that traverses both directions of a graph that is not symmetric: it
/// reads entries of out-lists from one source and entries of in-lists from another.
class JoinedNeighbors final : public NeighborSource {
 public:
  JoinedNeighbors(const GraphSnapshot& graph, std::shared_ptr<const NeighborSource> out,
                  std::shared_ptr<const NeighborSource> in);

  /// Errors: any error of the two sources.
  Status LookUp(std::span<const EntryRef> entries, std::span<Row> rows) const override;
  bool wants_whole_hops() const override;

 private:
  const WalkedSides sides_;
  const std::array<std::shared_ptr<const NeighborSource>, 2> sources_;
};

}  // namespace internal
}  // namespace rhizome
