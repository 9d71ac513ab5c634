#include "index/sample/sampler_plan.h"

#include <fmt/format.h>

#include "index/topology/adjacency.h"

namespace rhizome {
inline namespace internal {

namespace {

Status CheckFanout(std::int64_t fanout) {
  if (fanout >= kAllNeighbors && fanout <= kMaxFanout) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("fanout {}: give a number of neighbours up to {}, or {} for all of them", fanout,
                  kMaxFanout, kAllNeighbors));
}

Status CheckCombination(const GenerationInfo& info, const SamplerOptions& options) {
  if (options.threads == 0) return Status::InvalidArgument("the sampler needs at least one thread");
  if (options.weighted && !info.weighted) {
    return Status::InvalidArgument(
        "weighted sampling needs edge weights, and the graph has none; ingest it with a weight "
        "column");
  }
  if (options.times != nullptr && !options.disjoint) {
    return Status::InvalidArgument(
        "temporal sampling needs disjoint subgraphs, because each seed has its own time");
  }
  if (options.induced && (options.disjoint || options.frontier == Frontier::kAgain)) {
    return Status::InvalidArgument(
        "an induced subgraph belongs to all seeds, and expands every vertex once; sample it "
        "without disjoint subgraphs and without expanding vertices in every hop");
  }
  if (options.temporal_pick == TemporalPick::kLast &&
      (options.times == nullptr || options.weighted || options.replace)) {
    return Status::InvalidArgument(
        "sampling the latest edges needs times, and excludes weights and replacement");
  }
  return Status::Ok();
}

Status CheckEdgeIds(const GraphSnapshot& graph, const SamplerOptions& options) {
  if (!options.edge_ids) return Status::Ok();
  // Only in-lists can lack edge ids.
  const Direction direction =
      options.direction == Direction::kOut ? Direction::kOut : Direction::kIn;
  for (std::uint32_t p = 0; p < graph.partition_count(); ++p) {
    if (graph.partition(p).has_edge_ids(direction)) continue;
    return Status::InvalidArgument(
        "the store does not keep the edge ids of its in-edges, because it has neither weights nor "
        "edge attributes; sample along out-edges, or ingest it with an edge attribute or with "
        "`directions=in`");
  }
  return Status::Ok();
}

Result<SamplingPlan> PlanTyped(std::size_t types, const SamplerOptions& options) {
  if (!options.fanouts.empty() || !options.meta_path.empty()) {
    return Fail(Status::InvalidArgument(
        "fanouts by edge type exclude other fanouts and a meta-path; give only one of them"));
  }
  SamplingPlan plan;
  for (const std::vector<std::int64_t>& fanouts : options.typed_fanouts) {
    if (fanouts.size() != types) {
      return Fail(Status::InvalidArgument(
          fmt::format("hop {} has {} fanouts, but the graph has {} edge types", plan.size(),
                      fanouts.size(), types)));
    }
    std::vector<ListRequest>& requests = plan.emplace_back();
    for (std::size_t type = 0; type < types; ++type) {
      RHIZOME_RETURN_IF_ERROR(CheckFanout(fanouts[type]));
      if (fanouts[type] == 0) continue;
      requests.push_back({.type = static_cast<std::int32_t>(type), .fanout = fanouts[type]});
    }
  }
  return plan;
}

}  // namespace

Status CheckDirection(const GenerationInfo& info, Direction direction) {
  const auto wanted = static_cast<unsigned>(direction);
  const auto kept = static_cast<unsigned>(info.directions);
  if (info.symmetric || (kept & wanted) == wanted) return Status::Ok();
  const bool in_is_kept = (kept & static_cast<unsigned>(Direction::kIn)) != 0;
  const std::string_view missing = in_is_kept ? "out" : "in";
  if (direction == Direction::kBoth) {
    return Status::InvalidArgument(
        fmt::format("the store keeps no {}-edges, so both directions cannot be followed; ingest it "
                    "with `directions=both`, or with `undirected`",
                    missing));
  }
  return Status::InvalidArgument(fmt::format(
      "the store keeps no {0}-edges; ingest it with `directions={0}` or `directions=both`",
      missing));
}

Result<SamplingPlan> PlanSampling(const GraphSnapshot& graph, const SamplerOptions& options) {
  const GenerationInfo& info = graph.info();
  RHIZOME_RETURN_IF_ERROR(CheckDirection(info, options.direction));
  RHIZOME_RETURN_IF_ERROR(CheckCombination(info, options));
  RHIZOME_RETURN_IF_ERROR(CheckEdgeIds(graph, options));
  const std::size_t types = graph.edge_types().size();
  if (!options.typed_fanouts.empty()) return PlanTyped(types, options);
  const std::vector<TypeId>& path = options.meta_path;
  if (!path.empty() && path.size() != options.fanouts.size()) {
    return Fail(Status::InvalidArgument(
        fmt::format("a meta-path of {} edge types for {} hops; give one type and one fanout for "
                    "each hop",
                    path.size(), options.fanouts.size())));
  }
  SamplingPlan plan;
  for (std::size_t h = 0; h < options.fanouts.size(); ++h) {
    RHIZOME_RETURN_IF_ERROR(CheckFanout(options.fanouts[h]));
    ListRequest request{.fanout = options.fanouts[h]};
    if (!path.empty()) {
      if (path[h] >= types) {
        return Fail(Status::InvalidArgument(fmt::format(
            "hop {} of the meta-path has edge type {}, but the graph has {}", h, path[h], types)));
      }
      request.type = path[h];
    }
    plan.push_back({request});
  }
  return plan;
}

}  // namespace internal
}  // namespace rhizome
