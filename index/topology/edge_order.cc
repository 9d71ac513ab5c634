#include "index/topology/edge_order.h"

#include <algorithm>
#include <numeric>

namespace rhizome {
inline namespace internal {

std::vector<std::uint64_t> OrderOfEdges(const EdgesOfPartition& edges, const VertexOrder& order,
                                        const PartitionContext& context) {
  // Local ids number owned vertices first and then mirrors, each group by row; lists are in that
  // order.
  constexpr std::uint64_t kMirror = std::uint64_t{1} << 63;
  const auto local = [&](Row row) {
    const auto key = static_cast<std::uint64_t>(row);
    return order.OwnerOf(row) == context.partition ? key : key | kMirror;
  };
  // If only in-lists are stored, edges are numbered by them.
  const bool by_dst = !context.symmetric && context.directions == Direction::kIn;
  const std::vector<Row>& from = by_dst ? edges.dst : edges.src;
  const std::vector<Row>& to = by_dst ? edges.src : edges.dst;
  struct Key {
    std::uint64_t from;
    std::uint64_t place;
  };
  std::vector<Key> keys(from.size());
  for (std::size_t e = 0; e < from.size(); ++e) keys[e] = {local(from[e]), e};
  std::sort(keys.begin(), keys.end(), [&](const Key& a, const Key& b) {
    if (a.from != b.from) return a.from < b.from;
    if (!edges.type.empty() && edges.type[a.place] != edges.type[b.place])
      return edges.type[a.place] < edges.type[b.place];
    const std::uint64_t to_a = local(to[a.place]);
    const std::uint64_t to_b = local(to[b.place]);
    if (to_a != to_b) return to_a < to_b;
    if (!edges.weight.empty() && edges.weight[a.place] != edges.weight[b.place])
      return edges.weight[a.place] < edges.weight[b.place];
    return a.place < b.place;
  });
  std::vector<std::uint64_t> places(keys.size());
  std::transform(keys.begin(), keys.end(), places.begin(),
                 [](const Key& key) { return key.place; });
  return places;
}

}  // namespace internal
}  // namespace rhizome
