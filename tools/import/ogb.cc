#include "tools/import/ogb.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "index/ingest/row_sources.h"
#include "index/input/table_reader.h"
#include "rhizome/graph_types.h"
#include "storage/io/files.h"

namespace rhizome {
namespace {

/// A relation between two vertex types.
struct Triplet {
  std::string src;
  std::string relation;
  std::string dst;
  std::string folder() const { return src + "___" + relation + "___" + dst; }
};

Result<std::vector<std::vector<std::string>>> ReadTable(FileSystem& fs, const Path& path) {
  RHIZOME_ASSIGN_OR_RETURN(auto reader, TableReader::Open(fs, path, /*header=*/false));
  std::vector<std::vector<std::string>> lines;
  while (true) {
    RHIZOME_ASSIGN_OR_RETURN(const auto next, reader->ReadLine());
    if (next == TableReader::Next::kEnd) return lines;
    if (next == TableReader::Next::kMalformed)
      return Fail(
          Status::InvalidArgument(fmt::format("{}: {}", reader->Place(), reader->reason())));
    lines.emplace_back(reader->fields().begin(), reader->fields().end());
  }
}

/// Reads a list with one number per graph, and returns its only number.
Result<std::uint64_t> ReadOneCount(FileSystem& fs, const Path& path) {
  RHIZOME_ASSIGN_OR_RETURN(const auto counts, ReadIntegers(fs, path));
  if (counts.size() != 1 || counts[0] < 0)
    return Fail(Status::InvalidArgument(
        fmt::format("{}: {} graphs, but a store holds one; use a data set of ogbn-*", path.string(),
                    counts.size())));
  return static_cast<std::uint64_t>(counts[0]);
}

constexpr std::int64_t kNoLabel = -1;
constexpr std::uint8_t kNoBit = 255;

/// Rows of several labels, each 0, 1 or missing, as uint8, in which tasks of several labels are
/// trained.
class BitRows final : public RowSource {
 public:
  explicit BitRows(std::unique_ptr<RowSource> labels) : labels_(std::move(labels)) {
    rows = labels_->rows;
    dim = labels_->dim;
    dtype = DataType::kUint8;
  }
  Status Read(std::span<std::byte> out) override {
    wide_.resize(out.size());
    RHIZOME_RETURN_IF_ERROR(labels_->Read(std::as_writable_bytes(std::span(wide_))));
    for (std::size_t i = 0; i < wide_.size(); ++i)
      out[i] = static_cast<std::byte>(wide_[i] == kNoLabel ? kNoBit : wide_[i]);
    return Status::Ok();
  }
  Status Finish() override { return labels_->Finish(); }
  std::uint64_t file_bytes() const override { return labels_->file_bytes(); }
  std::uint64_t memory_bytes() const override { return labels_->memory_bytes(); }

 private:
  std::unique_ptr<RowSource> labels_;
  std::vector<std::int64_t> wide_;
};

/// Returns whether rows have several labels, each 0, 1 or missing. Reads all of them.
bool HasBits(RowSource& labels) {
  if (labels.dim < 2) return false;
  std::vector<std::int64_t> row(labels.dim);
  for (std::uint64_t i = 0; i < labels.rows; ++i) {
    if (!labels.Read(std::as_writable_bytes(std::span(row))).ok()) return false;
    if (std::any_of(row.begin(), row.end(),
                    [](std::int64_t label) { return label < kNoLabel || label > 1; }))
      return false;
  }
  return true;
}

class OgbReader {
 public:
  OgbReader(FileSystem& fs, Path raw, std::uint64_t memory_bytes)
      : fs_(fs), raw_(std::move(raw)), memory_bytes_(memory_bytes) {}

