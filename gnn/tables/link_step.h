#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "cache/tables/link_batches.h"
#include "gnn/links/decoder.h"
#include "gnn/tables/negative_filter.h"
#include "rhizome/link_training.h"

namespace rhizome {
inline namespace internal {

/// Gradients of a batch: of its rows, and of the relations of its edges.
struct LinkGradients {
  double loss = 0;                           ///< sum over the queries, two for each edge
  std::vector<float> rows;                   ///< [batch.rows, dim]
  std::vector<std::uint32_t> relation_rows;  ///< ascending
  std::vector<float> relations;              ///< [relation_rows, relation_width]
};

/// The loss of a batch of edges and its gradients, in closed form. Each edge is two queries: its
/// target is open, then its source. A query is scored with its true end and with the negatives of
/// that end's side and type; a negative that equals the true end does not count. The gradient is of
/// the mean over the queries of (loss + n3 * sum of the cubes of the edge's three rows).
///
/// With a decoder of dot products, a block of queries costs three products of matrices: scores,
/// gradients of the queries, and gradients of the negatives. The bits do not depend on the threads.
/// Threads: one call at a time; uses the threads of the current TaskArena.
class LinkStep {
 public:
  struct Options {
    LinkLoss loss = LinkLoss::kSoftmax;
    float margin = 0;
    float n3 = 0;
    bool reciprocal = false;
    bool complex_rows = false;  ///< rows are complex numbers, whose moduli n3 penalises
    std::size_t relations = 1;  ///< without inverse ones
    std::size_t relation_width = 0;
    std::size_t relation_stride = 0;  ///< floats from the row of a relation to the next
  };

  /// Facts about vertices: the row in the table, and the type, which is needed only if a side of a
  /// batch has several types.
  struct Vertices {
    std::function<Row(VertexId)> row_of;
    std::function<TypeId(VertexId)> type_of;
  };

  /// Ownership: borrows the decoder.
  LinkStep(const QueryDecoder& decoder, const Options& options, Vertices vertices);

  /// Memory of a call, in bytes, for the largest batch.
  static std::uint64_t Bytes(const LinkBatchOptions& batch, std::uint64_t types, std::size_t dim);

  /// `values`: the rows of batch.rows, [rows, dim]. `relations`: rows of relation_width floats,
  /// relation_stride apart, for each relation, or twice as many if reciprocal. `mask`: more
  /// negatives that do not count; null: none.
  void Compute(const LinkBatch& batch, std::span<const float> values,
               std::span<const float> relations, LinkGradients& gradients,
               const NegativeMask* mask = nullptr);

 private:
  struct Side;
  struct Group;
  void ComputeSide(Side& side);
  void ComputeGroup(Side& side, const Group& group);
  void ScoreTile(Side& side, const Group& group, std::size_t first, std::size_t count);
  void AddNegatives(const Side& side, const Group& group, std::size_t first, std::size_t end);
  void AddPenalty(Side& side, std::size_t edge);
  QueryRows QueryOf(const Side& side, std::size_t edge) const;
  std::uint32_t RelationOf(const Side& side, std::size_t edge) const;
  std::uint32_t PlaceOf(const LinkBatch& batch, VertexId vertex) const {
    return batch.LocalOf(vertices_.row_of(vertex));
  }

  const QueryDecoder& decoder_;
  const Options options_;
  const Vertices vertices_;
  // Reused memory: of a side's pairs [pairs, dim], and of its group.
  std::vector<float> pairs_;
  std::vector<std::uint32_t> row_of_pair_;
  std::vector<float> relation_pairs_;
  std::vector<std::uint32_t> relation_of_pair_;
  std::vector<float> queries_;       // [queries, dim]
  std::vector<float> derivatives_;   // [negatives, queries]
  std::vector<float> query_panels_;  // the queries of a group as weights: [dim panels, queries]
  std::vector<double> losses_;       // by edge
};

}  // namespace internal
}  // namespace rhizome
