#pragma once

#include <cstdint>
#include <vector>

#include "index/ids/id_collector.h"
#include "index/ingest/ingest_context.h"
#include "index/ingest/node_column.h"

namespace rhizome {
inline namespace internal {

/// The columns of the nodes file without the ids, by accepted line.
struct NodeTable {
  std::uint64_t lines = 0;  ///< without the header, including bad lines

  /// By line: the number of the accepted line, or -1 for a bad line. Empty if no line was bad.
  std::vector<std::int64_t> accepted;

  TypeNames type_names;
  std::vector<TypeId> type;  ///< may be empty
  std::vector<NodeColumn> columns;

  std::uint64_t memory_bytes() const;
};

/// Checks IngestOptions::node_columns.
/// Errors: kInvalidArgument, naming the column.
Status CheckNodeColumns(const IngestOptions& options);

/// Returns whether vertices have types, from a column of the nodes file or by ranges.
bool HasVertexTypes(const IngestOptions& options);

/// Returns the names of the arrays that the columns become.
std::vector<std::string> NodeArrayNames(const IngestOptions& options);

/// Returns the columns that `types` may give a type: those that become arrays of their values.
std::vector<std::string> TypedNodeColumns(const IngestOptions& options);

/// Reads the nodes file and adds the ids to `ids`. Vertex types are numbered in order of first
/// occurrence. A line with a repeated id is malformed.
/// Errors: as Ingest.
Result<NodeTable> ReadNodes(IngestContext& context, IdCollector& ids);

}  // namespace internal
}  // namespace rhizome
