#include "tools/import/graphbolt.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "index/ingest/row_sources.h"
#include "index/input/convert.h"
#include "index/input/input_stream.h"
#include "index/input/npy.h"
#include "tools/cli/yaml_file.h"

namespace rhizome {
namespace {

/// Parts of an edge type such as `user:likes:item`.
struct EdgeTypeParts {
  std::string src;
  std::string relation;
  std::string dst;
};

std::optional<EdgeTypeParts> SplitEdgeType(const std::string& text) {
  const std::size_t first = text.find(':');
  const std::size_t second = first == text.npos ? first : text.find(':', first + 1);
  if (second == text.npos || text.find(':', second + 1) != text.npos) return std::nullopt;
  return EdgeTypeParts{text.substr(0, first), text.substr(first + 1, second - first - 1),
                       text.substr(second + 1)};
}

/// Hint for errors about files that this reader does not support: names the Python reader that
/// does.
constexpr std::string_view kInPython =
    "rhizome.graphbolt.Dataset(folder) in Python can import it: it also reads torch files and "
    "arrays with more dimensions";

class GraphBoltReader {
 public:
  GraphBoltReader(FileSystem& fs, Path folder, std::uint64_t memory_bytes)
      : fs_(fs),
        folder_(std::move(folder)),
        file_(folder_ / "metadata.yaml"),
        memory_bytes_(memory_bytes) {}

  /// Reads the data set: (1) metadata.yaml; (2) the vertices by type; (3) the edge files; (4) the
  /// features of vertices and edges; (5) the first task whose seeds are vertices; (6) turns
  /// features of edges into edge attributes.
  Result<Dataset> Run() {
    RHIZOME_ASSIGN_OR_RETURN(root_, ReadYaml(fs_, file_));
    const nlohmann::json graph = Member(root_, "graph");
    if (!graph.is_object())
      return Fail(Bad("graph", root_.contains("graph_topology")
                                   ? "is missing: this is a folder that GraphBolt has "
                                     "preprocessed; give its parent folder"
                                   : "is missing"));
    RHIZOME_RETURN_IF_ERROR(ReadVertices(graph));
    RHIZOME_RETURN_IF_ERROR(dataset_.SetVertices(memory_bytes_));
    RHIZOME_RETURN_IF_ERROR(AddEdges(graph));
    RHIZOME_RETURN_IF_ERROR(AddFeatures(Member(graph, "feature_data"), "graph.feature_data"));
    RHIZOME_RETURN_IF_ERROR(AddFeatures(Member(root_, "feature_data"), "feature_data"));
    RHIZOME_RETURN_IF_ERROR(AddTasks());
    for (auto& [name, parts] : edge_parts_)
      RHIZOME_RETURN_IF_ERROR(AddEdgeArray(fs_, name, std::move(parts), dataset_));
    return std::move(dataset_);
  }

 private:
  Status Bad(std::string_view entry, std::string_view why) const {
    return Status::InvalidArgument(fmt::format("{}: {} {}", file_.string(), entry, why));
  }

  static nlohmann::json Member(const nlohmann::json& json, const char* key) {
    return json.is_object() && json.contains(key) ? json.at(key) : nlohmann::json();
  }

  /// Returns a string member, or an empty string if it is missing or not a string.
  static std::string TextOf(const nlohmann::json& json, const char* key) {
    const nlohmann::json value = Member(json, key);
    return value.is_string() ? value.get<std::string>() : std::string();
  }

  /// Returns `value` as a list of objects; null counts as an empty list.
  Result<nlohmann::json> ListOf(const nlohmann::json& value, std::string_view entry) const {
    if (value.is_null()) return nlohmann::json::array();
    if (!value.is_array()) return Fail(Bad(entry, "is not a list"));
    for (const nlohmann::json& item : value)
      if (!item.is_object()) return Fail(Bad(entry, "has an item without keys"));
    return value;
  }

