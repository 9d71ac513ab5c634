#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rhizome/index/blocked_offsets.h"
#include "rhizome/index/column.h"
#include "rhizome/index/patched_column.h"
#include "rhizome/index/rank_bitmap.h"
#include "rhizome/index/topology_codec.h"
#include "rhizome/index/vertex_order.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/section_file.h"
#include "rhizome/storage/types.h"

namespace rhizome::inline internal {

class BlockCache;

/// An edge within one partition: its position in the partition's out-lists, or in its in-lists
/// where only those are kept.
using LocalEdge = std::uint64_t;

std::string PartitionPath(std::uint32_t partition);  ///< "topology/part-0000.adj"

/// The edges of one partition, by row, before they are written. Columns are parallel.
struct EdgesOfPartition {
  std::vector<Row> src;
  std::vector<Row> dst;
  std::vector<TypeId> type;   ///< or empty: all type 0
  std::vector<float> weight;  ///< or empty
};

/// What a partition file says about the whole graph, known to the builder.
struct PartitionContext {
  std::uint32_t partition = 0;
  std::uint32_t partitions = 1;
  std::uint32_t edge_types = 1;
  bool symmetric = false;
  bool weighted = false;    ///< also true where this partition happens to have no edge
  bool attributed = false;  ///< edges have attributes, which stand by edge id
  Direction directions = Direction::kBoth;  ///< lists to keep; symmetric: always the out-lists
  TopologyCodec codec = TopologyCodec::kNone;
  std::span<const std::uint64_t> out_degree;  ///< global, by row
  std::span<const std::uint64_t> in_degree;   ///< global, by row
  /// Bit p of word [row * words + p / 64] is set where partition p holds an edge of the row.
  std::span<const std::uint64_t> partition_set;
};

/// One partition of the topology: a compact CSR over local ids (DESIGN section 4; GLISP III-C).
/// Format: storage/FORMAT.md, "Partition file". Loaded whole and verified: offsets are monotone,
/// ids in range, lists sorted. Edge counts and offsets are 64-bit wherever the partition needs it.
/// The neighbour lists are plain (an array of local ids), compressed (one by one, see
/// compressed_list.h), or on disk: left there when the file was opened, and then read and decoded
/// by whoever needs them, from where ExtentOf says.
/// Memory: the file but what was left on disk, and 16 bytes for each 64 owned vertices.
/// Threads: const after Parse.
class Adjacency {
 public:
  Adjacency(Adjacency&&) = default;
  Adjacency& operator=(Adjacency&&) = default;

  /// Errors: kInvalidArgument, more than 2^32 - 1 local vertices; those of `sink`.
  static Status Write(ByteSink& sink, const StoreId& store_id, const VertexOrder& order,
                      const PartitionContext& context, EdgesOfPartition edges);

  /// `order` is read here only. Errors: kCorruption naming the file and the field.
  static Result<Adjacency> Parse(SectionFile file, const VertexOrder& order,
                                 std::uint32_t partition, std::uint32_t partitions,
                                 std::uint32_t edge_types);

  std::uint64_t edge_count() const { return edge_count_; }
  std::uint64_t vertex_count() const { return owned_count_ + mirrors_.size(); }
  std::uint64_t owned_count() const { return owned_count_; }
  std::uint64_t size_bytes() const { return file_.size_bytes(); }
  bool symmetric() const { return symmetric_; }
  bool weighted() const { return weighted_; }
  bool attributed() const { return attributed_; }  ///< the edges have attributes, by edge id

  /// Can lists of this direction be asked for? kBoth: both. Symmetric: always.
  bool has(Direction direction) const;

  /// The local id of a row that is here, else nothing.
  std::optional<LocalId> Find(Row row) const;
  Row RowOf(LocalId local) const {
    if (local >= owned_count_) return static_cast<Row>(mirrors_[local - owned_count_]);
    return grouped_ ? base_ + static_cast<Row>(local) : static_cast<Row>(owned_rows_[local]);
  }

  /// Where the lists of a direction are.
  TopologyCodec codec() const { return codec_; }
  bool resident() const { return resident_; }  ///< in memory, not on disk

  /// Entries of a direction's whole array of neighbours, of which vertex v's list is a range. For
  /// kOut the edge at position `first + i` has that number; for kIn see Weight.
  struct Range {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
  };

  /// The list of a local vertex, sorted by (type, neighbour). `direction` is kOut or kIn, and
  /// stored; symmetric partitions answer kIn with the out-list.
  Range Entries(LocalId local, Direction direction) const {
    const Side& lists = side(direction);
    const std::uint64_t begin = lists.offsets[local];
    return {begin, lists.offsets[local + std::size_t{1}] - begin};
  }