  /// Reads the data set: (1) the vertices by type; (2) the edge files, with their edge attributes;
  /// (3) the arrays of vertices; (4) the split.
  Result<Dataset> Run(const std::string& split) {
    typed_ = Exists(fs_, raw_ / "triplet-type-list.csv.gz");
    if (!typed_ && !Exists(fs_, raw_ / "edge.csv.gz") && Exists(fs_, raw_ / "data.npz"))
      return Fail(Status::InvalidArgument(
          fmt::format("{}: OGB's binary format (data.npz) is not supported; save its arrays as "
                      ".npy with NumPy and use rhizome ingest",
                      raw_.string())));
    RHIZOME_RETURN_IF_ERROR(ReadVertices());
    RHIZOME_RETURN_IF_ERROR(dataset_.SetVertices(memory_bytes_));
    RHIZOME_RETURN_IF_ERROR(typed_ ? AddRelations() : AddEdges(raw_, "", "", ""));
    RHIZOME_RETURN_IF_ERROR(AddArrays());
    for (auto& [name, parts] : edge_parts_)
      RHIZOME_RETURN_IF_ERROR(AddEdgeArray(fs_, name, std::move(parts), dataset_));
    RHIZOME_RETURN_IF_ERROR(AddSplit(split));
    return std::move(dataset_);
  }

 private:
  Status ReadVertices() {
    if (!typed_) {
      RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t count,
                               ReadOneCount(fs_, raw_ / "num-node-list.csv.gz"));
      dataset_.vertices = {{"", count}};
      return Status::Ok();
    }
    const Path path = raw_ / "num-node-dict.csv.gz";
    RHIZOME_ASSIGN_OR_RETURN(const auto lines, ReadTable(fs_, path));
    if (lines.size() != 2 || lines[0].size() != lines[1].size())
      return Status::InvalidArgument(fmt::format(
          "{}: expected a line of vertex types and a line of their counts, for one graph",
          path.string()));
    for (std::size_t i = 0; i < lines[0].size(); ++i) {
      const auto count = ParseCanonicalInteger(lines[1][i]);
      if (!count || *count < 0)
        return Status::InvalidArgument(
            fmt::format("{}:2: '{}' is not a count", path.string(), lines[1][i]));
      dataset_.vertices.push_back({lines[0][i], static_cast<std::uint64_t>(*count)});
    }
    std::sort(dataset_.vertices.begin(), dataset_.vertices.end(),
              [](const VertexRange& a, const VertexRange& b) { return a.type < b.type; });
    return Status::Ok();
  }

  Status AddRelations() {
    const Path path = raw_ / "triplet-type-list.csv.gz";
    RHIZOME_ASSIGN_OR_RETURN(auto lines, ReadTable(fs_, path));
    std::sort(lines.begin(), lines.end());
    std::map<std::string, int> uses;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (lines[i].size() != 3)
        return Status::InvalidArgument(
            fmt::format("{}: expected source type, relation and target type", path.string()));
      ++uses[lines[i][1]];
    }
    for (const auto& line : lines) {
      const Triplet triplet{line[0], line[1], line[2]};
      // The three names form the name of a folder.
      for (const std::string& name : line) RHIZOME_RETURN_IF_ERROR(CheckName(path.string(), name));
      RHIZOME_RETURN_IF_ERROR(
          AddEdges(raw_ / "relations" / triplet.folder(), triplet.src, triplet.dst,
                   uses[triplet.relation] > 1 ? triplet.folder() : triplet.relation));
    }
    if (!lines.empty()) return Status::Ok();
    return Status::InvalidArgument(fmt::format("{}: there are no relations", path.string()));
  }

  Status AddEdges(const Path& folder, const std::string& src, const std::string& dst,
                  const std::string& type) {
    EdgeFile file(folder / "edge.csv.gz");
    file.type = type;
    RHIZOME_ASSIGN_OR_RETURN(file.src, dataset_.RangeOf(src, folder));
    RHIZOME_ASSIGN_OR_RETURN(file.dst, dataset_.RangeOf(dst, folder));
    RHIZOME_ASSIGN_OR_RETURN(file.edges, ReadOneCount(fs_, folder / "num-edge-list.csv.gz"));
    const std::size_t number = dataset_.options.edges.size();
    const std::uint64_t edges = *file.edges;
    dataset_.options.edges.push_back(std::move(file));
    for (const std::string& name : Tables(folder)) {
      if (name.starts_with("edge-") || name.starts_with("edge_"))
        RHIZOME_RETURN_IF_ERROR(AddEdgeTable(folder / name, number, edges));
    }
    return Status::Ok();
  }

