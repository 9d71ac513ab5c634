#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "elements.h"
#include "export_edges.h"
#include "npy_output.h"
#include "rhizome/index/delta.h"
#include "rhizome/storage/array_rules.h"
#include "rhizome/storage/array_versions.h"
#include "rhizome/storage/stopwatch.h"
#include "text.h"
#include "verbs.h"
#include "vertex_array.h"

namespace rhizome {
namespace {

enum class ExportFormat : std::uint8_t { kNpy, kFbin };

struct ExportFlags {
  std::string store;
  std::string array;
  bool edges = false;
  std::string out;
  std::uint64_t memory_bytes = std::uint64_t{1} << 30;
};

/// Reads the rows of an array in vertex-id order, as they were put last, without those of deleted
/// vertices; of an array of edges, the rows as they are. Each chunk that holds any of them is
/// decoded once.
class TileReader {
 public:
  TileReader(const Graph& graph, const ChunkArray& array)
      : graph_(graph), array_(array), delta_(graph.delta()) {
    if (of_edges_ || delta_->empty()) return;
    for (std::uint64_t v = 0; v < graph.vertex_count(); ++v)
      if (!graph.IsDeleted(static_cast<VertexId>(v))) live_.push_back(static_cast<VertexId>(v));
  }

  /// How many rows there are.
  std::uint64_t rows() const {
    return of_edges_ || delta_->empty() ? array_.entry().rows : live_.size();
  }

  /// Reads rows [first, first + count) to `out`.
  Status Read(std::uint64_t first, std::uint64_t count, std::span<std::byte> out) {
    places_.clear();
    put_.clear();
    put_places_.clear();
    for (std::uint64_t i = 0; i < count; ++i) Place(first + i, i);
    RHIZOME_RETURN_IF_ERROR(ReadPut(out));
    std::sort(places_.begin(), places_.end());
    const ArrayEntry& entry = array_.entry();
    const std::uint64_t row_bytes = entry.row_bytes();
    for (std::size_t i = 0; i < places_.size();) {
      const std::uint64_t chunk = static_cast<std::uint64_t>(places_[i].first) / entry.chunk_rows;
      const std::uint64_t base = chunk * entry.chunk_rows;
      chunk_.resize(array_.RowsInChunk(chunk) * row_bytes);
      RHIZOME_RETURN_IF_ERROR(array_.ReadChunk(chunk, chunk_));
      for (; i < places_.size(); ++i) {
        const std::uint64_t row = static_cast<std::uint64_t>(places_[i].first) - base;
        if (row >= entry.chunk_rows) break;
        std::memcpy(out.data() + places_[i].second * row_bytes, chunk_.data() + row * row_bytes,
                    row_bytes);
      }
    }
    return Status::Ok();
  }

 private:
  // Notes where row `number` of the output is read, to stand at `index` of the tile.
  void Place(std::uint64_t number, std::uint64_t index) {
    const VertexId vertex = live_.empty() ? static_cast<VertexId>(number) : live_[number];
    const bool changed = !of_edges_ && !delta_->empty() &&
                         (static_cast<std::uint64_t>(vertex) >= graph_.info().vertices ||
                          delta_->RowCommit(array_.entry().array_id, vertex));
    if (changed) {
      put_.push_back(vertex);
      put_places_.push_back(index);
    } else {
      places_.emplace_back(of_edges_ ? Row{vertex} : graph_.RowOf(vertex), index);
    }
  }

  // Rows that were put since the generation.
  Status ReadPut(std::span<std::byte> out) {
    if (put_.empty()) return Status::Ok();
    const std::uint64_t row_bytes = array_.entry().row_bytes();
    std::vector<std::byte> rows(put_.size() * row_bytes);
    RHIZOME_RETURN_IF_ERROR(graph_.ReadRows(array_.entry().name, put_, rows));
    for (std::size_t i = 0; i < put_.size(); ++i)
      std::memcpy(out.data() + put_places_[i] * row_bytes, rows.data() + i * row_bytes, row_bytes);
    return Status::Ok();
  }

