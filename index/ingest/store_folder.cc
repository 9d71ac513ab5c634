// rhizome.json, the description of an exported folder. EncodeStoreFolder writes it;
// DecodeStoreFolder reads every field with a FieldReader, which remembers the first error.
// ReadStoreFolder turns the description into options of an ingestion.

#include "index/ingest/store_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "rhizome/store_folder.h"
#include "storage/array/array_facts.h"
#include "storage/array/array_rules.h"
#include "storage/base/exceptions.h"
#include "storage/io/files.h"
#include "storage/section/untrusted_json.h"

namespace rhizome {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "rhizome folder";
constexpr std::uint64_t kVersion = 1;
constexpr std::uint64_t kMaxDescriptionBytes = std::uint64_t{256} << 20;

constexpr std::string_view NameOf(Direction direction) {
  if (direction == Direction::kOut) return "out";
  return direction == Direction::kIn ? "in" : "both";
}

Json EncodeTable(const StoreFolder::Table& table) {
  return Json{{"file", table.file},
              {"rows", table.rows},
              {"columns", table.columns},
              {"types", table.types}};
}

Json EncodeArrays(const std::vector<StoreFolder::Array>& arrays) {
  Json list = Json::array();
  for (const StoreFolder::Array& array : arrays) {
    Json attributes = Json::object();
    for (const auto& [key, value] : array.attributes) attributes[key] = value;
    list.push_back({{"name", array.name},
                    {"file", array.file},
                    {"dtype", DataTypeName(array.dtype)},
                    {"dim", array.dim},
                    {"attributes", std::move(attributes)},
                    {"texts", array.texts}});
  }
  return list;
}

Json EncodeSeries(const std::vector<ArraySeries>& series) {
  Json list = Json::array();
  for (const ArraySeries& one : series) {
    Json aliases = Json::array();
    for (const ArrayAlias& alias : one.aliases)
      aliases.push_back({{"name", alias.name}, {"history", alias.history}});
    list.push_back(
        {{"name", one.name}, {"last_version", one.last_version}, {"aliases", std::move(aliases)}});
  }
  return list;
}

/// Reads fields of rhizome.json. After the first error, every read returns an empty value.
class FieldReader {
 public:
  explicit FieldReader(const Path& where) : where_(where) {}

  const Status& status() const { return status_; }

  void Refuse(std::string_view field, std::string_view reason) {
    if (status_.ok())
      status_ = Status::InvalidArgument(fmt::format("{}: {}: {}", where_.string(), field, reason));
  }

  /// Checks that `object` is an object with exactly these fields.
  bool CheckFields(const Json& object, std::string_view what,
                   std::initializer_list<const char*> fields) {
    if (!object.is_object()) Refuse(what, "is not an object");
    if (!status_.ok()) return false;
    for (const char* field : fields)
      if (!object.contains(field)) Refuse(what, fmt::format("has no field \"{}\"", field));
    for (const auto& [key, value] : object.items())
      if (std::find(fields.begin(), fields.end(), key) == fields.end())
        Refuse(what, fmt::format("has an unknown field \"{}\"", key));
    return status_.ok();
  }

  std::string Text(const Json& object, const char* field) {
    if (object[field].is_string()) return object[field].get<std::string>();
    Refuse(field, "is not a text");
    return {};
  }

  std::uint64_t Number(const Json& object, const char* field) {
    if (object[field].is_number_unsigned()) return object[field].get<std::uint64_t>();
    Refuse(field, "is not a whole number");
    return 0;
  }

  bool Flag(const Json& object, const char* field) {
    if (object[field].is_boolean()) return object[field].get<bool>();
    Refuse(field, "is neither true nor false");
    return false;
  }

  const Json& List(const Json& object, const char* field) {
    static const Json kEmpty = Json::array();
    if (object[field].is_array()) return object[field];
    Refuse(field, "is not a list");
    return kEmpty;
  }

  std::vector<std::string> Texts(const Json& object, const char* field) {
    std::vector<std::string> texts;
    for (const Json& item : List(object, field)) {
      if (!item.is_string()) Refuse(field, "is not a list of texts");
      if (!status_.ok()) return {};
      texts.push_back(item.get<std::string>());
    }
    return texts;
  }

  /// Reads a path that must remain within the folder.
  std::string File(const Json& object, const char* field = "file") {
    std::string file = Text(object, field);
    if (!status_.ok()) return {};
    if (const Status inside = CheckRelativePath(file); !inside.ok())
      Refuse(field, inside.message());
    return file;
  }

  StoreFolder::Table Table(const Json& object, const char* field) {
    StoreFolder::Table table;
    const Json& value = object[field];
    if (!CheckFields(value, field, {"file", "rows", "columns", "types"})) return table;
    table.file = File(value);
    table.rows = Number(value, "rows");
    table.columns = Texts(value, "columns");
    table.types = Texts(value, "types");
    return table;
  }