  /// Adds an edge attribute. edge-feat.csv.gz becomes edge_feat, the name that ogb's readers use.
  Status AddEdgeTable(const Path& path, std::size_t number, std::uint64_t edges) {
    std::string name = path.filename().string();
    name.resize(name.find('.'));
    std::replace(name.begin(), name.end(), '-', '_');
    const DataType dtype = name == "edge_feat" ? DataType::kFloat32 : NumbersOf(path, edges);
    const auto open = [path, edges, dtype](FileSystem& fs) {
      return OpenTextRows(fs, path, edges, dtype, std::nullopt);
    };
    // An empty table does not show how many columns it has; it is only checked.
    if (edges == 0) {
      const auto empty = open(fs_);
      return empty ? Status::Ok() : empty.error();
    }
    edge_parts_[name].push_back({number, path, open});
    return Status::Ok();
  }

  /// Returns int64 if the file's first line has only integers, else float32.
  DataType NumbersOf(const Path& path, std::uint64_t rows) {
    return OpenTextRows(fs_, path, rows, DataType::kInt64, std::nullopt) ? DataType::kInt64
                                                                         : DataType::kFloat32;
  }

  /// Returns the sorted names of the tables in a folder; empty if the folder does not exist.
  std::vector<std::string> Tables(const Path& folder) const {
    std::vector<std::string> names;
    std::error_code unresolved;
    const auto entries = fs_.List(std::filesystem::canonical(folder, unresolved));
    if (!entries) return names;
    for (const DirectoryEntry& entry : *entries)
      if (entry.name.ends_with(".csv.gz")) names.push_back(entry.name);
    std::sort(names.begin(), names.end());
    return names;
  }

  /// Returns the folder that holds the arrays of a vertex type.
  Path FolderOf(const VertexRange& range, const char* typed_folder) const {
    return typed_ ? raw_ / typed_folder / range.type : raw_;
  }

  /// Adds an array from the files `name` of those types that have one.
  Status AddTables(const std::string& array, const char* typed_folder, const std::string& name,
                   std::optional<DataType> dtype, std::optional<std::int64_t> missing) {
    std::vector<ArrayPart> parts;
    for (const VertexRange& range : dataset_.vertices) {
      const Path path = FolderOf(range, typed_folder) / name;
      if (!Exists(fs_, path)) continue;
      const DataType type = dtype ? *dtype : NumbersOf(path, range.count);
      parts.push_back({range.type, path, [path, rows = range.count, type, missing](FileSystem& fs) {
                         return OpenTextRows(fs, path, rows, type, missing);
                       }});
    }
    std::vector<std::byte> fill;
    if (missing) {
      const auto bytes = std::as_bytes(std::span(&*missing, 1));
      fill.assign(bytes.begin(), bytes.end());
    }
    return AddArray(fs_, array, std::move(parts), fill, dataset_);
  }

  /// Adds the labels: int64, or uint8 if there are several of 0 and 1.
  Status AddLabels() {
    const char* const name = "node-label.csv.gz";
    std::vector<ArrayPart> parts;
    bool bits = true;
    for (const VertexRange& range : dataset_.vertices) {
      const Path path = FolderOf(range, "node-label") / name;
      if (!Exists(fs_, path)) continue;
      const auto open = [path, rows = range.count](FileSystem& fs) {
        return OpenTextRows(fs, path, rows, DataType::kInt64, kNoLabel);
      };
      const auto labels = open(fs_);
      bits = bits && labels && HasBits(**labels);
      parts.push_back(
          {range.type, path, [open](FileSystem& fs) -> Result<std::unique_ptr<RowSource>> {
             RHIZOME_ASSIGN_OR_RETURN(auto rows, open(fs));
             return std::make_unique<BitRows>(std::move(rows));
           }});
    }
    if (!bits || parts.empty())
      return AddTables("label", "node-label", name, DataType::kInt64, kNoLabel);
    return AddArray(fs_, "label", std::move(parts), {std::byte{kNoBit}}, dataset_);
  }

