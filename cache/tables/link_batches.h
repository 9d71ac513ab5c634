#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "cache/tables/epoch_order.h"
#include "cache/tables/graph_edges.h"
#include "cache/tables/negative_pools.h"
#include "cache/tables/partition_tour.h"
#include "cache/tables/single_negatives.h"
#include "cache/tables/table_order.h"
#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/policy.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

struct LinkBatchOptions {
  std::uint64_t batch_size = 1024;  ///< edges
  std::uint64_t seed = 0;
  std::uint64_t negatives = 512;  ///< for each batch and side; 0: none

  /// `negatives` are for each edge and side (SingleNegatives). An edge has the negatives at its
  /// position among the edges whose replaced end has the same type.
  bool per_edge = false;
  NegativeMixture mixture = NegativeOptions().mixture;
};

/// Negatives for the edges whose replaced end has one vertex type.
struct TypedNegatives {
  TypeId type = 0;
  std::vector<VertexId> vertices;
};

/// A batch of training on edges.
struct LinkBatch {
  BatchPlace place;
  std::vector<VertexPair> edges;  ///< may be empty, if the delta deleted all of them

  /// By side (0: sources are replaced, 1: targets), then by the vertex types of that side's ends,
  /// ascending. Empty without negatives.
  std::array<std::vector<TypedNegatives>, 2> negatives;

  /// The rows of a table (TableOrder) of all ends and negatives, distinct and ascending: the keys
  /// of the batch's step for a TableCache.
  std::vector<CacheKey> rows;

  /// Returns the position of a row in `rows`, which must be there.
  std::uint32_t LocalOf(Row row) const;
};

/// The batches of training on the edges of a graph, in the order of its epochs (EpochOrder over a
/// PartitionTour), with their negatives and the rows of a table. A batch depends only on the graph,
/// the options, its epoch and its number.
/// Threads: one at a time.
class LinkBatches {
 public:
  /// Errors: as GraphEdges::Of; kOutOfMemory.
  static Result<std::unique_ptr<LinkBatches>> Of(std::shared_ptr<const GraphSnapshot> graph,
                                                 const LinkBatchOptions& options);

  /// Returns the number of batches of an epoch; the same in each.
  std::uint64_t batches() const { return batches_; }

  /// Returns the number of vertices of a type that are not deleted.
  std::uint64_t vertices_of(TypeId type) const { return vertices_.count(type); }

  /// Returns an upper bound on the rows of a batch.
  std::uint64_t max_rows() const;

  /// Sets `batch` to batch `number` of an epoch. Errors: as NegativePools::Draw and
  /// GraphEdges::Read.
  Status Make(std::uint64_t epoch, std::uint64_t number, LinkBatch& batch);

  const TableOrder& table_order() const { return order_; }

 private:
  LinkBatches(GraphEdges edges, NegativeVertices vertices, PartitionTour tour, TableOrder order,
              const LinkBatchOptions& options);
  void SetEpoch(std::uint64_t epoch);
  Status DrawNegatives(std::uint32_t side, LinkBatch& batch);
  void CollectRows(LinkBatch& batch) const;

  const LinkBatchOptions options_;
  GraphEdges edges_;
  NegativeVertices vertices_;
  const PartitionTour tour_;
  const TableOrder order_;
  NegativePools pools_;
  SingleNegatives single_;
  const std::size_t vertex_types_;
  std::uint64_t batches_ = 0;
  std::uint64_t epoch_ = 0;
  std::unique_ptr<EpochOrder> epoch_order_;  // of epoch_
  std::vector<std::uint64_t> positions_;
  std::vector<VertexId> ends_;
};

}  // namespace internal
}  // namespace rhizome
