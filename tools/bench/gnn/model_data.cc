#include <fmt/format.h>

#include <cstdlib>

#include "rhizome/ingest.h"
#include "storage/io/files.h"
#include "tools/bench/gnn/bench_models.h"
#include "tools/cli/json.h"

namespace rhizome {
namespace {

constexpr std::uint64_t kMaxMetaBytes = std::uint64_t{1} << 20;

/// Fields of meta.json that are used here.
struct DataSetMeta {
  std::vector<std::string> node_columns;
  std::vector<std::string> edge_columns;
  std::uint64_t feature_dim = 0;
  bool directed = false;
};

/// Reads a list of names into `names`. Returns false if `list` is not one.
bool TakeNames(const Json& list, std::vector<std::string>& names) {
  if (!list.is_array()) return false;
  for (const Json& name : list) {
    if (!name.is_string()) return false;
    names.push_back(name);
  }
  return true;
}

Result<DataSetMeta> ReadMeta(const Path& path) {
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes,
                           ReadWholeFile(FileSystem::Posix(), path, kMaxMetaBytes));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto wrong = [&](const char* what) {
    return Fail(Status::InvalidArgument(fmt::format("{}: {}", path.string(), what)));
  };
  if (!json.is_object()) return wrong("expected a JSON object");
  DataSetMeta meta;
  if (!TakeNames(json.value("node_columns", Json::array()), meta.node_columns))
    return wrong("\"node_columns\" must be a list of names");
  if (!TakeNames(json.value("edge_columns", Json::array({"src", "dst"})), meta.edge_columns))
    return wrong("\"edge_columns\" must be a list of names");
  const Json dim = json.value("feature_dim", Json());
  if (!dim.is_number_unsigned()) return wrong("\"feature_dim\" must be the number of features");
  meta.feature_dim = dim;
  meta.directed = json.value("directed", Json()) == Json(true);
  return meta;
}

}  // namespace

Path DataFolder(const std::string& given) {
  if (!given.empty()) return given;
  const char* const named = std::getenv("RHIZOME_TEST_DATA");  // NOLINT(concurrency-mt-unsafe)
  return named != nullptr && *named != '\0' ? named : "../shared/data";
}

Status IngestDataSet(const Path& folder, const Path& path, const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(const DataSetMeta meta, ReadMeta(folder / "meta.json"));
  IngestOptions options;
  options.edges = {folder / "edges.tsv.zst"};
  options.columns = meta.edge_columns;
  options.nodes = folder / "nodes.tsv.zst";
  options.node_columns = {};
  options.undirected = !meta.directed;
  options.build.partition.partitions = 1;
  ArrayFile features;
  features.name = "feat";
  features.path = folder / "features.npy.zst";
  if (!FileSystem::Posix().Stat(features.path)) {
    features.path = folder / "features.tsv.zst";
    features.dim = meta.feature_dim;
    features.dtype = DataType::kFloat16;  // small counts
  }
  options.arrays = {features};
  for (const std::string& name : meta.node_columns) {
    const bool kept = name == "id" || name == "label" || name == "split" ||
                      name == ModelCase::kSplitsArray || (meta.directed && name == "ntype");
    options.node_columns.push_back(kept ? name : "-");
  }
  const auto report = Ingest(FileSystem::Posix(), path, options, control);
  return report ? Status::Ok() : report.error();
}

}  // namespace rhizome
