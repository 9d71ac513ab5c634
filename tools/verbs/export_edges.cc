#include "export_edges.h"

#include <fmt/format.h>

#include <iterator>

#include "id_text.h"
#include "rhizome/index/graph_scan.h"
#include "text_output.h"

namespace rhizome {
namespace {

// Cancellation is checked once in so many edges.
constexpr std::uint64_t kReportEdges = 65536;

}  // namespace

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
