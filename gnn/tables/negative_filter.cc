#include "gnn/tables/negative_filter.h"

#include <algorithm>
#include <tuple>

#include "index/delta/graph_parts.h"
#include "rhizome/graph_types.h"
#include "storage/base/mutant.h"

// MaskSide: (1) divides the edges by the type of their open end; (2) reads the known ends of each
// query, and finds them among the sorted negatives (FindShared); (3) sorts what was found by edge.

namespace rhizome {
inline namespace internal {
namespace {

VertexId GivenEnd(const VertexPair& edge, std::uint32_t side) {
  return side == 1 ? edge.src : edge.dst;
}
VertexId ReplacedEnd(const VertexPair& edge, std::uint32_t side) {
  return side == 1 ? edge.dst : edge.src;
}

/// Negatives in the order of their rows, with their positions.
using SortedNegatives = std::vector<std::pair<Row, std::uint32_t>>;

/// Appends the positions of negatives that are among `rows`.
void AppendPositions(const SortedNegatives& negatives, std::span<const Row> rows,
                     std::vector<std::uint32_t>& positions) {
  for (const Row row : rows) {
    auto at = std::lower_bound(negatives.begin(), negatives.end(), std::pair(row, 0U));
    for (; at != negatives.end() && at->first == row; ++at) positions.push_back(at->second);
  }
}

}  // namespace

Result<NegativeFilter> NegativeFilter::Of(std::shared_ptr<const GraphSnapshot> graph,
                                          std::span<const VertexPair> more) {
  RHIZOME_ASSIGN_OR_RETURN(KnownEdges known, KnownEdges::Of(*graph));
  if (!RHIZOME_MUTANT("negatives are not filtered by the validation set"))
    for (const VertexPair& edge : more) known.Add(edge);
  known.Sort();
  NegativeFilter filter(std::move(graph), std::move(known));
  RHIZOME_RETURN_IF_ERROR(filter.MeasureLists());
  return filter;
}

Status NegativeFilter::MeasureLists() {
  std::uint64_t longest = 0;
  for (VertexId vertex = 0; static_cast<std::uint64_t>(vertex) < graph_->vertex_count(); ++vertex) {
    if (graph_->IsDeleted(vertex)) continue;
    for (const Direction direction : {Direction::kOut, Direction::kIn}) {
      RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t degree, graph_->Degree(vertex, direction));
      longest = std::max(longest, degree);
    }
  }
  // A list of neighbours, and the rows of these.
  list_bytes_ = longest * (sizeof(Neighbor) + 2 * sizeof(Row));
  return Status::Ok();
}

Status NegativeFilter::Mask(const LinkBatch& batch, std::uint64_t each, NegativeMask& mask) const {
  for (const std::uint32_t side : {0U, 1U})
    RHIZOME_RETURN_IF_ERROR(MaskSide(batch, side, each, mask[side]));
  return Status::Ok();
}

Status NegativeFilter::MaskSide(const LinkBatch& batch, std::uint32_t side, std::uint64_t each,
                                MaskedNegatives& masked) const {
  Found found;
  const std::vector<TypedNegatives>& negatives = batch.negatives[side];
  for (const TypedNegatives& typed : negatives) {
    std::vector<std::uint32_t> edges;
    for (std::uint32_t e = 0; e < batch.edges.size(); ++e) {
      TypeId type = typed.type;
      if (negatives.size() > 1) {
        RHIZOME_ASSIGN_OR_RETURN(type, graph_->TypeOf(ReplacedEnd(batch.edges[e], side)));
      }
      if (type == typed.type) edges.push_back(e);
    }
    if (each == 0) {
      RHIZOME_RETURN_IF_ERROR(FindShared(batch, side, edges, typed.vertices, found));
      continue;
    }
    std::vector<VertexId> own(each);
    for (std::size_t i = 0; i < edges.size(); ++i) {
      for (std::uint64_t k = 0; k < each; ++k)
        own[k] = typed.vertices[(i * each + k) % typed.vertices.size()];
      RHIZOME_RETURN_IF_ERROR(FindShared(batch, side, {edges[i]}, own, found));
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  masked.positions.clear();
  masked.ends.assign(batch.edges.size(), 0);
  for (const auto& [edge, position] : found) {
    masked.positions.push_back(position);
    ++masked.ends[edge];
  }
  std::uint64_t end = 0;
  for (std::uint64_t& of_edge : masked.ends) of_edge = end += of_edge;
  return Status::Ok();
}

/// Finds the known ends of edges among negatives that all of these edges have.
Status NegativeFilter::FindShared(const LinkBatch& batch, std::uint32_t side,
                                  std::vector<std::uint32_t> edges,
                                  std::span<const VertexId> negatives, Found& found) const {
  const auto parts = graph_->parts();
  SortedNegatives sorted;
  for (std::uint32_t k = 0; k < negatives.size(); ++k)
    sorted.emplace_back(parts->RowOf(negatives[k]), k);
  std::sort(sorted.begin(), sorted.end());
  // Equal queries are adjacent, so that each list is read once.
  const auto query_of = [&](std::uint32_t e) {
    return std::tuple(GivenEnd(batch.edges[e], side), batch.edges[e].type);
  };
  std::sort(edges.begin(), edges.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::tuple(query_of(a), a) < std::tuple(query_of(b), b);
  });
  const EdgeEnd open = side == 1 ? EdgeEnd::kDst : EdgeEnd::kSrc;
  std::vector<Row> rows;
  std::vector<std::uint32_t> positions;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    if (i == 0 || query_of(edges[i]) != query_of(edges[i - 1])) {
      rows.clear();
      positions.clear();
      const auto [given, type] = query_of(edges[i]);
      RHIZOME_RETURN_IF_ERROR(known_.AppendEnds(given, type, open, rows));
      AppendPositions(sorted, rows, positions);
    }
    for (const std::uint32_t position : positions) found.emplace_back(edges[i], position);
  }
  return Status::Ok();
}

}  // namespace internal
}  // namespace rhizome
