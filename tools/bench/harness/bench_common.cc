#include "tools/bench/harness/bench_common.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <thread>
#include <unordered_set>

#include "index/input/npy_header.h"
#include "rhizome/ingest.h"
#include "rhizome/job_report.h"
#include "storage/array/chunk_writer.h"
#include "storage/io/files.h"
#include "tools/import/generate.h"

namespace rhizome {
namespace {

/// Writes `values` to a file and adds it to `ingest` as an array of one column.
template <typename T>
Status AddColumn(const Path& folder, const std::string& name, DataType dtype,
                 const std::vector<T>& values, IngestOptions& ingest) {
  const Path path = folder / (name + ".npy");
  RHIZOME_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  const std::string header = NpyHeaderBytes(dtype, values.size(), 1);
  RHIZOME_RETURN_IF_ERROR(file.Append(std::as_bytes(std::span(header))));
  RHIZOME_RETURN_IF_ERROR(file.Append(std::as_bytes(std::span(values))));
  ingest.arrays.push_back({.name = name, .path = path, .dim = 1, .dtype = {}, .open = {}});
  return file.Commit();
}

/// Adds random labels and a random split, for benches that only measure time.
Status AddLabels(const BenchGraphOptions& options, const Path& folder, IngestOptions& ingest) {
  std::mt19937_64 random(options.seed);
  std::vector<std::int64_t> labels(*ingest.vertices);
  std::vector<std::uint8_t> split(*ingest.vertices);
  for (std::size_t v = 0; v < labels.size(); ++v) {
    labels[v] = static_cast<std::int64_t>(random() % 32);
    split[v] = random() % 10 == 0 ? 0 : 255;
  }
  RHIZOME_RETURN_IF_ERROR(AddColumn(folder, "label", DataType::kInt64, labels, ingest));
  return AddColumn(folder, "split", DataType::kUint8, split, ingest);
}

/// Divides the edges of a generated file at random into one file for each relation.
Status AddRelations(const BenchGraphOptions& options, const GeneratedFile& edges,
                    IngestOptions& ingest) {
  constexpr std::size_t kEdgeBytes = 2 * sizeof(std::int64_t);
  constexpr std::size_t kMaxHeaderBytes = 4096;
  RHIZOME_ASSIGN_OR_RETURN(
      const std::vector<std::byte> bytes,
      ReadWholeFile(FileSystem::Posix(), edges.path, kMaxHeaderBytes + edges.rows * kEdgeBytes));
  std::span<const std::byte> rest = std::span(bytes).last(edges.rows * kEdgeBytes);
  std::vector<std::vector<std::byte>> parts(options.relations);
  std::mt19937_64 random(options.seed);
  for (; !rest.empty(); rest = rest.subspan(kEdgeBytes)) {
    std::vector<std::byte>& part = parts[random() % options.relations];
    part.insert(part.end(), rest.begin(), rest.begin() + kEdgeBytes);
  }
  ingest.edges.clear();
  for (std::size_t r = 0; r < parts.size(); ++r) {
    EdgeFile& edge_file =
        ingest.edges.emplace_back(edges.path.parent_path() / fmt::format("edges{}.npy", r));
    edge_file.type = fmt::format("r{}", r);
    edge_file.sources_first = false;
    RHIZOME_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(edge_file.path));
    const std::string header = NpyHeaderBytes(DataType::kInt64, parts[r].size() / kEdgeBytes, 2);
    RHIZOME_RETURN_IF_ERROR(file.Append(std::as_bytes(std::span(header))));
    RHIZOME_RETURN_IF_ERROR(file.Append(parts[r]));
    RHIZOME_RETURN_IF_ERROR(file.Commit());
  }
  return Status::Ok();
}

/// Generates the edges, ingests them as a store in `scratch`, and removes the edge file.
Status MakeBenchGraph(const BenchGraphOptions& options, const ScratchFolder& scratch,
                      const Path& path, const JobControl& control) {
  GenerateOptions generate;
  generate.kind = GraphKind::kRmat;
  generate.scale = options.scale;
  generate.edge_factor = options.edge_factor;
  generate.seed = options.seed;
  generate.permute = true;
  generate.undirected = options.undirected;
  generate.simple = options.undirected;
  const Path input = scratch.path() / "edges";
  FileSystem& fs = FileSystem::Posix();
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<GeneratedFile> files,
                           GenerateGraph(fs, input, generate, control));