  std::vector<StoreFolder::Array> Arrays(const Json& object, const char* field) {
    std::vector<StoreFolder::Array> arrays;
    for (const Json& value : List(object, field)) {
      if (!CheckFields(value, field, {"name", "file", "dtype", "dim", "attributes", "texts"}))
        break;
      StoreFolder::Array& array = arrays.emplace_back();
      array.name = Text(value, "name");
      array.file = File(value);
      array.dim = Number(value, "dim");
      const std::string dtype = Text(value, "dtype");
      array.dtype = ParseDataType(dtype).value_or(DataType::kInvalid);
      if (array.dtype == DataType::kInvalid)
        Refuse("dtype", fmt::format("'{}' is not a type of numbers", dtype));
      if (value["texts"] != "") array.texts = File(value, "texts");
      if (!value["attributes"].is_object()) Refuse("attributes", "is not an object");
      if (!status_.ok()) break;
      for (const auto& [key, text] : value["attributes"].items()) {
        if (!text.is_string()) Refuse("attributes", "has a value that is not a text");
        if (!status_.ok()) break;
        array.attributes.emplace_back(key, text.get<std::string>());
      }
    }
    return arrays;
  }

  std::vector<ArraySeries> Series(const Json& object) {
    std::vector<ArraySeries> all;
    for (const Json& value : List(object, "series")) {
      if (!CheckFields(value, "series", {"name", "last_version", "aliases"})) break;
      ArraySeries& series = all.emplace_back();
      series.name = Text(value, "name");
      series.last_version = Number(value, "last_version");
      for (const Json& item : List(value, "aliases")) {
        if (!CheckFields(item, "aliases", {"name", "history"})) break;
        ArrayAlias& alias = series.aliases.emplace_back();
        alias.name = Text(item, "name");
        for (const Json& version : List(item, "history")) {
          if (!version.is_number_unsigned()) Refuse("history", "is not a list of versions");
          if (!status_.ok()) break;
          alias.history.push_back(version.get<std::uint64_t>());
        }
      }
    }
    return all;
  }