  const Graph& graph_;
  const ChunkArray& array_;
  const std::shared_ptr<const Delta> delta_;
  const bool of_edges_ = IsOfEdges(array_.entry());
  std::vector<VertexId> live_;                         // only where there is a delta
  std::vector<std::pair<Row, std::uint64_t>> places_;  // row, index within the tile
  std::vector<VertexId> put_;                          // vertices with rows in the delta
  std::vector<std::uint64_t> put_places_;
  std::vector<std::byte> chunk_;
};

/// The .fbin header of vector-search libraries: rows and columns, uint32 each.
Result<std::string> FbinHeader(std::uint64_t rows, std::uint64_t dim) {
  const std::array<std::uint64_t, 2> shape = {rows, dim};
  std::string header;
  for (const std::uint64_t number : shape) {
    if (number > UINT32_MAX) {
      return Fail(Status::InvalidArgument(
          fmt::format(".fbin counts in 32 bits and cannot hold {} rows; export .npy", number)));
    }
    const auto narrow = static_cast<std::uint32_t>(number);
    header.append(reinterpret_cast<const char*>(&narrow), sizeof(narrow));
  }
  return header;
}

/// Returns how many rows it wrote.
Result<std::uint64_t> WriteRows(const OpenedGraph& opened, const ChunkArray& array,
                                const ExportFlags& flags, ExportFormat format,
                                const JobControl& control) {
  const ArrayEntry& entry = array.entry();
  TileReader reader(*opened.graph, array);
  const std::uint64_t all_rows = reader.rows();
  std::string header = NpyHeader(entry.dtype, all_rows, entry.dim);
  if (format == ExportFormat::kFbin) {
    RHIZOME_ASSIGN_OR_RETURN(header, FbinHeader(all_rows, entry.dim));
  }
  RHIZOME_ASSIGN_OR_RETURN(OutputFile out, OutputFile::Create(flags.out));
  RHIZOME_RETURN_IF_ERROR(out.Append(std::as_bytes(std::span(header))));
  // A row of a tile costs its bytes, its float copy for .fbin, and its place in the sort.
  const std::uint64_t row_cost = entry.row_bytes() + entry.dim * sizeof(float) + 16;
  const std::uint64_t tile_rows =
      std::min(all_rows, std::max<std::uint64_t>(flags.memory_bytes / row_cost, 1024));
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
  RHIZOME_RETURN_IF_ERROR(out.Commit());
  return all_rows;
}

/// One external id a line, in vertex-id order.
Status WriteIds(const Graph& graph, const Path& path, const JobControl& control) {
  constexpr std::size_t kPieceBytes = 1 << 20;
  RHIZOME_ASSIGN_OR_RETURN(OutputFile out, OutputFile::Create(path));
  std::string piece;
  for (std::uint64_t v = 0; v < graph.vertex_count(); ++v) {
    if (!graph.IsDeleted(static_cast<VertexId>(v)))
      piece += ToString(graph.ExternalIdOf(static_cast<VertexId>(v))) + '\n';
    if (piece.size() < kPieceBytes && v + 1 < graph.vertex_count()) continue;
    RHIZOME_RETURN_IF_ERROR(
        control.Report({.phase = "writing ids", .done = v, .total = graph.vertex_count()}));
    RHIZOME_RETURN_IF_ERROR(out.Append(std::as_bytes(std::span(piece))));
    piece.clear();
  }
  return out.Commit();
}

std::string DescribeExport(const Json& f) {
  TextTable table({1, 2});
  for (const Json& file : f["files"]) {
    table.Add({file["path"].get<std::string>(), WithCommas(file["rows"]),
               fmt::format("x {}", file["dim"].get<std::uint64_t>()),
               file["dtype"].get<std::string>()});
  }
  return "wrote\n" + table.ToString() + fmt::format("in {}\n", HumanSeconds(f["seconds"]));
}

Result<Answer> RunEdges(const ExportFlags& flags, Session& session) {
  const Stopwatch watch;
  RHIZOME_ASSIGN_OR_RETURN(const OpenedGraph opened, OpenGraph(flags.store, session));
  RHIZOME_ASSIGN_OR_RETURN(Json file, ExportEdges(*opened.graph, flags.out, session.control));
  const double seconds = watch.seconds();
  Json files = Json::array();
  files.push_back(std::move(file));
  return Answer{{{"files", std::move(files)}, {"seconds", seconds}}, DescribeExport, {}};
}

Result<Answer> RunExport(const ExportFlags& flags, Session& session) {
  if (flags.edges == !flags.array.empty())
    return Fail(Status::InvalidArgument("say what to export: either --array NAME or --edges"));
  if (flags.edges) return RunEdges(flags, session);
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
    return Fail(Status::InvalidArgument(
        fmt::format("'{}' has {} rows and the graph {} vertices: it is not an array of vertices",
                    flags.array, entry.rows, opened.graph->info().vertices)));
  }
  RHIZOME_ASSIGN_OR_RETURN(
      const std::uint64_t rows,
      WriteRows(opened, *array, flags, fbin ? ExportFormat::kFbin : ExportFormat::kNpy,
                session.control));
  const Path ids = Path(out).replace_extension(".ids.tsv");
  if (!of_edges) RHIZOME_RETURN_IF_ERROR(WriteIds(*opened.graph, ids, session.control));
  const double seconds = watch.seconds();
  Json files = Json::array();
  files.push_back({{"path", flags.out},
                   {"rows", rows},
                   {"dim", entry.dim},
                   {"dtype", DataTypeName(fbin ? DataType::kFloat32 : entry.dtype)}});
  if (!of_edges)
    files.push_back({{"path", ids.string()}, {"rows", rows}, {"dim", 1}, {"dtype", "text"}});
  return Answer{{{"files", std::move(files)}, {"seconds", seconds}}, DescribeExport, {}};
}

}  // namespace

void AddExportVerb(CLI::App& root, Session& session) {
  auto flags = std::make_shared<ExportFlags>();
  CLI::App* verb = AddVerb(
      root, session, "export",
      "Write an array in vertex-id order, and the external ids beside it; an edge attribute in the "
      "order of the edge ids; or all edges",
      "rhizome export demo.rz --array embedding --out embedding.npy", flags, RunExport);
  verb->add_option("STORE", flags->store, "The store's folder")->required();
  verb->add_option("--array", flags->array, "The array")->type_name("NAME");
  verb->add_flag("--edges", flags->edges,
                 "All edges as TSV, as ingest reads them: src, dst, type, weight");
  verb->add_option("--out", flags->out,
                   "NumPy, or rows for vector search (float32); ids go to F.ids.tsv")
      ->required()
      ->type_name("F.npy|F.fbin|F.tsv");
  AddSize(*verb, "--memory", flags->memory_bytes, "Memory for rows that are being sorted")
      ->default_str("1G");
}

}  // namespace rhizome
