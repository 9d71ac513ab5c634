// ExportFolder. FolderWriter creates a folder beside the target, writes the tables, the arrays and
// the attributes of edges into it, then rhizome.json, and renames the folder. Edges are scanned
// once for the table, and once more for their attributes, because the head of a .npy file has the
// number of rows. Files are relative to the folder, and named after the arrays.

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <utility>

#include "index/delta/stale_vertices.h"
#include "index/generation/graph_builder.h"
#include "index/graph/edge_table.h"
#include "index/graph/vertex_table.h"
#include "index/ingest/store_folder.h"
#include "index/input/npy_header.h"
#include "rhizome/store_folder.h"
#include "rhizome/text_values.h"
#include "storage/array/array_facts.h"
#include "storage/array/array_versions.h"
#include "storage/array/text_files.h"
#include "storage/base/exceptions.h"
#include "storage/base/stopwatch.h"
#include "storage/io/files.h"
#include "storage/io/outside.h"
#include "storage/io/posix_file.h"
#include "storage/io/unique_folder.h"
#include "storage/store/caller_path.h"

namespace rhizome {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
constexpr std::uint64_t kReportEdges = std::uint64_t{1}
                                       << 16;  // between two checks of cancellation

/// Attributes that refer to the store's own commits or to its numbers of rows, which another store
/// does not have. Without them, an array that `infer` computed counts as computed from the first
/// commit of the store that reads the folder.
constexpr std::array<std::string_view, 8> kFactsOfStore = {
    "snapshot",          kCommitsAttribute, kStaleRowsAttribute,     kLostRowsAttribute,
    kRowsGivenAttribute, kTextsAttribute,   kTextsPerChunkAttribute, kTextsAddedAttribute};

/// A file that is written in pieces. Threads: one at a time.
class FolderFile {
 public:
  static Result<FolderFile> Create(const Path& path) {
    RHIZOME_ASSIGN_OR_RETURN(auto file, FileSystem::Posix().CreateFile(path));
    return FolderFile(std::move(file));
  }
  Status Append(std::span<const std::byte> bytes) { return file_->Append(bytes); }
  Status Append(std::string_view text) { return Append(std::as_bytes(std::span(text))); }
  Status Line(std::string_view line) {
    piece_ += line;
    piece_ += '\n';
    return piece_.size() < kPieceBytes ? Status::Ok() : Flush();
  }
  Status Close() {
    RHIZOME_RETURN_IF_ERROR(Flush());
    RHIZOME_RETURN_IF_ERROR(file_->Sync());
    return file_->Close();
  }

 private:
  explicit FolderFile(std::unique_ptr<WritableFile> file) : file_(std::move(file)) {}
  Status Flush() {
    const Status status = Append(piece_);
    piece_.clear();
    return status;
  }
  std::unique_ptr<WritableFile> file_;
  std::string piece_;
};

std::vector<std::pair<std::string, std::string>> AttributesOf(const ArrayEntry& entry) {
  auto attributes = entry.attributes;
  std::erase_if(attributes, [](const auto& fact) {
    return fact.first == kDimensionAttribute ||
           (fact.first == kTypeAttribute && fact.second == kTypeText) ||
           std::find(kFactsOfStore.begin(), kFactsOfStore.end(), fact.first) != kFactsOfStore.end();
  });
  return attributes;
}

class FolderWriter {
 public:
  FolderWriter(std::shared_ptr<const GraphSnapshot> graph, const Path& target,
               const ExportFolderOptions& options, const JobControl& control)
      : graph_(std::move(graph)), target_(target), options_(options), control_(control) {}

  ~FolderWriter() {
    if (!parent_.empty()) static_cast<void>(RemoveTree(FileSystem::Posix(), parent_).ok());
  }

  Result<ExportFolderReport> Run();

 private:
  Status Begin();
  Status CheckNames() const;
  Status WriteVertices();
  Status WriteEdges();
  Status WriteArrays();
  Status WriteArray(const ArrayEntry& entry);
  Result<std::string> WriteTexts(const ArrayEntry& entry, const std::string& array_file);
  Status WriteEdgeAttributes();
  Status WriteDescription();
  Status Publish();
  void AddFile(const std::string& file, std::uint64_t rows, std::uint64_t dim,
               std::string_view dtype) {
    report_.files.push_back({target_ / file, rows, dim, std::string(dtype)});
  }

