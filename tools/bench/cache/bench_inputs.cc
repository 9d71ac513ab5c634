#include "tools/bench/cache/bench_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <span>
#include <utility>

#include "cache/policy/replay.h"
#include "rhizome/graph.h"
#include "rhizome/ingest.h"
#include "rhizome/loader.h"
#include "storage/io/files.h"
#include "tools/cli/scratch_folder.h"
#include "tools/import/generate.h"

// Steps: (1) generate a store with random vertex types and an array for each of them; (2) for each
// size of the cache, run an epoch of a Loader and record the rows that it requests from each array;
// (3) replay these requests with the loader's division and with all others.

namespace rhizome {
namespace {

constexpr std::uint64_t kSixteenths = 16;

std::string TypeName(std::size_t type) { return fmt::format("t{}", type); }
std::string ArrayName(std::size_t type) { return fmt::format("x{}", type); }

/// Writes a line with id and type of each vertex. Returns the number of vertices of each type.
Result<std::vector<std::uint64_t>> WriteNodes(const BenchInputsOptions& options, const Path& path) {
  std::mt19937_64 random(options.seed);
  std::discrete_distribution<std::size_t> draw(options.parts.begin(), options.parts.end());
  std::vector<std::uint64_t> counts(options.parts.size(), 0);
  std::string lines;
  for (std::uint64_t v = 0; v < std::uint64_t{1} << options.scale; ++v) {
    const std::size_t type = draw(random);
    ++counts[type];
    lines += fmt::format("{}\t{}\n", v, TypeName(type));
  }
  RHIZOME_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  RHIZOME_RETURN_IF_ERROR(file.Append(std::as_bytes(std::span(lines))));
  RHIZOME_RETURN_IF_ERROR(file.Commit());
  return counts;
}

/// Generates the store at `path`. Returns the number of vertices of each type.
Result<std::vector<std::uint64_t>> MakeStore(const BenchInputsOptions& options, const Path& folder,
                                             const Path& path, const JobControl& control) {
  GenerateOptions generate;
  generate.kind = GraphKind::kRmat;
  generate.scale = options.scale;
  generate.edge_factor = options.edge_factor;
  generate.seed = options.seed;
  generate.permute = true;
  RHIZOME_RETURN_IF_ERROR(GenerateGraph(FileSystem::Posix(), folder, generate, control));
  IngestOptions ingest;
  ingest.edges = {folder / "edges.npy"};
  ingest.id_type = IdType::kInteger;
  ingest.vertices = std::uint64_t{1} << options.scale;
  ingest.nodes = folder / "nodes.tsv";
  ingest.node_columns = {"id", "type"};
  RHIZOME_ASSIGN_OR_RETURN(auto counts, WriteNodes(options, folder / "nodes.tsv"));
  for (std::size_t type = 0; type < options.dims.size(); ++type) {
    ingest.vertex_types.push_back(TypeName(type));
    RHIZOME_ASSIGN_OR_RETURN(const GeneratedFile rows,
                             GenerateFeatures(folder / (ArrayName(type) + ".npy"), *ingest.vertices,
                                              options.dims[type], options.seed, control));
    ingest.arrays.push_back({.name = ArrayName(type),
                             .path = rows.path,
                             .dim = options.dims[type],
                             .dtype = {},
                             .open = {}});
  }
  RHIZOME_RETURN_IF_ERROR(Ingest(FileSystem::Posix(), path, ingest, control));
  return counts;
}

/// The requests of an epoch, by array, and the reads with any division of the memory.
class Epoch {
 public:
  Epoch(const BenchInputsOptions& options, std::uint64_t cache_bytes)
      : options_(options), cache_bytes_(cache_bytes), traces_(options.dims.size()) {}

  Status Run(const GraphSnapshot& graph, const JobControl& control);
  Result<Json> Compare();

 private:
  std::uint64_t row_bytes(std::size_t array) const { return options_.dims[array] * sizeof(float); }
  Result<std::uint64_t> Read(std::size_t array, std::uint64_t bytes);
  Result<std::uint64_t> ReadWith(const std::vector<std::uint64_t>& division);
  Result<std::uint64_t> Best(std::size_t first, std::uint64_t sixteenths);

