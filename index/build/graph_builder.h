#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rhizome/index/edge_list.h"
#include "rhizome/index/external_id.h"
#include "rhizome/index/partitioner.h"
#include "rhizome/index/reorder.h"
#include "rhizome/index/topology_codec.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/manifest.h"
#include "rhizome/storage/store.h"

namespace rhizome::inline internal {
class GenerationWriter;
class ByteSink;
class IoPacer;
class PartitionedEdges;
class VertexOrder;
struct SpilledGraph;
}  // namespace rhizome::inline internal

namespace RHIZOME_API rhizome {

/// An array to store, known by vertex id. Rows are asked for in row order, many at a time.
struct ArrayInput {
  std::string name;
  std::uint64_t dim = 0;
  DataType dtype = DataType::kFloat32;
  ArrayLayout layout = ArrayLayout::kRow;
  Codec codec;
  std::uint64_t chunk_rows = 0;  ///< 0: DefaultChunkRows
  std::uint64_t inner_rows = 0;  ///< shards (ArrayEntry::inner_rows), or kChosenInnerRows

  std::uint64_t array_id = 0;  ///< 0: the next

  /// Kept with the array (ArrayEntry::attributes), such as the names of its classes.
  std::vector<std::pair<std::string, std::string>> attributes;

  /// Called once, before the first row is asked for, where it is there: every row will be asked for
  /// once. For what takes memory only while the array is written.
  std::function<Status(const VertexOrder& order)> begin = {};

  /// Rows are best asked for about so many at once, where memory has room; asked after `begin`. Not
  /// there, or 0: a chunk's.
  std::function<std::uint64_t()> rows_at_once = {};

  /// Copies the rows of `vertices` to `out`, of vertices.size() * dim * element bytes.
  std::function<Status(std::span<const VertexId> vertices, std::span<std::byte> out)> read_rows;
};

/// A graph in memory, complete and checked by whoever read it (ingest.h, importers, generators).
struct GraphInput {
  std::uint64_t vertex_count = 0;
  EdgeList edges;                              ///< an undirected graph's pairs once each
  bool weighted = false;                       ///< `edges` have weights, even if there are none
  bool undirected = false;                     ///< store (u,v) and (v,u); a self-loop once
  std::vector<TypeId> vertex_type;             ///< [vertex_count], or empty
  std::vector<std::string> vertex_type_names;  ///< at least one
  std::vector<std::string> edge_type_names;    ///< at least one
  ExternalIdKind id_kind = ExternalIdKind::kDense;
  std::vector<std::int64_t> integer_ids;  ///< by vertex id, for kInteger
  std::vector<std::string> string_ids;    ///< by vertex id, for kString
  std::vector<ArrayInput> arrays;

  /// How EdgeList::attributes are stored: one array for each attribute and partition, named
  /// EdgeArrayName, its rows in the order of the partition's edge ids.
  ArrayLayout attribute_layout = ArrayLayout::kRow;
  Codec attribute_codec;
  std::uint64_t attribute_chunk_rows = 0;

  /// An ingestion's edges and string ids that do not fit in memory; then `edges` and `string_ids`
  /// are empty.
  std::shared_ptr<SpilledGraph> spilled = {};

  /// Of a store that is compacted: edges that are divided already, instead of `edges`, and what
  /// writes the external ids, deleted vertices left out, instead of the ids above.
  std::shared_ptr<PartitionedEdges> divided = {};
  std::function<Status(ByteSink&, const StoreId&)> write_ids = {};
  std::function<ExternalId(VertexId)> id_of = {};
  std::function<bool(VertexId)> is_deleted = {};
};

/// "time.p0003": the array of an edge attribute in one partition.
std::string EdgeArrayName(std::string_view attribute, std::uint32_t partition);

/// "edge_p0003": the first dimension of such an array (ArrayEntry::attributes, "dimension").
std::string EdgeDimension(std::uint32_t partition);

struct BuildOptions {
  PartitionOptions partition;
  OrderKind order = OrderKind::kPds;
  Direction directions = Direction::kBoth;
  TopologyCodec topology_codec = TopologyCodec::kNone;

  /// Bound on what the build takes; 0: none. Partitions are written by as many threads as fit.
  std::uint64_t memory_bytes = 0;
};

/// What building takes at its peak, roughly: for each vertex, and for each directed edge of a
/// partition that is being written (with its columns) or that waits in memory to be.
inline constexpr std::uint64_t kBuildBytesPerVertex = 72;  ///< with up to 64 partitions
inline std::uint64_t BuildVertexBytes(std::uint64_t vertices, std::uint32_t partitions) {
  return vertices * (kBuildBytesPerVertex + 24 * ((partitions - std::uint64_t{1}) / 64));
}
inline constexpr std::uint64_t kWriteBytesPerEdge = 44;
inline constexpr std::uint64_t kHeldBytesPerEdge = 16;

/// What a build does in another way than of itself, for compaction.
struct BuildHooks {
  /// Commits the generation, whose files are written, instead of writer.Commit(info); what it
  /// returns, BuildGeneration returns.
  std::function<Status(GenerationWriter& writer, const GenerationInfo& info)> commit = {};

  /// Gives the vertex at each row, instead of BuildOptions::order, which is still noted as its
  /// name.
  std::function<Result<std::vector<VertexId>>(const ReorderInput& input)> order_rows = {};

  /// Arrays are written while partitions are, if memory has room for these bytes beside them.
  std::optional<std::uint64_t> array_bytes = {};

  /// Told of each chunk that is written and synced. From several threads.
  std::function<void(const FileEntry& chunk)> chunk_written = {};

  /// In whose turns large files are written; may be null.
  IoPacer* pacer = nullptr;
};

/// Partitions, orders and writes `input` as the store's next generation, and commits it. Consumes
/// the edges. Nothing is visible before it returns OK.
/// Errors: kInvalidArgument, an id or type out
/// of range, a bad name; kOutOfMemory, a partition of a spilled graph is too large for the memory
/// (says how many partitions would do); kOutOfSpace; kIoError; kInterrupted.
Status BuildGeneration(Store& store, GraphInput input, const BuildOptions& options,
                       const JobControl& control, const BuildHooks& hooks = {});

}  // namespace rhizome
