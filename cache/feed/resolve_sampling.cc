#include "cache/feed/resolve_sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "cache/feed/row_degrees.h"
#include "index/graph/delta_rows.h"
#include "index/sample/sampler_plan.h"
#include "rhizome/chunk_array.h"
#include "rhizome/sampler.h"
#include "storage/array/array_facts.h"
#include "storage/base/mutant.h"

namespace rhizome {
inline namespace internal {
namespace {

using FanoutsByType = std::vector<std::vector<std::int64_t>>;  // [hops][edge types]

Result<FanoutsByType> ResolveTyped(const std::vector<TypedFanouts>& given,
                                   const GraphSnapshot& graph) {
  const std::size_t hops = given.front().fanouts.size();
  const std::size_t types = graph.edge_types().size();
  FanoutsByType fanouts(hops, std::vector<std::int64_t>(types, 0));
  std::vector<bool> named(types, false);
  const TypedFanouts* others = nullptr;
  const auto twice = [](const std::string& type) {
    return Fail(Status::InvalidArgument(
        fmt::format("fanouts by edge type name '{}' twice; name each type once", type)));
  };
  for (const TypedFanouts& of_type : given) {
    if (of_type.fanouts.size() != hops) {
      return Fail(Status::InvalidArgument(fmt::format(
          "fanouts by edge type have {} hops for '{}' but {} for '{}'; give equally many for each",
          hops, given.front().type, of_type.fanouts.size(), of_type.type)));
    }
    if (of_type.type == kOtherTypes) {
      if (std::exchange(others, &of_type) != nullptr) return twice(of_type.type);
      continue;
    }
    RHIZOME_ASSIGN_OR_RETURN(const TypeId type, FindEdgeType(graph, of_type.type));
    if (named[type]) return twice(of_type.type);
    named[type] = true;
    for (std::size_t hop = 0; hop < hops; ++hop) fanouts[hop][type] = of_type.fanouts[hop];
  }
  for (std::size_t type = 0; others != nullptr && type < types; ++type) {
    for (std::size_t hop = 0; !named[type] && hop < hops; ++hop)
      fanouts[hop][type] = others->fanouts[hop];
  }
  return fanouts;
}

/// Converts a meta-path to fanouts by type, which draw the same edges.
Result<FanoutsByType> ResolveMetaPath(const std::vector<std::string>& path,
                                      const std::vector<std::int64_t>& fanouts,
                                      const GraphSnapshot& graph) {
  if (path.size() != fanouts.size()) {
    return Fail(Status::InvalidArgument(
        fmt::format("a meta-path of {} edge types for {} hops; give one type for each hop",
                    path.size(), fanouts.size())));
  }
  FanoutsByType by_type(path.size(), std::vector<std::int64_t>(graph.edge_types().size(), 0));
  for (std::size_t hop = 0; hop < path.size(); ++hop) {
    RHIZOME_ASSIGN_OR_RETURN(const TypeId type, FindEdgeType(graph, path[hop]));
    by_type[hop][type] = fanouts[hop];
  }
  return by_type;
}

Status AddTimes(const NeighborSampling& sampling, const GraphSnapshot& graph,
                MinibatchSamplerOptions& options) {
  if (sampling.time_attribute.empty() && sampling.seed_times.empty()) return Status::Ok();
  if (sampling.seed_times.empty()) {
    return Status::InvalidArgument(
        fmt::format("times of edges (attribute '{}') need a time for each seed; give an array of "
                    "times of vertices by `seed_times`, int64 with one column",
                    sampling.time_attribute));
  }
  if (sampling.time_attribute.empty()) {
    return Status::InvalidArgument(
        fmt::format("times of seeds (array '{}') need times of edges; give the edge attribute by "
                    "`time_attribute`",
                    sampling.seed_times));
  }
  RHIZOME_ASSIGN_OR_RETURN(options.sampler.times, LoadEdgeTimes(graph, sampling.time_attribute));
  RHIZOME_ASSIGN_OR_RETURN(std::vector<std::int64_t> times,
                           ReadSeedTimes(graph, sampling.seed_times));
  options.seed_times = std::make_shared<const std::vector<std::int64_t>>(std::move(times));
  options.sampler.disjoint = true;
  return Status::Ok();
}

}  // namespace

bool WalksTwoSides(const GraphSnapshot& graph, const MinibatchSamplerOptions& options) {
  return options.sampler.direction == Direction::kBoth && !graph.info().symmetric;
}

Status SetValidSampler(const std::vector<std::int64_t>& eval_fanouts, std::size_t layers,
                       MinibatchSamplerOptions& sampling) {
  if (eval_fanouts.empty()) return Status::Ok();
  if (eval_fanouts.size() != layers) {
    return Status::InvalidArgument(
        fmt::format("`eval_fanouts` has {} hops for {} layers; give one for each layer, or all",
                    eval_fanouts.size(), layers));
  }
  const bool all = std::all_of(eval_fanouts.begin(), eval_fanouts.end(),
                               [](std::int64_t fanout) { return fanout == kAllNeighbors; });
  if (all) {
    sampling.valid_sampler = WithAllNeighbors(sampling).sampler;
    return Status::Ok();
  }
  if (!sampling.sampler.typed_fanouts.empty()) {
    return Status::InvalidArgument(
        "`eval_fanouts` with numbers applies to neighbours of all types together; with "
        "`typed_fanouts` or `meta_path` use `eval_fanouts=all`, which samples all neighbours along "
        "the edge types that are followed");
  }
  sampling.valid_sampler = sampling.sampler;
  sampling.valid_sampler->fanouts = eval_fanouts;
  return Status::Ok();
}

void SetSamplers(std::uint64_t seed, std::uint32_t threads, MinibatchSamplerOptions& sampling) {
  const auto set = [&](SamplerOptions& sampler) {
    sampler.seed = seed;
    sampler.threads = std::max<std::uint32_t>(threads, 1);
  };
  set(sampling.sampler);
  if (sampling.valid_sampler) set(*sampling.valid_sampler);
}

Result<std::vector<std::int64_t>> ReadSeedTimes(const GraphSnapshot& graph,
                                                const std::string& name) {
  RHIZOME_ASSIGN_OR_RETURN(const auto array, graph.store().OpenArray(name));
  const ArrayEntry& entry = array->entry();
  const bool wide = entry.dtype == DataType::kInt64;
  if ((!wide && entry.dtype != DataType::kInt32) || entry.dim != 1 ||
      entry.rows != graph.info().vertices) {
    return Fail(Status::InvalidArgument(fmt::format(
        "array {} of {} has shape [{}, {}]; times of seeds must be int64 or int32, one for each of "
        "{} vertices",
        name, DataTypeName(entry.dtype), entry.rows, entry.dim, graph.info().vertices)));
  }
  if (NullOf(entry.attributes))
    return Fail(Status::InvalidArgument(fmt::format(
        "array {} has no times of seeds: some vertices have none (null); give an array without "
        "nulls",
        name)));
  std::vector<std::int64_t> times(graph.vertex_count(), 0);
  const auto take = [&](std::uint64_t first, std::span<const std::byte> bytes) {
    const std::size_t size = DataTypeBytes(entry.dtype);
    for (std::size_t i = 0; i < bytes.size() / size; ++i) {
      std::int32_t narrow = 0;
      std::memcpy(wide ? static_cast<void*>(&times[first + i]) : &narrow, &bytes[i * size], size);
      if (!wide) times[first + i] = narrow;
    }
  };
  std::vector<std::byte> bytes;
  for (std::uint64_t chunk = 0; chunk < entry.chunk_count(); ++chunk) {
    bytes.resize(array->RowsInChunk(chunk) * entry.row_bytes());
    RHIZOME_RETURN_IF_ERROR(array->ReadChunk(chunk, bytes));
    take(chunk * entry.chunk_rows, bytes);
  }
  const auto delta = DeltaRows::Of(graph.Snapshot(), entry);
  bytes.resize(entry.row_bytes());
  for (std::uint64_t row = 0; delta != nullptr && row < delta->rows(); ++row) {
    if (!delta->WasPut(static_cast<Row>(row))) continue;
    RHIZOME_RETURN_IF_ERROR(delta->Read(static_cast<Row>(row), bytes));
    take(row, bytes);
  }
  return times;
}

// Steps: (1) check the direction; (2) set fanouts from typed fanouts, a meta-path, or plain
// fanouts; (3) load the times of edges and seeds; (4) decide whether edge weights are used, and
// check them.
Result<MinibatchSamplerOptions> ResolveSampling(const NeighborSampling& sampling,
                                                std::optional<bool> edge_weights,
                                                std::vector<std::int64_t> fanouts,
                                                const GraphSnapshot& graph) {
  RHIZOME_RETURN_IF_ERROR(CheckDirection(graph.info(), sampling.walked()));
  MinibatchSamplerOptions options;
  options.sampler.direction = sampling.walked();
  options.sampler.weighted = sampling.weighted;
  if (!sampling.typed_fanouts.empty() && !sampling.meta_path.empty()) {
    return Fail(Status::InvalidArgument(
        "fanouts by edge type and a meta-path exclude each other; give one of them"));
  }
  if (!sampling.typed_fanouts.empty()) {
    RHIZOME_ASSIGN_OR_RETURN(options.sampler.typed_fanouts,
                             ResolveTyped(sampling.typed_fanouts, graph));
  } else if (!sampling.meta_path.empty()) {
    RHIZOME_ASSIGN_OR_RETURN(options.sampler.typed_fanouts,
                             ResolveMetaPath(sampling.meta_path, fanouts, graph));
  } else {
    options.sampler.fanouts = std::move(fanouts);
  }
  RHIZOME_RETURN_IF_ERROR(AddTimes(sampling, graph, options));
  if (edge_weights.value_or(false) && !graph.info().weighted) {
    return Fail(Status::InvalidArgument(
        "`edge_weights=true`: the store has no edge weights; ingest it with a weight column"));
  }
  options.edge_weights = edge_weights.value_or(graph.info().weighted);
  if (options.edge_weights) RHIZOME_RETURN_IF_ERROR(CheckEdgeWeights(graph));
  return options;
}

std::string DescribeDraws(const NeighborSampling& sampling, bool edge_weights) {
  const std::string text = DescribeSampling(sampling);
  if (!edge_weights) return text;
  return text.empty() ? "edges have weights" : text + "; edges have weights";
}

Status CheckLayerwise(const MinibatchSamplerOptions& options) {
  if (options.sampler.times != nullptr) {
    return Status::InvalidArgument(
        "sampling by the time of the seed cannot be computed layer by layer, where a vertex has "
        "one row for all seeds; use `mode=samplewise`");
  }
  const FanoutsByType& fanouts = options.sampler.typed_fanouts;
  for (const std::vector<std::int64_t>& hop : fanouts) {
    for (std::size_t type = 0; type < hop.size(); ++type) {
      if ((hop[type] == 0) == (fanouts.front()[type] == 0)) continue;
      return Status::InvalidArgument(
          "hops that follow different edge types cannot be computed layer by layer; use "
          "`mode=samplewise`, or the same types in every hop");
    }
  }
  return Status::Ok();
}

MinibatchSamplerOptions WithAllNeighbors(MinibatchSamplerOptions options) {
  std::fill(options.sampler.fanouts.begin(), options.sampler.fanouts.end(), kAllNeighbors);
  for (std::vector<std::int64_t>& hop : options.sampler.typed_fanouts) {
    for (std::int64_t& fanout : hop) fanout = fanout == 0 ? 0 : kAllNeighbors;
  }
  return options;
}

void SetPassDraw(const MinibatchSamplerOptions& options, std::size_t hop, PassDrawOptions& draw) {
  draw.direction = options.sampler.direction;
  draw.weighted = options.sampler.weighted;
  draw.weights = options.edge_weights;
  if (!options.sampler.typed_fanouts.empty() && !RHIZOME_MUTANT("passes walk every type"))
    draw.typed_fanout = options.sampler.typed_fanouts[hop];
}

std::uint64_t SamplerTableBytes(const GraphSnapshot& graph, const SamplerOptions& options) {
  const bool both = options.direction == Direction::kBoth && !graph.info().symmetric;
  const std::uint64_t entries = graph.generation_edge_count() * (both ? 2 : 1);
  return (options.weighted ? entries * 9 / 2 : 0) + (options.times != nullptr ? entries * 4 : 0);
}

}  // namespace internal
}  // namespace rhizome
