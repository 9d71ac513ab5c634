#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "cache/blocks/row_order.h"
#include "cache/layout/pass_lists.h"
#include "index/topology/rank_bitmap.h"
#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/job_control.h"
#include "rhizome/policy.h"
#include "rhizome/sampler.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Maximum number of edges that are sampled at once, unless a single target has more. It does not
/// affect the drawn neighbours.
inline constexpr std::uint64_t kSampledEdges = std::uint64_t{1} << 17;

/// Blocks and chunks are rounded up to multiples of this.
inline constexpr std::uint64_t kTileRows = 128;

constexpr std::uint64_t RoundUpToTiles(std::uint64_t rows) {
  return (rows + kTileRows - 1) / kTileRows * kTileRows;
}

/// Targets of one layer that are computed together: positions [begin, end) of the layer's output
/// array.
struct Block {
  Row begin = 0;
  Row end = 0;
  std::uint64_t rows() const { return static_cast<std::uint64_t>(end - begin); }
};

/// Limit on the edges and groups of a block: it ends before the target that would exceed a limit,
/// but has at least one target. This bounds the memory for lists of high-degree vertices, and for
/// the states of groups.
struct BlockEdges {
  std::uint64_t most = ~std::uint64_t{0};
  /// number of edges of the target at a position; empty: no limit
  std::function<std::uint64_t(std::uint64_t place)> of;

  /// Limit on groups. A target has at most as many as it has edges, and at most `relations`.
  std::uint64_t most_groups = ~std::uint64_t{0};
  std::uint32_t relations = 0;  ///< 0: no limit on groups
};

/// Cuts the positions [0, row_count) into as few blocks of up to `block_rows` rows (rounded up to
/// tiles) as possible, of about equal size. Skips output chunks for which done[chunk] is set.
std::vector<Block> MakeBlocks(std::uint64_t row_count, std::uint64_t chunk_rows,
                              std::uint64_t block_rows, const std::vector<bool>& done,
                              const BlockEdges& edges = {});

/// Splits positions [begin, end) at chunk boundaries, in order.
std::vector<Block> SplitAtChunks(Row begin, Row end, std::uint64_t chunk_rows);

/// When the targets' own rows are staged, if they are not in the window of the neighbours: before
/// the windows that are reduced, after them, or both.
struct OwnWindows {
  bool before = false;
  bool after = true;
};

/// The rows that a block reads. The distinct rows of its sums are numbered in ascending order,
/// regardless of the order of the source, so that sums are computed in the same order for every
/// layout. They are divided into windows that fit into the stage. A window is staged, added to all
/// sums, and then replaced by the next.
///
/// If one window holds all of them and the targets' own rows, too, the own rows are numbered among
/// them. Otherwise own rows have separate windows before or after the others, in the order of the
/// targets: reading a row again needs less memory than keeping one for each target.
struct BlockLists {
  /// A chunk of the source, and its staged rows: staged[first, last).
  struct Visit {
    std::uint64_t chunk = 0;
    std::uint32_t first = 0;
    std::uint32_t last = 0;
  };
  struct StagedRow {
    std::uint32_t slot = 0;      ///< slot in the stage
    std::uint32_t in_chunk = 0;  ///< row within its chunk
  };

  std::vector<Row> targets;              ///< in the order of computation
  std::vector<std::uint32_t> offsets;    ///< [targets + 1]
  std::vector<std::uint32_t> neighbors;  ///< row numbers, ascending for each target

  /// If grouped by relation (PassDrawOptions::relations): the groups of target t are
  /// [group_begin[t], group_begin[t + 1]), by ascending relation, and `neighbors` ascend within
  /// each.
  std::vector<std::uint32_t> group_begin;    ///< [targets + 1], or empty: not grouped
  std::vector<std::uint32_t> group_offsets;  ///< [groups + 1], ranges of edges

  /// [groups]; or with BlockPlannerOptions::edge_relations [edges]: the edges of a target are then
  /// in ascending order of (number, relation).
  std::vector<std::uint16_t> relation;

  /// With BlockPlannerOptions::edge_relations: number of targets before each target that have
  /// edges, [targets + 1]; otherwise empty.
  std::vector<std::uint32_t> linked_before;

  bool grouped() const { return !group_begin.empty(); }
  bool related() const { return !linked_before.empty(); }

  /// Returns the ranges of edges of the lists that are reduced: groups, or targets.
  std::span<const std::uint32_t> list_offsets() const {
    return grouped() ? group_offsets : offsets;
  }
  std::size_t list_count() const { return list_offsets().size() - 1; }

  /// Returns the number of lists for which state is kept from window to window.
  std::size_t state_count() const { return related() ? linked_before.back() : list_count(); }

