#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "cache/blocks/block_plan.h"
#include "cache/blocks/chunk_feed.h"
#include "cache/job/bounded_queue.h"
#include "rhizome/export.h"
#include "storage/base/threads.h"
#include "storage/io/io_queue.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// The rows of a window: slot s is at rows + s * dim. `scale` is GCN's factor of each row if the
/// window is added to sums, otherwise empty.
struct StagedRows {
  const float* rows = nullptr;
  std::span<const float> scale;
};

/// One window of a block, staged and ready for computation.
struct StagedWindow {
  std::shared_ptr<const BlockLists> lists;
  std::size_t window = 0;
  StagedRows staged;

  bool is_first() const { return window == 0; }
  bool is_last() const { return window + 1 == lists->windows(); }
};

/// Plans the blocks of a layer on one thread. On another thread, copies the rows that they need
/// from chunks to a stage, window by window, while the caller works on the other stage. Memory:
/// kStages stages, the lists of kBlocks blocks, and the memory of the feed.
/// Threads: Next one at a time.
/// Ownership: borrows all arguments.
class BlockStager {
 public:
  static constexpr std::size_t kStages = 2;
  static constexpr std::size_t kBlocks = 2;

  /// Starts the threads. `row_scale` is GCN's factor of each row of the graph, or empty. `reader`
  /// delivers the chunks that the blocks read, in their order. Without a cache, the stager appends
  /// these chunks to it.
  /// Errors: kOutOfMemory.
  static Result<std::unique_ptr<BlockStager>> Create(BlockPlanner planner,
                                                     std::vector<Block> blocks, ChunkFeed& reader,
                                                     std::uint64_t stage_rows, std::size_t dim,
                                                     std::span<const float> row_scale,
                                                     bool has_cache);
  ~BlockStager();

  /// Returns the next window, whose rows remain valid until the next call. May be called once for
  /// each window. Errors: any error of planning and reading.
  Result<StagedWindow> Next();

  double copy_seconds() const { return copy_seconds_; }  ///< valid after the last window

 private:
  struct Staged {
    std::shared_ptr<const BlockLists> lists;
    std::size_t window = 0;
    std::size_t stage = 0;
  };
  struct Stage {
    AlignedBuffer memory;
    float* rows = nullptr;     // [stage rows, dim]
    std::vector<float> scale;  // [stage rows], GCN only
  };

  BlockStager(BlockPlanner planner, std::vector<Block> blocks, ChunkFeed& reader, std::size_t dim,
              std::span<const float> row_scale, bool has_cache);
  Status PlanBlocks();
  Status TakePlanned();
  Status StageBlocks();
  Status Fill(const BlockLists& lists, std::size_t window, Stage& stage);
  void FillScale(const BlockLists& lists, std::size_t window, Stage& stage) const;

  // Constant after construction.
  const std::vector<Block> blocks_;
  const std::size_t dim_;
  const std::span<const float> row_scale_;
  const bool has_cache_;

  BlockPlanner planner_;  // used by the planning thread

  // Used by the staging thread; each stage by the thread that holds its index.
  ChunkFeed& reader_;
  std::deque<std::shared_ptr<const BlockLists>> to_stage_;
  std::uint64_t next_request_ = 0;
  double copy_seconds_ = 0;
  std::array<Stage, kStages> stages_;

  std::optional<Staged> current_;  // used by the thread that calls Next

  // Self-synchronised.
  BoundedQueue<std::monostate> blocks_at_work_{kBlocks};
  BoundedQueue<BlockLists> planned_{kBlocks};
  BoundedQueue<std::size_t> free_{kStages};
  BoundedQueue<Staged> staged_{kStages};
  Thread planning_;
  Thread staging_;
};

}  // namespace internal
}  // namespace rhizome
