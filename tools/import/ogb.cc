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

/// Labels of several columns (ogbn-proteins) as bits: 0, 1, or 255 for a missing label.
class LabelBits final : public RowSource {
 public:
  /// Ownership: `fs` must outlive it.
  LabelBits(FileSystem& fs, std::unique_ptr<RowSource> integers, Path path)
      : fs_(fs), integers_(std::move(integers)), path_(std::move(path)) {
    rows = integers_->rows;
    dim = integers_->dim;
    dtype = DataType::kUint8;
  }

  Status Read(std::span<std::byte> out) override {
    block_.resize(out.size());
    RHIZOME_RETURN_IF_ERROR(integers_->Read(std::as_writable_bytes(std::span(block_))));
    for (std::size_t i = 0; i < out.size(); ++i, ++read_) {
      const std::int64_t label = block_[i];
      if (label != 0 && label != 1 && label != kNoLabel) return Refuse(label);
      out[i] = static_cast<std::byte>(label == kNoLabel ? kNoBit : label);
    }
    return Status::Ok();
  }
  Status Finish() override { return integers_->Finish(); }
  std::uint64_t file_bytes() const override { return integers_->file_bytes(); }
  std::uint64_t memory_bytes() const override {
    return integers_->memory_bytes() + block_.capacity() * sizeof(std::int64_t);
  }

 private:
  /// Returns the error for the next label.
  Status Refuse(std::int64_t label) const {
    // The rows are read ahead, so the line is counted again.
    RHIZOME_ASSIGN_OR_RETURN(const auto reader, TableReader::Open(fs_, path_, /*header=*/false));
    for (std::uint64_t row = 0; row <= read_ / dim; ++row)
      RHIZOME_RETURN_IF_ERROR(reader->ReadLine());
    return Status::InvalidArgument(fmt::format(
        "{}: the label {} is not 0 or 1; several columns of labels must be 0, 1 or empty",
        reader->Place(), label));
  }

  FileSystem& fs_;
  const std::unique_ptr<RowSource> integers_;
  const Path path_;
  std::vector<std::int64_t> block_;
  std::uint64_t read_ = 0;  // labels read so far
};

/// Opens labels: one column of classes (int64, -1: none), or several columns of bits (uint8).
Result<std::unique_ptr<RowSource>> OpenLabels(FileSystem& fs, const Path& path,
                                              std::uint64_t rows) {
  RHIZOME_ASSIGN_OR_RETURN(auto integers, OpenTextRows(fs, path, rows, DataType::kInt64, kNoLabel));
  if (integers->dim == 1) return integers;
  return std::unique_ptr<RowSource>(std::make_unique<LabelBits>(fs, std::move(integers), path));
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
      for (const std::string& name : line) {
        if (!name.empty() && name.find('/') == name.npos && !name.starts_with('.')) continue;
        return Status::InvalidArgument(
            fmt::format("{}: '{}' cannot be a part of a folder's name", path.string(), name));
      }
      RHIZOME_RETURN_IF_ERROR(AddEdges(
          raw_ / "relations" / triplet.folder(), triplet.src, triplet.dst,
          uses[triplet.relation] > 1 ? NameOfTriple(triplet.src, triplet.relation, triplet.dst)
                                     : triplet.relation));
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

  /// Adds an array from the files `name` of the types that have one.
  Status AddTables(const std::string& array, const char* typed_folder, const std::string& name,
                   std::optional<DataType> dtype) {
    std::vector<ArrayPart> parts;
    for (const VertexRange& range : dataset_.vertices) {
      const Path path = FolderOf(range, typed_folder) / name;
      if (!Exists(fs_, path)) continue;
      const DataType type = dtype ? *dtype : NumbersOf(path, range.count);
      parts.push_back({range.type, path, [path, rows = range.count, type](FileSystem& fs) {
                         return OpenTextRows(fs, path, rows, type, std::nullopt);
                       }});
    }
    return AddArray(fs_, array, std::move(parts), {}, dataset_);
  }

  Status AddLabels() {
    std::vector<ArrayPart> parts;
    std::optional<DataType> dtype;
    for (const VertexRange& range : dataset_.vertices) {
      const Path path = FolderOf(range, "node-label") / "node-label.csv.gz";
      if (!Exists(fs_, path)) continue;
      RHIZOME_ASSIGN_OR_RETURN(const auto labels, OpenLabels(fs_, path, range.count));
      if (dtype.value_or(labels->dtype) != labels->dtype)
        return Status::InvalidArgument(
            fmt::format("{}: has {} columns, but the labels of another vertex type have {}; give "
                        "all of them one column, or all several",
                        path.string(), labels->dim, labels->dim == 1 ? "several" : "one"));
      dtype = labels->dtype;
      parts.push_back({range.type, path, [path, rows = range.count](FileSystem& fs) {
                         return OpenLabels(fs, path, rows);
                       }});
    }
    if (dtype == DataType::kUint8)
      return AddArray(fs_, "label", std::move(parts), {std::byte{kNoBit}}, dataset_);
    const auto none = std::as_bytes(std::span(&kNoLabel, 1));
    return AddArray(fs_, "label", std::move(parts), {none.begin(), none.end()}, dataset_);
  }

  Status AddArrays() {
    RHIZOME_RETURN_IF_ERROR(AddTables("feat", "node-feat", "node-feat.csv.gz", DataType::kFloat32));
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
          AddTables(name.substr(0, name.find('.')), "node-feat", name, std::nullopt));
    // ogb renames this file of ogbn-proteins when it first reads it.
    return AddTables("node_species", "node-feat", "species.csv.gz", std::nullopt);
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