  /// [edges], if requested: the weight of each neighbour's edge. Weights of parallel edges are in
  /// ascending order, so that the lists do not depend on the order of edges in the store.
  std::vector<float> weights;
  std::vector<std::uint32_t> rows;  ///< row by number, ascending
  /// number n is in slot n % stage_rows of window n / stage_rows
  std::uint64_t stage_rows = 1;
  /// [targets] numbers of their own rows; empty if own rows have separate windows
  std::vector<std::uint32_t> numbers;

  std::vector<StagedRow> staged;             ///< window by window, chunk by chunk
  std::vector<Visit> visits;                 ///< ascending chunks within a window
  std::vector<std::uint32_t> window_visits;  ///< [windows + 1], index into visits
  std::size_t first_sum = 0;  ///< first window that is reduced; windows before it hold own rows
  OwnWindows own;             ///< if there are several windows

  std::size_t windows() const { return window_visits.size() - 1; }

  /// Returns the number of windows that are added to the sums.
  std::size_t sum_windows() const {
    return numbers.empty() ? (rows.size() + stage_rows - 1) / stage_rows : 1;
  }
  bool is_sum(std::size_t window) const {
    return window >= first_sum && window - first_sum < sum_windows();
  }
  std::span<const Visit> VisitsOf(std::size_t window) const {
    return std::span(visits).subspan(window_visits[window],
                                     window_visits[window + 1] - window_visits[window]);
  }
};

struct BlockPlannerOptions {
  PassDrawOptions draw = {};
  std::uint64_t source_chunk_rows = 1;
  std::uint64_t stage_rows = std::uint64_t{1} << 30;
  const RowOrder* source_order = nullptr;  ///< null: as stored. Borrowed
  const RowOrder* target_order = nullptr;
  OwnWindows own = {};

  /// With relations: lists are not grouped, but have the relation of each edge. Own rows then
  /// always have separate windows.
  bool edge_relations = false;
  /// Degrees in the direction that is walked; unused without edges. Borrowed
  std::span<const std::uint32_t> degrees = {};
};

/// The chunks and rows that the blocks of a layer read.
struct BlockReads {
  Trace trace;             ///< chunks, one step per window
  std::uint64_t rows = 0;  ///< number of distinct rows, summed over the blocks
  std::uint64_t blocks = 0;
};

/// Returns the maximum number of groups of a target for which a block keeps state
/// (BlockEdges::relations). If edges keep their relations, all edges of a target are one group.
inline std::uint32_t GroupsOfTarget(const BlockPlannerOptions& options) {
  return options.edge_relations ? 1 : options.draw.relations;
}

/// Returns the maximum number of edges that a layer uses for a row.
std::uint64_t EdgesOfRow(const BlockPlannerOptions& options, Row row);

/// Plans the reads of each block. The neighbours of a vertex are either all of them or are drawn
/// once; they do not depend on its block and do not change if a block is planned again. Memory: 2
/// bits per vertex, and the lists of a block.
/// Threads: one at a time.
/// Ownership: `graph` must outlive it.
class BlockPlanner {
 public:
  /// Creates a planner. Errors: kInvalidArgument, 2^32 - 1 or more vertices; as Sampler::Create.
  static Result<BlockPlanner> Create(const GraphSnapshot& graph,
                                     const BlockPlannerOptions& options);

  /// Plans a block. Errors: as Sampler::Sample; kInvalidArgument, more than 2^32 edges.
  Result<BlockLists> Plan(const Block& block);

  /// Adds the reads of a block to `reads`. Errors: as Plan.
  Status PlanChunks(const Block& block, BlockReads& reads);

 private:
  BlockPlanner(const GraphSnapshot& graph, const BlockPlannerOptions& options)
      : graph_(&graph), options_(options), read_(graph.vertex_count()) {}
  Status Sample(const Block& block, BlockLists& lists);
  Status SamplePart(std::span<const Row> targets, BlockLists& lists);
  std::size_t PartOf(std::span<const Row> targets) const;
  void NumberRows(BlockLists& lists);
  void SortLists(BlockLists& lists);
  void SortWeighted(std::size_t first, std::size_t last, BlockLists& lists) const;
  void SortRelated(std::size_t first, std::size_t last, BlockLists& lists);
  void FormGroups(BlockLists& lists) const;
  void KeepRelations(BlockLists& lists);
  void Stage(BlockLists& lists);
  template <typename T>
  void StageRows(std::span<const T> rows, BlockLists& lists) const;

  const GraphSnapshot* graph_;
  BlockPlannerOptions options_;
  std::unique_ptr<Sampler> sampler_;  // null without edges
  RankBitmap read_;                   // rows of the current block; clear between blocks
  std::vector<VertexId> seeds_;
  SampledSubgraph drawn_;
  std::vector<std::uint16_t> relations_;  // [edges of the block], if there are relations
};

/// Counts the reads of all blocks. Errors: as BlockPlanner::Create and Plan; kInterrupted.
Result<BlockReads> PlanReads(const GraphSnapshot& graph, const BlockPlannerOptions& options,
                             std::span<const Block> blocks, const JobControl& control);

}  // namespace internal
}  // namespace rhizome
