#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>

#include "index/graph/live_vertices.h"
#include "index/input/npy_header.h"
#include "rhizome/store_folder.h"
#include "storage/array/array_facts.h"
#include "storage/array/array_versions.h"
#include "storage/array/row_reader.h"
#include "storage/base/check.h"
#include "storage/base/stopwatch.h"
#include "tools/cli/allocator.h"
#include "tools/cli/gnn_library.h"
#include "tools/cli/help.h"
#include "tools/cli/id_text.h"
#include "tools/cli/text.h"
#include "tools/cli/text_output.h"
#include "tools/import/elements.h"
#include "tools/import/gnn_flags.h"
#include "tools/output/predictions.h"
#include "tools/output/row_files.h"
#include "tools/verbs/export_tables.h"
#include "tools/verbs/verbs.h"
#include "tools/verbs/vertex_array.h"

namespace rhizome {
namespace {

enum class ExportFormat : std::uint8_t { kNpy, kFbin };

struct ExportFlags {
  std::string store;
  std::string array;
  bool edges = false;
  bool vertices = false;
  bool no_header = false;
  std::string folder;
  std::string out;
  std::string ids;
  std::string model_file;  // model whose predictions are exported; empty: none
  InferOptions infer;      // options of predictions
  std::optional<std::uint64_t> given_memory;
  std::uint64_t memory_bytes() const { return given_memory.value_or(std::uint64_t{1} << 30); }
};

/// Reads the current rows of an array in vertex-id order, skipping deleted vertices and vertices of
/// types without rows, or the rows of an edge array in their order. A chunk that holds several rows
/// of a call is read once.
class TileReader {
 public:
  TileReader(const GraphSnapshot& graph, const ChunkArray& array)
      : graph_(graph), array_(array), live_(LiveVertices::Of(graph, array.entry())) {}

  /// Returns the number of rows to export.
  std::uint64_t rows() const { return of_edges_ ? array_.entry().rows : live_.count(); }

  /// Reads rows [first, first + count) into `out`.
  Status Read(std::uint64_t first, std::uint64_t count, std::span<std::byte> out) {
    if (of_edges_) return array_.ReadRows(first, count, out);
    vertices_.resize(count);
    for (std::uint64_t i = 0; i < count; ++i) vertices_[i] = live_.At(first + i);
    return graph_.ReadRows(array_.entry().name, vertices_, out);
  }

  /// Memory per row of a call, in addition to the bytes of the row.
  static constexpr std::uint64_t kBytesPerRow = sizeof(VertexId) + sizeof(RowTarget);

