#include "gnn/ops/typed_graph.h"

#include "gnn/ops/group_rows.h"

namespace rhizome {
inline namespace internal {

std::shared_ptr<const TypedGraph> MakeTypedGraph(const GroupedLists& groups, const CsrView& lists,
                                                 std::size_t sources, std::span<const TypeId> types,
                                                 const TypeCounts& counts) {
  auto made = std::make_shared<TypedGraph>();
  const std::vector<TypeId> same(types.empty() ? sources : 0, 0);
  const std::span<const TypeId> of_rows = types.empty() ? std::span(same) : types.first(sources);
  made->sources = RowsByClass::Of(of_rows, counts.vertex_types);
  made->targets = RowsByClass::Of(of_rows.first(groups.targets()), counts.vertex_types);
  made->groups = RowsByClass::Of(groups.relation, counts.relations);

  std::vector<std::uint32_t> position(sources);
  for (std::size_t i = 0; i < sources; ++i)
    position[made->sources.rows[i]] = static_cast<std::uint32_t>(i);
  made->places.reserve(lists.neighbors.size());
  for (const std::uint32_t row : lists.neighbors) made->places.push_back(position[row]);
  made->edges = AggregateLists({.offsets = lists.offsets, .neighbors = made->places},
                               static_cast<std::int64_t>(sources));

  made->target_of_group = TargetOfGroups(groups);
  made->of_targets = {.row = made->target_of_group};
  made->groups_of_targets = {.offsets = groups.group_begin, .neighbors = {}};
  return made;
}

}  // namespace internal
}  // namespace rhizome
