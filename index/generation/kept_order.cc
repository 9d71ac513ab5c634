#include "index/generation/kept_order.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "index/topology/degrees.h"

namespace rhizome {
inline namespace internal {

namespace {

using Group = std::pair<PartitionId, TypeId>;

Group GroupOf(const ReorderInput& input, VertexId vertex) {
  const auto v = static_cast<std::size_t>(vertex);
  return {input.owner[v], input.type.empty() ? TypeId{0} : input.type[v]};
}

std::uint64_t DegreeOf(const ReorderInput& input, VertexId vertex) {
  return (*input.degree)[static_cast<std::uint64_t>(vertex)];
}

/// Sums, over all edges, the relative position of the neighbour in its group, from 0 to 1.
double SumOfPlaces(const ReorderInput& input, const VertexColumn& order) {
  double sum = 0;
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    const Group group = GroupOf(input, order[begin]);
    double of_group = 0;
    for (end = begin; end < order.size() && GroupOf(input, order[end]) == group; ++end)
      of_group +=
          static_cast<double>(end - begin) * static_cast<double>(DegreeOf(input, order[end]));
    sum += of_group / static_cast<double>(end - begin);
  }
  return sum;
}

template <typename Vertex>
VertexColumn Keep(const ReorderInput& input, const VertexOrder& before) {
  const auto by_group = [&](VertexId a, VertexId b) {
    return GroupOf(input, a) < GroupOf(input, b);
  };
  std::vector<Vertex> stay;
  std::vector<Vertex> come;
  stay.reserve(input.owner.size());
  for (Row row = 0; row < static_cast<Row>(before.size()); ++row) {
    const VertexId vertex = before.VertexAt(row);
    const bool same_owner = before.OwnerOf(row) == input.owner[static_cast<std::size_t>(vertex)];
    (same_owner ? stay : come).push_back(static_cast<Vertex>(vertex));
  }
  for (auto vertex = static_cast<VertexId>(before.size());
       vertex < static_cast<VertexId>(input.owner.size()); ++vertex)
    come.push_back(static_cast<Vertex>(vertex));
  if (!before.grouped()) std::stable_sort(stay.begin(), stay.end(), by_group);
  std::sort(come.begin(), come.end(), [&](VertexId a, VertexId b) {
    return std::make_tuple(GroupOf(input, a), ~DegreeOf(input, a), a) <
           std::make_tuple(GroupOf(input, b), ~DegreeOf(input, b), b);
  });
  // The degrees of kept vertices need not descend any more. A new vertex is placed before the first
  // kept vertex with fewer edges.
  std::vector<Vertex> order;
  order.reserve(input.owner.size());
  auto next = come.begin();
  for (const Vertex vertex : stay) {
    const auto place = std::make_pair(GroupOf(input, vertex), ~DegreeOf(input, vertex));
    for (; next != come.end() &&
           std::make_pair(GroupOf(input, *next), ~DegreeOf(input, *next)) < place;
         ++next)
      order.push_back(*next);
    order.push_back(vertex);
  }
  order.insert(order.end(), next, come.end());
  return VertexColumn(std::move(order));
}

}  // namespace

VertexColumn KeepOrder(const ReorderInput& input, const VertexOrder& before) {
  return VertexColumn::FitsNarrow(input.owner.size()) ? Keep<std::uint32_t>(input, before)
                                                      : Keep<std::uint64_t>(input, before);
}

double OrderDrift(const ReorderInput& input, const VertexColumn& order,
                  const VertexColumn& sorted) {
  double degrees = 0;
  for (std::uint64_t v = 0; v < input.degree->size(); ++v)
    degrees += static_cast<double>((*input.degree)[v]);
  if (degrees == 0) return 0;
  return (SumOfPlaces(input, order) - SumOfPlaces(input, sorted)) / degrees;
}

}  // namespace internal
}  // namespace rhizome
