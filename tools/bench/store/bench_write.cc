#include "tools/bench/store/bench_write.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

#include "index/delta/delta.h"
#include "index/delta/delta_record.h"
#include "index/generation/graph_builder.h"
#include "rhizome/write_batch.h"
#include "storage/base/stopwatch.h"
#include "tools/bench/harness/bench_common.h"
#include "tools/bench/store/bench_database.h"
#include "tools/cli/json.h"

namespace rhizome {
namespace {

constexpr std::uint32_t kWriteBatchEdges = 1000;
constexpr std::uint32_t kEdgeFactor = 16;

double Percentile(std::vector<double> seconds, double share) {
  const auto at = static_cast<std::size_t>(share * static_cast<double>(seconds.size() - 1));
  std::nth_element(seconds.begin(), seconds.begin() + static_cast<std::ptrdiff_t>(at),
                   seconds.end());
  return seconds[at];
}

/// A store of random edges with one array, and an empty database.
class WriteBench {
 public:
  explicit WriteBench(const BenchWriteOptions& options)
      : options_(options), random_(options.seed), row_(options.dim, 0.5F) {}

  Status Open(const Path& folder, const JobControl& control);
  Result<Json> Puts(const JobControl& control);
  Result<Json> Batches(const JobControl& control);
  Result<Json> Threads();
  std::shared_ptr<const GraphSnapshot> graph() const { return graph_->Snapshot(); }

 private:
  WriteBatch NextPut();
  std::vector<BenchDatabase::Entry> SameBytes();
  template <typename Put>
  Result<double> InThreads(const Put& put) const;

  const BenchWriteOptions& options_;
  std::mt19937_64 random_;
  const std::vector<float> row_;
  std::atomic<std::uint64_t> next_ = 0;  // next unused vertex or key
  std::atomic<std::uint64_t> next_key_ = 0;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Graph> graph_;
  std::unique_ptr<BenchDatabase> database_;
  std::string record_;  // as long as the record of one put
};

Status WriteBench::Open(const Path& folder, const JobControl& control) {
  GraphInput input;
  input.vertex_count = std::uint64_t{1} << options_.scale;
  for (std::uint64_t e = 0; e < input.vertex_count * kEdgeFactor; ++e) {
    input.edges.src.push_back(static_cast<VertexId>(random_() % input.vertex_count));
    input.edges.dst.push_back(static_cast<VertexId>(random_() % input.vertex_count));
  }
  ArrayInput array;
  array.name = "feat";
  array.dim = options_.dim;
  array.read_rows = [](std::span<const VertexId>, std::span<std::byte> out) {
    std::fill(out.begin(), out.end(), std::byte{0});
    return Status::Ok();
  };
  input.arrays.push_back(std::move(array));
  input.vertex_type_names = {"vertex"};
  input.edge_type_names = {"edge"};
  next_ = input.vertex_count;
  FileSystem& fs = FileSystem::Posix();
  const Path path = folder / "graph.rz";
  {
    RHIZOME_ASSIGN_OR_RETURN(const auto store, Store::Create(fs, path, StoreId{}));
    BuildOptions build;
    build.partition.kind = PartitionerKind::kRandom;
    RHIZOME_RETURN_IF_ERROR(BuildGeneration(*store, std::move(input), build, control));
  }
  RHIZOME_ASSIGN_OR_RETURN(store_, Store::Open(fs, path, Store::Mode::kWrite));
  RHIZOME_ASSIGN_OR_RETURN(graph_, Graph::Open(*store_));
  RHIZOME_ASSIGN_OR_RETURN(database_, BenchDatabase::Create(folder / "rocksdb"));
  DeltaRunBuilder builder(false, 0, static_cast<VertexId>(next_.load()));
  const VertexId src = builder.AddVertex(ExternalId(std::int64_t{0}), 0);
  const VertexId dst = builder.AddVertex(ExternalId(std::int64_t{1}), 0);
  builder.AddEdge(src, dst, 0, 1, {});
  builder.PutRow(1, src);
  record_.assign(EncodeDeltaRecord(builder.Finish(1), {.vertices = next_}).size() + 4, 'r');
  return Status::Ok();
}

WriteBatch WriteBench::NextPut() {
  const auto src = static_cast<std::int64_t>(next_.fetch_add(2));
  WriteBatch batch;
  batch.PutEdge(src, src + 1);
  batch.PutRow(src, "feat", std::span<const float>(row_));
  return batch;
}

std::vector<BenchDatabase::Entry> WriteBench::SameBytes() {
  const std::uint64_t number = next_key_.fetch_add(1);
  std::string row_key = BenchDatabase::Key(number, 1);
  row_key.append(16, '\0');  // for array and vertex
  return {{BenchDatabase::Key(number, 0), record_},
          {std::move(row_key), std::string(options_.dim * sizeof(float) + 4, 'v')}};
}

Result<Json> WriteBench::Puts(const JobControl& control) {
  std::vector<double> own;
  std::vector<double> peer;
  for (std::uint32_t i = 0; i < options_.puts; ++i) {
    RHIZOME_RETURN_IF_ERROR(
        control.Report({.phase = "single puts", .done = i, .total = options_.puts}));
    Stopwatch watch;
    RHIZOME_RETURN_IF_ERROR(graph_->Write(NextPut()));
    own.push_back(watch.seconds());
    watch = Stopwatch();
    RHIZOME_RETURN_IF_ERROR(database_->Write(SameBytes(), /*sync=*/true));
    peer.push_back(watch.seconds());
  }
  const auto micros = [](const std::vector<double>& seconds, double share) {
    return Percentile(seconds, share) * 1e6;
  };
  return Json{{"puts", options_.puts},
              {"p50_us", micros(own, 0.5)},
              {"p99_us", micros(own, 0.99)},
              {"rocksdb_p50_us", micros(peer, 0.5)},
              {"rocksdb_p99_us", micros(peer, 0.99)},
              {"ratio_p50", Percentile(own, 0.5) / Percentile(peer, 0.5)},
              {"ratio_p99", Percentile(own, 0.99) / Percentile(peer, 0.99)}};
}

Result<Json> WriteBench::Batches(const JobControl& control) {
  const std::uint64_t bound = graph_->Snapshot()->info().vertices;
  double seconds = 0;
  for (std::uint32_t i = 0; i < options_.batches; ++i) {
    RHIZOME_RETURN_IF_ERROR(
        control.Report({.phase = "batches", .done = i, .total = options_.batches}));
    WriteBatch batch;
    for (std::uint32_t e = 0; e < kWriteBatchEdges; ++e)
      batch.PutEdge(static_cast<std::int64_t>(random_() % bound),
                    static_cast<std::int64_t>(random_() % bound));
    const Stopwatch watch;
    RHIZOME_RETURN_IF_ERROR(graph_->Write(batch));
    seconds += watch.seconds();
  }
  return Json{{"batches", options_.batches},
              {"edges_each", kWriteBatchEdges},
              {"edges_per_second", options_.batches * double{kWriteBatchEdges} / seconds}};
}

// Returns puts per second, summed over all threads.
template <typename Put>
Result<double> WriteBench::InThreads(const Put& put) const {
  std::vector<Status> statuses(options_.threads);
  std::vector<std::thread> threads;
  const std::uint32_t each = std::max(options_.puts / options_.threads, 1U);
  const Stopwatch watch;
  for (std::uint32_t t = 0; t < options_.threads; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint32_t i = 0; i < each && statuses[t].ok(); ++i) statuses[t] = put();
    });
  }
  for (std::thread& thread : threads) thread.join();
  const double seconds = watch.seconds();
  for (const Status& status : statuses) RHIZOME_RETURN_IF_ERROR(status);
  return static_cast<double>(each) * options_.threads / seconds;
}

