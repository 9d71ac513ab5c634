#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "index/base/edge_list.h"
#include "index/generation/reorder.h"
#include "rhizome/export.h"
#include "rhizome/graph_types.h"
#include "rhizome/ingest.h"
#include "rhizome/job_control.h"
#include "rhizome/manifest.h"
#include "rhizome/status.h"
#include "rhizome/store.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace internal {
class GenerationWriter;
class ByteSink;
class IoPacer;
class PartitionedEdges;
class TypeRows;
class VertexColumn;
class VertexOrder;
struct SpilledGraph;
struct TextFiles;
}  // namespace internal
}  // namespace rhizome

namespace RHIZOME_API rhizome {

/// Writes the texts of the array `holder`, which is below `root` or will be.
using WriteTextsOf = std::function<Result<internal::TextFiles>(FileSystem& fs, const Path& root,
                                                               std::string_view holder)>;

/// An array to store. Its rows are found by vertex id, and read in row order, many at a time. An
/// array with the attribute `vertex_type` (BoundType) is bound to that type: only rows of the
/// type's vertices are read, and chunks without such a vertex are not stored.
struct ArrayInput {
  std::string name;
  std::uint64_t dim = 0;
  DataType dtype = DataType::kFloat32;
  ArrayLayout layout = ArrayLayout::kRow;
  Codec codec;
  std::uint64_t chunk_rows = 0;  ///< 0: DefaultChunkRows; if bound, of RowsOfBoundChunk
  std::uint64_t inner_rows = 0;  ///< for shards (ArrayEntry::inner_rows); may be kChosenInnerRows

  std::uint64_t array_id = 0;  ///< 0: the next unused id

  /// Metadata stored with the array (ArrayEntry::attributes), such as the names of its classes.
  std::vector<std::pair<std::string, std::string>> attributes;

  /// If set, called once before the first row is read; then every row is read exactly once, in
  /// order. It allows a source to hold memory only while its array is written. `of_type` has the
  /// rows of the vertex type of a bound array; null for other arrays.
  std::function<Status(const VertexOrder& order, const TypeRows* of_type)> begin = {};

  /// Returns the number of rows that the source prefers to read at once, if memory allows. Called
  /// after `begin`. Unset, or 0: one chunk.
  std::function<std::uint64_t()> rows_at_once = {};

  /// Copies the rows of `vertices` to `out`: shape [vertices.size(), dim], row-major.
  std::function<Status(std::span<const VertexId> vertices, std::span<std::byte> out)> read_rows;

  /// Set for an array of codes of texts (text_values.h): writes their dictionary below `root`, as
  /// the texts of the array `holder`.
  WriteTextsOf write_texts = {};
};

/// The texts of an edge attribute. The array of partition 0 has their dictionary.
struct AttributeTexts {
  WriteTextsOf write;

  /// The code to store for each value of the edges; a negative value means no text. Empty: the
  /// values are codes already.
  std::vector<std::int64_t> codes = {};
};

/// A complete graph in memory, checked by its reader (ingest.h, importers, generators).
struct GraphInput {
  std::uint64_t vertex_count = 0;
  EdgeList edges;                   ///< an undirected graph has each pair once
  bool weighted = false;            ///< true for a weighted graph, even if it has no edge
  bool undirected = false;          ///< store (u,v) and (v,u); a self-loop only once
  std::vector<TypeId> vertex_type;  ///< [vertex_count], or empty
  std::vector<std::string> vertex_type_names;  ///< at least one
  std::vector<std::string> edge_type_names;    ///< at least one
  ExternalIdKind id_kind = ExternalIdKind::kDense;
  std::vector<std::int64_t> integer_ids;  ///< by vertex id, for kInteger
  std::vector<std::string> string_ids;    ///< by vertex id, for kString
  std::vector<ArrayInput> arrays;
  std::vector<ArraySeries> series = {};  ///< of a new store; a compaction keeps the store's

  /// The home of each vertex if another program chose them (HomeRule::kFile), below
  /// PartitionOptions::partitions; otherwise empty.
  std::vector<PartitionId> homes = {};

  /// Storage of EdgeList::attributes: one array for each attribute and partition, named
  /// EdgeArrayName, with its rows in the order of the partition's edge ids.
  ArrayLayout attribute_layout = ArrayLayout::kRow;
  Codec attribute_codec;
  std::uint64_t attribute_chunk_rows = 0;

