#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/status.h"

namespace RHIZOME_API rhizome {

/// Return the role of each column of a table of edges (src, dst, type, weight, time) or of vertices
/// (id, label, split, type, ntype) by its name; empty for a name without a role. Several names may
/// have one role; only the most likely names of ids have the role id.
std::vector<std::string> EdgeRolesByName(std::span<const std::string> names);
std::vector<std::string> NodeRolesByName(std::span<const std::string> names);

/// Returns the kind of vertices of each column of a table of edges: "user" and "movie" of userId
/// and movieId, if these are its only two columns of ids without a role, and of different kinds;
/// empty for all other columns.
std::vector<std::string> KindsOfEnds(std::span<const std::string> names);

}  // namespace rhizome

namespace rhizome {
inline namespace internal {

/// The columns of a file, by role, as the names in its header give them.
struct RoleNames {
  std::vector<std::string> roles;  ///< as IngestOptions::columns or node_columns
  /// The types of sources and destinations, or of the vertices, that the names of the ids contain:
  /// "user" and "movie" of userId and movieId. Mostly empty.
  std::vector<std::string> types = {};
};

/// Divides a name into its words, in small letters: "FromNodeId", "from_node_id" and "from node id"
/// into from, node, id.
std::vector<std::string> WordsOf(std::string_view name);

/// Returns whether the names contain one for the sources and one for the destinations of edges.
bool NamesEdges(std::span<const std::string> names);

/// Return the roles of the columns of an edge file or of a node file.
/// Errors: kInvalidArgument, two columns have the same role, or an id is missing. The message has
/// no file name.
Result<RoleNames> EdgeRoles(std::span<const std::string> names);
Result<RoleNames> NodeRoles(std::span<const std::string> names);

}  // namespace internal
}  // namespace rhizome
