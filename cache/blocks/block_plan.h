#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "rhizome/cache/pass_lists.h"
#include "rhizome/cache/policy.h"
#include "rhizome/cache/row_order.h"
#include "rhizome/index/graph.h"
#include "rhizome/index/rank_bitmap.h"
#include "rhizome/index/sampler.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Edges that are sampled at once, where they are of more than one target; what was drawn does not
/// depend on it.
inline constexpr std::uint64_t kSampledEdges = std::uint64_t{1} << 17;

/// What blocks and chunks are rounded up to.
inline constexpr std::uint64_t kTileRows = 128;

constexpr std::uint64_t RoundUpToTiles(std::uint64_t rows) {
  return (rows + kTileRows - 1) / kTileRows * kTileRows;
}

/// Targets of one layer, computed together: those at places [begin, end) of the array that the
/// layer writes.
struct Block {
  Row begin = 0;
  Row end = 0;
  std::uint64_t rows() const { return static_cast<std::uint64_t>(end - begin); }
};

/// Blocks also end where their targets have more than `most` edges, though not before the first
/// target: so lists of vertices of many edges take no more memory than others.
struct BlockEdges {
  std::uint64_t most = ~std::uint64_t{0};
  std::function<std::uint64_t(std::uint64_t place)> of;  ///< edges of a target; may be empty: none
};

/// Cuts the places [0, row_count) into as few blocks of at most `block_rows` (rounded up to tiles)
/// as there can be, of about the same size; chunks of the output for which done[chunk] is set are
/// left out.
std::vector<Block> MakeBlocks(std::uint64_t row_count, std::uint64_t chunk_rows,
                              std::uint64_t block_rows, const std::vector<bool>& done,
                              const BlockEdges& edges = {});

/// The parts of places [begin, end) that lie in one chunk each, in order.
std::vector<Block> SplitAtChunks(Row begin, Row end, std::uint64_t chunk_rows);

/// What a block reads. The distinct rows that its sums are taken over are numbered in ascending
/// order, whatever order the source has: so sums are taken in the same order under every layout. As
/// many of them as the stage holds are a window; a window is staged, added to all sums, and makes
/// room for the next.
///
/// Where one window holds them all, and the targets' own rows too, these are among them. Else own
/// rows have windows of their own after the others, in the order of the targets: to read a row
/// again costs less memory than to keep one for each target.
struct BlockLists {
  /// One chunk of the source, and what of it is staged: rows[first, last).
  struct Visit {
    std::uint64_t chunk = 0;
    std::uint32_t first = 0;
    std::uint32_t last = 0;
  };
  struct StagedRow {
    std::uint32_t slot = 0;      ///< in the stage
    std::uint32_t in_chunk = 0;  ///< row within its chunk
  };

  std::vector<Row> targets;              ///< in the order that they are computed
  std::vector<std::uint32_t> offsets;    ///< [targets + 1]
  std::vector<std::uint32_t> neighbors;  ///< numbers; of each target ascending
  std::vector<std::uint32_t> rows;       ///< by number, ascending
  std::uint64_t stage_rows = 1;          ///< row number n: slot n % stage_rows of window n / it
  std::vector<std::uint32_t> numbers;    ///< [targets] of their own rows; or none, see above

  std::vector<StagedRow> staged;             ///< window by window, chunk by chunk
  std::vector<Visit> visits;                 ///< ascending chunks within a window
  std::vector<std::uint32_t> window_visits;  ///< [windows + 1]; windows of own rows are the last

  std::size_t windows() const { return window_visits.size() - 1; }

  /// Windows that are added to the sums.
  std::size_t sum_windows() const {
    return numbers.empty() ? (rows.size() + stage_rows - 1) / stage_rows : 1;
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
  const RowOrder* source_order = nullptr;  ///< nullptr: as stored. Borrowed
  const RowOrder* target_order = nullptr;
  std::span<const std::uint32_t> degrees = {};  ///< InDegrees; not without edges. Borrowed
};

/// What the blocks of a layer read.
struct BlockReads {
  Trace trace;             ///< of chunks, a step a window
  std::uint64_t rows = 0;  ///< of each block its distinct ones
  std::uint64_t blocks = 0;
};

/// Edges that a layer takes of a row, at most.
std::uint64_t EdgesOfRow(const BlockPlannerOptions& options, Row row);

/// Says what each block reads. A vertex's neighbours are all of them, or drawn once: the same
/// whichever block it lies in and however often it is asked for. Threads: one at a time.
/// Ownership: `graph` must outlive it. Memory: 2 bits a vertex, and the lists of a block.
class BlockPlanner {
 public:
  /// Errors: those of Sampler::Create.
  static Result<BlockPlanner> Create(const GraphSnapshot& graph,
                                     const BlockPlannerOptions& options);

  Result<BlockLists> Plan(const Block& block);

  /// Adds what a block reads to `reads`.
  Status PlanChunks(const Block& block, BlockReads& reads);

 private:
  BlockPlanner(const GraphSnapshot& graph, const BlockPlannerOptions& options)
      : graph_(&graph), options_(options), read_(graph.vertex_count()) {}
  Status Sample(const Block& block, BlockLists& lists);
  Status SamplePart(std::span<const Row> targets, BlockLists& lists);
  std::size_t PartOf(std::span<const Row> targets) const;
  void NumberRows(BlockLists& lists);
  void SortLists(BlockLists& lists) const;
  void Stage(BlockLists& lists);
  template <typename T>
  void StageRows(std::span<const T> rows, BlockLists& lists) const;

  const GraphSnapshot* graph_;
  BlockPlannerOptions options_;
  std::unique_ptr<Sampler> sampler_;  // none without edges
  RankBitmap read_;                   // rows of the block at work; clear between blocks
  std::vector<VertexId> seeds_;
  SampledSubgraph drawn_;
};

/// What all blocks read. Errors: those of the sampler; kInterrupted.
Result<BlockReads> PlanReads(const GraphSnapshot& graph, const BlockPlannerOptions& options,
                             std::span<const Block> blocks, const JobControl& control);

}  // namespace internal
}  // namespace rhizome
