#include "tools/bench/graph/bench_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "cache/lists/direct_neighbors.h"
#include "index/check/topology_sections.h"
#include "index/delta/graph_parts.h"
#include "index/topology/adjacency.h"
#include "storage/base/stopwatch.h"
#include "tools/bench/graph/bench_topology_parts.h"
#include "tools/bench/harness/bench_common.h"
#include "tools/bench/harness/fio.h"
#include "tools/cli/json.h"
#include "tools/import/topology_json.h"

namespace rhizome {
namespace {

// Entries per call in the comparison with fio: few enough that they seldom share a block.
constexpr std::size_t kProbes = 4096;

constexpr std::uint64_t kSequentialBytes = std::uint64_t{1} << 20;
constexpr std::uint32_t kSequentialDepth = 16;

std::uint64_t TopologyBytes(const Store& store) {
  std::uint64_t bytes = 0;
  for (std::uint32_t p = 0; p < store.manifest().info.partitions; ++p)
    bytes += store.manifest().FindFile(PartitionPath(p))->size_bytes;
  return bytes;
}

/// Returns whether every partition file is at least as long as a block; fio rejects shorter files.
bool HoldBlock(const Store& store, std::uint64_t block_bytes) {
  for (std::uint32_t p = 0; p < store.manifest().info.partitions; ++p)
    if (store.manifest().FindFile(PartitionPath(p))->size_bytes < block_bytes) return false;
  return true;
}

FioJob MakeTopologyFioJob(const Store& store, const BenchTopologyOptions& options, IoMaker maker) {
  FioJob job;
  job.folder = store.GenerationFolder() / "topology";
  for (std::uint32_t p = 0; p < store.manifest().info.partitions; ++p)
    job.files.push_back(Path(PartitionPath(p)).filename().string());
  job.uring = maker == IoMaker::kUring;
  job.depth = job.uring ? options.depth : std::min(options.depth, IoQueueOptions{}.pread_threads);
  job.seconds = options.seconds;
  return job;
}

constexpr const char* kTooShort = "the partition files are smaller than a block of fio";

/// Rates of fio by round, or the reason why there are none.
struct Reference {
  std::vector<double> rates;
  std::string missing;