  const BenchInputsOptions& options_;
  const std::uint64_t cache_bytes_;
  std::uint64_t key_count_ = 0;
  std::vector<Trace> traces_;
  LoaderMemory memory_;
  LoaderReport report_;
  std::map<std::pair<std::size_t, std::uint64_t>, std::uint64_t> read_;  // by array and memory
};

Status Epoch::Run(const GraphSnapshot& graph, const JobControl& control) {
  LoaderOptions options;
  options.sampler.fanouts = options_.fanouts;
  options.sampler.seed = options_.seed;
  for (std::size_t type = 0; type < options_.dims.size(); ++type)
    options.inputs.push_back({.vertex_type = TypeName(type), .array = ArrayName(type)});
  options.seeds.resize(graph.vertex_count());
  std::iota(options.seeds.begin(), options.seeds.end(), VertexId{0});
  options.batch_size = options_.batch_size;
  options.memory_bytes = 0;
  options.feed.superbatch = options_.superbatch;
  options.feed.cache_bytes = cache_bytes_;
  RHIZOME_ASSIGN_OR_RETURN(const auto loader, Loader::Open(graph, options, control));
  key_count_ = graph.vertex_count();
  while (true) {
    RHIZOME_ASSIGN_OR_RETURN(const std::optional<Minibatch> m, loader->Next());
    if (!m) break;
    for (std::size_t a = 0; a < traces_.size(); ++a) {
      std::vector<Row> rows;
      for (const std::uint32_t v : m->inputs[a].vertices) rows.push_back(m->rows[v]);
      traces_[a].AddStep(rows);
    }
  }
  memory_ = loader->memory();
  report_ = loader->report();
  return Status::Ok();
}

/// Returns the bytes of rows that the epoch reads from an array with a cache of this size.
Result<std::uint64_t> Epoch::Read(std::size_t array, std::uint64_t bytes) {
  const auto [at, is_new] = read_.try_emplace({array, bytes}, 0);
  if (!is_new) return at->second;
  const PolicyOptions policy{
      .kind = PolicyKind::kBelady,
      .frame_count = static_cast<std::uint32_t>(std::min(bytes / row_bytes(array), key_count_)),
      .key_count = key_count_,
      .unit_bytes = row_bytes(array)};
  const auto length = std::min<std::size_t>(options_.superbatch, traces_[array].steps());
  RHIZOME_ASSIGN_OR_RETURN(const SuperbatchReplay replay,
                           ReplaySuperbatches(traces_[array], length, policy, Prior::kUses));
  return at->second = replay.rows * row_bytes(array);
}

Result<std::uint64_t> Epoch::ReadWith(const std::vector<std::uint64_t>& division) {
  std::uint64_t bytes = 0;
  for (std::size_t a = 0; a < division.size(); ++a) {
    RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t read, Read(a, division[a]));
    bytes += read;
  }
  return bytes;
}

/// Returns the fewest bytes that arrays from `first` on read with this number of sixteenths of the
/// memory.
Result<std::uint64_t> Epoch::Best(std::size_t first, std::uint64_t sixteenths) {
  const std::uint64_t one = cache_bytes_ / kSixteenths;
  if (first + 1 == traces_.size()) return Read(first, one * sixteenths);
  std::uint64_t best = std::numeric_limits<std::uint64_t>::max();
  for (std::uint64_t n = 0; n <= sixteenths; ++n) {
    RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t own, Read(first, one * n));
    RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t rest, Best(first + 1, sixteenths - n));
    best = std::min(best, own + rest);
  }
  return best;
}

Result<Json> Epoch::Compare() {
  std::vector<std::uint64_t> chosen;
  Json parts = Json::array();
  for (const InputMemory& input : memory_.inputs) {
    chosen.push_back(input.cache);
    parts.push_back(static_cast<double>(input.cache) / static_cast<double>(cache_bytes_));
  }
  RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t read, ReadWith(chosen));
  RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t best, Best(0, kSixteenths));
  RHIZOME_ASSIGN_OR_RETURN(
      const std::uint64_t equal,
      ReadWith(std::vector<std::uint64_t>(chosen.size(), cache_bytes_ / chosen.size())));
  const auto over = [best](std::uint64_t bytes) {
    return static_cast<double>(bytes) / static_cast<double>(best);
  };
  return Json{{"cache_bytes", cache_bytes_},
              {"parts", parts},
              {"bytes", read},
              {"best_bytes", best},
              {"over_best", over(read)},
              {"equal_parts_over_best", over(equal)},
              {"loader_bytes_read", report_.costs.bytes_read}};
}

}  // namespace

Result<Json> BenchInputs(const BenchInputsOptions& options, const JobControl& control) {
  if (options.dims.empty() || options.dims.size() != options.parts.size()) {
    return Fail(Status::InvalidArgument(
        fmt::format("--dims names {} arrays and --parts {} types; give one part for each array",
                    options.dims.size(), options.parts.size())));
  }
  RHIZOME_ASSIGN_OR_RETURN(const ScratchFolder scratch, ScratchFolder::Create(options.dir));
  const Path path = scratch.path() / "graph.rz";
  RHIZOME_ASSIGN_OR_RETURN(const auto counts,
                           MakeStore(options, scratch.path() / "input", path, control));
  RHIZOME_ASSIGN_OR_RETURN(const auto store,
                           Store::Open(FileSystem::Posix(), path, Store::Mode::kRead));
  RHIZOME_ASSIGN_OR_RETURN(const auto graph, Graph::Open(std::as_const(*store)));
  std::uint64_t all_bytes = 0;
  for (std::size_t type = 0; type < counts.size(); ++type)
    all_bytes += counts[type] * options.dims[type] * sizeof(float);
  Json divisions = Json::array();
  for (const double share : options.shares) {
    Epoch epoch(options, static_cast<std::uint64_t>(share * static_cast<double>(all_bytes)));
    RHIZOME_RETURN_IF_ERROR(epoch.Run(*graph, control));
    RHIZOME_ASSIGN_OR_RETURN(Json row, epoch.Compare());
    divisions.push_back(std::move(row));
  }
  return Json{{"workload", "inputs"},
              {"vertices", graph->vertex_count()},
              {"edges", graph->generation_edge_count()},
              {"dims", options.dims},
              {"vertices_of_types", counts},
              {"row_bytes", all_bytes},
              {"divisions", std::move(divisions)}};
}

}  // namespace rhizome
