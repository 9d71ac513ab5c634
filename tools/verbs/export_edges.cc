#include "tools/verbs/export_edges.h"

#include <fmt/format.h>

#include <charconv>
#include <iterator>
#include <span>

#include "index/graph/edges_by_id.h"
#include "rhizome/graph_scan.h"
#include "storage/array/array_facts.h"
#include "tools/cli/id_text.h"
#include "tools/cli/text_output.h"

namespace rhizome {
namespace {

// Number of edges between two checks for cancellation.
constexpr std::uint64_t kReportEdges = 65536;

/// Returns the partition of an edge array: 3 for the dimension "edge_p0003". Errors:
/// kInvalidArgument, no such partition.
Result<std::uint32_t> PartitionOf(const GraphSnapshot& graph, const ArrayEntry& entry) {
  const std::string_view dimension = FirstDimension(entry);
  const std::string_view digits = dimension.substr(dimension.find_last_of('p') + 1);
  std::uint32_t partition = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), partition);
  if (error == std::errc() && partition < graph.partition_count()) return partition;
  return Fail(Status::InvalidArgument(
      fmt::format("'{}' is an array of '{}', which is not a partition", entry.name, dimension)));
}

}  // namespace

Result<WrittenFile> WriteEdgesOfRows(const GraphSnapshot& graph, const ArrayEntry& entry,
                                     const Path& path, const JobControl& control) {
  constexpr std::size_t kPieceBytes = 1 << 20;
  RHIZOME_ASSIGN_OR_RETURN(const std::uint32_t partition, PartitionOf(graph, entry));
  RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t edges, CountEdgesById(graph, partition));
  if (edges != entry.rows)
    return Fail(Status::Corruption(fmt::format(
        "array '{}' has {} rows, but the partition has {} edges", entry.name, entry.rows, edges)));
  const TableForm form = TableFormOf(path);
  const std::vector<std::string> types = graph.edge_types();
  RHIZOME_ASSIGN_OR_RETURN(OutputFile out, OutputFile::Create(path));
  WrittenFile written{std::move(out), 0};
  std::string piece;
  const auto flush = [&]() -> Status {
    RHIZOME_RETURN_IF_ERROR(
        control.Report({.phase = "writing ids", .done = written.rows, .total = entry.rows}));
    RHIZOME_RETURN_IF_ERROR(written.file.Append(std::as_bytes(std::span(piece))));
    piece.clear();
    return Status::Ok();
  };
  const auto write = [&](VertexId src, VertexId dst, TypeId type) -> Status {
    RHIZOME_RETURN_IF_ERROR(AppendIdField(*graph.ExternalIdOf(src), form, piece));
    piece += SeparatorOf(form);
    RHIZOME_RETURN_IF_ERROR(AppendIdField(*graph.ExternalIdOf(dst), form, piece));
    if (types.size() > 1) piece += SeparatorOf(form) + types[type];
    piece += '\n';
    ++written.rows;
    return piece.size() < kPieceBytes ? Status::Ok() : flush();
  };
  RHIZOME_RETURN_IF_ERROR(ScanEdgesById(graph, partition, write));
  RHIZOME_RETURN_IF_ERROR(flush());
  return written;
}

Result<Json> ExportEdges(const GraphSnapshot& graph, const std::string& out,
                         const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(EdgeScan scan, EdgeScan::Open(graph, {.pairs_once = true}));
  RHIZOME_ASSIGN_OR_RETURN(TextOutput file, TextOutput::Create(out));
  const GraphSnapshot& fixed = scan.graph();
  const std::vector<std::string> types = fixed.edge_types();
  const bool weighted = fixed.info().weighted;
  const TableForm form = TableFormOf(out);
  const char separator = SeparatorOf(form);
  std::string line;
  while (true) {
    if (file.lines() % kReportEdges == 0)
      RHIZOME_RETURN_IF_ERROR(control.Report({.phase = "exporting edges",
                                              .done = scan.vertices_done(),
                                              .total = fixed.vertex_count()}));
    RHIZOME_ASSIGN_OR_RETURN(const auto edge, scan.Next());
    if (!edge) break;
    line.clear();
    RHIZOME_RETURN_IF_ERROR(AppendIdField(*fixed.ExternalIdOf(edge->src), form, line));
    line += separator;
    RHIZOME_RETURN_IF_ERROR(AppendIdField(*fixed.ExternalIdOf(edge->dst), form, line));
    if (types.size() > 1) line += separator + types[edge->type];
    if (weighted) fmt::format_to(std::back_inserter(line), "{}{}", separator, edge->weight);
    RHIZOME_RETURN_IF_ERROR(file.Line(line));
  }
  RHIZOME_RETURN_IF_ERROR(file.Commit());
  return Json{{"path", out},
              {"rows", file.lines()},
              {"dim", 2 + (types.size() > 1 ? 1 : 0) + (weighted ? 1 : 0)},
              {"dtype", "text"},
              {"columns", std::string("src,dst") + (types.size() > 1 ? ",type" : "") +
                              (weighted ? ",weight" : "")}};
}

}  // namespace rhizome
