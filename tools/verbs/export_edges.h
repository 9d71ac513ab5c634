#pragma once

#include <string>

#include "cli.h"

namespace rhizome {

/// Writes all edges of a graph in the form that `ingest` and `put` read: src, dst, then the type if
/// there are several types, then the weight if the graph is weighted; of an undirected graph each
/// pair once. The form is CSV if `out` ends in .csv, else tab-separated; "-" is standard output.
/// Returns the file's entry for "files".
/// Errors: those of AppendIdField, EdgeScan and OutputFile.
Result<Json> ExportEdges(const GraphSnapshot& graph, const std::string& out,
                         const JobControl& control);

}  // namespace rhizome
