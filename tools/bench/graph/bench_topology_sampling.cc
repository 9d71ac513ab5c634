#include <algorithm>
#include <cmath>

#include "cache/job/work_clock.h"
#include "cache/lists/direct_neighbors.h"
#include "cache/lists/neighbor_cache.h"
#include "index/sample/compressed_neighbors.h"
#include "index/topology/adjacency.h"
#include "index/topology/bound_search.h"
#include "rhizome/sampler.h"
#include "storage/base/stopwatch.h"
#include "tools/bench/graph/bench_topology_parts.h"
#include "tools/bench/harness/bench_common.h"
#include "tools/cli/json.h"

namespace rhizome {
namespace {

// Edges sampled per second by the code of Ginex (VLDB 2022), in one process that reads lists one by
// one: measured by us, once and on another machine. The paper has no such figure.
constexpr double kGinexEdgesPerSecond = 1.0e5;

SamplerOptions Sampling(const GraphSnapshot& graph, const BenchTopologyOptions& options) {
  SamplerOptions sampling;
  sampling.fanouts = options.graph.fanouts;
  sampling.direction = WalkedDirection(graph);
  sampling.seed = options.graph.seed;
  sampling.threads = options.graph.threads;
  return sampling;
}

/// Result of one round of minibatches. `sum`, over all drawn entries, shows whether two rounds drew
/// the same.
struct Drawn {
  std::uint64_t edges = 0;
  std::uint64_t sum = 0;
  double seconds = 0;
  double cpu_seconds = 0;
  double rate() const { return std::round(static_cast<double>(edges) / seconds); }
};

/// Samples the batches of a round, together or one by one.
Result<Drawn> SampleTopologyTurn(const Sampler& sampler, const GraphSnapshot& graph,
                                 const BenchTopologyOptions& options, bool together,
                                 const JobControl& control) {
  std::vector<std::vector<VertexId>> seeds;
  std::vector<SampleRequest> requests;
  for (std::uint32_t b = 0; b < options.batches; ++b) {
    seeds.push_back(
        DrawSeeds(graph.vertex_count(), options.graph.batch_size, options.graph.seed, b));
    requests.push_back({.seeds = seeds.back(), .batch = b});
  }
  Drawn drawn;
  WorkClock clock;  // restarts after each sum, which is not timed
  const SampleSink add = [&](std::size_t, const SampledSubgraph& subgraph) {
    drawn.seconds += clock.seconds();
    drawn.cpu_seconds += clock.cpu_seconds();
    drawn.edges += subgraph.neighbors.size();
    for (const std::int64_t neighbor : subgraph.neighbors)
      drawn.sum = drawn.sum * 0x9E3779B97F4A7C15U +
                  static_cast<std::uint64_t>(subgraph.rows[static_cast<std::size_t>(neighbor)]);
    clock = WorkClock();
    return control.CheckCancelled();
  };
  const std::size_t at_once = together ? requests.size() : 1;
  for (std::size_t b = 0; b < requests.size(); b += at_once)
    RHIZOME_RETURN_IF_ERROR(sampler.SampleTogether(std::span(requests).subspan(b, at_once), add));
  return drawn;
}

}  // namespace

Direction WalkedDirection(const GraphSnapshot& graph) {
  return graph.info().directions == Direction::kOut ? Direction::kOut : Direction::kIn;
}

std::vector<EntryRef> DrawEntries(const GraphSnapshot& graph, Direction direction,
                                  std::size_t count, std::mt19937_64& random) {
  std::vector<EntryRef> entries;
  while (entries.size() < count) {
    const auto p = static_cast<PartitionId>(random() % graph.partition_count());
    const Adjacency& partition = graph.partition(p);
    if (partition.edge_count() == 0) continue;
    const std::uint64_t position = random() % partition.edge_count();
    // The entry is in the last list that begins at or before it.
    const std::size_t after = FirstNot(0, partition.vertex_count(), [&](std::size_t v) {
      return partition.Entries(static_cast<LocalId>(v), direction).first <= position;
    });
    entries.push_back({position, static_cast<LocalId>(after - 1), p});
  }
  return entries;
}

Result<Json> BenchTopologySampling(const GraphSnapshot& memory, const GraphSnapshot* other,
                                   const GraphSnapshot& direct, const BenchTopologyOptions& options,
                                   const JobControl& control) {
  const Direction direction = WalkedDirection(memory);
  DirectNeighborsOptions reading;
  reading.io = {.maker = options.maker, .depth = options.depth};
  const Stopwatch watch;
  RHIZOME_ASSIGN_OR_RETURN(
      const auto cache,
      NeighborCache::Build(direct, {.direction = direction, .budget_bytes = options.cache_bytes},
                           control));
  const double build_seconds = watch.seconds();
  struct Contestant {
    std::string name;
    const GraphSnapshot* graph;
    std::shared_ptr<const NeighborSource> source;
    std::shared_ptr<const DirectNeighbors> disk;
    bool together = false;
    std::unique_ptr<Sampler> sampler = nullptr;
    std::vector<double> rates = {};
    std::vector<double> cpu_seconds = {};
    Drawn last = {};
  };
  std::vector<Contestant> contestants;
  for (const GraphSnapshot* graph : {&memory, other}) {
    if (graph == nullptr) continue;
    RHIZOME_ASSIGN_OR_RETURN(auto source, ResidentNeighbors(*graph, direction));
    const std::string codec(TopologyCodecName(graph->partition(0).codec()));
    contestants.push_back({"memory, codec " + codec, graph, std::move(source), nullptr});
  }
  struct OnDisk {
    const char* name;
    bool cached;
    bool together;
  };
  for (const OnDisk& way : {OnDisk{"disk", false, false}, OnDisk{"disk, cached", true, false},
                            OnDisk{"disk, batches together", false, true}}) {
    RHIZOME_ASSIGN_OR_RETURN(
        auto disk, DirectNeighbors::Open(direct, direction, way.cached ? cache : nullptr, reading));
    contestants.push_back({way.name, &direct, disk, disk, way.together});
  }
  for (Contestant& contestant : contestants) {
    RHIZOME_ASSIGN_OR_RETURN(
        contestant.sampler,
        Sampler::Create(*contestant.graph, Sampling(memory, options), contestant.source));
  }
  for (std::uint32_t r = 0; r <= options.rounds; ++r) {
    RHIZOME_RETURN_IF_ERROR(
        control.Report({.phase = "sample", .done = r, .total = options.rounds}));
    for (Contestant& contestant : contestants) {
      RHIZOME_ASSIGN_OR_RETURN(contestant.last,
                               SampleTopologyTurn(*contestant.sampler, *contestant.graph, options,
                                                  contestant.together, control));
      if (r == 0) continue;  // the first round warms up
      contestant.rates.push_back(contestant.last.rate());
      contestant.cpu_seconds.push_back(contestant.last.cpu_seconds);
    }
  }
  Json list = Json::array();
  for (const Contestant& contestant : contestants) {
    Json json = {{"topology", contestant.name},
                 {"edges_per_second", Median(contestant.rates)},
                 {"ratio_to_first", Median(contestant.rates) / Median(contestants[0].rates)},
                 {"cpu_ns_per_edge", Median(contestant.cpu_seconds) * 1e9 /
                                         static_cast<double>(contestant.last.edges)},
                 {"same_sample", contestant.last.sum == contestants[0].last.sum}};
    Json hit_rate = nullptr, bytes = nullptr, depth = nullptr, entries = nullptr;
    if (contestant.disk != nullptr) {
      const ListReads stats = contestant.disk->stats();
      const auto share = [](std::uint64_t a, std::uint64_t b) {
        return static_cast<double>(a) / static_cast<double>(std::max<std::uint64_t>(b, 1));
      };
      hit_rate = share(stats.hits, stats.lists);
      bytes = share(stats.bytes_read, stats.entries);
      entries = share(stats.entries - stats.cached_entries, stats.reads);
      depth = stats.mean_depth;
    }
    json["bytes_read_per_edge"] = bytes;
    json["missed_edges_per_read"] = entries;
    json["hit_rate"] = hit_rate;
    json["mean_depth"] = depth;
    list.push_back(std::move(json));
  }
  const double figure = Median(contestants.back().rates);
  return Json{{"figure", figure},
              {"unit", "edges/s from disk, batches together"},
              {"reference", kGinexEdgesPerSecond},
              {"reference_name",
               "our measurement of Ginex's code, one process that blocks on each list; a constant"},
              {"ratio", figure / kGinexEdgesPerSecond},
              {"cache_bytes", cache->memory_bytes()},
              {"cache_lists", cache->list_count()},
              {"cache_build_seconds", build_seconds},
              {"contestants", std::move(list)}};
}

Result<Json> BenchTopologyTypes(const GraphSnapshot& graph, const TopologySections& sections,
                                const BenchTopologyOptions& options) {
  const Direction direction = WalkedDirection(graph);
  std::vector<std::vector<std::uint8_t>> types(graph.partition_count());
  std::uint64_t edges = 0;
  for (std::uint32_t p = 0; p < graph.partition_count(); ++p) {
    const Adjacency& partition = graph.partition(p);
    for (std::uint64_t v = 0; v < partition.vertex_count(); ++v) {
      const auto local = static_cast<LocalId>(v);
      const std::uint64_t count = partition.Entries(local, direction).count;
      for (std::uint64_t i = 0; i < count; ++i)
        types[p].push_back(static_cast<std::uint8_t>(partition.TypeOfEntry(local, direction, i)));
      edges += count;
    }
  }
  std::mt19937_64 random(options.graph.seed);
  const std::vector<EntryRef> entries = DrawEntries(graph, direction, 1 << 20, random);
  std::vector<double> index_ns;
  std::vector<double> range_ns;
  std::vector<double> byte_ns;
  const auto ns = [&](const Stopwatch& watch) {
    return watch.seconds() * 1e9 / static_cast<double>(entries.size());
  };
  std::uint64_t sums[2] = {0, 0};
  std::uint64_t ranges = 0;
  for (std::uint32_t r = 0; r < options.rounds; ++r) {
    Stopwatch watch;
    for (const EntryRef& entry : entries) {
      const Adjacency& partition = graph.partition(entry.partition);
      sums[0] += partition.TypeOfEntry(
          entry.local, direction, entry.position - partition.Entries(entry.local, direction).first);
    }
    index_ns.push_back(ns(watch));
    watch = Stopwatch();
    for (const EntryRef& entry : entries) sums[1] += types[entry.partition][entry.position];
    byte_ns.push_back(ns(watch));
    watch = Stopwatch();
    for (const EntryRef& entry : entries) {
      ranges += graph.partition(entry.partition)
                    .EntriesOfType(entry.local, direction, types[entry.partition][entry.position])
                    .count;
    }
    range_ns.push_back(ns(watch));
  }
  if (sums[0] != sums[1] || ranges == 0)
    return Fail(Status::Corruption("bench topology: the edge-type index contradicts itself"));
  const std::uint64_t directions =
      graph.info().symmetric || graph.info().directions != Direction::kBoth ? 1 : 2;
  return Json{{"edge_types", graph.info().edge_types.size()},
              {"figure", sections.Group("types")},
              {"unit", "bytes of the edge-type index"},
              {"reference", graph.generation_edge_count() * directions},
              {"reference_name", "one byte an edge and direction"},
              {"ratio", static_cast<double>(sections.Group("types")) /
                            static_cast<double>(graph.generation_edge_count() * directions)},
              {"type_of_entry_ns", Median(index_ns)},
              {"range_of_type_ns", Median(range_ns)},
              {"byte_per_edge_type_of_entry_ns", Median(byte_ns)},
              {"entries", edges}};
}

}  // namespace rhizome