Result<Json> WriteBench::Threads() {
  RHIZOME_ASSIGN_OR_RETURN(const double own, InThreads([&] {
                             const auto written = graph_->Write(NextPut());
                             return written ? Status::Ok() : written.error();
                           }));
  RHIZOME_ASSIGN_OR_RETURN(const double peer,
                           InThreads([&] { return database_->Write(SameBytes(), /*sync=*/true); }));
  return Json{{"threads", options_.threads},
              {"puts_per_second", own},
              {"rocksdb_puts_per_second", peer},
              {"ratio", own / peer}};
}

}  // namespace

// Creates a store and an empty RocksDB, then compares latencies of single durable puts, rates of
// batches, and rates of concurrent puts.
Result<Json> BenchWrite(const BenchWriteOptions& options, const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(const ScratchFolder scratch, ScratchFolder::Create(options.dir));
  WriteBench bench(options);
  RHIZOME_RETURN_IF_ERROR(bench.Open(scratch.path(), control));
  Json fields = {{"workload", "write"},
                 {"vertices", bench.graph()->vertex_count()},
                 {"edges", bench.graph()->generation_edge_count()},
                 {"row_bytes", options.dim * sizeof(float)}};
  RHIZOME_ASSIGN_OR_RETURN(fields["put"], bench.Puts(control));
  RHIZOME_ASSIGN_OR_RETURN(fields["batch"], bench.Batches(control));
  RHIZOME_ASSIGN_OR_RETURN(fields["concurrent"], bench.Threads());
  fields["delta_entries"] = bench.graph()->delta()->entries();
  fields["machine"] = DescribeMachine(scratch.path());
  return fields;
}

}  // namespace rhizome
