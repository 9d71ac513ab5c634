#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "cache/lists/direct_neighbors.h"
#include "cache/lists/neighbor_cache.h"
#include "index/graph/live_vertices.h"
#include "index/input/npy_header.h"
#include "index/input/table_reader.h"
#include "rhizome/sampler.h"
#include "storage/base/stopwatch.h"
#include "tools/cli/help.h"
#include "tools/cli/sample_flags.h"
#include "tools/cli/text.h"
#include "tools/cli/topology_flags.h"
#include "tools/cli/zip_output.h"
#include "tools/verbs/verbs.h"

namespace rhizome {
namespace {

struct SampleVerbFlags {
  std::string store;
  std::string seeds;
  std::string seed_times;
  std::uint64_t batch_size = 1000;
  SampleFlags sampler;
  TopologyPlace topology = TopologyPlace::kMemory;
  std::uint64_t cache_bytes = std::uint64_t{256} << 20;
  IoMaker io = IoMaker::kAuto;
  std::string out;
};

/// Calls `visit` for each non-empty line of a file, a pipe or standard input ("-"). Errors name
/// file and line.
Status ForEachLine(const std::string& path,
                   const std::function<Status(const std::string& line)>& visit) {
  RHIZOME_ASSIGN_OR_RETURN(auto stream, InputStream::OpenOnce(FileSystem::Posix(), path));
  RHIZOME_ASSIGN_OR_RETURN(const auto reader,
                           TableReader::Open(std::move(stream), TableForm::kLines,
                                             /*header=*/false));
  while (true) {
    RHIZOME_ASSIGN_OR_RETURN(const TableReader::Next next, reader->ReadLine());
    if (next == TableReader::Next::kEnd) return Status::Ok();
    if (next == TableReader::Next::kMalformed)
      return Status::InvalidArgument(fmt::format("{}: {}", reader->Place(), reader->reason()));
    const std::string line(reader->fields()[0]);
    if (line.empty()) continue;
    const Status taken = visit(line);
    if (!taken.ok()) return taken.WithContext(reader->Place());
  }
}

/// Reads seeds, one external id per line.
Result<std::vector<VertexId>> ReadSeeds(const std::string& path, const GraphSnapshot& graph) {
  std::vector<VertexId> seeds;
  RHIZOME_RETURN_IF_ERROR(ForEachLine(path, [&](const std::string& line) -> Status {
    RHIZOME_ASSIGN_OR_RETURN(const VertexId vertex, graph.FindText(line));
    seeds.push_back(vertex);
    return Status::Ok();
  }));
  if (seeds.empty()) return Fail(Status::InvalidArgument(path + " contains no seeds"));
  return seeds;
}

/// Reads seed times, one number per line. There must be one per seed.
Result<std::vector<std::int64_t>> ReadSeedTimes(const std::string& path, std::size_t seeds) {
  std::vector<std::int64_t> times;
  if (path.empty()) return times;
  RHIZOME_RETURN_IF_ERROR(ForEachLine(path, [&](const std::string& line) {
    const auto time = ParseCanonicalInteger(line);
    if (!time) return Status::InvalidArgument(fmt::format("'{}' is not an integer", line));
    times.push_back(*time);
    return Status::Ok();
  }));
  if (times.size() == seeds) return times;
  return Fail(Status::InvalidArgument(fmt::format(
      "{} has {} times for {} seeds; give one time per seed", path, times.size(), seeds)));
}

template <typename T>
std::span<const std::byte> SampleBytesOf(const std::vector<T>& elements) {
  return std::as_bytes(std::span(elements));
}

/// Returns the local source and target of each edge: all sources, then all targets.
std::vector<std::int64_t> EndsOf(const SampledSubgraph& subgraph, const SamplerOptions& options) {
  const std::size_t edges = subgraph.neighbors.size();
  std::vector<std::int64_t> ends(2 * edges);
  // Following in-edges finds sources of the current vertex, following out-edges its targets.
  const std::size_t found = options.direction == Direction::kIn ? 0 : edges;
  const std::size_t at_hand = edges - found;
  std::copy(subgraph.neighbors.begin(), subgraph.neighbors.end(),
            ends.begin() + static_cast<std::ptrdiff_t>(found));
  for (std::size_t hop = 0; hop + 1 < subgraph.hop_lists.size(); ++hop) {
    for (std::uint64_t list = subgraph.hop_lists[hop]; list < subgraph.hop_lists[hop + 1]; ++list) {
      const std::uint64_t vertex = subgraph.VertexOfList(hop, list, options.frontier);
      for (std::uint64_t e = subgraph.offsets[list]; e < subgraph.offsets[list + 1]; ++e) {
        ends[at_hand + e] = static_cast<std::int64_t>(vertex);
      }
    }
  }
  return ends;
}

Status AddNumbers(ZipOutput& zip, std::uint64_t batch, const char* name,
                  const std::vector<std::int64_t>& numbers) {
  return zip.Add(fmt::format("b{}_{}.npy", batch, name),
                 NpyHeaderBytes(DataType::kInt64, numbers.size()), SampleBytesOf(numbers));
}

/// Adds the members of a batch to the archive: b<i>_vertex_ids [v], b<i>_edges [2, e] (row 0 the
/// local source of each edge, row 1 its target), and b<i>_seeds [s], the local number of each seed
/// in the given order: a seed that is repeated has one number, unless disjoint. If the graph has
/// deleted vertices, also b<i>_export_rows [v], because `export` omits the rows of deleted
/// vertices, so that vertex ids differ from row numbers. If disjoint, also b<i>_seed_of [v], the
/// seed whose subgraph contains the vertex. If frontiers are expanded again, also b<i>_hop_edges
/// [hops + 1], the first edge of each hop.
Status AddBatch(ZipOutput& zip, std::uint64_t batch, const GraphSnapshot& graph,
                const LiveVertices& live, const SampledSubgraph& subgraph,
                const SamplerOptions& options) {
  std::vector<std::int64_t> ids(subgraph.rows.size());
  std::transform(subgraph.rows.begin(), subgraph.rows.end(), ids.begin(),
                 [&](Row row) { return *graph.VertexAt(row); });
  const std::vector<std::int64_t> ends = EndsOf(subgraph, options);
  RHIZOME_RETURN_IF_ERROR(AddNumbers(zip, batch, "vertex_ids", ids));
  RHIZOME_RETURN_IF_ERROR(AddNumbers(zip, batch, "seeds", subgraph.seed_locals));
  if (live.deleted_count() > 0) {
    for (std::int64_t& id : ids) id = static_cast<std::int64_t>(live.PlaceOf(id));
    RHIZOME_RETURN_IF_ERROR(AddNumbers(zip, batch, "export_rows", ids));
  }
  RHIZOME_RETURN_IF_ERROR(zip.Add(fmt::format("b{}_edges.npy", batch),
                                  NpyHeaderBytes(DataType::kInt64, 2, ends.size() / 2),
                                  SampleBytesOf(ends)));
  if (options.disjoint) {
    RHIZOME_RETURN_IF_ERROR(
        AddNumbers(zip, batch, "seed_of",
                   std::vector<std::int64_t>(subgraph.seed_of.begin(), subgraph.seed_of.end())));
  }
  if (options.frontier == Frontier::kOnce) return Status::Ok();
  std::vector<std::int64_t> hop_edges;
  for (const std::uint64_t list : subgraph.hop_lists) {
    hop_edges.push_back(static_cast<std::int64_t>(subgraph.offsets[list]));
  }
  return AddNumbers(zip, batch, "hop_edges", hop_edges);
}

/// Reader of neighbour lists on disk and its cache; null if the lists are in memory.
struct ListsOnDisk {
  std::shared_ptr<const NeighborCache> cache;
  std::shared_ptr<const DirectNeighbors> neighbors;
};

Result<ListsOnDisk> OpenLists(const SampleVerbFlags& flags, const GraphSnapshot& graph,
                              Direction direction, const JobControl& control) {
  ListsOnDisk lists;
  if (flags.topology == TopologyPlace::kMemory) return lists;
  if (flags.cache_bytes > 0) {
    RHIZOME_ASSIGN_OR_RETURN(
        lists.cache,
        NeighborCache::Build(graph, {.direction = direction, .budget_bytes = flags.cache_bytes},
                             control));
  }
  DirectNeighborsOptions options;
  options.io.maker = flags.io;
  RHIZOME_ASSIGN_OR_RETURN(lists.neighbors,
                           DirectNeighbors::Open(graph, direction, lists.cache, options));
  return lists;
}

struct SampleTotals {
  std::uint64_t batches = 0;
  std::uint64_t edges = 0;
  std::uint64_t vertices = 0;
  double seconds = 0;  ///< of sampling only
  std::optional<ListReads> disk = {};
  std::uint64_t cache_bytes = 0;  ///< size of the neighbour cache
};

// Samples all seeds: (1) resolves the flags and reads the seed times; (2) opens the neighbour lists
// on disk, unless they are in memory, and the sampler; (3) samples batch by batch and adds each
// batch to the archive, if --out is given; (4) finishes the archive and returns the totals.
Result<SampleTotals> SampleAll(const SampleVerbFlags& flags, const GraphSnapshot& graph,
                               std::span<const VertexId> seeds, const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(const SamplerOptions options, ResolveSampleFlags(flags.sampler, graph));
  RHIZOME_ASSIGN_OR_RETURN(const auto times, ReadSeedTimes(flags.seed_times, seeds.size()));
  if (times.empty() != (options.times == nullptr)) {
    return Fail(Status::InvalidArgument("--time and --seed-times must be given together"));
  }
  RHIZOME_ASSIGN_OR_RETURN(const ListsOnDisk disk,
                           OpenLists(flags, graph, options.direction, control));
  RHIZOME_ASSIGN_OR_RETURN(const auto sampler, Sampler::Create(graph, options, disk.neighbors));
  std::optional<ZipOutput> zip;
  if (!flags.out.empty()) {
    RHIZOME_ASSIGN_OR_RETURN(ZipOutput created, ZipOutput::Create(flags.out));
    zip.emplace(std::move(created));
  }
  const LiveVertices live = LiveVertices::Of(graph);
  SampleTotals totals;
  for (std::uint64_t first = 0; first < seeds.size(); first += flags.batch_size) {
    RHIZOME_RETURN_IF_ERROR(
        control.Report({.phase = "sampling", .done = first, .total = seeds.size()}));
    const std::uint64_t count = std::min<std::uint64_t>(flags.batch_size, seeds.size() - first);
    const Stopwatch watch;
    RHIZOME_ASSIGN_OR_RETURN(const SampledSubgraph subgraph,
                             sampler->Sample(seeds.subspan(first, count),
                                             times.empty() ? std::span<const std::int64_t>()
                                                           : std::span(times).subspan(first, count),
                                             totals.batches));
    const double seconds = watch.seconds();
    totals.seconds += seconds;
    totals.edges += subgraph.neighbors.size();
    totals.vertices += subgraph.rows.size();
    if (zip) {
      RHIZOME_RETURN_IF_ERROR(AddBatch(*zip, totals.batches, graph, live, subgraph, options));
    }
    ++totals.batches;
  }
  if (zip) RHIZOME_RETURN_IF_ERROR(zip->Finish());
  if (disk.neighbors != nullptr) totals.disk = disk.neighbors->stats();
  if (disk.cache != nullptr) totals.cache_bytes = disk.cache->memory_bytes();
  return totals;
}

std::string DescribeSample(const Json& f) {
  std::string text = fmt::format(
      "{} in {}: {} sampled, {} vertices (each counted once per batch)\n",
      Plural(f["seeds"], "seed"),
      Plural(f["batches"], "batch") == "1 batch" ? "1 batch"
                                                 : WithCommas(f["batches"]) + " batches",
      Plural(f["sampled_edges"], "edge"), WithCommas(f["unique_vertices"]));
  text += fmt::format("  in {}, {} edges/s\n", HumanSeconds(f["seconds"]),
                      HumanCount(f["edges_per_second"]));
  if (f.contains("out")) text += fmt::format("wrote {}\n", f["out"].get<std::string>());
  return text;
}

Result<Answer> RunSample(const SampleVerbFlags& flags, Session& session) {
  RHIZOME_RETURN_IF_ERROR(session.control.Report({.phase = "opening the store"}));
  RHIZOME_ASSIGN_OR_RETURN(const auto store,
                           Store::Open(FileSystem::Posix(), flags.store, Store::Mode::kRead));
  RHIZOME_ASSIGN_OR_RETURN(const auto graph,
                           Graph::Open(std::as_const(*store), {.topology = flags.topology}));
  RHIZOME_ASSIGN_OR_RETURN(const auto seeds, ReadSeeds(flags.seeds, *graph));
  RHIZOME_ASSIGN_OR_RETURN(const SampleTotals totals,
                           SampleAll(flags, *graph, seeds, session.control));
  Json fields = {{"batches", totals.batches},
                 {"seeds", seeds.size()},
                 {"sampled_edges", totals.edges},
                 {"unique_vertices", totals.vertices},
                 {"seconds", totals.seconds},
                 {"edges_per_second",
                  totals.seconds > 0 ? static_cast<double>(totals.edges) / totals.seconds : 0.0}};
  if (totals.disk) {
    fields["disk"] = ListReadsJson(*totals.disk);
    fields["disk"]["neighbor_cache_bytes"] = totals.cache_bytes;
  }
  if (!flags.out.empty()) fields["out"] = flags.out;
  return Answer{std::move(fields), DescribeSample, {}};
}

}  // namespace

void AddSampleVerb(CLI::App& root, Session& session) {
  auto flags = std::make_shared<SampleVerbFlags>();
  CLI::App* verb = AddVerb(
      root, session, "sample", "Sample the neighbourhoods of seeds, batch by batch",
      "seq 0 999 | rhizome sample demo.rz --seeds - --fanout 10,10 --batch-size 250 --out demo.npz",
      flags, RunSample);
  verb->add_option("STORE", flags->store, "The store's folder")->required();
  verb->add_option("--seeds", flags->seeds, "File with external ids, one per line; - for stdin")
      ->required()
      ->type_name("F");
  AddSampleFlags(*verb, flags->sampler)->required();
  verb->add_option("--seed-times", flags->seed_times,
                   "With --time: file with the time of each seed, one integer per line")
      ->type_name("F");
  verb->add_option("--batch-size", flags->batch_size, "Seeds per batch")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40))
      ->type_name("N")
      ->capture_default_str();
  AddTopologyFlag(*verb, flags->topology);
  AddSize(*verb, kNeighborCacheFlag, flags->cache_bytes, kNeighborCacheHelp)->default_str("256M");
  AddIoFlag(*verb, flags->io, "I/O method for reading neighbour lists from disk");
  verb->add_option("--out", flags->out,
                   "Write for batch i: b{i}_vertex_ids, seeds first, a repeated seed once; "
                   "b{i}_edges [2, e], "
                   "as positions in it; b{i}_seeds, the position of each seed; if vertices were "
                   "deleted, also "
                   "b{i}_export_rows, the vertices' rows in exported arrays")
      ->type_name("F.npz");
  AddThreads(*verb, flags->sampler.options.threads);
  ArrangeOptions(*verb, {"seeds", "fanout", "direction", "batch-size", "out", "seed", "threads"},
                 {"meta-path", "replace", "weighted", "disjoint", "time"});
}

}  // namespace rhizome