  /// Returns the path of an item's file. Errors: kInvalidArgument, the item has no file, or one of
  /// another format.
  Result<Path> FileOf(const nlohmann::json& item, std::string_view entry, const std::string& format,
                      const char* extension) const {
    const std::string path = TextOf(item, "path");
    if (path.empty()) return Fail(Bad(entry, "has no path"));
    if (TextOf(item, "format") == "torch")
      return Fail(Bad(entry, fmt::format("refers to '{}', a torch file; {}", path, kInPython)));
    if (TextOf(item, "format") != format)
      return Fail(Bad(entry, fmt::format("has the unsupported format '{}'; expected {}",
                                         TextOf(item, "format"), format)));
    if (ContentExtension(path) != extension)
      return Fail(
          Bad(entry, fmt::format("refers to '{}', but the name must end in {}", path, extension)));
    return folder_ / path;
  }

  Status ReadVertices(const nlohmann::json& graph) {
    RHIZOME_ASSIGN_OR_RETURN(const nlohmann::json nodes,
                             ListOf(Member(graph, "nodes"), "graph.nodes"));
    for (const nlohmann::json& item : nodes) {
      const nlohmann::json count = Member(item, "num");
      if (!count.is_number_integer() || count.get<std::int64_t>() < 0)
        return Bad("graph.nodes", "has an item without 'num', its number of vertices");
      dataset_.vertices.push_back(
          {TextOf(item, "type"), static_cast<std::uint64_t>(count.get<std::int64_t>())});
    }
    if (dataset_.vertices.empty()) return Bad("graph.nodes", "is missing");
    std::sort(dataset_.vertices.begin(), dataset_.vertices.end(),
              [](const VertexRange& a, const VertexRange& b) { return a.type < b.type; });
    return Status::Ok();
  }

  Status AddEdges(const nlohmann::json& graph) {
    RHIZOME_ASSIGN_OR_RETURN(nlohmann::json edges, ListOf(Member(graph, "edges"), "graph.edges"));
    if (edges.empty()) return Bad("graph.edges", "is missing");
    std::sort(edges.begin(), edges.end(), [](const nlohmann::json& a, const nlohmann::json& b) {
      return TextOf(a, "type") < TextOf(b, "type");
    });
    std::map<std::string, int> uses;
    for (const nlohmann::json& item : edges)
      if (const auto parts = SplitEdgeType(TextOf(item, "type"))) ++uses[parts->relation];
    for (const nlohmann::json& item : edges) {
      const std::string type = TextOf(item, "type");
      const auto parts = SplitEdgeType(type);
      if (!type.empty() && !parts)
        return Bad(
            "graph.edges",
            fmt::format("has the type '{}', which does not have the form a:relation:b", type));
      RHIZOME_ASSIGN_OR_RETURN(EdgeFile file, EdgesOf(item));
      RHIZOME_ASSIGN_OR_RETURN(file.src, dataset_.RangeOf(parts ? parts->src : "", file_));
      RHIZOME_ASSIGN_OR_RETURN(file.dst, dataset_.RangeOf(parts ? parts->dst : "", file_));
      if (parts)
        file.type = uses[parts->relation] > 1
                        ? NameOfTriple(parts->src, parts->relation, parts->dst)
                        : parts->relation;
      if (!edge_files_.emplace(type, dataset_.options.edges.size()).second)
        return Bad("graph.edges", fmt::format("has the type '{}' twice", type));
      dataset_.options.edges.push_back(std::move(file));
    }
    return Status::Ok();
  }

  Result<EdgeFile> EdgesOf(const nlohmann::json& item) const {
    EdgeFile file;
    const bool numpy = TextOf(item, "format") == "numpy";
    file.sources_first = numpy;
    RHIZOME_ASSIGN_OR_RETURN(file.path, numpy ? FileOf(item, "graph.edges", "numpy", ".npy")
                                              : FileOf(item, "graph.edges", "csv", ".csv"));
    return file;
  }

