#include "tools/bench/store/bench_cold_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "index/generation/graph_builder.h"
#include "rhizome/graph_lookup.h"
#include "storage/array/chunk_writer.h"
#include "storage/array/row_reader.h"
#include "storage/base/stopwatch.h"
#include "tools/bench/harness/bench_common.h"
#include "tools/cli/json.h"

namespace rhizome {
namespace {

using ColdLook = std::function<Status(std::span<const VertexId>, std::span<std::byte>)>;

constexpr const char* kColdArray = "feat";

/// A store of vertices with rows and almost no edges, and its readers.
class ColdRows {
 public:
  explicit ColdRows(const BenchColdRowsOptions& options) : options_(options) {}
  Status Open(const Path& folder, const JobControl& control);
  Result<Json> Compare(const Path& scratch, const JobControl& control);

 private:
  Status Make(const Path& path, const JobControl& control) const;
  Status ReadByReader(std::span<const VertexId> vertices, std::span<std::byte> out);
  Result<double> Rate(const ColdLook& look);

  const BenchColdRowsOptions& options_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Graph> graph_;
  std::unique_ptr<ChunkArray> array_;
  std::unique_ptr<RowReader> reader_;
  std::unique_ptr<RowLookup> rows_;
  std::mt19937_64 random_;
  std::vector<RowTarget> targets_;
};

// Rows are random, so that no layer can compress them.
Status ColdRows::Make(const Path& path, const JobControl& control) const {
  GraphInput input;
  input.vertex_count = std::max<std::uint64_t>(options_.bytes / (options_.dim * sizeof(float)), 2);
  input.vertex_type_names = {"vertex"};
  input.edge_type_names = {"edge"};
  input.edges.src = {0};
  input.edges.dst = {1};
  ArrayInput array;
  array.name = kColdArray;
  array.dim = options_.dim;
  array.read_rows = [random = std::make_shared<std::mt19937_64>(options_.seed)](
                        std::span<const VertexId>, std::span<std::byte> out) {
    for (std::size_t at = 0; at < out.size(); at += sizeof(std::uint64_t)) {
      const std::uint64_t word = (*random)();
      std::memcpy(out.data() + at, &word, std::min(sizeof(word), out.size() - at));
    }
    return Status::Ok();
  };
  input.arrays.push_back(std::move(array));
  RHIZOME_ASSIGN_OR_RETURN(const auto store, Store::Create(FileSystem::Posix(), path, StoreId{}));
  return BuildGeneration(*store, std::move(input), BuildOptions{}, control);
}

Status ColdRows::Open(const Path& folder, const JobControl& control) {
  const Path path = folder / "rows.rz";
  RHIZOME_RETURN_IF_ERROR(Make(path, control));
  RHIZOME_ASSIGN_OR_RETURN(store_, Store::Open(FileSystem::Posix(), path, Store::Mode::kRead));
  RHIZOME_ASSIGN_OR_RETURN(graph_, Graph::Open(*store_));
  RHIZOME_ASSIGN_OR_RETURN(array_, store_->OpenArray(kColdArray));
  RHIZOME_ASSIGN_OR_RETURN(const auto sidecar, store_->OpenArray(SidecarName(kColdArray)));
  RHIZOME_ASSIGN_OR_RETURN(reader_, RowReader::Open(*array_, *sidecar, RowReaderOptions{}));
  // Small enough that hardly any row is found in memory again, but large enough for the checksums.
  RHIZOME_ASSIGN_OR_RETURN(
      rows_, RowLookup::Open(*graph_, kColdArray,
                             {.memory_bytes = std::max<std::uint64_t>(
                                  options_.bytes / 32, 16 * graph_->vertex_count())}));
  return Status::Ok();
}

Status ColdRows::ReadByReader(std::span<const VertexId> vertices, std::span<std::byte> out) {
  const std::size_t row_bytes = reader_->row_bytes();
  targets_.resize(vertices.size());
  for (std::size_t i = 0; i < vertices.size(); ++i)
    targets_[i] = {*graph_->RowOf(vertices[i]), out.data() + i * row_bytes};
  return reader_->Read(targets_);
}

// Returns rows per second, read in calls of `batch` random vertices.
Result<double> ColdRows::Rate(const ColdLook& look) {
  std::vector<VertexId> vertices(options_.batch);
  std::vector<std::byte> out(vertices.size() * reader_->row_bytes());
  std::uint64_t done = 0;
  const Stopwatch watch;
  double elapsed = 0;
  for (; elapsed < options_.seconds; elapsed = watch.seconds()) {
    for (VertexId& vertex : vertices)
      vertex = static_cast<VertexId>(random_() % graph_->vertex_count());
    RHIZOME_RETURN_IF_ERROR(look(vertices, out));
    done += vertices.size();
  }
  return static_cast<double>(done) / elapsed;
}

Result<Json> ColdRows::Compare(const Path& scratch, const JobControl& control) {
  const ColdLook looks[] = {
      [this](auto vertices, auto out) { return ReadByReader(vertices, out); },
      [this](auto vertices, auto out) { return graph_->ReadRows(kColdArray, vertices, out); },
      [this](auto vertices, auto out) { return rows_->Read(vertices, out); }};
  std::vector<double> rates[3];
  std::vector<double> fio;
  FioJob job = RowReadsJob(*array_);
  job.seconds = options_.seconds;
  for (std::uint32_t round = 0; round < options_.rounds; ++round) {
    RHIZOME_RETURN_IF_ERROR(
        control.Report({.phase = "cold rows", .done = round, .total = options_.rounds}));
    for (std::size_t i = 0; i < 3; ++i) {
      RHIZOME_ASSIGN_OR_RETURN(const double rate, Rate(looks[i]));
      rates[i].push_back(std::round(rate));
    }
    job.seed = options_.seed + round;
    if (const auto reads = RunFio(job, scratch)) fio.push_back(std::round(*reads));
  }
  const auto ratio = [&](std::size_t i) {
    std::vector<double> ratios;
    for (std::size_t r = 0; r < rates[i].size(); ++r) ratios.push_back(rates[i][r] / rates[0][r]);
    return Median(ratios);
  };
  Json fields = {{"rows", graph_->vertex_count()},
                 {"row_bytes", reader_->row_bytes()},
                 {"batch", options_.batch},
                 {"row_reader_per_second", Median(rates[0])},
                 {"read_rows_per_second", Median(rates[1])},
                 {"read_rows_ratio", ratio(1)},
                 {"row_lookup_per_second", Median(rates[2])},
                 {"row_lookup_ratio", ratio(2)}};
  if (!fio.empty()) fields["fio_per_second"] = Median(fio);
  fields["rounds"] = {{"row_reader", rates[0]}, {"read_rows", rates[1]}, {"row_lookup", rates[2]}};
  return fields;
}

}  // namespace

// Creates a store with random rows, opens its readers, and measures each reader and fio in turns
// for several rounds.
Result<Json> BenchColdRows(const BenchColdRowsOptions& options, const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(const ScratchFolder scratch, ScratchFolder::Create(options.dir));
  ColdRows bench(options);
  RHIZOME_RETURN_IF_ERROR(bench.Open(scratch.path(), control));
  return bench.Compare(scratch.path(), control);
}

}  // namespace rhizome
