#include "tools/bench/store/bench_lookup.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>
#include <thread>

#include "index/generation/graph_builder.h"
#include "rhizome/graph_lookup.h"
#include "storage/base/stopwatch.h"
#include "tools/bench/harness/bench_common.h"
#include "tools/bench/store/bench_database.h"
#include "tools/cli/json.h"

namespace rhizome {
namespace {

using Look = std::function<Status(std::span<const VertexId>)>;

constexpr char kList = 0;
constexpr char kRow = 1;

/// A random graph with one array, and a database with the same lists and rows.
class LookupBench {
 public:
  explicit LookupBench(const BenchLookupOptions& options) : options_(options) {}
  Status Open(const Path& folder, const JobControl& control);
  Result<Json> Compare(char kind, const JobControl& control);
  std::shared_ptr<const GraphSnapshot> graph() const { return graph_->Snapshot(); }

 private:
  Status Fill();
  Look Own(char kind) const;
  Look Peer(char kind) const;
  Result<double> PerSecond(const std::function<Look()>& make) const;

  const BenchLookupOptions& options_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Graph> graph_;
  std::unique_ptr<RowLookup> rows_;
  std::unique_ptr<BenchDatabase> database_;
};

Status LookupBench::Open(const Path& folder, const JobControl& control) {
  std::mt19937_64 random(options_.graph.seed);
  GraphInput input;
  input.vertex_count = std::uint64_t{1} << options_.graph.scale;
  input.vertex_type_names = {"vertex"};
  input.edge_type_names = {"edge"};
  for (std::uint64_t e = 0; e < input.vertex_count * options_.graph.edge_factor; ++e) {
    input.edges.src.push_back(static_cast<VertexId>(random() % input.vertex_count));
    input.edges.dst.push_back(static_cast<VertexId>(random() % input.vertex_count));
  }
  ArrayInput array;
  array.name = "feat";
  array.dim = options_.dim;
  array.read_rows = [](std::span<const VertexId> vertices, std::span<std::byte> out) {
    const std::size_t row_bytes = out.size() / std::max<std::size_t>(vertices.size(), 1);
    for (std::size_t i = 0; i < vertices.size(); ++i)
      std::memset(out.data() + i * row_bytes, static_cast<int>(vertices[i] % 100), row_bytes);
    return Status::Ok();
  };
  input.arrays.push_back(std::move(array));
  FileSystem& fs = FileSystem::Posix();
  const Path path = folder / "graph.rz";
  {
    RHIZOME_ASSIGN_OR_RETURN(const auto store, Store::Create(fs, path, StoreId{}));
    BuildOptions build;
    build.partition.partitions = options_.graph.partitions;
    RHIZOME_RETURN_IF_ERROR(BuildGeneration(*store, std::move(input), build, control));
  }
  RHIZOME_ASSIGN_OR_RETURN(
      store_, Store::Open(fs, path, Store::Mode::kRead, {.metrics = options_.metrics}));
  RHIZOME_ASSIGN_OR_RETURN(graph_, Graph::Open(*store_));
  RHIZOME_ASSIGN_OR_RETURN(rows_, RowLookup::Open(*graph_, "feat"));
  RHIZOME_ASSIGN_OR_RETURN(database_, BenchDatabase::Create(folder / "rocksdb"));
  return Fill();
}

Status LookupBench::Fill() {
  std::string row(rows_->row_bytes(), '\0');
  for (VertexId v = 0; v < static_cast<VertexId>(graph_->vertex_count()); ++v) {
    NeighborLists lists;
    RHIZOME_RETURN_IF_ERROR(LookUpNeighbors(*graph_, std::span(&v, 1), Direction::kOut, lists));
    RHIZOME_RETURN_IF_ERROR(rows_->Read(std::span(&v, 1), std::as_writable_bytes(std::span(row))));
    const auto* list = reinterpret_cast<const char*>(lists.vertices.data());
    const auto number = static_cast<std::uint64_t>(v);
    RHIZOME_RETURN_IF_ERROR(
        database_->Write({{BenchDatabase::Key(number, kList),
                           std::string(list, lists.vertices.size() * sizeof(VertexId))},
                          {BenchDatabase::Key(number, kRow), row}},
                         /*sync=*/false));
  }
  return database_->Settle();
}

Look LookupBench::Own(char kind) const {
  if (kind == kList)
    return [this, lists = NeighborLists()](std::span<const VertexId> vertices) mutable {
      return LookUpNeighbors(*graph_, vertices, Direction::kOut, lists);
    };
  return [this, row_bytes = rows_->row_bytes(),
          out = std::vector<std::byte>()](std::span<const VertexId> vertices) mutable {
    out.resize(vertices.size() * row_bytes);
    return rows_->Read(vertices, out);
  };
}

Look LookupBench::Peer(char kind) const {
  return [this, kind, keys = std::vector<std::string>(), value = std::string(),
          values = std::vector<std::string>()](std::span<const VertexId> vertices) mutable {
    keys.clear();
    for (const VertexId vertex : vertices)
      keys.push_back(BenchDatabase::Key(static_cast<std::uint64_t>(vertex), kind));
    return keys.size() == 1 ? database_->Get(keys[0], value) : database_->MultiGet(keys, values);
  };
}

// Returns look-ups per second in batches, summed over all threads.
Result<double> LookupBench::PerSecond(const std::function<Look()>& make) const {
  std::vector<Status> statuses(options_.threads);
  std::vector<std::thread> threads;
  const std::uint32_t batches = std::max(options_.lookups / options_.batch / options_.threads, 1U);
  const Stopwatch watch;
  for (std::uint32_t t = 0; t < options_.threads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      const Look look = make();
      std::vector<VertexId> vertices(options_.batch);
      for (std::uint32_t b = 0; b < batches && statuses[t].ok(); ++b) {
        for (VertexId& vertex : vertices)
          vertex = static_cast<VertexId>(random() % graph_->vertex_count());
        statuses[t] = look(vertices);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const double seconds = watch.seconds();
  for (const Status& status : statuses) RHIZOME_RETURN_IF_ERROR(status);
  return static_cast<double>(batches) * options_.batch * options_.threads / seconds;
}

Result<Json> LookupBench::Compare(char kind, const JobControl& control) {
  const Look own = Own(kind);
  const Look peer = Peer(kind);
  std::vector<double> own_seconds;
  std::vector<double> peer_seconds;
  std::mt19937_64 random(options_.graph.seed);
  for (std::uint32_t i = 0; i < 2 * options_.lookups; ++i) {
    if (i % 4096 == 0) RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
    const auto vertex = static_cast<VertexId>(random() % graph_->vertex_count());
    const bool warm = i >= options_.lookups;  // the first half warms up both contestants
    for (const bool ours : {true, false}) {
      const Stopwatch watch;
      RHIZOME_RETURN_IF_ERROR((ours ? own : peer)(std::span(&vertex, 1)));
      if (warm) (ours ? own_seconds : peer_seconds).push_back(watch.seconds());
    }
  }
  std::sort(own_seconds.begin(), own_seconds.end());
  std::sort(peer_seconds.begin(), peer_seconds.end());
  const auto micros = [](const std::vector<double>& sorted, double share) {
    return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))] * 1e6;
  };
  RHIZOME_ASSIGN_OR_RETURN(const double own_rate, PerSecond([&] { return Own(kind); }));
  RHIZOME_ASSIGN_OR_RETURN(const double peer_rate, PerSecond([&] { return Peer(kind); }));
  return Json{{"p50_us", micros(own_seconds, 0.5)},
              {"p99_us", micros(own_seconds, 0.99)},
              {"rocksdb_p50_us", micros(peer_seconds, 0.5)},
              {"rocksdb_p99_us", micros(peer_seconds, 0.99)},
              {"ratio_p50", micros(peer_seconds, 0.5) / micros(own_seconds, 0.5)},
              {"batched_per_second", own_rate},
              {"rocksdb_batched_per_second", peer_rate},
              {"ratio_batched", own_rate / peer_rate}};
}

}  // namespace

// Creates a store and a RocksDB with the same contents, then compares the latency of single
// look-ups and the rate of batches, first for neighbour lists, then for rows.
Result<Json> BenchLookup(const BenchLookupOptions& options, const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(const ScratchFolder scratch, ScratchFolder::Create(options.graph.dir));
  LookupBench bench(options);
  RHIZOME_RETURN_IF_ERROR(bench.Open(scratch.path(), control));
  Json fields = {{"workload", "lookup"},
                 {"vertices", bench.graph()->vertex_count()},
                 {"edges", bench.graph()->generation_edge_count()},
                 {"row_bytes", options.dim * sizeof(float)},
                 {"threads", options.threads},
                 {"batch", options.batch}};
  RHIZOME_ASSIGN_OR_RETURN(fields["neighbors"], bench.Compare(kList, control));
  RHIZOME_ASSIGN_OR_RETURN(fields["rows"], bench.Compare(kRow, control));
  fields["machine"] = DescribeMachine(scratch.path());
  return fields;
}

}  // namespace rhizome
