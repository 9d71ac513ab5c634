#include "tools/bench/store/bench_verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "index/generation/graph_builder.h"
#include "rhizome/maintenance.h"
#include "rhizome/verify.h"
#include "storage/base/stopwatch.h"
#include "storage/maintenance/verify_files.h"
#include "tools/bench/harness/bench_common.h"
#include "tools/bench/harness/fio.h"

namespace rhizome {
namespace {

constexpr std::uint64_t kVerifyFioBlockBytes = std::uint64_t{1} << 20;

/// Returns a graph with random edges and rows of random bytes.
GraphInput MakeInput(const BenchVerifyOptions& options) {
  GraphInput input;
  input.vertex_count = std::max<std::uint64_t>(options.bytes / options.row_bytes, 1);
  input.vertex_type_names = {"vertex"};
  input.edge_type_names = {"edge"};
  std::mt19937_64 random(1);
  for (std::uint64_t e = 0; e < input.vertex_count * options.edge_factor; ++e) {
    input.edges.src.push_back(static_cast<VertexId>(random() % input.vertex_count));
    input.edges.dst.push_back(static_cast<VertexId>(random() % input.vertex_count));
  }
  ArrayInput rows;
  rows.name = "feat";
  rows.dim = options.row_bytes / sizeof(float);
  rows.read_rows = [state = std::uint64_t{1}](std::span<const VertexId>,
                                              std::span<std::byte> out) mutable {
    for (std::size_t i = 0; i + 8 <= out.size(); i += 8) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      std::memcpy(out.data() + i, &state, sizeof(state));
    }
    return Status::Ok();
  };
  input.arrays.push_back(std::move(rows));
  return input;
}

Status MakeBenchVerifyStore(const Path& path, const BenchVerifyOptions& options,
                            const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(const auto store, Store::Create(FileSystem::Posix(), path, StoreId{}));
  BuildOptions build;
  build.partition.kind = PartitionerKind::kRandom;
  build.partition.partitions = 2;
  return BuildGeneration(*store, MakeInput(options), build, control);
}

struct VerifyTurn {
  double files = 0;  ///< bytes per second of VerifyFiles
  double whole = 0;  ///< bytes per second of everything that the verb does
  double cpu = 0;    ///< seconds of processor time
  std::uint64_t bytes = 0;
};

Result<VerifyTurn> Verify(const Path& path, const JobControl& control) {
  FileSystem& fs = FileSystem::Posix();
  VerifyTurn round;
  {
    const Stopwatch watch;
    RHIZOME_ASSIGN_OR_RETURN(const VerifyReport report, VerifyFiles(fs, path, control));
    round.files = static_cast<double>(report.bytes) / watch.seconds();
  }
  const Stopwatch watch;
  const double cpu = ProcessCpuSeconds();
  RHIZOME_ASSIGN_OR_RETURN(const VerifyReport report, VerifyStore(fs, path, control));
  round.bytes = report.bytes;
  round.whole = static_cast<double>(report.bytes) / watch.seconds();
  round.cpu = ProcessCpuSeconds() - cpu;
  if (report.ok()) return round;
  return Fail(Status::Corruption(
      fmt::format("'{}' is damaged: {}", path.string(), report.damaged.front().file)));
}

/// Returns a fio job that reads the largest files of the store, which hold most of its bytes and
/// are all in one folder.
Result<FioJob> MakeVerifyFioJob(const Store& store, double seconds) {
  constexpr std::size_t kMaxFiles = 64;
  std::vector<FileEntry> files = store.manifest().files;
  std::sort(files.begin(), files.end(),
            [](const auto& a, const auto& b) { return a.size_bytes > b.size_bytes; });
  const std::string folder = Path(files.front().path).parent_path().string();
  FioJob job;
  job.folder = store.GenerationFolder() / folder;
  for (const FileEntry& file : files) {
    const bool same = Path(file.path).parent_path() == folder;
    if (same && file.size_bytes >= kVerifyFioBlockBytes && job.files.size() < kMaxFiles)
      job.files.push_back(Path(file.path).filename().string());
  }
  if (job.files.empty())
    return Fail(Status::InvalidArgument(
        "the store has no file of at least 1 MiB: there is nothing to measure"));
  job.block_bytes = kVerifyFioBlockBytes;
  job.depth = 32;
  job.sequential = true;
  job.seconds = seconds;
  return job;
}

}  // namespace

// Measures verification: (1) opens the store, or generates one; (2) in each round, verifies the
// files and the graph, then reads the same files with fio; (3) reports medians and ratios.
Result<nlohmann::ordered_json> BenchVerify(const BenchVerifyOptions& options,
                                           const JobControl& control) {
  if (options.rounds == 0 || options.row_bytes == 0 || options.row_bytes % sizeof(float) != 0)
    return Fail(Status::InvalidArgument(
        "bench verify: rows must consist of whole floats, and there must be at least one round"));
  RHIZOME_ASSIGN_OR_RETURN(const ScratchFolder scratch, ScratchFolder::Create(options.dir));
  const Path path = options.store.value_or(scratch.path() / "store");
  if (!options.store) RHIZOME_RETURN_IF_ERROR(MakeBenchVerifyStore(path, options, control));
  RHIZOME_ASSIGN_OR_RETURN(const auto store,
                           Store::Open(FileSystem::Posix(), path, Store::Mode::kRead));
  RHIZOME_ASSIGN_OR_RETURN(FioJob job, MakeVerifyFioJob(*store, options.fio_seconds));
  std::vector<double> files;
  std::vector<double> whole;
  std::vector<double> fio;
  std::vector<double> cpu;
  std::string missing;
  std::uint64_t bytes = 0;
  for (std::uint32_t r = 0; r < options.rounds; ++r) {
    RHIZOME_ASSIGN_OR_RETURN(const VerifyTurn round, Verify(path, control));
    files.push_back(round.files);
    whole.push_back(round.whole);
    cpu.push_back(round.cpu);
    bytes = round.bytes;
    if (!missing.empty()) continue;
    job.seed = r + 1;
    const Result<double> reads = RunFio(job, scratch.path());
    if (!reads && reads.error().code() != StatusCode::kUnsupported) return Fail(reads.error());
    if (!reads) missing = reads.error().message();
    if (reads) fio.push_back(*reads * static_cast<double>(kVerifyFioBlockBytes));
  }
  nlohmann::ordered_json json = {{"workload", "verify"},
                                 {"figure", Median(whole)},
                                 {"unit", "bytes/s"},
                                 {"reference", nullptr},
                                 {"reference_name", "fio, sequential direct reads of 1 MiB"},
                                 {"ratio", nullptr},
                                 {"files_only", Median(files)},
                                 {"files_only_ratio", nullptr}};
  if (fio.empty()) {
    json["reference_missing"] = missing;
  } else {
    json["reference"] = Median(fio);
    json["ratio"] = Median(whole) / Median(fio);
    json["files_only_ratio"] = Median(files) / Median(fio);
  }
  json["cpu_seconds"] = Median(cpu);
  json["bytes"] = bytes;
  json["rounds"] = {{"whole", whole}, {"files", files}, {"fio", fio}};
  json["machine"] = DescribeMachine(path);
  return json;
}

}  // namespace rhizome
