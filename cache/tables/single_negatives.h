#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cache/tables/negative_sources.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace internal {

/// Draws negatives one by one, for decoders that score each pair by itself: first the source of a
/// negative, by the shares of the mixture, then a vertex.
/// Threads: one at a time. Ownership: `vertices` must outlive it.
class SingleNegatives {
 public:
  SingleNegatives(NegativeVertices& vertices, NegativeMixture mixture)
      : vertices_(vertices), mixture_(std::move(mixture)) {}

  /// Appends `count` vertices of `type`. `group`: the partition of `resident`; `in_batch`: the ends
  /// of the batch's edges with that type. Errors: as NegativeVertices::Draw; kInvalidArgument,
  /// in-batch without ends.
  Status Draw(std::uint32_t group, TypeId type, std::uint64_t count,
              std::span<const VertexId> in_batch, CounterRandom& random,
              std::vector<VertexId>& out);

 private:
  const NegativeShare& PickSource(CounterRandom& random) const;

  NegativeVertices& vertices_;
  const NegativeMixture mixture_;
};

}  // namespace internal
}  // namespace rhizome
