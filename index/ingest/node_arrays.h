#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "index/generation/graph_builder.h"
#include "index/ingest/ingest_context.h"
#include "index/ingest/node_file.h"

namespace rhizome {
inline namespace internal {

/// Turns the columns of a nodes file into arrays by vertex id: one for each column, except that the
/// columns of IngestOptions::feature_columns become one array, `feat`, float32 [vertices, columns],
/// with NaN for nulls. Adds the array `split` if IngestOptions::random_split is set. `vertices` are
/// the vertices of the accepted lines. Consumes the columns.
/// Errors: kInvalidArgument, a feature column has no numbers, or none has.
Result<std::vector<ArrayInput>> NodeArrays(IngestContext& context, NodeTable& nodes,
                                           std::span<const VertexId> vertices,
                                           std::uint64_t vertex_count);

/// Checks IngestOptions::feature_columns and random_split; the columns must be known.
/// Errors: kInvalidArgument.
Status CheckFeatureColumns(const IngestOptions& options);
Status CheckRandomSplit(const IngestOptions& options);

}  // namespace internal
}  // namespace rhizome
