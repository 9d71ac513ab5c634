#pragma once

#include <string>

#include "rhizome/index/graph.h"
#include "rhizome/storage/store.h"

namespace rhizome::testing {

/// All that a reader can see of a store, as text: generation and version, vertices with their
/// neighbours in both directions and their rows, arrays with versions and aliases. Two stores with
/// the same description answer every question alike. "none" where nothing was ever committed.
/// Errors: those of opening and reading.
Result<std::string> Describe(FileSystem& fs, const Path& store);
Result<std::string> Describe(const Store& store);
Result<std::string> Describe(const Graph& graph);

/// Its lines of arrays: their shapes, what their chunks hold, versions and aliases.
Result<std::string> DescribeArrays(const Store& store);

/// The lines of a description that compaction must not change: those of the vertices.
std::string VerticesIn(const std::string& description);

}  // namespace rhizome::testing
