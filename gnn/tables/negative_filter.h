#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "cache/tables/link_batches.h"
#include "gnn/links/known_edges.h"
#include "rhizome/graph.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace internal {

/// The negatives of one side that do not count, for each edge of a batch.
struct MaskedNegatives {
  std::vector<std::uint32_t> positions;  ///< among the negatives of an edge; may be repeated
  std::vector<std::uint64_t> ends;       ///< by edge: the end of its part of `positions`

  std::span<const std::uint32_t> Of(std::size_t edge) const {
    const std::uint64_t first = edge == 0 ? 0 : ends[edge - 1];
    return std::span(positions).subspan(first, ends[edge] - first);
  }
};

/// By side, as LinkBatch::negatives.
using NegativeMask = std::array<MaskedNegatives, 2>;

/// Finds negatives that are known edges: of the graph, or given ones.
/// Memory: see bytes(); and 4 bytes for each negative of an edge that is known, in one batch.
/// Threads: const functions from any number of threads.
class NegativeFilter {
 public:
  /// `more`: known edges that the graph does not have. Errors: kInvalidArgument, the store does not
  /// keep the lists of both directions.
  static Result<NegativeFilter> Of(std::shared_ptr<const GraphSnapshot> graph,
                                   std::span<const VertexPair> more);

  /// Sets `mask` to the known edges among the negatives of a batch. `each` 0: the edges whose
  /// replaced end has the same type share its negatives, and positions are among these. Otherwise
  /// the i-th of these edges has the negatives [i * each, (i + 1) * each), which begin again after
  /// the last; positions are below `each`. Errors: as GraphSnapshot::NeighborsOfType.
  Status Mask(const LinkBatch& batch, std::uint64_t each, NegativeMask& mask) const;

  /// Memory of the given edges, and of the longest list of neighbours, which is copied.
  std::uint64_t bytes() const { return known_.bytes() + list_bytes_; }

 private:
  using Found = std::vector<std::pair<std::uint32_t, std::uint32_t>>;  // edge, position
  NegativeFilter(std::shared_ptr<const GraphSnapshot> graph, KnownEdges known)
      : graph_(std::move(graph)), known_(std::move(known)) {}
  Status MeasureLists();
  Status MaskSide(const LinkBatch& batch, std::uint32_t side, std::uint64_t each,
                  MaskedNegatives& masked) const;
  Status FindShared(const LinkBatch& batch, std::uint32_t side, std::vector<std::uint32_t> edges,
                    std::span<const VertexId> negatives, Found& found) const;

  std::shared_ptr<const GraphSnapshot> graph_;
  KnownEdges known_;
  std::uint64_t list_bytes_ = 0;
};

}  // namespace internal
}  // namespace rhizome
