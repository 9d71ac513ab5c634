#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rhizome/manifest.h"
#include "tools/cli/cli.h"
#include "tools/output/row_files.h"

namespace rhizome {

/// Options of ExportEdges and ExportVertices.
struct TableOptions {
  std::string out;     ///< CSV if it ends in .csv, otherwise tab-separated; "-": standard output
  bool header = true;  ///< begin with a line of names, as ingestion reads them
  std::uint64_t memory_bytes = std::uint64_t{1} << 30;
};

/// Writes all edges of a graph with all of their values (EdgeTable). Each pair of an undirected
/// graph is written once. Returns the file's entry for "files".
/// Errors: as EdgeBlocks, EdgeTable and OutputFile.
Result<Json> ExportEdges(const GraphSnapshot& graph, const TableOptions& options,
                         const JobControl& control);

/// Writes all vertices that are not deleted (VertexTable). Returns the file's entry for "files",
/// and in `left_out` the names of the arrays that are not columns of the table.
/// Errors: as VertexTable and OutputFile.
Result<Json> ExportVertices(const GraphSnapshot& graph, const TableOptions& options,
                            std::vector<std::string>& left_out, const JobControl& control);

/// Writes the edges to which the rows of the edge array `entry` belong: source and target, and the
/// type if there are several, one edge per line, in edge-id order.
/// Errors: as AppendIdField and OutputFile.
Result<WrittenFile> WriteEdgesOfRows(const GraphSnapshot& graph, const ArrayEntry& entry,
                                     const Path& path, const JobControl& control);

}  // namespace rhizome
