#include <fmt/format.h>

#include <charconv>
#include <random>
#include <vector>

#include "index/homes/home_array.h"
#include "index/input/npy_header.h"
#include "rhizome/ingest.h"
#include "storage/io/files.h"
#include "tools/bench/cache/bench_remote.h"
#include "tools/cli/scratch_folder.h"
#include "tools/import/generate.h"

namespace rhizome {
namespace {

constexpr std::uint64_t kMaxMetaBytes = std::uint64_t{1} << 20;

/// Returns the columns listed in meta.json, with '-' for those that are not in `kept`.
std::vector<std::string> ColumnsOf(const Json& meta, const char* field,
                                   std::initializer_list<const char*> kept) {
  std::vector<std::string> columns;
  const Json named = meta.is_object() ? meta.value(field, Json::array()) : Json::array();
  for (const Json& column : named) {
    const bool is_kept =
        std::any_of(kept.begin(), kept.end(), [&](const char* name) { return column == name; });
    columns.push_back(is_kept ? column.get<std::string>() : "-");
  }
  return columns;
}

Result<IngestOptions> DataSetOptions(const Path& folder) {
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes,
                           ReadWholeFile(FileSystem::Posix(), folder / "meta.json", kMaxMetaBytes));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const Json meta = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  IngestOptions options;
  options.edges = {folder / "edges.tsv.zst"};
  options.columns = ColumnsOf(meta, "edge_columns", {"src", "dst"});
  options.nodes = folder / "nodes.tsv.zst";
  options.node_columns = ColumnsOf(meta, "node_columns", {"id", "label", "split"});
  if (options.node_columns.empty()) {
    return Fail(Status::InvalidArgument(fmt::format("{}: \"node_columns\" must be a list of names",
                                                    (folder / "meta.json").string())));
  }
  return options;
}

/// Adds an array `split` with a random 10 % of the vertices in the training set.
Status AddSplit(const Path& path, std::uint64_t vertices, std::uint64_t seed,
                IngestOptions& options) {
  std::mt19937_64 random(seed);
  std::vector<std::uint8_t> split(vertices);
  for (std::uint8_t& value : split) value = random() % 10 == 0 ? 0 : 255;
  RHIZOME_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  const std::string header = NpyHeaderBytes(DataType::kUint8, vertices, 1);
  RHIZOME_RETURN_IF_ERROR(file.Append(std::as_bytes(std::span(header))));
  RHIZOME_RETURN_IF_ERROR(file.Append(std::as_bytes(std::span(split))));
  options.arrays.push_back({.name = "split", .path = path, .dim = 1, .dtype = {}, .open = {}});
  return file.Commit();
}

Result<IngestOptions> RmatOptions(std::uint32_t scale, const Path& folder, std::uint64_t seed,
                                  const JobControl& control) {
  GenerateOptions generate;
  generate.scale = scale;
  generate.seed = seed;
  generate.permute = generate.undirected = generate.simple = true;
  RHIZOME_RETURN_IF_ERROR(GenerateGraph(FileSystem::Posix(), folder, generate, control));
  IngestOptions options;
  options.edges = {folder / "edges.npy"};
  options.id_type = IdType::kInteger;
  options.vertices = std::uint64_t{1} << scale;
  RHIZOME_RETURN_IF_ERROR(AddSplit(folder / "split.npy", *options.vertices, seed, options));
  return options;
}

}  // namespace

Status MakeRemoteGraph(const std::string& name, const BenchRemoteOptions& options,
                       const std::string& path, const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(const ScratchFolder scratch, ScratchFolder::Create(options.dir));
  std::uint32_t scale = 0;
  const char* const end = name.data() + name.size();
  const bool is_rmat = name.starts_with("rmat") &&
                       std::from_chars(name.data() + 4, end, scale).ptr == end && name.size() > 4;
  RHIZOME_ASSIGN_OR_RETURN(
      IngestOptions ingest,
      is_rmat ? RmatOptions(scale, scratch.path() / "edges", options.trace.seed, control)
              : DataSetOptions(Path(options.data) / name));
  ingest.undirected = true;
  ingest.build.partition.partitions = options.trace.ranks;
  ingest.build.partition.threads = options.trace.threads;
  ingest.build.homes = HomeRule::kEdgeCut;
  const auto report = Ingest(FileSystem::Posix(), path, ingest, control);
  return report ? Status::Ok() : report.error();
}

}  // namespace rhizome