  IngestOptions ingest;
  ingest.edges = {input / "edges.npy"};
  if (options.relations > 0) RHIZOME_RETURN_IF_ERROR(AddRelations(options, files.front(), ingest));
  ingest.id_type = IdType::kInteger;
  ingest.vertices = std::uint64_t{1} << options.scale;
  ingest.undirected = options.undirected;
  ingest.build.partition.partitions = options.partitions;
  ingest.build.partition.threads = options.threads;
  if (options.dim > 0) {
    RHIZOME_ASSIGN_OR_RETURN(const GeneratedFile features,
                             GenerateFeatures(input / "features.npy", *ingest.vertices, options.dim,
                                              options.seed, control));
    ingest.arrays.push_back(
        {.name = "feat", .path = features.path, .dim = options.dim, .dtype = {}, .open = {}});
  }
  if (options.labels) RHIZOME_RETURN_IF_ERROR(AddLabels(options, input, ingest));
  RHIZOME_RETURN_IF_ERROR(Ingest(fs, path, ingest, control));
  return Status::Ok();
}

}  // namespace

Result<BenchGraph> OpenBenchGraph(const BenchGraphOptions& options, const JobControl& control) {
  BenchGraph opened;
  Path path;
  if (options.store) {
    path = *options.store;
  } else {
    RHIZOME_ASSIGN_OR_RETURN(ScratchFolder scratch, ScratchFolder::Create(options.dir));
    opened.scratch = std::make_unique<ScratchFolder>(std::move(scratch));
    path = opened.scratch->path() / "graph.rz";
    RHIZOME_RETURN_IF_ERROR(MakeBenchGraph(options, *opened.scratch, path, control));
  }
  RHIZOME_ASSIGN_OR_RETURN(opened.store,
                           Store::Open(FileSystem::Posix(), path, Store::Mode::kRead));
  RHIZOME_ASSIGN_OR_RETURN(opened.graph, Graph::Open(std::as_const(*opened.store)));
  return opened;
}

nlohmann::ordered_json DescribeGraph(const BenchGraphOptions& options, const GraphSnapshot& graph) {
  const std::string name = options.store ? options.store->string()
                                         : fmt::format("RMAT scale {}, edge factor {}",
                                                       options.scale, options.edge_factor);
  return {{"graph", name},
          {"vertices", graph.vertex_count()},
          {"edges", graph.generation_edge_count()},
          {"partitions", graph.partition_count()}};
}

std::vector<VertexId> DrawSeeds(std::uint64_t vertex_count, std::uint32_t batch_size,
                                std::uint64_t seed, std::uint64_t batch) {
  std::seed_seq mixed{seed, seed >> 32, batch, batch >> 32};
  std::mt19937_64 random(mixed);
  const std::uint64_t wanted = std::min<std::uint64_t>(batch_size, vertex_count);
  std::vector<VertexId> seeds;
  std::unordered_set<VertexId> seen;
  while (seeds.size() < wanted) {
    const auto vertex = static_cast<VertexId>(random() % vertex_count);
    if (seen.insert(vertex).second) seeds.push_back(vertex);
  }
  return seeds;
}

FioJob RowReadsJob(const ChunkArray& rows) {
  // Divides the O_DIRECT alignment of all known file systems, and is the smallest read of a disk.
  constexpr std::uint64_t kSectorBytes = 512;
  // fio receives the files in one argument, whose length is limited.
  constexpr std::uint64_t kMaxFiles = 256;
  const ArrayEntry& entry = rows.entry();
  FioJob job;
  job.folder = rows.root() / ArrayFolder(entry.name);
  const std::uint64_t stride = (entry.chunk_count() + kMaxFiles - 1) / kMaxFiles;
  for (std::uint64_t c = 0; c < entry.chunk_count(); c += stride)
    job.files.push_back(Path(ChunkPath(entry.name, c)).filename().string());
  job.block_bytes = (entry.row_bytes() + kSectorBytes - 1) / kSectorBytes * kSectorBytes;
  job.depth = IoQueueOptions().depth;
  return job;
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace rhizome