 private:
  const GraphSnapshot& graph_;
  const ChunkArray& array_;
  const bool of_edges_ = IsOfEdges(array_.entry());
  const LiveVertices live_;
  std::vector<VertexId> vertices_;
};

/// Returns the header of an .fbin file, a format of vector-search libraries: rows and columns as
/// uint32.
Result<std::string> FbinHeader(std::uint64_t rows, std::uint64_t dim) {
  const std::array<std::uint64_t, 2> shape = {rows, dim};
  std::string header;
  for (const std::uint64_t number : shape) {
    if (number > UINT32_MAX) {
      return Fail(Status::InvalidArgument(fmt::format(
          ".fbin has 32-bit counts and cannot hold {} rows; export .npy instead", number)));
    }
    const auto narrow = static_cast<std::uint32_t>(number);
    header.append(reinterpret_cast<const char*>(&narrow), sizeof(narrow));
  }
  return header;
}

Result<WrittenFile> WriteRows(const OpenedGraph& opened, const ChunkArray& array,
                              const ExportFlags& flags, ExportFormat format,
                              const JobControl& control) {
  const ArrayEntry& entry = array.entry();
  TileReader reader(*opened.graph, array);
  const std::uint64_t all_rows = reader.rows();
  std::string header = NpyHeaderBytes(entry.dtype, all_rows, entry.dim);
  if (format == ExportFormat::kFbin) {
    RHIZOME_ASSIGN_OR_RETURN(header, FbinHeader(all_rows, entry.dim));
  }
  RHIZOME_ASSIGN_OR_RETURN(OutputFile out, OutputFile::Create(flags.out));
  RHIZOME_RETURN_IF_ERROR(out.Append(std::as_bytes(std::span(header))));
  // Memory per row of a tile: its bytes, its float copy for .fbin, and its position.
  const std::uint64_t row_cost =
      entry.row_bytes() + entry.dim * sizeof(float) + TileReader::kBytesPerRow;
  const std::uint64_t tile_rows =
      std::min(all_rows, std::max<std::uint64_t>(flags.memory_bytes() / row_cost, 1024));
  std::vector<std::byte> tile(tile_rows * entry.row_bytes());
  std::vector<float> floats;
  for (std::uint64_t first = 0; first < all_rows; first += tile_rows) {
    RHIZOME_RETURN_IF_ERROR(
        control.Report({.phase = "exporting", .done = first, .total = all_rows}));
    const std::uint64_t count = std::min(tile_rows, all_rows - first);
    const std::span<std::byte> rows = std::span(tile).first(count * entry.row_bytes());
    RHIZOME_RETURN_IF_ERROR(reader.Read(first, count, rows));
    if (format == ExportFormat::kNpy || entry.dtype == DataType::kFloat32) {
      RHIZOME_RETURN_IF_ERROR(out.Append(rows));
      continue;
    }
    floats.resize(count * entry.dim);
    ToFloats(entry.dtype, rows, floats);
    RHIZOME_RETURN_IF_ERROR(out.Append(std::as_bytes(std::span(floats))));
  }
  return WrittenFile{std::move(out), all_rows};
}

/// Writes the rows and their ids (for an edge array, their edges). Both files are complete before
/// either is committed.
Result<std::uint64_t> WriteBoth(const OpenedGraph& opened, const ChunkArray& array,
                                const ExportFlags& flags, ExportFormat format, const Path& ids_path,
                                const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(
      WrittenFile ids, IsOfEdges(array.entry())
                           ? WriteEdgesOfRows(*opened.graph, array.entry(), ids_path, control)
                           : WriteIds(*opened.graph, LiveVertices::Of(*opened.graph, array.entry()),
                                      ids_path, control));
  RHIZOME_ASSIGN_OR_RETURN(WrittenFile rows, WriteRows(opened, array, flags, format, control));
  const std::uint64_t count = rows.rows;
  RHIZOME_RETURN_IF_ERROR(CommitBoth(std::move(rows), flags.out, std::move(ids), ids_path));
  return count;
}

std::string DescribeExport(const Json& f) {
  TextTable table({1, 2});
  for (const Json& file : f["files"]) {
    table.Add({file["path"].get<std::string>(), WithCommas(file["rows"]),
               fmt::format("x {}", file["dim"].get<std::uint64_t>()),
               file["dtype"].get<std::string>()});
  }
  std::string text = "wrote\n" + table.ToString();
  if (const std::uint64_t rows = f.value("non_finite_rows", std::uint64_t{0}); rows > 0)
    text += fmt::format("{} without a prediction: the scores are NaN or infinite\n",
                        Plural(rows, "row"));
  return text + fmt::format("in {}\n", HumanSeconds(f["seconds"]));
}

/// Opens the store for a scan. Lists that would fill half of the memory remain on disk.
Result<OpenedGraph> OpenForScan(const ExportFlags& flags, Session& session) {
  RHIZOME_RETURN_IF_ERROR(session.control.Report({.phase = "opening the store"}));
  OpenedGraph opened;
  RHIZOME_ASSIGN_OR_RETURN(opened.store,
                           Store::Open(FileSystem::Posix(), flags.store, Store::Mode::kRead));
  std::uint64_t topology_bytes = 0;
  for (const FileEntry& file : opened.store->manifest().files)
    if (file.path.starts_with("topology/")) topology_bytes += file.size_bytes;
  GraphOptions options;
  if (topology_bytes > flags.memory_bytes() / 2) {
    options.topology = TopologyPlace::kDirect;
    options.list_cache_bytes = flags.memory_bytes() / 4;
  }
  RHIZOME_ASSIGN_OR_RETURN(const auto live, Graph::Open(*opened.store, options));
  opened.graph = live->Snapshot();
  RHIZOME_RETURN_IF_ERROR(session.control.CheckCancelled());
  return opened;
}

/// Exports edges or vertices as a table.
Result<Answer> RunTable(const ExportFlags& flags, Session& session) {
  RHIZOME_RETURN_IF_ERROR(CheckOutputs(session, flags.out));
  const Stopwatch watch;
  RHIZOME_ASSIGN_OR_RETURN(const OpenedGraph opened, OpenForScan(flags, session));
  const TableOptions options{
      .out = flags.out, .header = !flags.no_header, .memory_bytes = flags.memory_bytes()};
  std::vector<std::string> left_out;
  RHIZOME_ASSIGN_OR_RETURN(
      Json file, flags.edges ? ExportEdges(*opened.graph, options, session.control)
                             : ExportVertices(*opened.graph, options, left_out, session.control));
  const double seconds = watch.seconds();
  for (const std::string& array : left_out)
    Tell(session, "not a column", fmt::format("{}: export it with --array", array));
  Json fields = {{"files", Json::array({std::move(file)})}, {"seconds", seconds}};
  if (flags.vertices) fields["left_out"] = left_out;
  return Answer{std::move(fields), IsStandardOutput(flags.out) ? nullptr : DescribeExport, {}};
}

/// Exports the whole store as a folder.
Result<Answer> RunFolder(const ExportFlags& flags, Session& session) {
  RHIZOME_ASSIGN_OR_RETURN(const OpenedGraph opened, OpenForScan(flags, session));
  RHIZOME_ASSIGN_OR_RETURN(
      const ExportFolderReport report,
      ExportFolder(*opened.graph, flags.folder, {.memory_bytes = flags.memory_bytes() / 4},
                   session.control));
  for (const std::string& note : report.notes) Tell(session, "note", note);
  Json files = Json::array();
  for (const ExportFolderReport::File& file : report.files)
    files.push_back({{"path", file.path.string()},
                     {"rows", file.rows},
                     {"dim", file.dim},
                     {"dtype", file.dtype}});
  return Answer{{{"files", std::move(files)}, {"notes", report.notes}, {"seconds", report.seconds}},
                DescribeExport,
                {}};
}

// Exports predictions: (1) checks everything that does not depend on the computation; (2) loads
// librhizome_gnn; (3) computes the scores of all vertices in the job's scratch folder and writes
// the predictions. The store is not changed.
Result<Answer> RunPredictions(const ExportFlags& flags, Session& session) {
  const Path out = flags.out;
  const PredictionFiles files{.rows = out,
                              .ids = flags.ids.empty() ? IdsBeside(out) : Path(flags.ids)};
  RHIZOME_RETURN_IF_ERROR(CheckPredictionFiles(files));
  if (!flags.ids.empty() && out.extension() != ".npy") {
    return Fail(Status::InvalidArgument(
        fmt::format("--ids is not used with this format: the ids are in {} itself", flags.out)));
  }
  RHIZOME_RETURN_IF_ERROR(ProbeOutput(flags.out));
  RHIZOME_ASSIGN_OR_RETURN(const GnnEntry* const gnn, LoadGnnLibrary());
  const Stopwatch watch;
  constexpr std::uint64_t kTileBytes = std::uint64_t{64} << 20;
  InferOptions options = CompleteInferOptions(flags.infer);
  options.store = flags.store;
  options.model_file = flags.model_file;
  options.out = "predictions";
  options.scores = true;
  options.resources.memory_bytes = flags.given_memory.value_or(0);
  options.note = PrintsNotes(session);
  if (options.resources.memory_bytes != 0) ReturnFreedMemory(1 << 20);
  const std::uint64_t tile = options.resources.memory_bytes == 0
                                 ? kTileBytes
                                 : std::min(kTileBytes, options.resources.memory_bytes / 8);
  Json files_written;
  std::string task;
  options.take = [&](const InferResult& scores) -> Status {
    task = TaskName(scores.task);
    RHIZOME_ASSIGN_OR_RETURN(files_written, WritePredictions(scores, files, tile, session.control));
    return Status::Ok();
  };
  StartMemory(session, options.resources.memory_bytes);
  RHIZOME_ASSIGN_OR_RETURN(const InferReport report, gnn->Infer(options, session.control));
  return Answer{{{"files", std::move(files_written)},
                 {"task", task},
                 {"ignored", report.ignored},
                 {"non_finite_rows", report.non_finite.empty() ? 0 : report.non_finite[0].rows},
                 {"peak_memory_bytes", report.peak_memory_bytes},
                 {"seconds", watch.seconds()}},
                DescribeExport,
                {}};
}

// Exports an array: (1) checks the flags; (2) opens the store and the array, which must have one
// row per vertex or edge; (3) writes ids and rows (WriteBoth); (4) warns if the rows may be out of
// date. Tables, folders and predictions are handled by the functions above.
Result<Answer> RunExport(const ExportFlags& flags, Session& session) {
  const int asked = (flags.edges ? 1 : 0) + (flags.vertices ? 1 : 0) +
                    (flags.folder.empty() ? 0 : 1) + (flags.array.empty() ? 0 : 1) +
                    (flags.model_file.empty() ? 0 : 1);
  if (asked != 1) {
    return Fail(Status::InvalidArgument(
        "give one of --array NAME, --edges, --vertices, --store DIR and --predictions MODEL"));
  }
  if (flags.no_header && !flags.edges && !flags.vertices)
    return Fail(Status::InvalidArgument("--no-header is for --edges and --vertices"));
  if (flags.out.empty() == flags.folder.empty()) {
    return Fail(Status::InvalidArgument(
        flags.out.empty() ? "name the output with --out F"
                          : "--store names the output folder itself; leave out --out"));
  }
  if (!flags.folder.empty()) return RunFolder(flags, session);
  if (flags.edges || flags.vertices) return RunTable(flags, session);
  if (!flags.model_file.empty()) return RunPredictions(flags, session);
  const Path out = flags.out;
  const bool fbin = out.extension() == ".fbin";
  if (!fbin && out.extension() != ".npy") {
    return Fail(Status::InvalidArgument(
        fmt::format("--out {}: the name must end in .npy or .fbin", flags.out)));
  }
  RHIZOME_RETURN_IF_ERROR(ParseArrayReference(flags.array));
  const Stopwatch watch;
  RHIZOME_ASSIGN_OR_RETURN(const OpenedGraph opened, OpenGraph(flags.store, session));
  RHIZOME_ASSIGN_OR_RETURN(const auto array, opened.store->OpenArray(flags.array));
  const ArrayEntry& entry = array->entry();
  const bool of_edges = IsOfEdges(entry);
  if (!of_edges && entry.rows != opened.graph->info().vertices) {
    return Fail(Status::InvalidArgument(fmt::format(
        "'{}' has {} rows, but the graph has {} vertices: it is not an array of vertices",
        flags.array, entry.rows, opened.graph->info().vertices)));
  }
  const Path ids = flags.ids.empty() ? IdsBeside(out) : Path(flags.ids);
  RHIZOME_ASSIGN_OR_RETURN(
      const std::uint64_t rows,
      WriteBoth(opened, *array, flags, fbin ? ExportFormat::kFbin : ExportFormat::kNpy, ids,
                session.control));
  const double seconds = watch.seconds();
  Json files = Json::array();
  files.push_back({{"path", flags.out},
                   {"rows", rows},
                   {"dim", entry.dim},
                   {"dtype", DataTypeName(fbin ? DataType::kFloat32 : entry.dtype)}});
  const std::uint64_t id_columns = !of_edges ? 1 : opened.graph->edge_types().size() > 1 ? 3 : 2;
  files.push_back({{"path", ids.string()}, {"rows", rows}, {"dim", id_columns}, {"dtype", "text"}});
  Json fields = {{"files", std::move(files)}, {"seconds", seconds}};
  RHIZOME_RETURN_IF_ERROR(WarnIfStale(session, *opened.graph, entry, fields));
  return Answer{std::move(fields), DescribeExport, {}};
}

}  // namespace

void AddExportVerb(CLI::App& root, Session& session) {
  auto flags = std::make_shared<ExportFlags>();
  CLI::App* verb =
      AddVerb(root, session, "export",
              "Export a store as a folder; or an array, an edge attribute, edges, vertices, or a "
              "model's predictions to a file",
              "rhizome export demo.rz --array embedding --out embedding.npy", flags, RunExport);
  verb->add_option("STORE", flags->store, "The store's folder")->required();
  verb->add_option("--array", flags->array,
                   "Array to export, in the order of vertex ids and without deleted vertices; or "
                   "an edge attribute, in the order of edge ids")
      ->type_name("NAME");
  verb->add_flag(
      "--edges", flags->edges,
      "Export all edges as TSV or CSV with a header: src, dst, type, weight and attributes; of an "
      "undirected graph each pair once");
  verb->add_flag("--vertices", flags->vertices,
                 "Export all vertices as TSV or CSV with a header: id, type, label, split and "
                 "arrays of one column");
  verb->add_option("--store", flags->folder,
                   "Export the whole store as a new folder, from which ingest creates the same "
                   "store: vertices.csv, edges.csv, .npy files, and rhizome.json, which describes "
                   "them")
      ->type_name("DIR");
  verb->add_flag("--no-header", flags->no_header,
                 "With --edges or --vertices: omit the line of names");
  verb->add_option("--predictions", flags->model_file,
                   "Export the predictions of this model file for every vertex: class and "
                   "probability, labels and probabilities, or values")
      ->type_name("MODEL");
  verb->add_option("--out", flags->out,
                   "Output file. Arrays: .npy, or .fbin (float32, for vector search), with ids (of "
                   "edge attributes: the edges) in F.ids.tsv. Edges and vertices: .tsv, .csv or - "
                   "(standard output). Predictions: .csv, .tsv or .npy (float32)")
      ->type_name("F.npy|F.fbin|F.tsv|F.csv");
  verb->add_option("--ids", flags->ids,
                   "Write the ids here instead: one per line, or as quoted CSV")
      ->type_name("F.txt|F.csv");
  AddSize(*verb, "--memory", flags->given_memory,
          "Memory for rows, edges and lists; with --predictions: memory limit of the process "
          "beyond its size at start, by default none")
      ->default_str("1G");
  AddPredictionFlags(*verb, flags->infer);
  ArrangeOptions(*verb,
                 {"store", "array", "edges", "vertices", "predictions", "out", "ids", "no-header",
                  "memory", "threads"},
                 {"features", "fanout", "scratch"});
}

}  // namespace rhizome