  Status AddArrays() {
    RHIZOME_RETURN_IF_ERROR(
        AddTables("feat", "node-feat", "node-feat.csv.gz", DataType::kFloat32, std::nullopt));
    RHIZOME_RETURN_IF_ERROR(AddLabels());
    std::vector<std::string> further;
    for (const VertexRange& range : dataset_.vertices) {
      for (const std::string& name : Tables(FolderOf(range, "node-feat")))
        if (name.starts_with("node_")) further.push_back(name);
    }
    std::sort(further.begin(), further.end());
    further.erase(std::unique(further.begin(), further.end()), further.end());
    for (const std::string& name : further)
      RHIZOME_RETURN_IF_ERROR(
          AddTables(name.substr(0, name.find('.')), "node-feat", name, std::nullopt, std::nullopt));
    // ogb renames this file of ogbn-proteins when it first reads it.
    return AddTables("node_species", "node-feat", "species.csv.gz", std::nullopt, std::nullopt);
  }

  Result<Path> FindSplit(const std::string& wanted) const {
    const Path folder = raw_.parent_path() / "split";
    std::error_code unresolved;
    const auto entries = fs_.List(std::filesystem::canonical(folder, unresolved));
    std::vector<std::string> names;
    if (entries) {
      for (const DirectoryEntry& entry : *entries)
        if (entry.kind == DirectoryEntry::Kind::kDirectory) names.push_back(entry.name);
    }
    std::sort(names.begin(), names.end());
    if (wanted.empty() && names.empty()) return Path();
    if (wanted.empty() && names.size() == 1) return folder / names[0];
    if (std::find(names.begin(), names.end(), wanted) != names.end()) return folder / wanted;
    return Fail(Status::InvalidArgument(
        fmt::format("{}: --split must be one of: {}", folder.string(), fmt::join(names, ", "))));
  }

  Status AddSplit(const std::string& wanted) {
    RHIZOME_ASSIGN_OR_RETURN(const Path folder, FindSplit(wanted));
    if (folder.empty()) {
      dataset_.left_out.emplace_back("split: there is no folder split/ next to raw/");
      return Status::Ok();
    }
    constexpr std::array<const char*, 3> kFiles = {"train.csv.gz", "valid.csv.gz", "test.csv.gz"};
    SplitColumn column(dataset_.vertex_count());
    std::size_t found = 0;
    for (const VertexRange& range : dataset_.vertices) {
      const Path of_type = typed_ ? folder / range.type : folder;
      if (typed_ && !Exists(fs_, of_type)) continue;
      RHIZOME_ASSIGN_OR_RETURN(const IdRange ids, dataset_.RangeOf(range.type, of_type));
      for (std::size_t split = 0; split < kFiles.size(); ++split) {
        const Path path = of_type / kFiles[split];
        RHIZOME_RETURN_IF_ERROR(column.Read(fs_, path, ids, static_cast<std::uint8_t>(split)));
        ++found;
      }
    }
    if (found == 0)
      return Status::InvalidArgument(
          fmt::format("{}: no vertex type has a split", folder.string()));
    std::move(column).AddTo(dataset_);
    return Status::Ok();
  }

  FileSystem& fs_;
  const Path raw_;
  const std::uint64_t memory_bytes_;
  bool typed_ = false;
  std::map<std::string, std::vector<EdgePart>> edge_parts_;  // key: name of the attribute
  Dataset dataset_;
};

}  // namespace

Result<Dataset> ReadOgb(FileSystem& fs, const Path& folder, const std::string& split,
                        std::uint64_t memory_bytes) {
  const Path raw = Exists(fs, folder / "raw") ? folder / "raw" : folder;
  return OgbReader(fs, raw, memory_bytes).Run(split);
}

}  // namespace rhizome
