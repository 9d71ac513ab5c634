#pragma once

#include <cstdint>
#include <string>

#include "rhizome/manifest.h"
#include "tools/cli/cli.h"
#include "tools/output/row_files.h"

namespace rhizome {

/// Writes all edges of a graph in the format that `ingest` and `put` read: src, dst, then the type
/// if there are several types, then the weight if the graph is weighted. Each pair of an undirected
/// graph is written once. The format is CSV if `out` ends in .csv, otherwise tab-separated; "-" is
/// standard output. Returns the file's entry for "files".
/// Errors: as AppendIdField, EdgeScan and OutputFile.
Result<Json> ExportEdges(const GraphSnapshot& graph, const std::string& out,
                         const JobControl& control);

/// Writes the edges to which the rows of the edge array `entry` belong: source and target, and the
/// type if there are several, one edge per line, in edge-id order.
/// Errors: as AppendIdField and OutputFile.
Result<WrittenFile> WriteEdgesOfRows(const GraphSnapshot& graph, const ArrayEntry& entry,
                                     const Path& path, const JobControl& control);

}  // namespace rhizome
