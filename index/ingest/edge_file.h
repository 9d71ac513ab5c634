#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rhizome/index/edge_rows.h"
#include "rhizome/index/edge_spool.h"
#include "rhizome/index/id_collector.h"
#include "rhizome/index/ingest_context.h"
#include "rhizome/index/npy.h"

namespace rhizome::inline internal {

/// Edges of a block of spilled ends, as SpilledIds has them.
inline constexpr std::size_t kSpoolBlockEdges = std::size_t{1} << 15;

/// Edges of a block of a spilled EdgeTable of `row_bytes` an edge: as many, or a half, a quarter
/// ... where they would take too much.
std::size_t SpoolBlockEdges(std::uint64_t row_bytes);

/// What the edge files say besides the ids, by edge: in memory, or in a spill file.
struct EdgeTable {
  TypeNames type_names;
  EdgeList columns;  ///< `type`, `weight` and `attributes`; where `spool` is there, without values
  std::optional<EdgeSpool> spool = {};

  std::uint64_t memory_bytes() const {
    std::uint64_t bytes = columns.type.capacity() * 2 + columns.weight.capacity() * 4;
    for (const EdgeAttribute& attribute : columns.attributes) bytes += attribute.memory_bytes();
    return bytes;
  }
};

/// What becomes an edge attribute, of the edge files' columns and of the edge arrays, as empty
/// ones; a column may still become float32.
std::vector<EdgeAttribute> EdgeAttributesOf(const IngestOptions& options);

/// Bytes of all of them, an edge.
std::uint64_t EdgeAttributeBytes(const IngestOptions& options);

/// Checks IngestOptions::columns and edge_arrays, and that edge files agree on what they say
/// besides. Errors: kInvalidArgument, naming the column or the file.
Status CheckEdgeColumns(const IngestOptions& options);

/// Do edges have types, by a column or by file?
bool HasEdgeTypes(const IngestOptions& options);

/// Do they have weights, by a column or by an array?
bool HasWeights(const IngestOptions& options);

/// Opens a .npy file of edges: [m, 2], or [2, m] if sources stand first.
/// Errors: kInvalidArgument, naming the file: another shape or type; those of NpyReader.
Result<std::unique_ptr<NpyReader>> OpenNpyEdges(FileSystem& fs, const EdgeFile& file);

/// Reads all edge files, in order; the ids go into `ids`. Edge types are numbered in order of first
/// sight. With `space`, what stands beside the ids goes into a spill file there.
/// Errors: those of Ingest.
Result<EdgeTable> ReadEdges(IngestContext& context, IdCollector& ids, SpillSpace* space);

}  // namespace rhizome::inline internal