  /// The part of the list that has edge type `type`: two look-ups in the edge-type index.
  Range EntriesOfType(LocalId local, Direction direction, TypeId type) const;

  /// Neighbours of a local vertex, where the lists are plain and resident.
  struct List {
    std::span<const LocalId> neighbors;
    std::uint64_t first = 0;  ///< position of neighbors[0] in the direction's whole array
  };
  List Neighbors(LocalId local, Direction direction) const {
    const Range range = Entries(local, direction);
    return {side(direction).neighbors.subspan(range.first, range.count), range.first};
  }
  List NeighborsOfType(LocalId local, Direction direction, TypeId type) const {
    const Range range = EntriesOfType(local, direction, type);
    return {side(direction).neighbors.subspan(range.first, range.count), range.first};
  }

  /// The lists of all local vertices, one after another, where they are plain and resident; else
  /// empty.
  std::span<const LocalId> AllNeighbors(Direction direction) const {
    return side(direction).neighbors;
  }

  /// Starts to fetch what Entries reads.
  void PrefetchList(LocalId local, Direction direction) const {
    const Side& lists = side(direction);
    lists.offsets.Prefetch(local);
    if (codec_ != TopologyCodec::kNone) lists.list_offsets.Prefetch(local);
  }

  /// Starts to fetch the first bytes of a compressed, resident list.
  void PrefetchBytes(LocalId local, Direction direction) const {
    const Side& lists = side(direction);
    if (!lists.lists.empty()) __builtin_prefetch(lists.lists.data() + lists.list_offsets[local]);
  }

  /// Can the edge of an entry of this direction be told? Always, but where both directions are kept
  /// and neither weights nor edge attributes made it worth the bytes.
  bool has_edge_ids(Direction direction) const {
    return !through_edge_ids(direction) || weighted_ || attributed_;
  }

  /// The edge of the entry at `position` of a direction's array; only if has_edge_ids.
  LocalEdge EdgeAt(Direction direction, std::uint64_t position) const {
    return through_edge_ids(direction) ? in_edges_[position] : position;
  }

  /// The list of a local vertex, resident in whatever codec; borrows the partition's memory or
  /// `scratch`, which is resized.
  std::span<const LocalId> ReadList(LocalId local, Direction direction,
                                    std::vector<LocalId>& scratch) const;

  /// The same, of a list on disk too: read there and verified. For point look-ups; a sampler's
  /// many lists go through DirectNeighbors. Errors: kCorruption naming the file; kIoError.
  Result<std::span<const LocalId>> FetchList(LocalId local, Direction direction,
                                             std::vector<LocalId>& scratch) const;

  /// Lists on disk: FetchList keeps the blocks that it reads in `cache`, where the file's first
  /// block has the number `first_block`.
  void KeepBlocks(std::shared_ptr<BlockCache> cache, std::uint64_t first_block);

  /// Blocks of the file, as KeepBlocks counts them.
  std::uint64_t block_count() const;

  /// Reads the blocks [first, first + count) of the file into the cache, as far as it has free
  /// frames. Errors: kCorruption; kIoError.
  Status LoadBlocks(std::uint64_t first, std::uint64_t count) const;

  /// The bytes of a compressed, resident list.
  std::span<const std::byte> CompressedBytes(LocalId local, Direction direction) const {
    const Side& lists = side(direction);
    const std::uint64_t begin = lists.list_offsets[local];
    return lists.lists.subspan(begin, lists.list_offsets[local + std::size_t{1}] - begin);
  }

  /// Where a list stands in the partition file; 0 bytes for an empty one.
  struct Extent {
    std::uint64_t offset_bytes = 0;
    std::uint64_t size_bytes = 0;
  };
  Extent ExtentOf(LocalId local, Direction direction) const;

  /// Where the one entry at `position` stands, of plain lists.
  Extent ExtentOfEntry(std::uint64_t position, Direction direction) const {
    return {side(direction).offset_bytes + position * sizeof(LocalId), sizeof(LocalId)};
  }

  /// Decodes a list, or its entry i, from the bytes at ExtentOf (plain: copies). False, or nothing,
  /// where the bytes are damaged: what is returned is a local vertex, and lists are sorted.
  bool DecodeList(LocalId local, Direction direction, std::span<const std::byte> bytes,
                  std::vector<LocalId>& out) const;
  std::optional<LocalId> DecodeEntry(LocalId local, Direction direction,
                                     std::span<const std::byte> bytes, std::uint64_t i) const;

