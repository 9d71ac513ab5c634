#include "tools/bench/store/bench_compact.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "cache/job/process_memory.h"
#include "index/delta/delta.h"
#include "rhizome/chunk_array.h"
#include "rhizome/graph_lookup.h"
#include "rhizome/ingest.h"
#include "storage/array/array_rules.h"
#include "storage/array/chunk_writer.h"
#include "storage/base/stopwatch.h"
#include "tools/bench/harness/bench_common.h"
#include "tools/bench/harness/fio.h"
#include "tools/cli/cli.h"
#include "tools/import/generate.h"

namespace rhizome {
namespace {

constexpr std::uint64_t kCompactFioBlockBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kCompactBatchEdges = 1000;
constexpr std::uint64_t kLookUpsForEachPut = 100;
constexpr const char* kArray = "feat";

std::uint64_t FileBytes(const Manifest& manifest, std::string_view prefix) {
  std::uint64_t bytes = 0;
  for (const FileEntry& file : manifest.files)
    if (file.path.starts_with(prefix)) bytes += file.size_bytes;
  return bytes;
}

/// The seconds of operations of one kind.
class Latencies {
 public:
  void Add(double seconds) { seconds_.push_back(seconds); }

  /// Describes and forgets them.
  Json Take() {
    std::vector<double> all = std::exchange(seconds_, {});
    std::sort(all.begin(), all.end());
    const auto at = [&](double share) {
      return all.empty()
                 ? 0
                 : 1e6 * all[static_cast<std::size_t>(share * static_cast<double>(all.size() - 1))];
    };
    return {{"count", all.size()},
            {"p50_microseconds", at(0.5)},
            {"p99_microseconds", at(0.99)},
            {"max_microseconds", at(1)}};
  }

 private:
  std::vector<double> seconds_;
};

/// Writes to a graph and looks vertices up, and measures the latency of each call.
class Client {
 public:
  Client(Graph& graph, std::uint64_t vertices, std::uint64_t seed)
      : graph_(graph), vertices_(vertices), random_(seed) {}

  /// A durable put of one edge.
  Status Put() { return PutBatch(1, true); }

  Status PutBatch(std::uint64_t edges, bool sync) {
    WriteBatch batch;
    for (std::uint64_t e = 0; e < edges; ++e) batch.PutEdge(Vertex(), Vertex());
    const Stopwatch watch;
    const auto written = graph_.Write(batch, {.sync = sync});
    latencies_.Add(watch.seconds());
    return written ? Status::Ok() : written.error();
  }

  /// A look-up of the out-neighbours of one vertex.
  Status LookUp() {
    const VertexId vertex = Vertex();
    const Stopwatch watch;
    RHIZOME_RETURN_IF_ERROR(
        LookUpNeighbors(graph_, std::span(&vertex, 1), Direction::kOut, lists_));
    latencies_.Add(watch.seconds());
    return Status::Ok();
  }

  Json TakeLatencies() { return latencies_.Take(); }

 private:
  VertexId Vertex() { return static_cast<VertexId>(random_() % vertices_); }

