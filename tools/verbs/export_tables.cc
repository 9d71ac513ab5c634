#include "tools/verbs/export_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <span>

#include "index/graph/edge_table.h"
#include "index/graph/edges_by_id.h"
#include "index/graph/vertex_table.h"
#include "storage/array/array_facts.h"
#include "tools/cli/id_text.h"
#include "tools/cli/text_output.h"

namespace rhizome {
namespace {

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
    if (types.size() > 1) {
      piece += SeparatorOf(form);
      RHIZOME_RETURN_IF_ERROR(AppendField(types[type], form, piece));
    }
    piece += '\n';
    ++written.rows;
    return piece.size() < kPieceBytes ? Status::Ok() : flush();
  };
  RHIZOME_RETURN_IF_ERROR(ScanEdgesById(graph, partition, write));
  RHIZOME_RETURN_IF_ERROR(flush());
  return written;
}

namespace {

Json FileField(const std::string& out, std::uint64_t rows,
               const std::vector<std::string>& columns) {
  return Json{{"path", out},
              {"rows", rows},
              {"dim", columns.size()},
              {"dtype", "text"},
              {"columns", fmt::format("{}", fmt::join(columns, ","))}};
}

}  // namespace

Result<Json> ExportEdges(const GraphSnapshot& graph, const TableOptions& options,
                         const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(EdgeBlocks blocks,
                           EdgeBlocks::Open(graph, options.memory_bytes / 4, /*with_texts=*/true));
  RHIZOME_ASSIGN_OR_RETURN(TextOutput file, TextOutput::Create(options.out));
  const EdgeTable table(graph, TableFormOf(options.out), /*with_attributes=*/true);
  if (options.header) RHIZOME_RETURN_IF_ERROR(file.Line(table.Header()));
  EdgeBlocks::Block block;
  std::string line;
  std::uint64_t edges = 0;
  while (true) {
    RHIZOME_RETURN_IF_ERROR(control.Report({.phase = "exporting edges",
                                            .done = blocks.scan().vertices_done(),
                                            .total = graph.vertex_count()}));
    RHIZOME_ASSIGN_OR_RETURN(const bool more, blocks.Next(block));
    if (!more) break;
    edges += block.edges.size();
    for (std::size_t i = 0; i < block.edges.size(); ++i) {
      RHIZOME_RETURN_IF_ERROR(table.Format(block, i, line));
      RHIZOME_RETURN_IF_ERROR(file.Line(line));
    }
  }
  RHIZOME_RETURN_IF_ERROR(file.Commit());
  return FileField(options.out, edges, table.columns());
}

Result<Json> ExportVertices(const GraphSnapshot& graph, const TableOptions& options,
                            std::vector<std::string>& left_out, const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(TextOutput file, TextOutput::Create(options.out));
  const VertexTable table(graph, TableFormOf(options.out), /*with_arrays=*/true);
  left_out = table.left_out();
  if (options.header) RHIZOME_RETURN_IF_ERROR(file.Line(table.Header()));
  RHIZOME_RETURN_IF_ERROR(table.Write([&](std::string_view line) { return file.Line(line); },
                                      options.memory_bytes / 4, control));
  RHIZOME_RETURN_IF_ERROR(file.Commit());
  return FileField(options.out, table.rows(), table.columns());
}

}  // namespace rhizome