  /// By name, the attributes that hold codes of texts.
  std::map<std::string, AttributeTexts, std::less<>> attribute_texts = {};

  /// Set if an ingestion's edges and string ids do not fit in memory. In that case `edges` and
  /// `string_ids` are empty.
  std::shared_ptr<SpilledGraph> spilled = {};

  /// Set by a compaction: edges that are already partitioned replace `edges`, and these functions
  /// replace the ids above. `write_ids` omits deleted vertices.
  std::shared_ptr<PartitionedEdges> divided = {};
  std::function<Status(ByteSink&, const StoreId&)> write_ids = {};
  std::function<ExternalId(VertexId)> id_of = {};
  std::function<bool(VertexId)> is_deleted = {};
};

/// Returns the name of the array of an edge attribute in one partition: "time.p0003".
std::string EdgeArrayName(std::string_view attribute, std::uint32_t partition);

/// Returns the name of the first dimension of such an array (ArrayEntry::attributes, "dimension"):
/// "edge_p0003".
std::string EdgeDimension(std::uint32_t partition);

/// Bounds on the peak memory of a build: for each vertex; for each directed edge that waits in
/// memory; and, of a partition that is being written, for each directed edge with its columns and
/// for each vertex that the partition owns or has an edge of.
inline constexpr std::uint64_t kBuildBytesPerVertex = 16;  ///< with up to 16 partitions
inline constexpr std::uint64_t kHeldBytesPerEdge = 16;
inline constexpr std::uint64_t kWriteBytesPerEdge = 44;
inline constexpr std::uint64_t kWriteBytesPerVertex = 24;

/// kBuildBytesPerVertex for all vertices and any number of partitions: the largest of
/// - 10 bytes and a set of partitions while the edges are partitioned (hdrf);
/// - 16 bytes while the rows are ordered: the order twice, two degrees, owner and type;
/// - 12 bytes and a set, while partitions are written: the order in both directions, two degrees;
///   and 2 more if the order does not group the rows by owner and type.
inline std::uint64_t BuildVertexBytes(std::uint64_t vertices, std::uint32_t partitions) {
  const std::uint64_t set_bytes =
      partitions <= 64 ? (partitions + 7) / 8 : 8 * ((partitions + std::uint64_t{63}) / 64);
  return vertices * (kBuildBytesPerVertex - 2 + (set_bytes < 2 ? 2 : set_bytes));
}

/// Returns the bound for a partition that is being written, of a graph with `all_vertices`.
inline std::uint64_t WritePartitionBytes(std::uint64_t edges, std::uint64_t edge_bytes,
                                         std::uint64_t vertices, std::uint64_t all_vertices) {
  return edges * edge_bytes + vertices * kWriteBytesPerVertex + all_vertices / 4;
}

/// Overrides for compaction.
struct BuildHooks {
  /// Replaces writer.Commit(info) once the files of the generation are written. BuildGeneration
  /// returns its status.
  std::function<Status(GenerationWriter& writer, const GenerationInfo& info)> commit = {};

  /// Chooses the vertex at each row, instead of BuildOptions::order; the store still records the
  /// name of that order.
  std::function<Result<internal::VertexColumn>(const ReorderInput& input)> order_rows = {};

  /// If set, arrays are written concurrently with partitions, provided that this many bytes of
  /// memory are available for them.
  std::optional<std::uint64_t> array_bytes = {};

  /// Called for each chunk once it is written and synced, from several threads.
  std::function<void(const FileEntry& chunk)> chunk_written = {};

  /// Lets large writes yield to commits; may be null.
  IoPacer* pacer = nullptr;
};

/// Partitions, orders and writes `input` as the store's next generation, and commits it. Consumes
/// the edges. Nothing is visible before it returns OK.
/// Errors: kInvalidArgument, an id or type out of range, or a bad name; kOutOfMemory, a partition
/// of a spilled graph is too large for the memory (the message has the number of partitions that
/// would suffice); kOutOfSpace; kIoError; kInterrupted.
Status BuildGeneration(Store& store, GraphInput input, const BuildOptions& options,
                       const JobControl& control, const BuildHooks& hooks = {});

}  // namespace rhizome
