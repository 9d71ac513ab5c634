#include <fmt/format.h>

#include <memory>

#include "bench_models.h"
#include "json.h"
#include "rhizome/index/ingest.h"
#include "rhizome/index/row_sources.h"
#include "rhizome/index/table_reader.h"

namespace rhizome {
namespace {

constexpr std::uint64_t kMaxMetaBytes = std::uint64_t{1} << 20;

/// The fields of meta.json that matter here.
struct DataSetMeta {
  std::vector<std::string> node_columns;
  std::uint64_t feature_dim = 0;
};

Result<DataSetMeta> ReadMeta(const Path& path) {
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes,
                           ReadWholeFile(FileSystem::Posix(), path, kMaxMetaBytes));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto wrong = [&](const char* what) {
    return Fail(Status::InvalidArgument(fmt::format("{}: {}", path.string(), what)));
  };
  if (!json.is_object()) return wrong("a JSON object is expected");
  DataSetMeta meta;
  const Json columns = json.value("node_columns", Json::array());
  if (!columns.is_array()) return wrong("\"node_columns\" must be a list of names");
  for (const Json& column : columns) {
    if (!column.is_string()) return wrong("\"node_columns\" must be a list of names");
    meta.node_columns.push_back(column);
  }
  const Json dim = json.value("feature_dim", Json());
  if (!dim.is_number_unsigned()) return wrong("\"feature_dim\" must be the columns of features");
  meta.feature_dim = dim;
  return meta;
}

std::optional<std::uint8_t> SplitOf(char letter) {
  switch (letter) {
    case 't':
      return 0;
    case 'v':
      return 1;
    case 'e':
      return 2;
    case 'n':
      return 255;
    default:
      return std::nullopt;
  }
}

using SplitValues = std::vector<std::uint8_t>;

/// Reads the column of splits, which has a letter for each: t, v, e, n.
Result<std::vector<std::shared_ptr<SplitValues>>> ReadSplits(const Path& path, std::size_t column) {
  RHIZOME_ASSIGN_OR_RETURN(const auto table,
                           TableReader::Open(FileSystem::Posix(), path, /*header=*/false));
  std::vector<std::shared_ptr<SplitValues>> splits(ModelCase::kSplits);
  for (auto& split : splits) split = std::make_shared<SplitValues>();
  for (;;) {
    RHIZOME_ASSIGN_OR_RETURN(const auto next, table->ReadLine());
    if (next == TableReader::Next::kEnd) return splits;
    const auto fields = table->fields();
    if (next == TableReader::Next::kMalformed || fields.size() <= column ||
        fields[column].size() != splits.size()) {
      return Fail(Status::InvalidArgument(fmt::format("{}: column {} must have {} letters",
                                                      table->Place(), column + 1, splits.size())));
    }
    for (std::size_t s = 0; s < splits.size(); ++s) {
      const auto value = SplitOf(fields[column][s]);
      if (!value) {
        return Fail(Status::InvalidArgument(fmt::format("{}: a split is t, v, e or n, not '{}'",
                                                        table->Place(), fields[column][s])));
      }
      splits[s]->push_back(*value);
    }
  }
}

Status AddSplits(std::size_t column, IngestOptions& options) {
  RHIZOME_ASSIGN_OR_RETURN(const auto splits, ReadSplits(*options.nodes, column));
  for (std::size_t s = 0; s < splits.size(); ++s) {
    ArrayFile array;
    array.name = fmt::format("split{}", s);
    array.path = *options.nodes;
    array.open = [values = splits[s]](FileSystem&) -> Result<std::unique_ptr<RowSource>> {
      return ColumnRows(std::shared_ptr<const SplitValues>(values));
    };
    options.arrays.push_back(std::move(array));
  }
  return Status::Ok();
}

}  // namespace

Status IngestDataSet(const Path& folder, const Path& path, const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(const DataSetMeta meta, ReadMeta(folder / "meta.json"));
  IngestOptions options;
  options.edges = {folder / "edges.tsv.zst"};
  options.nodes = folder / "nodes.tsv.zst";
  options.node_columns = {};
  options.undirected = true;
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
  for (std::size_t c = 0; c < meta.node_columns.size(); ++c) {
    const std::string& name = meta.node_columns[c];
    const bool kept = name == "id" || name == "label" || name == "split";
    options.node_columns.push_back(kept ? name : "-");
    if (name == "splits10") RHIZOME_RETURN_IF_ERROR(AddSplits(c, options));
  }
  const auto report = Ingest(FileSystem::Posix(), path, options, control);
  return report ? Status::Ok() : report.error();
}

}  // namespace rhizome
