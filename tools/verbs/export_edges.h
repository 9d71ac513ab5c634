#pragma once

#include <string>

#include "cli.h"

namespace rhizome {

/// Writes all edges of a graph as `ingest` and `put` read them: src, dst, then the type where there
/// are several, then the weight where there are any; of an undirected graph each pair once. CSV
/// where `out` ends so, else with tabs; "-" is standard output. Returns the file's entry for
/// "files". Errors: those of AppendIdField, EdgeScan and OutputFile.
Result<Json> ExportEdges(const GraphSnapshot& graph, const std::string& out,
                         const JobControl& control);

}  // namespace rhizome
