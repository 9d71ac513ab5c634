#include "cache/ranges/pass_features.h"

#include <span>
#include <utility>
#include <vector>

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::uint64_t kEdgesAtOnce = std::uint64_t{1} << 20;
constexpr std::uint64_t kPlacesAtOnce = 4096;

/// Returns the next range of targets from `begin` whose lists are planned together; at least one
/// target.
Block NextPlaces(const BlockPlannerOptions& pass, std::uint64_t begin, std::uint64_t places) {
  const auto edges_at = [&](std::uint64_t place) {
    return EdgesOfRow(pass, pass.target_order == nullptr ? static_cast<Row>(place)
                                                         : pass.target_order->RowAt(place));
  };
  const std::uint64_t most = std::min(places, begin + kPlacesAtOnce);
  std::uint64_t end = begin + 1;
  for (std::uint64_t edges = edges_at(begin); end < most; ++end) {
    edges += edges_at(end);
    if (edges > kEdgesAtOnce) break;
  }
  return {.begin = static_cast<Row>(begin), .end = static_cast<Row>(end)};
}

}  // namespace

Result<RangeFeatures> FeaturesOfPass(const GraphSnapshot& graph, BlockPlannerOptions pass,
                                     std::uint64_t places, const RangeFeatureOptions& options,
                                     const JobControl& control) {
  pass.draw.weights = false;  // weights do not affect the lists
  RangeFeatures features(options);
  RHIZOME_ASSIGN_OR_RETURN(BlockPlanner planner, BlockPlanner::Create(graph, pass));
  std::vector<std::uint32_t> rows;
  for (std::uint64_t begin = 0; begin < places;) {
    RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
    const Block block = NextPlaces(pass, begin, places);
    RHIZOME_ASSIGN_OR_RETURN(const BlockLists lists, planner.Plan(block));
    rows.clear();
    for (const std::uint32_t number : lists.neighbors) rows.push_back(lists.rows[number]);
    const std::span<const std::uint32_t> all(rows);
    for (std::size_t t = 0; t + 1 < lists.offsets.size(); ++t)
      features.Add(all.subspan(lists.offsets[t], lists.offsets[t + 1] - lists.offsets[t]));
    begin = static_cast<std::uint64_t>(block.end);
  }
  return features;
}

}  // namespace internal
}  // namespace rhizome