  Status AddFeatures(const nlohmann::json& list, const char* entry) {
    RHIZOME_ASSIGN_OR_RETURN(const nlohmann::json features, ListOf(list, entry));
    std::map<std::string, std::vector<ArrayPart>> parts;  // key: name of the array
    for (const nlohmann::json& item : features) {
      const std::string name = TextOf(item, "name");
      const std::string domain = TextOf(item, "domain");
      if (domain != "node" && domain != "edge") {
        dataset_.left_out.push_back(
            fmt::format("{} '{}': the domain '{}' is neither node nor edge", entry, name, domain));
        continue;
      }
      RHIZOME_ASSIGN_OR_RETURN(const Path path, FileOf(item, entry, "numpy", ".npy"));
      RHIZOME_RETURN_IF_ERROR(CheckRows(path));
      const auto open = [path](FileSystem& fs) { return OpenNpyRows(fs, path); };
      if (domain == "node") {
        parts[name].push_back({TextOf(item, "type"), path, open});
        continue;
      }
      const auto file = edge_files_.find(TextOf(item, "type"));
      if (file == edge_files_.end())
        return Bad(entry, fmt::format("'{}' has the edge type '{}', which is not in graph.edges",
                                      name, TextOf(item, "type")));
      for (const EdgePart& part : edge_parts_[name])
        if (part.file == file->second) return Bad(entry, fmt::format("has '{}' twice", name));
      edge_parts_[name].push_back({file->second, path, open});
    }
    for (auto& [name, of_types] : parts) {
      if (HasArray(name)) return Bad(entry, fmt::format("has '{}' twice", name));
      RHIZOME_RETURN_IF_ERROR(AddArray(fs_, name, std::move(of_types), {}, dataset_));
    }
    return Status::Ok();
  }

  /// Checks that a file can be read as rows; arrays of more than two dimensions cannot.
  Status CheckRows(const Path& path) const {
    const auto reader = NpyReader::Open(fs_, path);
    if (reader) return Status::Ok();
    const Status& bad = reader.error();
    if (bad.code() != StatusCode::kInvalidArgument) return bad;
    return Status::InvalidArgument(fmt::format("{}; {}", bad.message(), kInPython));
  }

  bool HasArray(const std::string& name) const {
    const auto& arrays = dataset_.options.arrays;
    return std::any_of(arrays.begin(), arrays.end(),
                       [&](const ArrayFile& array) { return array.name == name; });
  }

  /// Adds splits and labels of the first task whose seeds are vertices.
  Status AddTasks() {
    RHIZOME_ASSIGN_OR_RETURN(const nlohmann::json tasks, ListOf(Member(root_, "tasks"), "tasks"));
    bool taken = false;
    for (const nlohmann::json& task : tasks) {
      const std::string name = TextOf(task, "name");
      if (taken) {
        dataset_.left_out.push_back(fmt::format(
            "task '{}': only the first task whose seeds are vertices is imported", name));
        continue;
      }
      RHIZOME_ASSIGN_OR_RETURN(taken, AddTask(task));
      if (!taken)
        dataset_.left_out.push_back(fmt::format("task '{}': its seeds are not vertices", name));
    }
    return Status::Ok();
  }

  /// A list of seeds and, optionally, their labels.
  struct ItemSet {
    IdRange range;
    std::uint8_t split = 0;
    Path seeds;
    std::optional<Path> labels;
  };

  /// Adds a task. Returns false if its seeds are not vertices.
  Result<bool> AddTask(const nlohmann::json& task) {
    constexpr std::array<const char*, 3> kSets = {"train_set", "validation_set", "test_set"};
    std::vector<ItemSet> sets;
    for (std::size_t split = 0; split < kSets.size(); ++split) {
      const std::string entry = fmt::format("tasks: {}", kSets[split]);
      RHIZOME_ASSIGN_OR_RETURN(const nlohmann::json items,
                               ListOf(Member(task, kSets[split]), entry));
      for (const nlohmann::json& item : items) {
        RHIZOME_ASSIGN_OR_RETURN(auto set, SetOf(item, entry));
        if (!set) return false;
        set->split = static_cast<std::uint8_t>(split);
        sets.push_back(*std::move(set));
      }
    }
    if (sets.empty()) return false;
    RHIZOME_RETURN_IF_ERROR(AddSets(sets));
    return true;
  }

