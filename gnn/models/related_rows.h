#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cache/blocks/block_plan.h"
#include "gnn/models/layer.h"
#include "gnn/models/tile_rows.h"
#include "index/topology/rank_bitmap.h"
#include "rhizome/status.h"
#include "storage/io/io_queue.h"

namespace rhizome {
inline namespace internal {

/// The source rows of a block for a layer with ConvPieces::relates: for each pair of a row and a
/// relation that an edge has, the row's keys and values multiplied by the relation's matrices. They
/// are computed window by window, in runs that fit into the memory, in ascending order of (row,
/// relation), which is the order of the edges in the lists. A pair is computed once for a block.
///
/// Usage: for each window FindPairs, then while NextRun() returns true, ListsOf for each tile.
/// Threads: FindPairs and NextRun one at a time, they use the compute threads; ListsOf may run
/// concurrently for different tiles.
/// Ownership: borrows all arguments.
class RelatedRows {
 public:
  /// Max number of pairs in a window: stage rows times relations.
  static constexpr std::uint64_t kMaxPairs = std::uint64_t{1} << 24;

  /// Returns the memory for windows of `rows` rows, runs of as many pairs, and blocks of `edges`
  /// edges.
  static std::uint64_t Bytes(const Layer& layer, std::uint64_t rows, std::uint64_t relations,
                             std::uint64_t edges);

  /// Allocates memory for runs of `run` pairs. Errors: kOutOfMemory.
  static Result<RelatedRows> Create(const Layer& layer, std::size_t run, std::size_t relations);

  /// Begins a block. `lists` have the relation of each edge.
  void Begin(const BlockLists& lists);

  /// Finds the pairs of the edges in a window, which is counted from the first one that is reduced.
  void FindPairs(std::size_t window);

  /// Computes the next run of pairs of the window, from its prepared rows. Returns false if there
  /// are no more.
  bool NextRun(const WindowRows& staged);

  /// Returns the rows of the current run.
  WindowRows rows() const;

  /// Returns the lists of the targets of a tile that have edges, in the current run, as numbers of
  /// its rows. The result is valid until the next call of the calling thread.
  TileLists ListsOf(const TargetRange& range) const;

 private:
  RelatedRows(const Layer& layer, std::size_t run, std::size_t relations)
      : layer_(&layer), run_(run), relations_(relations) {}

  const Layer* layer_;
  std::size_t run_;  // max pairs of a run
  std::size_t relations_;
  AlignedBuffer memory_;  // [run, prepared columns]

  // The block.
  const BlockLists* lists_ = nullptr;
  std::vector<std::uint32_t> taken_;  // [targets]: end of the part of each list that was found
  std::vector<std::uint32_t> edges_;  // [edges], of a window: pair, and target in its tile

  // The window: edges of tile t are the first count_[t] after the first edge of its lists.
  std::vector<std::uint32_t> count_;  // [tiles]
  RankBitmap pairs_;                  // slot * relations + relation

  // The run: the pairs in [first_, next_).
  std::uint64_t first_ = 0;
  std::uint64_t next_ = 0;
  std::vector<std::uint64_t> members_;
  std::vector<std::uint32_t> place_;  // row of each pair
};

}  // namespace internal
}  // namespace rhizome