  const std::shared_ptr<const GraphSnapshot> graph_;
  const Path target_;
  const ExportFolderOptions& options_;
  const JobControl& control_;
  Path parent_;  // temporary folder that contains folder_; removed at the end
  Path folder_;
  StoreFolder described_;
  ExportFolderReport report_;
};

// Exports a folder:
// 1. checks the target and the names of the arrays, and creates a temporary folder;
// 2. writes vertices, edges, arrays and attributes of edges;
// 3. writes rhizome.json, and publishes the folder.
Result<ExportFolderReport> FolderWriter::Run() {
  const Stopwatch watch;
  RHIZOME_RETURN_IF_ERROR(Begin());
  const GenerationInfo& info = graph_->info();
  described_.text_ids = info.id_kind == ExternalIdKind::kString;
  described_.undirected = info.symmetric;
  described_.directions = info.directions;
  described_.series = graph_->store().manifest().series;
  RHIZOME_RETURN_IF_ERROR(WriteVertices());
  RHIZOME_RETURN_IF_ERROR(WriteEdges());
  RHIZOME_RETURN_IF_ERROR(WriteArrays());
  RHIZOME_RETURN_IF_ERROR(WriteEdgeAttributes());
  RHIZOME_RETURN_IF_ERROR(WriteDescription());
  RHIZOME_RETURN_IF_ERROR(Publish());
  report_.seconds = watch.seconds();
  return std::move(report_);
}

Status FolderWriter::Begin() {
  FileSystem& fs = FileSystem::Posix();
  if (target_.filename().empty())
    return Status::InvalidArgument(fmt::format("'{}' has no name", target_.string()));
  RHIZOME_RETURN_IF_ERROR(CheckOutside(fs, target_));
  const auto info = fs.Stat(target_);
  if (info)
    return Status::AlreadyExists(fmt::format(
        "'{}' exists already; give another path, or remove it first", target_.string()));
  if (info.error().code() != StatusCode::kNotFound) return info.error();
  RHIZOME_RETURN_IF_ERROR(CheckNames());
  const Path prefix = target_.parent_path() / fmt::format(".{}.part-", target_.filename().string());
  RHIZOME_ASSIGN_OR_RETURN(parent_, MakeUniqueFolder(prefix, "create a folder beside the output"));
  folder_ = parent_ / target_.filename();
  // The folder itself has the permissions of any new folder, unlike the temporary one.
  for (const Path& folder : {folder_, folder_ / "arrays", folder_ / "edge_attributes"})
    RHIZOME_RETURN_IF_ERROR(fs.CreateDirectory(folder));
  return Status::Ok();
}

/// Checks that ingestion will accept the names: stores of older builds may have others.
Status FolderWriter::CheckNames() const {
  for (const ArrayEntry* entry : VertexArraysOf(*graph_)) {
    const auto version = SplitVersion(entry->name);
    const Status named = CheckNewArrayName(version ? version->first : entry->name);
    if (!named.ok()) return named.WithContext("rename the array before the export");
  }
  return Status::Ok();
}

Status FolderWriter::WriteVertices() {
  const VertexTable table(*graph_, TableForm::kCsv, /*with_arrays=*/false);
  described_.vertices = {"vertices.csv", table.rows(), table.columns(), graph_->vertex_types()};
  RHIZOME_ASSIGN_OR_RETURN(FolderFile file, FolderFile::Create(folder_ / "vertices.csv"));
  RHIZOME_RETURN_IF_ERROR(file.Line(table.Header()));
  RHIZOME_RETURN_IF_ERROR(table.Write([&](std::string_view line) { return file.Line(line); },
                                      options_.memory_bytes, control_));
  AddFile("vertices.csv", table.rows(), table.columns().size(), "text");
  return file.Close();
}

Status FolderWriter::WriteEdges() {
  const EdgeTable table(*graph_, TableForm::kCsv, /*with_attributes=*/false);
  RHIZOME_ASSIGN_OR_RETURN(EdgeScan scan, EdgeScan::Open(*graph_, {.pairs_once = true}));
  RHIZOME_ASSIGN_OR_RETURN(FolderFile file, FolderFile::Create(folder_ / "edges.csv"));
  RHIZOME_RETURN_IF_ERROR(file.Line(table.Header()));
  std::uint64_t edges = 0;
  std::string line;
  EdgeBlocks::Block block;
  while (true) {
    if (edges % kReportEdges == 0)
      RHIZOME_RETURN_IF_ERROR(control_.Report({.phase = "exporting edges",
                                               .done = scan.vertices_done(),
                                               .total = graph_->vertex_count()}));
    RHIZOME_ASSIGN_OR_RETURN(const auto edge, scan.Next());
    if (!edge) break;
    block.edges.assign(1, *edge);
    RHIZOME_RETURN_IF_ERROR(table.Format(block, 0, line));
    RHIZOME_RETURN_IF_ERROR(file.Line(line));
    ++edges;
  }
  described_.edges = {"edges.csv", edges, table.columns(), graph_->edge_types()};
  AddFile("edges.csv", edges, table.columns().size(), "text");
  return file.Close();
}

Status FolderWriter::WriteArrays() {
  for (const ArrayEntry* entry : VertexArraysOf(*graph_)) {
    RHIZOME_RETURN_IF_ERROR(WriteArray(*entry));
    RHIZOME_ASSIGN_OR_RETURN(const Staleness staleness, graph_->StalenessOf(*entry));
    if (staleness.any())
      report_.notes.push_back(
          fmt::format("array '{}' was computed from an earlier state of the graph; its rows are "
                      "exported as they are, without the marks of those that may be out of date",
                      ShownName(entry->name)));
  }
  return Status::Ok();
}

Status FolderWriter::WriteArray(const ArrayEntry& entry) {
  const std::string name = fmt::format("arrays/{}.npy", entry.name);
  const LiveVertices live = LiveVertices::Of(*graph_, entry);
  const std::uint64_t all = live.count();
  RHIZOME_ASSIGN_OR_RETURN(FolderFile file, FolderFile::Create(folder_ / name));
  RHIZOME_RETURN_IF_ERROR(file.Append(NpyHeaderBytes(entry.dtype, all, entry.dim)));
  // A read of a row takes its bytes, and about 64 for its place.
  const std::uint64_t tile_rows =
      std::max<std::uint64_t>(options_.memory_bytes / (entry.row_bytes() + 64), 1);
  std::vector<VertexId> vertices;
  std::vector<std::byte> rows;
  for (std::uint64_t first = 0; first < all; first += vertices.size()) {
    RHIZOME_RETURN_IF_ERROR(control_.Report({.phase = "exporting arrays",
                                             .done = first,
                                             .total = all,
                                             .detail = ShownName(entry.name)}));
    vertices.resize(std::min(tile_rows, all - first));
    for (std::size_t i = 0; i < vertices.size(); ++i) vertices[i] = live.At(first + i);
    rows.resize(vertices.size() * entry.row_bytes());
    RHIZOME_RETURN_IF_ERROR(graph_->ReadRows(entry.name, vertices, rows));
    RHIZOME_RETURN_IF_ERROR(file.Append(rows));
  }
  described_.arrays.push_back({entry.name, name, entry.dtype, entry.dim, AttributesOf(entry)});
  AddFile(name, all, entry.dim, DataTypeName(entry.dtype));
  RHIZOME_ASSIGN_OR_RETURN(described_.arrays.back().texts, WriteTexts(entry, name));
  return file.Close();
}

/// Writes the texts of an array's codes in a file next to its rows, as JSON strings, which can hold
/// line breaks. Returns the name of the file; empty if the array has numbers.
Result<std::string> FolderWriter::WriteTexts(const ArrayEntry& entry,
                                             const std::string& array_file) {
  if (!HasTexts(entry)) return std::string();
  constexpr std::uint64_t kAtOnce = 65'536;
  RHIZOME_ASSIGN_OR_RETURN(const auto texts, TextValues::Open(*graph_, entry.name));
  std::string name = Path(array_file).replace_extension(".texts.jsonl").string();
  RHIZOME_ASSIGN_OR_RETURN(FolderFile file, FolderFile::Create(folder_ / name));
  std::vector<std::int64_t> codes;
  for (std::uint64_t first = 0; first < texts->size(); first += codes.size()) {
    RHIZOME_RETURN_IF_ERROR(control_.CheckCancelled());
    codes.resize(std::min(kAtOnce, texts->size() - first));
    std::iota(codes.begin(), codes.end(), static_cast<std::int64_t>(first));
    RHIZOME_ASSIGN_OR_RETURN(const auto block, texts->TextsOf(codes));
    for (const std::string& text : block)
      RHIZOME_RETURN_IF_ERROR(file.Line(nlohmann::json(text).dump()));
  }
  RHIZOME_RETURN_IF_ERROR(file.Close());
  AddFile(name, texts->size(), 1, "text");
  return name;
}

Status FolderWriter::WriteEdgeAttributes() {
  const std::uint64_t edges = described_.edges.rows;
  std::vector<FolderFile> files;
  RHIZOME_ASSIGN_OR_RETURN(EdgeBlocks blocks, EdgeBlocks::Open(*graph_, options_.memory_bytes));
  if (blocks.attributes().empty()) return Status::Ok();
  for (const EdgeAttributeInfo& attribute : blocks.attributes()) {
    const std::string name = fmt::format("edge_attributes/{}.npy", attribute.name);
    RHIZOME_ASSIGN_OR_RETURN(FolderFile file, FolderFile::Create(folder_ / name));
    RHIZOME_RETURN_IF_ERROR(file.Append(NpyHeaderBytes(attribute.dtype, edges, attribute.dim)));
    files.push_back(std::move(file));
    const ArrayEntry* const entry =
        graph_->store().manifest().FindArray(EdgeArrayName(attribute.name, 0));
    described_.edge_attributes.push_back(
        {attribute.name, name, attribute.dtype, attribute.dim, AttributesOf(*entry)});
    AddFile(name, edges, attribute.dim, DataTypeName(attribute.dtype));
    RHIZOME_ASSIGN_OR_RETURN(described_.edge_attributes.back().texts, WriteTexts(*entry, name));
  }
  EdgeBlocks::Block block;
  for (std::uint64_t done = 0;; done += block.edges.size()) {
    RHIZOME_RETURN_IF_ERROR(
        control_.Report({.phase = "exporting edge attributes", .done = done, .total = edges}));
    RHIZOME_ASSIGN_OR_RETURN(const bool more, blocks.Next(block));
    if (!more) break;
    for (std::size_t a = 0; a < files.size(); ++a)
      RHIZOME_RETURN_IF_ERROR(files[a].Append(block.attributes[a]));
  }
  for (FolderFile& file : files) RHIZOME_RETURN_IF_ERROR(file.Close());
  return Status::Ok();
}

Status FolderWriter::WriteDescription() {
  const std::string text = EncodeStoreFolder(described_);
  RHIZOME_RETURN_IF_ERROR(WriteWholeFile(FileSystem::Posix(), folder_ / kStoreFolderFile,
                                         std::as_bytes(std::span(text))));
  for (const Path& folder : {folder_ / "arrays", folder_ / "edge_attributes", folder_})
    RHIZOME_RETURN_IF_ERROR(FileSystem::Posix().SyncDirectory(folder));
  return Status::Ok();
}

// Renames the folder to its final name, unless something has that name by now.
Status FolderWriter::Publish() {
  RHIZOME_RETURN_IF_ERROR(control_.CheckCancelled());
  int failed = renameat2(AT_FDCWD, folder_.c_str(), AT_FDCWD, target_.c_str(), RENAME_NOREPLACE);
  // Some file systems lack the flag. Without it, only an empty folder could be replaced.
  if (failed != 0 && errno == EINVAL) failed = std::rename(folder_.c_str(), target_.c_str());
  if (failed != 0) return SystemError(errno, "move the finished folder to", target_);
  return FileSystem::Posix().SyncDirectory(target_.parent_path());
}

}  // namespace

Result<ExportFolderReport> ExportFolder(const Graph& graph, const Path& folder,
                                        const ExportFolderOptions& options,
                                        const JobControl& control) try {
  return WithAbsolute(FileSystem::Posix(), folder, [&](const Path& absolute) {
    return FolderWriter(graph.Snapshot(), absolute, options, control).Run();
  });
} catch (...) {
  return Fail(StatusOfException());
}

}  // namespace rhizome
