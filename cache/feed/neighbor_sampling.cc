#include "rhizome/neighbor_sampling.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "storage/array/type_names.h"

namespace rhizome {
namespace {

std::string DescribeFanouts(const TypedFanouts& of_type) {
  return fmt::format("{}:{}", of_type.type, fmt::join(of_type.fanouts, ","));
}

}  // namespace

std::size_t HopsOf(const NeighborSampling& sampling) {
  if (!sampling.typed_fanouts.empty()) return sampling.typed_fanouts.front().fanouts.size();
  return sampling.meta_path.size();
}

Result<TypeId> FindEdgeType(const GraphSnapshot& graph, std::string_view name) {
  const std::vector<std::string> names = graph.edge_types();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<TypeId>(found - names.begin());
  return Fail(Status::NotFound(
      fmt::format("there is no edge type '{}'; the graph has {}", name, ListOfNames(names))));
}

std::string DescribeSampling(const NeighborSampling& sampling) {
  std::vector<std::string> parts;
  if (sampling.direction == Direction::kOut) parts.emplace_back("out-edges");
  if (sampling.direction == Direction::kBoth) parts.emplace_back("out-edges and in-edges");
  if (sampling.weighted) parts.emplace_back("by weight");
  std::vector<std::string> types;
  for (const TypedFanouts& of_type : sampling.typed_fanouts)
    types.push_back(DescribeFanouts(of_type));
  std::sort(types.begin(), types.end());
  if (!types.empty()) parts.push_back(fmt::format("by type {}", fmt::join(types, ";")));
  if (!sampling.meta_path.empty())
    parts.push_back(fmt::format("along {}", fmt::join(sampling.meta_path, ",")));
  if (!sampling.time_attribute.empty()) {
    parts.push_back(fmt::format("edges whose {} is not after the seed's {}",
                                sampling.time_attribute, sampling.seed_times));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace rhizome