  /// Returns a list of seeds with its labels, or nullopt if the seeds are edges or pairs of
  /// vertices.
  Result<std::optional<ItemSet>> SetOf(const nlohmann::json& item, const std::string& entry) const {
    const std::string type = TextOf(item, "type");
    if (type.find(':') != type.npos) return std::nullopt;
    RHIZOME_ASSIGN_OR_RETURN(const nlohmann::json data, ListOf(Member(item, "data"), entry));
    ItemSet set;
    for (std::size_t i = 0; i < data.size(); ++i) {
      // In older data sets the lists have no names: the first holds the seeds, the second the
      // labels.
      std::string name = TextOf(data[i], "name");
      if (name.empty()) name = i == 0 ? "seeds" : "labels";
      const bool seeds = name == "seeds" || name == "seed_nodes";
      if (name == "node_pairs") return std::nullopt;
      if (!seeds && name != "labels") continue;
      RHIZOME_ASSIGN_OR_RETURN(Path path, FileOf(data[i], entry, "numpy", ".npy"));
      if (seeds)
        set.seeds = std::move(path);
      else
        set.labels = std::move(path);
    }
    if (set.seeds.empty()) return Fail(Bad(entry, "has no seeds"));
    RHIZOME_ASSIGN_OR_RETURN(const auto reader, NpyReader::Open(fs_, set.seeds));
    if (reader->header().dim() != 1) return std::nullopt;
    RHIZOME_ASSIGN_OR_RETURN(set.range, dataset_.RangeOf(type, file_));
    return std::optional(std::move(set));
  }

  /// Returns whether the labels of all sets are classes.
  Result<bool> HasClasses(const std::vector<ItemSet>& sets) const {
    for (const ItemSet& set : sets) {
      if (!set.labels) continue;
      RHIZOME_ASSIGN_OR_RETURN(const auto reader, NpyReader::Open(fs_, *set.labels));
      const NpyHeader& header = reader->header();
      if (header.dim() != 1 || IsFloat(header.dtype)) return false;
    }
    return true;
  }

  Status AddSets(const std::vector<ItemSet>& sets) {
    RHIZOME_ASSIGN_OR_RETURN(const bool classes, HasClasses(sets));
    const bool labelled = std::any_of(sets.begin(), sets.end(),
                                      [](const ItemSet& set) { return set.labels.has_value(); });
    SplitColumn split(dataset_.vertex_count());
    std::optional<LabelColumn> label;
    if (labelled && !classes)
      dataset_.left_out.emplace_back("labels: they are not one class per vertex");
    if (labelled && classes && HasArray("label"))
      dataset_.left_out.emplace_back("labels of the task: the data set also has a feature 'label'");
    if (labelled && classes && !HasArray("label")) label.emplace(dataset_.vertex_count());
    for (const ItemSet& set : sets) {
      RHIZOME_RETURN_IF_ERROR(split.Read(fs_, set.seeds, set.range, set.split));
      if (!label || !set.labels) continue;
      RHIZOME_RETURN_IF_ERROR(label->Read(fs_, set.seeds, *set.labels, set.range));
    }
    if (HasArray("split"))
      return Bad("feature_data",
                 "has a feature 'split', but this name is used for the sets of the task");
    std::move(split).AddTo(dataset_);
    if (label) std::move(*label).AddTo(dataset_);
    return Status::Ok();
  }

  FileSystem& fs_;
  const Path folder_;
  const Path file_;
  const std::uint64_t memory_bytes_;
  nlohmann::json root_;
  std::map<std::string, std::size_t> edge_files_;            // key: GraphBolt's edge type
  std::map<std::string, std::vector<EdgePart>> edge_parts_;  // key: name of the feature
  Dataset dataset_;
};

}  // namespace

Result<Dataset> ReadGraphBolt(FileSystem& fs, const Path& folder, std::uint64_t memory_bytes) {
  return GraphBoltReader(fs, folder, memory_bytes).Run();
}

}  // namespace rhizome