  Graph& graph_;
  const std::uint64_t vertices_;
  std::mt19937_64 random_;
  NeighborLists lists_;
  Latencies latencies_;
};

using Call = Status (Client::*)();

Status MakeBenchCompactStore(const BenchCompactOptions& options, const Path& folder,
                             const JobControl& control) {
  GenerateOptions generate;
  generate.kind = GraphKind::kRmat;
  generate.scale = options.scale;
  generate.edge_factor = options.edge_factor;
  generate.seed = options.seed;
  generate.permute = true;
  generate.dim = options.dim;
  RHIZOME_RETURN_IF_ERROR(GenerateGraph(FileSystem::Posix(), folder, generate, control));
  IngestOptions ingest;
  ingest.edges = {folder / "edges.npy"};
  ingest.vertices = std::uint64_t{1} << options.scale;
  ArrayFile features;
  features.name = kArray;
  features.path = folder / "features.npy";
  ingest.arrays = {features};
  ingest.build.partition.partitions = options.partitions;
  ingest.build.partition.threads = options.threads;
  RHIZOME_RETURN_IF_ERROR(Ingest(FileSystem::Posix(), folder / "store.rz", ingest, control));
  return Status::Ok();
}

/// Returns the rate at which fio reads the feature chunks of the store, sequentially and with
/// O_DIRECT; 0 if fio is not installed.
Result<double> CompactDiskRate(const Store& store, const Path& scratch) {
  FioJob job;
  job.folder = store.GenerationFolder() / ArrayFolder(kArray);
  for (const FileEntry& file : store.manifest().files) {
    const std::string prefix = ArrayFolder(kArray) + "/c.";
    if (file.path.starts_with(prefix) && file.size_bytes >= kCompactFioBlockBytes)
      job.files.push_back(file.path.substr(ArrayFolder(kArray).size() + 1));
  }
  job.block_bytes = kCompactFioBlockBytes;
  job.depth = 8;
  job.sequential = true;
  if (job.files.empty()) return 0;
  const auto reads = RunFio(job, scratch);
  if (!reads && reads.error().code() == StatusCode::kUnsupported) return 0;
  RHIZOME_RETURN_IF_ERROR(reads);
  return *reads * static_cast<double>(kCompactFioBlockBytes);
}

/// Writes a share of the graph's edges as updates.
Status Update(const GraphSnapshot& graph, Client& client, double share, const JobControl& control) {
  const auto wanted =
      static_cast<std::uint64_t>(share * static_cast<double>(graph.generation_edge_count()));
  for (std::uint64_t done = 0; done < wanted; done += kCompactBatchEdges) {
    RHIZOME_RETURN_IF_ERROR(control.Report({.phase = "updates", .done = done, .total = wanted}));
    RHIZOME_RETURN_IF_ERROR(client.PutBatch(std::min(kCompactBatchEdges, wanted - done), false));
  }
  (void)client.TakeLatencies();
  return Status::Ok();
}

/// Measurements of one compaction. It reads the rows of the old generation, and reads back
/// everything that it wrote.
struct CompactPass {
  double seconds = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  double Rate() const { return static_cast<double>(bytes_read + bytes_written) / seconds; }
};

Result<CompactPass> Compact(Graph& graph, const BenchCompactOptions& options,
                            const JobControl& control) {
  const std::uint64_t old_rows = FileBytes(graph.Snapshot()->store().manifest(), "arrays/");
  const Stopwatch watch;
  RHIZOME_RETURN_IF_ERROR(graph.Compact({.repartition = options.repartition,
                                         .threads = options.threads,
                                         .memory_bytes = options.memory_bytes},
                                        control));
  CompactPass pass{.seconds = watch.seconds()};
  pass.bytes_written = FileBytes(graph.Snapshot()->store().manifest(), "");
  pass.bytes_read = old_rows + pass.bytes_written;
  return pass;
}

/// Calls `call` again and again while a compaction runs after `share` updates.
struct Beside {
  CompactPass pass;
  Json latencies;
};

Result<Beside> CompactBeside(Graph& graph, Client& client, Call call,
                             const BenchCompactOptions& options, const JobControl& control) {
  RHIZOME_RETURN_IF_ERROR(Update(*graph.Snapshot(), client, options.share, control));
  std::atomic<bool> done{false};
  Status called;
  std::thread caller([&] {
    while (!done && called.ok()) called = (client.*call)();
  });
  const auto pass = Compact(graph, options, control);
  done = true;
  caller.join();
  RHIZOME_RETURN_IF_ERROR(pass);
  RHIZOME_RETURN_IF_ERROR(called);
  return Beside{*pass, client.TakeLatencies()};
}

/// Returns the latencies of `calls` calls on the idle store.
Result<Json> CallIdle(Client& client, Call call, std::uint64_t calls) {
  RHIZOME_RETURN_IF_ERROR((client.*call)());
  (void)client.TakeLatencies();
  for (std::uint64_t i = 0; i < calls; ++i) RHIZOME_RETURN_IF_ERROR((client.*call)());
  return client.TakeLatencies();
}

double P99Ratio(const Json& busy, const Json& idle) {
  return busy["p99_microseconds"].get<double>() / idle["p99_microseconds"].get<double>();
}

}  // namespace

// Measures compaction: (1) generates a store; (2) writes a share of its edges as updates; (3)
// measures the disk with fio, and the latencies of puts and of look-ups on the idle store; (4)
// compacts; (5) writes updates again and compacts beside another thread that puts, then beside one
// that looks vertices up; (6) compares the rates and latencies.
Result<Json> BenchCompact(const BenchCompactOptions& options, const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(const ScratchFolder scratch, ScratchFolder::Create(options.dir));
  RHIZOME_RETURN_IF_ERROR(MakeBenchCompactStore(options, scratch.path(), control));
  RHIZOME_ASSIGN_OR_RETURN(
      const auto store,
      Store::Open(FileSystem::Posix(), scratch.path() / "store.rz", Store::Mode::kWrite));
  const auto place = options.memory_bytes == 0 ? TopologyPlace::kMemory : TopologyPlace::kDirect;
  RHIZOME_ASSIGN_OR_RETURN(const auto graph, Graph::Open(*store, {.topology = place}));
  const std::uint64_t edges_before = graph->Snapshot()->generation_edge_count();
  Client client(*graph, graph->vertex_count(), options.seed);
  RHIZOME_RETURN_IF_ERROR(Update(*graph->Snapshot(), client, options.share, control));
  const std::uint64_t entries = graph->Snapshot()->delta()->entries();
  RHIZOME_ASSIGN_OR_RETURN(const double disk_rate,
                           CompactDiskRate(graph->Snapshot()->store(), scratch.path()));
  ::sync();  // do not measure the write-back of the updates
  RHIZOME_ASSIGN_OR_RETURN(Json idle_puts, CallIdle(client, &Client::Put, options.puts));
  RHIZOME_ASSIGN_OR_RETURN(Json idle_look_ups,
                           CallIdle(client, &Client::LookUp, kLookUpsForEachPut * options.puts));
  RHIZOME_ASSIGN_OR_RETURN(const CompactPass alone, Compact(*graph, options, control));
  RHIZOME_ASSIGN_OR_RETURN(Beside puts,
                           CompactBeside(*graph, client, &Client::Put, options, control));
  RHIZOME_ASSIGN_OR_RETURN(Beside look_ups,
                           CompactBeside(*graph, client, &Client::LookUp, options, control));
  const double puts_ratio = P99Ratio(puts.latencies, idle_puts);
  const double look_ups_ratio = P99Ratio(look_ups.latencies, idle_look_ups);
  return Json{{"workload", fmt::format("compaction of RMAT scale {}, edge factor {}, {} floats a "
                                       "vertex, with {} entries in the delta",
                                       options.scale, options.edge_factor, options.dim, entries)},
              {"edges", edges_before},
              {"repartition", options.repartition},
              {"threads", options.threads},
              {"seconds", alone.seconds},
              {"bytes_read", alone.bytes_read},
              {"bytes_written", alone.bytes_written},
              {"figure", alone.Rate()},
              {"unit", "bytes/s, read and written"},
              {"reference", disk_rate},
              {"reference_name", "fio, sequential direct reads of 1 MiB; 0: not installed"},
              {"ratio", disk_rate > 0 ? alone.Rate() / disk_rate : 0},
              {"target", 0.5},
              {"seconds_beside_puts", puts.pass.seconds},
              {"rate_beside_puts", puts.pass.Rate()},
              {"puts_idle", std::move(idle_puts)},
              {"puts_during", std::move(puts.latencies)},
              {"p99_ratio", puts_ratio},
              {"p99_target", 3},
              {"look_ups_idle", std::move(idle_look_ups)},
              {"look_ups_during", std::move(look_ups.latencies)},
              {"look_ups_p99_ratio", look_ups_ratio},
              {"look_ups_p99_target", 2},
              {"peak_memory_bytes", PeakResidentBytes()},
              {"machine", DescribeMachine(options.dir)}};
}

}  // namespace rhizome
