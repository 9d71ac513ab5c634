#include "index/check/verify_ends.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace rhizome {
inline namespace internal {
namespace {

std::string NameOfEnd(const GenerationInfo& info, TypeId type) {
  return type == kSeveralTypes ? "several types"
                               : fmt::format("the type '{}'", info.vertex_types[type]);
}

}  // namespace

bool ClaimsEnds(const GenerationInfo& info) {
  return std::ranges::any_of(info.edge_ends, [](const EdgeEnds& ends) {
    return ends.source != kSeveralTypes || ends.destination != kSeveralTypes;
  });
}

EndsOfEdges EndsIn(const Adjacency& adjacency, const VertexOrder& order,
                   const GenerationInfo& info) {
  std::vector<TypeId> vertex_type(adjacency.vertex_count());
  for (std::size_t v = 0; v < vertex_type.size(); ++v)
    vertex_type[v] = order.TypeOf(adjacency.RowOf(static_cast<LocalId>(v)));
  EndsOfEdges ends(info.edge_types.size());
  const bool out = adjacency.has(Direction::kOut);
  const Direction direction = out ? Direction::kOut : Direction::kIn;
  std::vector<LocalId> scratch;
  for (std::size_t v = 0; v < vertex_type.size(); ++v) {
    const auto local = static_cast<LocalId>(v);
    const auto list = adjacency.ReadList(local, direction, scratch);
    const std::uint64_t first = adjacency.Entries(local, direction).first;
    for (std::size_t i = 0; i < list.size();) {
      const TypeId type = adjacency.TypeOfEntry(local, direction, i);
      const auto run = adjacency.EntriesOfType(local, direction, type);
      for (const std::size_t end = run.first + run.count - first; i < end; ++i) {
        const TypeId other = vertex_type[list[i]];
        ends.Add(type, out ? vertex_type[v] : other, out ? other : vertex_type[v]);
      }
    }
  }
  return ends;
}

std::string WrongEnds(const GenerationInfo& info, const EndsOfEdges& real) {
  const std::vector<EdgeEnds> by_type = real.ByType();
  for (std::size_t type = 0; type < info.edge_ends.size(); ++type) {
    const EdgeEnds& claimed = info.edge_ends[type];
    if (!real.Contradict(static_cast<TypeId>(type), claimed)) continue;
    return fmt::format(
        "the sources of edge type '{}' have {} and its destinations {}, but it says {} and {}",
        info.edge_types[type], NameOfEnd(info, by_type[type].source),
        NameOfEnd(info, by_type[type].destination), NameOfEnd(info, claimed.source),
        NameOfEnd(info, claimed.destination));
  }
  return {};
}

}  // namespace internal
}  // namespace rhizome
