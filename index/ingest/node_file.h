#pragma once

#include <cstdint>
#include <vector>

#include "rhizome/index/id_collector.h"
#include "rhizome/index/ingest_context.h"
#include "rhizome/index/node_column.h"

namespace rhizome::inline internal {

/// What the nodes file says besides the ids, by accepted line.
struct NodeTable {
  std::uint64_t lines = 0;  ///< header excepted, bad lines included

  /// The number of the accepted line, or -1 for a bad one, by line; empty if none was bad.
  std::vector<std::int64_t> accepted;

  TypeNames type_names;
  std::vector<TypeId> type;  ///< or empty
  std::vector<NodeColumn> columns;

  std::uint64_t memory_bytes() const;
};

/// Checks IngestOptions::node_columns. Errors: kInvalidArgument, naming the column.
Status CheckNodeColumns(const IngestOptions& options);

/// Names of the arrays that the columns become.
std::vector<std::string> NodeArrayNames(const IngestOptions& options);

/// Reads the nodes file; the ids go into `ids`. Vertex types are numbered in order of first sight.
/// Errors: those of Ingest; an id that stands twice is a malformed line.
Result<NodeTable> ReadNodes(IngestContext& context, IdCollector& ids);

}  // namespace rhizome::inline internal
