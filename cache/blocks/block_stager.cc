#include "cache/blocks/block_stager.h"

#include <algorithm>
#include <cstring>

#include "storage/base/check.h"
#include "storage/base/exceptions.h"
#include "storage/base/stopwatch.h"

namespace rhizome {
inline namespace internal {

Result<std::unique_ptr<BlockStager>> BlockStager::Create(
    BlockPlanner planner, std::vector<Block> blocks, ChunkFeed& reader, std::uint64_t stage_rows,
    std::size_t dim, std::span<const float> row_scale, bool has_cache) {
  std::unique_ptr<BlockStager> stager(
      new BlockStager(std::move(planner), std::move(blocks), reader, dim, row_scale, has_cache));
  for (std::size_t i = 0; i < kStages; ++i) {
    Stage& stage = stager->stages_[i];
    RHIZOME_ASSIGN_OR_RETURN(stage.memory,
                             AlignedBuffer::Allocate(stage_rows * dim * sizeof(float)));
    stage.rows = reinterpret_cast<float*>(stage.memory.bytes().data());
    if (!row_scale.empty()) stage.scale.resize(stage_rows);
    stager->free_.Push(i);
  }
  RHIZOME_RETURN_IF_ERROR(stager->planning_.Start([self = stager.get()] {
    self->planned_.Finish(Guarded([self] { return self->PlanBlocks(); }));
    return Status::Ok();
  }));
  RHIZOME_RETURN_IF_ERROR(stager->staging_.Start([self = stager.get()] {
    self->staged_.Finish(Guarded([self] { return self->StageBlocks(); }));
    return Status::Ok();
  }));
  return stager;
}

BlockStager::BlockStager(BlockPlanner planner, std::vector<Block> blocks, ChunkFeed& reader,
                         std::size_t dim, std::span<const float> row_scale, bool has_cache)
    : blocks_(std::move(blocks)),
      dim_(dim),
      row_scale_(row_scale),
      has_cache_(has_cache),
      planner_(std::move(planner)),
      reader_(reader) {}

BlockStager::~BlockStager() {
  blocks_at_work_.Cancel();
  planned_.Cancel();
  free_.Cancel();
  staged_.Cancel();
  static_cast<void>(planning_.Join());
  static_cast<void>(staging_.Join());
}

Result<StagedWindow> BlockStager::Next() {
  if (current_) {
    free_.Push(current_->stage);
    if (current_->window + 1 == current_->lists->windows()) {
      RHIZOME_RETURN_IF_ERROR(blocks_at_work_.Pop());
    }
    current_.reset();
  }
  RHIZOME_ASSIGN_OR_RETURN(current_, staged_.Pop());
  RHIZOME_CHECK(current_.has_value());  // the caller requests only existing windows
  const Stage& stage = stages_[current_->stage];
  const bool sums = current_->lists->is_sum(current_->window);
  return StagedWindow{
      .lists = current_->lists,
      .window = current_->window,
      .staged = {stage.rows, sums ? std::span(stage.scale) : std::span<const float>()}};
}

Status BlockStager::PlanBlocks() {
  for (const Block& block : blocks_) {
    if (!blocks_at_work_.Push({})) return Status::Interrupted("stopped");
    RHIZOME_ASSIGN_OR_RETURN(BlockLists lists, planner_.Plan(block));
    if (!planned_.Push(std::move(lists))) return Status::Interrupted("stopped");
  }
  return Status::Ok();
}

Status BlockStager::StageBlocks() {
  for (std::size_t block = 0; block < blocks_.size(); ++block) {
    if (to_stage_.empty()) RHIZOME_RETURN_IF_ERROR(TakePlanned());
    const std::shared_ptr<const BlockLists> lists = std::move(to_stage_.front());
    to_stage_.pop_front();
    for (std::size_t window = 0; window < lists->windows(); ++window) {
      // If the next block is planned already, its reads follow without a pause.
      if (!planned_.empty()) RHIZOME_RETURN_IF_ERROR(TakePlanned());
      RHIZOME_ASSIGN_OR_RETURN(const std::optional<std::size_t> stage, free_.Pop());
      RHIZOME_CHECK(stage.has_value());  // the queue is never finished
      RHIZOME_RETURN_IF_ERROR(Fill(*lists, window, stages_[*stage]));
      if (!staged_.Push({lists, window, *stage})) return Status::Interrupted("stopped");
    }
  }
  return Status::Ok();
}

/// Waits for the lists of the next block. Without a cache, also appends its chunks to the reader.
Status BlockStager::TakePlanned() {
  RHIZOME_ASSIGN_OR_RETURN(std::optional<BlockLists> planned, planned_.Pop());
  if (!planned) return Status::Interrupted("stopped");  // there is one for each block
  to_stage_.push_back(std::make_shared<const BlockLists>(*std::move(planned)));
  if (has_cache_) return Status::Ok();
  for (const BlockLists::Visit& visit : to_stage_.back()->visits) reader_.Append(visit.chunk);
  return Status::Ok();
}

Status BlockStager::Fill(const BlockLists& lists, std::size_t window, Stage& stage) {
  const std::span<const BlockLists::Visit> visits = lists.VisitsOf(window);
  for (std::size_t v = 0; v < visits.size(); ++v) {
    RHIZOME_ASSIGN_OR_RETURN(const DecodedChunk chunk, reader_.Next());
    const Stopwatch watch;
    // Chunks arrive in the order of visits, except that cached chunks come first.
    const BlockLists::Visit& visit = visits[chunk.request - next_request_];
    RHIZOME_CHECK(visit.chunk == chunk.chunk);
    for (std::uint32_t i = visit.first; i < visit.last; ++i) {
      const BlockLists::StagedRow& row = lists.staged[i];
      std::memcpy(stage.rows + row.slot * dim_, chunk.values.get() + row.in_chunk * dim_,
                  dim_ * sizeof(float));
    }
    copy_seconds_ += watch.seconds();
  }
  next_request_ += visits.size();
  FillScale(lists, window, stage);
  return Status::Ok();
}

void BlockStager::FillScale(const BlockLists& lists, std::size_t window, Stage& stage) const {
  if (row_scale_.empty() || !lists.is_sum(window)) return;
  const std::size_t first = (window - lists.first_sum) * lists.stage_rows;
  const std::size_t last = std::min<std::size_t>(first + lists.stage_rows, lists.rows.size());
  for (std::size_t n = first; n < last; ++n) stage.scale[n - first] = row_scale_[lists.rows[n]];
}

}  // namespace internal
}  // namespace rhizome