  /// The entry at `position` from the bytes at ExtentOfEntry (plain) or ExtentOf (compressed).
  std::optional<LocalId> DecodeAt(LocalId local, Direction direction,
                                  std::span<const std::byte> bytes, std::uint64_t position) const;

  /// Type of the i-th entry of a vertex's list: a binary search.
  TypeId TypeOfEntry(LocalId local, Direction direction, std::uint64_t i) const;

  /// Weight of the entry at `position` of a direction's array; 1 where the graph has no weights.
  float Weight(Direction direction, std::uint64_t position) const;

  /// Type of an edge in [0, edge_count()): its vertex, then its type, by binary search.
  TypeId TypeOfEdge(LocalEdge edge) const;

  /// Global degrees of a vertex of this partition (the local list's length for an interior one).
  std::uint64_t GlobalDegree(LocalId local, Direction direction) const;

  /// The file, for reads of what was left on disk.
  const SectionFile& file() const { return file_; }

  /// Is every edge of this vertex here?
  bool interior(LocalId local) const { return !BoundaryIndex(local).has_value(); }

  /// The partitions that hold edges of a boundary vertex: bit p % 8 of byte p / 8; empty if
  /// interior.
  std::span<const std::uint8_t> PartitionSet(LocalId local) const;

 private:
  friend class AdjacencyParser;
  /// One direction's CSR, and its share of the edge-type index.
  struct Side {
    BlockedOffsets offsets;              // [vertices + 1]; empty: the direction is not kept
    std::span<const LocalId> neighbors;  // [edges]: plain and resident
    BlockedOffsets list_offsets;         // [vertices + 1] in bytes: compressed
    std::span<const std::byte> lists;    // compressed and resident
    std::uint64_t offset_bytes = 0;      // in the file, of the neighbours or lists
    Column type_lists;                   // [vertices], or empty: one edge type
  };
  Adjacency() = default;
  const Side& side(Direction direction) const {
    return direction == Direction::kOut || symmetric_ ? out_ : in_;
  }
  // Edges are numbered by the out-lists where those are kept.
  bool through_edge_ids(Direction direction) const {
    return direction == Direction::kIn && !symmetric_ && !out_.offsets.empty();
  }
  TypeId TypeAt(const Side& side, LocalId local, std::uint64_t i) const;
  bool SortedWithinTypes(const Side& side, LocalId local, std::span<const LocalId> list) const;
  std::optional<std::size_t> BoundaryIndex(LocalId local) const;
  Result<std::vector<std::byte>> ReadExtent(const Extent& extent) const;
  Result<std::vector<std::byte>> ReadBlocks(std::uint64_t first, std::uint64_t count) const;
  Status FillFromBlock(std::uint64_t block, std::uint64_t skip, std::span<std::byte> out) const;

  std::shared_ptr<BlockCache> cache_;  // shared with the other partitions; null: none
  std::uint64_t first_block_ = 0;
  SectionFile file_;
  std::uint32_t set_bytes_ = 1;  // of one partition set
  std::uint64_t edge_count_ = 0;
  std::uint64_t owned_count_ = 0;
  bool symmetric_ = false;
  bool weighted_ = false;
  bool attributed_ = false;
  bool grouped_ = true;
  bool resident_ = true;
  TopologyCodec codec_ = TopologyCodec::kNone;
  Row base_ = 0;       // grouped: the first owned row
  Column owned_rows_;  // not grouped: sorted
  Column mirrors_;     // sorted rows
  Side out_;
  Side in_;
  // The edge-type index. Most vertices share a few lists of types (one edge of type 0; two of type
  // 0 and one of type 3; ...): each stands once, and a vertex names its.
  Column type_list_offsets_;        // [type lists + 1]
  Column types_;                    // ascending within a type list
  Column type_ends_;                // counts accumulated within a type list
  Column in_edges_;                 // edge id of each in-entry, where anything needs it
  std::span<const float> weights_;  // by edge id, or empty

  // Which owned vertices are boundary ones: asked for every vertex that is sampled.
  RankBitmap boundary_;
  std::uint64_t boundary_owned_count_ = 0;

  // Of boundary vertices: owned ones, then all mirrors.
  PatchedColumn out_degrees_;  // above the list's length
  PatchedColumn in_degrees_;
  std::span<const std::uint8_t> partition_sets_;
};

}  // namespace rhizome::inline internal