 private:
  const Path& where_;
  Status status_;
};

/// Reads the texts of an array's codes; nullptr if it has none.
Result<std::shared_ptr<const std::vector<std::string>>> ReadTexts(FileSystem& fs,
                                                                  const Path& folder,
                                                                  const StoreFolder::Array& array) {
  if (array.texts.empty()) return nullptr;
  const Path path = folder / array.texts;
  RHIZOME_ASSIGN_OR_RETURN(const auto bytes,
                           ReadWholeFile(fs, path, std::numeric_limits<std::uint64_t>::max()));
  std::string_view left(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  auto texts = std::make_shared<std::vector<std::string>>();
  while (!left.empty()) {
    const std::size_t end = std::min(left.find('\n'), left.size());
    const Json text = ParseUntrustedJson(left.substr(0, end));
    if (!text.is_string())
      return Fail(Status::InvalidArgument(
          fmt::format("{}:{}: is not a JSON string", path.string(), texts->size() + 1)));
    texts->push_back(text.get<std::string>());
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return texts;
}

Status CheckVersion(const Json& json, const Path& where) {
  const bool known = json.is_object() && json.contains("format") && json["format"] == kFormat &&
                     json.contains("version") && json["version"].is_number_unsigned();
  if (!known)
    return Status::InvalidArgument(
        fmt::format("{}: this is not the description of an exported folder", where.string()));
  if (json["version"].get<std::uint64_t>() == kVersion) return Status::Ok();
  return Status::Unsupported(
      fmt::format("{}: the folder has version {}, but this build reads version {}; use a newer "
                  "version of Rhizome",
                  where.string(), json["version"].get<std::uint64_t>(), kVersion));
}

}  // namespace

std::string internal::EncodeStoreFolder(const StoreFolder& folder) {
  const Json json = {{"format", kFormat},
                     {"version", kVersion},
                     {"ids", folder.text_ids ? "text" : "integer"},
                     {"undirected", folder.undirected},
                     {"directions", NameOf(folder.directions)},
                     {"vertices", EncodeTable(folder.vertices)},
                     {"edges", EncodeTable(folder.edges)},
                     {"arrays", EncodeArrays(folder.arrays)},
                     {"edge_attributes", EncodeArrays(folder.edge_attributes)},
                     {"series", EncodeSeries(folder.series)}};
  return json.dump(2) + "\n";
}

Result<StoreFolder> internal::DecodeStoreFolder(std::string_view text, const Path& where) {
  const Json json = ParseUntrustedJson(text);
  if (json.is_discarded())
    return Fail(Status::InvalidArgument(
        fmt::format("{}: is not JSON, or repeats a field", where.string())));
  RHIZOME_RETURN_IF_ERROR(CheckVersion(json, where));
  FieldReader in(where);
  StoreFolder folder;
  if (!in.CheckFields(json, "the file",
                      {"format", "version", "ids", "undirected", "directions", "vertices", "edges",
                       "arrays", "edge_attributes", "series"}))
    return Fail(in.status());
  const std::string ids = in.Text(json, "ids");
  folder.text_ids = ids == "text";
  if (!folder.text_ids && ids != "integer") in.Refuse("ids", "is neither integer nor text");
  folder.undirected = in.Flag(json, "undirected");
  const std::string directions = in.Text(json, "directions");
  if (directions == NameOf(Direction::kOut)) folder.directions = Direction::kOut;
  if (directions == NameOf(Direction::kIn)) folder.directions = Direction::kIn;
  if (directions != NameOf(folder.directions)) in.Refuse("directions", "is not out, in or both");
  folder.vertices = in.Table(json, "vertices");
  folder.edges = in.Table(json, "edges");
  folder.arrays = in.Arrays(json, "arrays");
  folder.edge_attributes = in.Arrays(json, "edge_attributes");
  folder.series = in.Series(json);
  RHIZOME_RETURN_IF_ERROR(in.status());
  return folder;
}

Result<IngestOptions> internal::WithStoreFolder(FileSystem& fs, const IngestOptions& options) {
  const auto folder = std::ranges::find_if(
      options.inputs, [&](const Path& path) { return IsStoreFolder(fs, path); });
  if (folder == options.inputs.end()) return options;
  const bool more = options.inputs.size() > 1 || !options.edges.empty() || options.nodes ||
                    options.node_ids || !options.arrays.empty() || !options.edge_arrays.empty() ||
                    !options.columns.empty() || !options.node_columns.empty() ||
                    !options.types.empty() || !options.split_column.empty() || options.header ||
                    options.delimiter || !options.end_types.empty() ||
                    options.id_type != IdType::kAuto || options.undirected || options.vertices ||
                    !options.vertex_ranges.empty() || options.max_bad_lines > 0;
  if (more)
    return Fail(Status::InvalidArgument(
        fmt::format("'{}' is an exported folder, which says how its files are read; leave out the "
                    "other inputs and the options of columns and ids",
                    folder->string())));
  RHIZOME_ASSIGN_OR_RETURN(IngestOptions read, ReadStoreFolder(fs, *folder));
  IngestOptions result = options;
  result.inputs.clear();
  result.header = read.header;
  result.delimiter = read.delimiter;
  result.id_type = read.id_type;
  result.undirected = read.undirected;
  result.nodes = std::move(read.nodes);
  result.node_columns = std::move(read.node_columns);
  result.node_lines = read.node_lines;
  result.vertex_types = std::move(read.vertex_types);
  result.edges = std::move(read.edges);
  result.columns = std::move(read.columns);
  result.edge_types = std::move(read.edge_types);
  result.arrays = std::move(read.arrays);
  result.edge_arrays = std::move(read.edge_arrays);
  result.series = std::move(read.series);
  if (options.build.directions == Direction::kBoth) result.build.directions = read.build.directions;
  return result;
}

bool IsStoreFolder(FileSystem& fs, const Path& folder) {
  const auto info = fs.Stat(folder / kStoreFolderFile);
  return info && info->kind == DirectoryEntry::Kind::kFile;
}

Result<IngestOptions> ReadStoreFolder(FileSystem& fs, const Path& folder) try {
  const Path where = folder / kStoreFolderFile;
  RHIZOME_ASSIGN_OR_RETURN(const auto bytes, ReadWholeFile(fs, where, kMaxDescriptionBytes));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  RHIZOME_ASSIGN_OR_RETURN(const StoreFolder described, DecodeStoreFolder(text, where));

  IngestOptions options;
  options.header = true;
  options.delimiter = Delimiter::kComma;
  options.id_type = described.text_ids ? IdType::kString : IdType::kInteger;
  options.undirected = described.undirected;
  options.build.directions = described.directions;
  options.nodes = folder / described.vertices.file;
  options.node_columns = described.vertices.columns;
  options.node_lines = described.vertices.rows;
  options.vertex_types = described.vertices.types;
  EdgeFile edges(folder / described.edges.file);
  edges.edges = described.edges.rows;
  options.edges.push_back(std::move(edges));
  options.columns = described.edges.columns;
  options.edge_types = described.edges.types;
  options.series = described.series;
  for (const StoreFolder::Array& array : described.arrays) {
    ArrayFile file{.name = array.name,
                   .path = folder / array.file,
                   .dim = array.dim,
                   .dtype = array.dtype,
                   .attributes = array.attributes};
    file.vertex_type = BoundType(array.attributes);
    std::erase_if(*file.attributes,
                  [](const auto& fact) { return fact.first == kVertexTypeAttribute; });
    RHIZOME_ASSIGN_OR_RETURN(file.texts, ReadTexts(fs, folder, array));
    options.arrays.push_back(std::move(file));
  }
  for (const StoreFolder::Array& array : described.edge_attributes) {
    EdgeArrayFile file{
        .name = array.name,
        .dim = array.dim,
        .dtype = array.dtype,
        .attributes = array.attributes,
        .files = {{.name = array.name, .path = folder / array.file, .dtype = array.dtype}}};
    RHIZOME_ASSIGN_OR_RETURN(file.texts, ReadTexts(fs, folder, array));
    options.edge_arrays.push_back(std::move(file));
  }
  return options;
} catch (...) {
  return Fail(StatusOfException());
}

}  // namespace rhizome
