#pragma once

#include <string>

#include "rhizome/graph.h"
#include "rhizome/store.h"

namespace rhizome::testing {

/// Describes everything that a reader can see of a store, as text: generation and version, vertices
/// with their neighbours in both directions and their rows, arrays with versions and aliases, and
/// the hash of its commits, so that copies with equal commit numbers but different commits differ.
/// Two stores with the same description answer every query the same way. The description is "none"
/// if nothing was ever committed. Errors: any of opening and reading.
Result<std::string> Describe(FileSystem& fs, const Path& store);
Result<std::string> Describe(const Store& store);
Result<std::string> Describe(const Graph& graph);

/// Describes only the arrays: their shapes, the contents of their chunks, versions and aliases.
Result<std::string> DescribeArrays(const Store& store);

/// Returns the lines that compaction must not change: the commits and the vertices.
std::string VerticesIn(const std::string& description);

}  // namespace rhizome::testing
