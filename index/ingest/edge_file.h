#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "index/generation/edge_spool.h"
#include "index/ids/id_collector.h"
#include "index/ingest/edge_rows.h"
#include "index/ingest/edge_splitter.h"
#include "index/ingest/ingest_context.h"
#include "index/ingest/text_column.h"
#include "index/input/npy.h"

namespace rhizome {
inline namespace internal {

/// Number of edges in a block of spilled ends, as in SpilledIds.
inline constexpr std::size_t kSpoolBlockEdges = std::size_t{1} << 15;

/// Returns the number of edges in a block of a spilled IngestedEdges with `row_bytes` an edge:
/// kSpoolBlockEdges, halved until the block is small enough.
std::size_t SpoolBlockEdges(std::uint64_t row_bytes);

/// The columns of the edge files without the ids, by edge: in memory, or in a spill file.
struct IngestedEdges {
  TypeNames type_names;
  EdgeList columns;  ///< `type`, `weight` and `attributes`; empty if there is a spool
  std::optional<EdgeSpool> spool = {};

  /// By name, the texts of attributes whose values are numbers of texts.
  std::map<std::string, AttributeTexts, std::less<>> texts = {};
  std::uint64_t text_bytes = 0;

  std::uint64_t memory_bytes() const {
    std::uint64_t bytes = columns.type.capacity() * 2 + columns.weight.capacity() * 4 + text_bytes;
    for (const EdgeAttribute& attribute : columns.attributes) bytes += attribute.memory_bytes();
    return bytes;
  }
};

/// Returns the edge attributes, without values, from the columns of edge files and the edge arrays;
/// the dtype of a column may still become wider.
std::vector<EdgeAttribute> EdgeAttributesOf(const IngestOptions& options);

/// Returns the bytes of all attributes of an edge.
std::uint64_t EdgeAttributeBytes(const IngestOptions& options);

/// Checks IngestOptions::columns and edge_arrays, and that the edge files agree in the properties
/// that importers set.
/// Errors: kInvalidArgument, naming the column or the file.
Status CheckEdgeColumns(const IngestOptions& options);

/// Returns whether edges have types, from a column or by file.
bool HasEdgeTypes(const IngestOptions& options);

/// Returns whether edges have weights, from a column or from an array.
bool HasWeights(const IngestOptions& options);

/// An open .npy file of edges.
struct NpyEdges {
  std::unique_ptr<NpyReader> reader;
  bool sources_first = false;  ///< the shape is [2, m], otherwise [m, 2]

  std::uint64_t edges() const {
    return sources_first ? reader->header().dim() : reader->header().rows();
  }
};

/// Opens a .npy file of edges: integers of shape [m, 2] or [2, m], in C or Fortran order.
/// Errors: kInvalidArgument, another shape or type, or [2, 2] without EdgeFile::sources_first,
/// naming the file; any error of NpyReader.
Result<NpyEdges> OpenNpyEdges(FileSystem& fs, const EdgeFile& file);

/// Sets `joined` to the id of a vertex whose type is one of IngestOptions::end_types: "user:7".
void JoinTypedId(std::string_view type, std::string_view id, std::string& joined);

/// Reads all edge files in order and adds the ids to `ids`. Edge types are numbered in order of
/// first occurrence. With `space`, the other columns are written to a spill file there. With
/// `splitter`, the columns have only the edges that it keeps; `ids` still has the ends of all.
/// Errors: as Ingest; any error of `splitter`.
Result<IngestedEdges> ReadEdges(IngestContext& context, IdCollector& ids, SpillSpace* space,
                                EdgeSplitter* splitter = nullptr);

/// Returns the names of edge types; "edge" if there is no type column.
std::vector<std::string> EdgeTypeNames(const IngestedEdges& edges);

}  // namespace internal
}  // namespace rhizome
