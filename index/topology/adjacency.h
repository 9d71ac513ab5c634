#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "index/topology/blocked_offsets.h"
#include "index/topology/column.h"
#include "index/topology/degrees.h"
#include "index/topology/patched_column.h"
#include "index/topology/rank_bitmap.h"
#include "index/topology/topology_codec.h"
#include "index/topology/vertex_order.h"
#include "rhizome/types.h"
#include "storage/section/section_file.h"

namespace rhizome {
inline namespace internal {

class BlockCache;

/// An edge within one partition: its position in the out-adjacency lists, or in the in-adjacency
/// lists if the partition keeps only those.
using LocalEdge = std::uint64_t;

std::string PartitionPath(std::uint32_t partition);  ///< "topology/part-0000.adj"

/// The edges of one partition, by row, as input of Adjacency::Write. The columns are parallel.
struct EdgesOfPartition {
  std::vector<Row> src;
  std::vector<Row> dst;
  std::vector<TypeId> type;   ///< may be empty: all edges have type 0
  std::vector<float> weight;  ///< may be empty: the graph is unweighted
};

/// The properties of the whole graph that a partition file repeats.
struct PartitionContext {
  std::uint32_t partition = 0;
  std::uint32_t partitions = 1;
  std::uint32_t edge_types = 1;
  bool symmetric = false;
  bool weighted = false;    ///< also true where this partition happens to have no edge
  bool attributed = false;  ///< edges have attributes, keyed by edge id
  /// lists to store; a symmetric graph always stores the out-lists
  Direction directions = Direction::kBoth;
  TopologyCodec codec = TopologyCodec::kNone;
  const Degrees* out_degree = nullptr;  ///< global, by row
  const Degrees* in_degree = nullptr;   ///< global, by row
  /// Bit p % 8 of byte [row * PartitionSetBytes(partitions) + p / 8] is set where partition p holds
  /// an edge of the row.
  std::span<const std::uint8_t> partition_set;
};

/// Returns the bytes of a row's set of partitions.
inline std::size_t PartitionSetBytes(std::uint32_t partitions) {
  return (partitions + std::size_t{7}) / 8;
}

/// One partition of the topology: a compact CSR over local ids (docs/DESIGN.md, section 4; GLISP
/// section III-C). Format: storage/FORMAT.md, "Partition file". Parse loads and verifies the whole
/// file: offsets are monotone, ids in range, lists sorted. Edge counts and offsets use 64 bits
/// where the partition needs them.
///
/// A paged file (SectionFile::paged) is verified block by block when it is used; Parse reads the
/// header, and the bits of boundary vertices. Its lists are on disk, and FetchList checks the ones
/// that it reads. Functions that do not return a Result then throw StatusError.
///
/// The adjacency lists are stored in one of three ways: plain (an array of local ids), compressed
/// (one list at a time, see compressed_list.h), or on disk. In the last case the caller of Parse
/// left the lists in the file, and readers fetch and decode a list from the place that ExtentOf
/// returns.
///
/// Memory: the file except the sections left on disk, and 16 bytes for each 64 owned vertices. Of a
/// paged file only the blocks that were used.
/// Threads: const after Parse.
class Adjacency {
 public:
  Adjacency(Adjacency&&) = default;
  Adjacency& operator=(Adjacency&&) = default;

  /// Writes a partition file to `sink`.
  /// Errors: kInvalidArgument, more than 2^32 - 2 local vertices; errors of `sink`.
  static Status Write(ByteSink& sink, const StoreId& store_id, const VertexOrder& order,
                      const PartitionContext& context, EdgesOfPartition edges);

  /// Parses and verifies a partition file. `order` is used only during the call. Errors:
  /// kCorruption, naming the file and the field.
  static Result<Adjacency> Parse(SectionFile file, const VertexOrder& order,
                                 std::uint32_t partition, std::uint32_t partitions,
                                 std::uint32_t edge_types);

  /// As Parse, but reads only the header, the only section that must be in memory. The partition is
  /// not loaded: it knows its number of edges, its codec and its directions, but no vertex and no
  /// list. `resident` is the value that resident() returns, as for the loaded partitions.
  static Result<Adjacency> ParseHeader(SectionFile file, const VertexOrder& order,
                                       std::uint32_t partition, std::uint32_t partitions,
                                       std::uint32_t edge_types, bool resident);

  /// Returns whether vertices and lists are known; false if the partition comes from ParseHeader.
  bool loaded() const { return loaded_; }

  std::uint64_t edge_count() const { return edge_count_; }
  /// Return the number of local vertices, and the number of local vertices that the partition owns.
  /// The latter is 0 if the partition is not loaded.
  std::uint64_t vertex_count() const { return owned_count_ + mirrors_.size(); }
  std::uint64_t owned_count() const { return owned_count_; }
  std::uint64_t size_bytes() const { return file_.size_bytes(); }
  bool symmetric() const { return symmetric_; }
  bool weighted() const { return weighted_; }
  bool attributed() const { return attributed_; }  ///< the edges have attributes, keyed by edge id

  /// Returns whether lists of this direction are available. kBoth asks for both directions; a
  /// symmetric partition has both.
  bool has(Direction direction) const;

  /// Returns the local id of `row`, or nullopt if the partition does not hold it.
  std::optional<LocalId> Find(Row row) const;
  Row RowOf(LocalId local) const {
    if (local >= owned_count_) return static_cast<Row>(mirrors_[local - owned_count_]);
    return grouped_ ? base_ + static_cast<Row>(local) : static_cast<Row>(owned_rows_[local]);
  }

  /// Storage of the lists: their encoding, and whether they are in memory.
  TopologyCodec codec() const { return codec_; }
  bool resident() const { return resident_; }  ///< in memory, not on disk

  /// Returns whether the partition is read when it is used.
  bool paged() const { return file_.paged(); }

  /// A range of positions in one direction's array of neighbours. With kOut, the entry at a
  /// position is the edge of that number; for kIn see EdgeAt.
  struct Range {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
  };

  /// Returns the range of a local vertex's list, which is sorted by (type, neighbour). `direction`
  /// is kOut or kIn and must be stored; symmetric partitions answer kIn with the out-list.
  Range Entries(LocalId local, Direction direction) const {
    const Side& lists = side(direction);
    const std::uint64_t begin = lists.offsets[local];
    return {begin, lists.offsets[local + std::size_t{1}] - begin};
  }

  /// Returns the part of that range with edge type `type`, by a binary search in the edge-type
  /// index.
  Range EntriesOfType(LocalId local, Direction direction, TypeId type) const;

  /// The neighbours of a local vertex; only for plain, resident lists.
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

  /// Returns the lists of all local vertices, one after another, if they are plain and resident;
  /// else an empty span.
  std::span<const LocalId> AllNeighbors(Direction direction) const {
    return side(direction).neighbors;
  }

  /// Prefetches the offsets that Entries reads.
  void PrefetchList(LocalId local, Direction direction) const {
    const Side& lists = side(direction);
    lists.offsets.Prefetch(local);
    if (codec_ != TopologyCodec::kNone) lists.list_offsets.Prefetch(local);
  }

  /// Prefetches the first bytes of a compressed, resident list.
  void PrefetchBytes(LocalId local, Direction direction) const {
    const Side& lists = side(direction);
    if (!lists.lists.empty()) __builtin_prefetch(lists.lists.data() + lists.list_offsets[local]);
  }

  /// Returns whether EdgeAt works for entries of this direction. It does not for in-entries of a
  /// partition that stores both directions without weights or edge attributes: nothing reads edge
  /// ids there, so the column is omitted to save its bytes.
  bool has_edge_ids(Direction direction) const {
    return !through_edge_ids(direction) || weighted_ || attributed_;
  }

  /// Returns the edge of the entry at `position` of a direction's array. Requires has_edge_ids.
  LocalEdge EdgeAt(Direction direction, std::uint64_t position) const {
    return through_edge_ids(direction) ? in_edges_[position] : position;
  }

  /// Returns the list of a local vertex. The lists must be resident, in either codec. The result
  /// borrows the partition's memory or `scratch`, which is resized.
  std::span<const LocalId> ReadList(LocalId local, Direction direction,
                                    std::vector<LocalId>& scratch) const;

  /// Checks that the entries of a list and its type list are within the partition. Lists of a file
  /// that is not paged were checked by Parse.
  /// Errors: kCorruption, naming the file.
  Status CheckEntries(LocalId local, Direction direction) const {
    return paged() ? CheckPaged(local, direction) : Status::Ok();
  }

  /// Like ReadList, but also reads and verifies lists that are on disk. Use it for point look-ups;
  /// a sampler, which reads many lists, uses DirectNeighbors.
  /// Errors: kCorruption, naming the file; kIoError.
  Result<std::span<const LocalId>> FetchList(LocalId local, Direction direction,
                                             std::vector<LocalId>& scratch) const;

  /// Makes FetchList cache the blocks that it reads from disk in `cache`, where the file's first
  /// block has the number `first_block`.
  void KeepBlocks(std::shared_ptr<BlockCache> cache, std::uint64_t first_block);

  /// Returns the number of blocks of the file, in the units of KeepBlocks.
  std::uint64_t block_count() const;

  /// Reads the blocks [first, first + count) of the file into the cache as long as it has free
  /// frames. Requires KeepBlocks and lists on disk. Errors: kCorruption; kIoError.
  Status LoadBlocks(std::uint64_t first, std::uint64_t count) const;

  /// Returns the bytes of a compressed, resident list.
  std::span<const std::byte> CompressedBytes(LocalId local, Direction direction) const {
    const Side& lists = side(direction);
    const std::uint64_t begin = lists.list_offsets[local];
    return lists.lists.subspan(begin, lists.list_offsets[local + std::size_t{1}] - begin);
  }

  /// The place of a list in the partition file; size_bytes is 0 for an empty list.
  struct Extent {
    std::uint64_t offset_bytes = 0;
    std::uint64_t size_bytes = 0;
  };
  Extent ExtentOf(LocalId local, Direction direction) const;

  /// Returns the place of the single entry at `position`; only for plain lists.
  Extent ExtentOfEntry(std::uint64_t position, Direction direction) const {
    return {side(direction).offset_bytes + position * sizeof(LocalId), sizeof(LocalId)};
  }

  /// Decode a list, or entry i of a list, from the bytes at ExtentOf (plain lists are copied). They
  /// return false or nullopt if the bytes are damaged. Every decoded entry is a local vertex, and
  /// every decoded list is sorted.
  bool DecodeList(LocalId local, Direction direction, std::span<const std::byte> bytes,
                  std::vector<LocalId>& out) const;
  std::optional<LocalId> DecodeEntry(LocalId local, Direction direction,
                                     std::span<const std::byte> bytes, std::uint64_t i) const;

  /// Decodes the entry at `position` from the bytes at ExtentOfEntry (plain) or ExtentOf
  /// (compressed).
  std::optional<LocalId> DecodeAt(LocalId local, Direction direction,
                                  std::span<const std::byte> bytes, std::uint64_t position) const;

  /// Returns the type of the i-th entry of a vertex's list, by binary search.
  TypeId TypeOfEntry(LocalId local, Direction direction, std::uint64_t i) const;

  /// Returns the weight of the entry at `position` of a direction's array; 1 if the graph has no
  /// weights.
  float Weight(Direction direction, std::uint64_t position) const;

  /// Returns the type of an edge in [0, edge_count()): one binary search finds its vertex, another
  /// its type.
  TypeId TypeOfEdge(LocalEdge edge) const;

  /// Returns the global degree of a vertex of this partition; for an interior vertex that is the
  /// length of its local list.
  std::uint64_t GlobalDegree(LocalId local, Direction direction) const;

  /// Returns the file, for reads of sections left on disk.
  const SectionFile& file() const { return file_; }

  /// Returns whether all edges of this vertex are in this partition.
  bool interior(LocalId local) const { return !BoundaryIndex(local).has_value(); }

  /// Returns the partitions that hold edges of a boundary vertex: bit p % 8 of byte p / 8. Empty
  /// for an interior vertex.
  std::span<const std::uint8_t> PartitionSet(LocalId local) const;

 private:
  friend class AdjacencyParser;
  /// One direction's CSR, and its share of the edge-type index.
  struct Side {
    BlockedOffsets offsets;              // [vertices + 1]; empty: the direction is not stored
    std::span<const LocalId> neighbors;  // [edges], if plain and resident
    BlockedOffsets list_offsets;         // [vertices + 1] in bytes, if compressed
    std::span<const std::byte> lists;    // if compressed and resident
    std::uint64_t list_bytes = 0;        // size of all lists, if compressed
    std::uint64_t offset_bytes = 0;      // place of the neighbours or lists in the file
    Column type_lists;                   // [vertices], or empty: one edge type
  };
  Adjacency() = default;
  const Side& side(Direction direction) const {
    return direction == Direction::kOut || symmetric_ ? out_ : in_;
  }
  // Edges are numbered by the out-lists if the partition stores them; in-entries then need
  // in_edges_.
  bool through_edge_ids(Direction direction) const {
    return direction == Direction::kIn && !symmetric_ && !out_.offsets.empty();
  }
  TypeId TypeAt(const Side& side, LocalId local, std::uint64_t i) const;
  Status CheckPaged(LocalId local, Direction direction) const;
  bool SortedWithinTypes(const Side& side, LocalId local, std::span<const LocalId> list) const;
  std::optional<std::size_t> BoundaryIndex(LocalId local) const;
  Result<std::vector<std::byte>> ReadExtent(const Extent& extent) const;
  Result<std::vector<std::byte>> ReadBlocks(std::uint64_t first, std::uint64_t count) const;
  Status FillFromBlock(std::uint64_t block, std::uint64_t skip, std::span<std::byte> out) const;

  std::shared_ptr<BlockCache> cache_;  // shared with the other partitions; null: none
  std::uint64_t first_block_ = 0;
  SectionFile file_;
  std::uint32_t set_bytes_ = 1;  // bytes of one partition set
  std::uint64_t edge_count_ = 0;
  std::uint64_t owned_count_ = 0;
  bool symmetric_ = false;
  bool weighted_ = false;
  bool attributed_ = false;
  bool grouped_ = true;
  bool resident_ = true;
  bool loaded_ = true;
  bool keeps_out_ = false;
  bool keeps_in_ = false;
  TopologyCodec codec_ = TopologyCodec::kNone;
  Row base_ = 0;       // grouped: the first owned row
  Column owned_rows_;  // not grouped: sorted
  Column mirrors_;     // sorted rows
  Side out_;
  Side in_;
  // The edge-type index. Most vertices share a few type lists (one edge of type 0; two of type 0
  // and one of type 3; ...), so each distinct type list is stored once, and a vertex refers to its
  // type list by number.
  Column type_list_offsets_;        // [type lists + 1]
  Column types_;                    // ascending within a type list
  Column type_ends_;                // counts accumulated within a type list
  Column in_edges_;                 // edge id of each in-entry; empty if not stored
  std::span<const float> weights_;  // by edge id; empty: unweighted, or paged
  Column paged_weights_;            // the bits of weights_, if paged

  // Marks the owned vertices that are boundary vertices; read for every vertex that is sampled.
  RankBitmap boundary_;
  std::uint64_t boundary_owned_count_ = 0;

  // One entry for each boundary vertex: the owned ones, then all mirrors.
  PatchedColumn out_degrees_;  // global degree minus the length of the local list
  PatchedColumn in_degrees_;
  std::uint32_t partitions_ = 1;  // of the graph
  Column partition_sets_;         // single bytes
};

}  // namespace internal
}  // namespace rhizome