  Status Run(FioJob job, std::uint32_t round, const Path& scratch, double unit) {
    if (!missing.empty()) return Status::Ok();
    job.seed = round + 1;
    const Result<double> rate = RunFio(job, scratch);
    if (rate && *rate > 0) {
      rates.push_back(std::round(*rate * unit));
    } else if (rate) {
      missing = kTooShort;
    } else if (rate.error().code() == StatusCode::kUnsupported) {
      missing = rate.error().message();
    } else {
      return rate.error();
    }
    return Status::Ok();
  }
  void AddTo(Json& json, double figure) const {
    json["reference"] = rates.empty() ? Json(nullptr) : Json(Median(rates));
    json["ratio"] = rates.empty() ? Json(nullptr) : Json(figure / Median(rates));
    if (!missing.empty()) json["reference_missing"] = missing;
    json["reference_rounds"] = rates;
  }
};

/// Measures cold loads of all partition files (direct reads, which bypass the page cache), one
/// after the other like fio: first only the bytes with verified checksums, then parsed with every
/// list checked.
Result<Json> BenchLoad(const Store& store, const BenchTopologyOptions& options, const Path& scratch,
                       const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(const VertexOrder order, LoadOrder(store));
  const double bytes = static_cast<double>(TopologyBytes(store));
  FioJob job = MakeTopologyFioJob(store, options, IoMaker::kUring);
  job.sequential = true;
  job.block_bytes = kSequentialBytes;
  job.depth = kSequentialDepth;
  std::vector<double> loads;
  std::vector<double> parses;
  Reference fio;
  if (!HoldBlock(store, kSequentialBytes)) fio.missing = kTooShort;
  for (std::uint32_t r = 0; r < options.rounds; ++r) {
    RHIZOME_RETURN_IF_ERROR(control.Report({.phase = "load", .done = r, .total = options.rounds}));
    Stopwatch watch;
    for (std::uint32_t p = 0; p < store.manifest().info.partitions; ++p) {
      RHIZOME_ASSIGN_OR_RETURN(const SectionFile file,
                               store.LoadSectionFile(PartitionPath(p), FileKind::kPartition));
    }
    loads.push_back(std::round(bytes / watch.seconds()));
    RHIZOME_RETURN_IF_ERROR(fio.Run(job, r, scratch, kSequentialBytes));
    watch = Stopwatch();
    for (std::uint32_t p = 0; p < store.manifest().info.partitions; ++p) {
      RHIZOME_ASSIGN_OR_RETURN(const Adjacency partition, LoadPartition(store, order, p));
    }
    parses.push_back(std::round(bytes / watch.seconds()));
  }
  Json json = {{"figure", Median(loads)},
               {"unit", "bytes/s, checksums verified"},
               {"reference_name", "fio sequential read, 1 MiB, depth 16, direct"}};
  fio.AddTo(json, Median(loads));
  json["parsed"] = Median(parses);
  json["parsed_ratio"] =
      fio.rates.empty() ? Json(nullptr) : Json(Median(parses) / Median(fio.rates));
  json["rounds"] = loads;
  json["parsed_rounds"] = parses;
  return json;
}

/// Measures reads of single entries of neighbour lists on disk, without a cache and without merging
/// of close reads, against random reads of one block by fio.
Result<Json> BenchMisses(const GraphSnapshot& direct, const BenchTopologyOptions& options,
                         const Path& scratch, const JobControl& control) {
  const Direction direction = WalkedDirection(direct);
  DirectNeighborsOptions reading;
  reading.io = {.maker = options.maker, .depth = options.depth};
  reading.gap_bytes = 0;
  RHIZOME_ASSIGN_OR_RETURN(const auto source,
                           DirectNeighbors::Open(direct, direction, nullptr, reading));
  const FioJob job = MakeTopologyFioJob(direct.store(), options, source->stats().maker);
  std::mt19937_64 random(options.graph.seed);
  std::vector<Row> rows(kProbes);
  std::vector<double> rates;
  Reference fio;
  for (std::uint32_t r = 0; r < options.rounds; ++r) {
    RHIZOME_RETURN_IF_ERROR(
        control.Report({.phase = "misses", .done = r, .total = options.rounds}));
    const std::uint64_t before = source->stats().reads;
    double seconds = 0;
    while (seconds < options.seconds) {
      const std::vector<EntryRef> entries = DrawEntries(direct, direction, kProbes, random);
      const Stopwatch watch;
      RHIZOME_RETURN_IF_ERROR(source->LookUp(entries, rows));
      seconds += watch.seconds();
    }
    rates.push_back(std::round(static_cast<double>(source->stats().reads - before) / seconds));
    RHIZOME_RETURN_IF_ERROR(fio.Run(job, r, scratch, 1));
  }
  const ListReads stats = source->stats();
  Json json = {{"figure", Median(rates)},
               {"unit", "reads/s of lists that miss"},
               {"reference_name", "fio randread, 4 KiB, same depth and files"}};
  fio.AddTo(json, Median(rates));
  json["rounds"] = rates;
  json["entries_per_read"] = static_cast<double>(stats.entries) /
                             static_cast<double>(std::max<std::uint64_t>(stats.reads, 1));
  json["bytes_per_read"] = static_cast<double>(stats.bytes_read) /
                           static_cast<double>(std::max<std::uint64_t>(stats.reads, 1));
  json["depth"] = options.depth;
  json["mean_depth"] = stats.mean_depth;
  json["maker"] = IoMakerName(stats.maker);
  json["direct"] = stats.direct;
  return json;
}

}  // namespace

// Measures the topology of a store: (1) its size by section; (2) loading, against fio; (3) the
// edge-type index, if there are several types; (4) reads of lists on disk, against fio; (5)
// sampling from memory and from disk.
Result<Json> BenchTopology(const BenchTopologyOptions& options, const JobControl& control) {
  if (options.rounds == 0 || options.batches == 0 || !(options.seconds > 0)) {
    return Fail(Status::InvalidArgument(
        "bench topology needs at least one round, one batch and a positive duration"));
  }
  RHIZOME_ASSIGN_OR_RETURN(const BenchGraph opened, OpenBenchGraph(options.graph, control));
  const Store& store = *opened.store;
  RHIZOME_ASSIGN_OR_RETURN(const ScratchFolder scratch, ScratchFolder::Create(options.graph.dir));
  RHIZOME_ASSIGN_OR_RETURN(const TopologySections sections, TopologySections::Read(store));
  std::unique_ptr<Store> other_store;
  std::unique_ptr<GraphSnapshot> other;
  if (options.other) {
    RHIZOME_ASSIGN_OR_RETURN(other_store,
                             Store::Open(FileSystem::Posix(), *options.other, Store::Mode::kRead));
    RHIZOME_ASSIGN_OR_RETURN(other, Graph::Open(std::as_const(*other_store)));
  }
  Json json = {{"workload", "topology"}};
  json.update(DescribeGraph(options.graph, *opened.graph));
  json["topology_bytes"] = TopologyBytes(store);
  json["bytes_per_edge"] =
      static_cast<double>(TopologyBytes(store)) /
      static_cast<double>(std::max<std::uint64_t>(opened.graph->generation_edge_count(), 1));
  json["sections"] = ToJson(sections);
  if (opened.graph->generation_edge_count() == 0)
    return Fail(Status::InvalidArgument("bench topology: the graph has no edges"));
  RHIZOME_ASSIGN_OR_RETURN(json["load"], BenchLoad(store, options, scratch.path(), control));
  if (store.manifest().info.edge_types.size() > 1) {
    RHIZOME_ASSIGN_OR_RETURN(json["types"], BenchTopologyTypes(*opened.graph, sections, options));
  }
  RHIZOME_ASSIGN_OR_RETURN(const auto direct,
                           Graph::Open(store, {.topology = TopologyPlace::kDirect}));
  RHIZOME_ASSIGN_OR_RETURN(json["misses"], BenchMisses(*direct, options, scratch.path(), control));
  RHIZOME_ASSIGN_OR_RETURN(json["sampling"], BenchTopologySampling(*opened.graph, other.get(),
                                                                   *direct, options, control));
  json["fanouts"] = options.graph.fanouts;
  json["batch_size"] = options.graph.batch_size;
  json["threads"] = options.graph.threads;
  json["machine"] = DescribeMachine(store.path());
  return json;
}

}  // namespace rhizome
