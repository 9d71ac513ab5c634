#pragma once

#include <cstdint>
#include <string>

#include "cli.h"
#include "rhizome/storage/manifest.h"
#include "row_files.h"

namespace rhizome {

/// Writes all edges of a graph in the form that `ingest` and `put` read: src, dst, then the type if
/// there are several types, then the weight if the graph is weighted; of an undirected graph each
/// pair once. The form is CSV if `out` ends in .csv, else tab-separated; "-" is standard output.
/// Returns the file's entry for "files".
/// Errors: those of AppendIdField, EdgeScan and OutputFile.
Result<Json> ExportEdges(const GraphSnapshot& graph, const std::string& out,
                         const JobControl& control);

/// Writes whose the rows of an array of edges are, `entry`: source and target of each, and the type
/// where there are several, one edge a line, in the order of the edge ids. Errors: those of
/// AppendIdField and OutputFile.
Result<WrittenFile> WriteEdgesOfRows(const GraphSnapshot& graph, const ArrayEntry& entry,
                                     const Path& path, const JobControl& control);

}  // namespace rhizome
