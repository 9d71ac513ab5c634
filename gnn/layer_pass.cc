#include "rhizome/gnn/layer_pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "rhizome/gnn/minibatch_sampler.h"
#include "rhizome/index/parallel.h"

namespace rhizome {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Rows [first, first + count) of a block's tensor.
torch::Tensor TileOf(const torch::Tensor& tensor, std::size_t first, std::size_t count) {
  return tensor.narrow(0, static_cast<std::int64_t>(first), static_cast<std::int64_t>(count));
}

void CopyTo(std::span<float> out, const torch::Tensor& values) {
  const torch::Tensor dense = values.contiguous();
  std::memcpy(out.data(), dense.data_ptr<float>(), out.size_bytes());
}

/// Factors of the rows of one tile, [count, 1].
struct TileScales {
  torch::Tensor sum;   // of the neighbours' sum
  torch::Tensor self;  // of the own row; GCN only
};

}  // namespace

LayerPass::LayerPass(const LayerPassInput& input, LayerOutput& output)
    : input_(input),
      output_(output),
      arena_(static_cast<int>(std::clamp<std::uint32_t>(input.threads, 1, 1024))),
      dim_(static_cast<std::int64_t>(input.source.entry().dim)) {}

template <typename Work>
void LayerPass::ForTiles(const Block& block, Work work) {
  const std::size_t tiles = (block.rows() + kTileRows - 1) / kTileRows;
  arena_.execute([&] {
    ParallelFor(tiles, [&](std::size_t tile) {
      // One thread for a tile: libtorch must not split its work by how many cores there are.
      thread_local const bool single = (at::set_num_threads(1), true);
      static_cast<void>(single);
      const c10::InferenceMode guard;
      work(tile);
    });
  });
}

Result<InferLayerReport> LayerPass::Run(const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(const BlockPlanner planner,
                           BlockPlanner::Create(input_.graph, input_.planner));
  planner_ = &planner;
  at::set_num_threads(1);  // of the calling thread, which computes tiles too
  const c10::InferenceMode guard;
  const ArrayEntry& entry = output_.entry();
  if (input_.model.shape().spec.kind == ModelKind::kGcn) {
    gcn_scale_.assign(entry.rows, 1);
    for (std::uint64_t row = 0; row < entry.rows && !input_.planner.no_edges; ++row) {
      RHIZOME_ASSIGN_OR_RETURN(const std::uint32_t degree,
                               InDegree(input_.graph, static_cast<Row>(row)));
      gcn_scale_[row] = GcnScale(degree);
    }
  }
  const std::vector<Block> blocks =
      MakeBlocks(entry.rows, entry.chunk_rows, input_.block_rows, output_.done());
  if (blocks.empty()) return report_;
  RHIZOME_RETURN_IF_ERROR(PlanReads(blocks, control));
  ChunkReader reader(input_.source, input_.decoder, std::move(reads_), input_.reader, control,
                     input_.delta);
  RHIZOME_RETURN_IF_ERROR(RunBlocks(blocks, reader, control));
  const ChunkReaderStats stats = reader.stats();
  report_.chunk_requests = stats.requests;
  report_.chunk_reads = stats.reads;
  report_.bytes_read = stats.bytes_read;
  report_.hit_rate = stats.requests == 0
                         ? 0
                         : static_cast<double>(stats.hits) / static_cast<double>(stats.requests);
  return report_;
}

Status LayerPass::PlanReads(const std::vector<Block>& blocks, const JobControl& control) {
  for (const Block& block : blocks) {
    RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
    RHIZOME_ASSIGN_OR_RETURN(const BlockLists lists, planner_->Plan(block));
    reads_.insert(reads_.end(), lists.source_chunks.begin(), lists.source_chunks.end());
  }
  return Status::Ok();
}

Status LayerPass::RunBlocks(const std::vector<Block>& blocks, ChunkReader& reader,
                            const JobControl& control) {
  const std::string phase = fmt::format("layer {}", input_.layer + 1);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    RHIZOME_RETURN_IF_ERROR(
        control.Report({.phase = phase, .done = i, .total = blocks.size(), .detail = {}}));
    RHIZOME_RETURN_IF_ERROR(RunBlock(blocks[i], reader));
    const bool complete =
        i + 1 == blocks.size() || blocks[i + 1].output_chunk != blocks[i].output_chunk;
    if (!complete) continue;
    RHIZOME_RETURN_IF_ERROR(output_.FinishChunk(blocks[i].output_chunk, chunk_accuracy_));
    chunk_accuracy_ = {};
  }
  return control.Report(
      {.phase = phase, .done = blocks.size(), .total = blocks.size(), .detail = {}});
}

Status LayerPass::RunBlock(const Block& block, ChunkReader& reader) {
  Clock::time_point start = Clock::now();
  RHIZOME_ASSIGN_OR_RETURN(lists_, planner_->Plan(block));
  const std::uint64_t chunk_rows = input_.source.entry().chunk_rows;
  local_.resize(lists_.neighbors.size());
  for (std::size_t e = 0; e < local_.size(); ++e) {
    local_[e] =
        static_cast<std::uint32_t>(static_cast<std::uint64_t>(lists_.neighbors[e]) % chunk_rows);
  }
  cursors_.assign(lists_.offsets.begin(), lists_.offsets.end() - 1);
  ends_ = cursors_;
  RHIZOME_RETURN_IF_ERROR(FillDegrees(block));
  self_ = torch::empty({static_cast<std::int64_t>(block.rows()), dim_});
  sums_ = torch::zeros({static_cast<std::int64_t>(block.rows()), dim_});
  tile_accuracy_.assign((block.rows() + kTileRows - 1) / kTileRows, {});
  for (std::size_t c = 0; c < lists_.source_chunks.size(); ++c) {
    RHIZOME_ASSIGN_OR_RETURN(const DecodedChunk chunk, reader.Next());
    report_.fill_seconds += SecondsSince(start);
    start = Clock::now();
    ForTiles(block, [&](std::size_t tile) { AddChunk(block, chunk, tile); });
    report_.model_seconds += SecondsSince(start);
    start = Clock::now();
  }
  ForTiles(block, [&](std::size_t tile) { FinishTile(block, tile); });
  for (const AccuracyCounts& counts : tile_accuracy_) chunk_accuracy_.Add(counts);
  report_.model_seconds += SecondsSince(start);
  return Status::Ok();
}

Status LayerPass::FillDegrees(const Block& block) {
  degrees_.assign(gcn_scale_.empty() ? 0 : block.rows(), 0);
  if (input_.planner.no_edges) return Status::Ok();
  for (std::size_t t = 0; t < degrees_.size(); ++t) {
    RHIZOME_ASSIGN_OR_RETURN(degrees_[t],
                             InDegree(input_.graph, block.begin + static_cast<Row>(t)));
  }
  return Status::Ok();
}

// Adds what one chunk holds to the sums of one tile, and takes over the tile's own rows from it.
void LayerPass::AddChunk(const Block& block, const DecodedChunk& chunk, std::size_t tile) {
  const std::size_t first = tile * kTileRows;
  const std::size_t last = std::min<std::size_t>(first + kTileRows, block.rows());
  const Row chunk_end = chunk.first_row + static_cast<Row>(chunk.rows);
  for (std::size_t t = first; t < last; ++t) {
    const auto rest = lists_.neighbors.begin() + cursors_[t];
    const auto list_end = lists_.neighbors.begin() + lists_.offsets[t + 1];
    ends_[t] = cursors_[t] +
               static_cast<std::uint32_t>(std::lower_bound(rest, list_end, chunk_end) - rest);
  }
  const auto dim = static_cast<std::size_t>(dim_);
  AccumulateRows(last - first, cursors_.data() + first, ends_.data() + first, local_.data(),
                 gcn_scale_.empty() ? nullptr : gcn_scale_.data() + chunk.first_row,
                 chunk.values.get(), dim, sums_.data_ptr<float>() + first * dim);
  for (std::size_t t = first; t < last; ++t) {
    cursors_[t] = ends_[t];
    const Row row = block.begin + static_cast<Row>(t);
    if (row < chunk.first_row || row >= chunk_end) continue;
    std::memcpy(self_.data_ptr<float>() + t * dim,
                chunk.values.get() + static_cast<std::size_t>(row - chunk.first_row) * dim,
                dim * sizeof(float));
  }
}

void LayerPass::FinishTile(const Block& block, std::size_t tile) {
  const std::size_t first = tile * kTileRows;
  const std::size_t count = std::min<std::size_t>(kTileRows, block.rows() - first);
  const Row first_row = block.begin + static_cast<Row>(first);
  TileScales scales{.sum = torch::empty({static_cast<std::int64_t>(count), 1}), .self = {}};
  if (!gcn_scale_.empty()) scales.self = torch::empty_like(scales.sum);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t listed = lists_.offsets[first + i + 1] - lists_.offsets[first + i];
    float scale = listed == 0 ? 0 : 1 / static_cast<float>(listed);
    if (!gcn_scale_.empty()) {
      const float own = gcn_scale_[static_cast<std::size_t>(first_row) + i];
      scales.self.data_ptr<float>()[i] = own * own;
      scale *= own * static_cast<float>(degrees_[first + i]);
    }
    scales.sum.data_ptr<float>()[i] = scale;
  }
  const torch::Tensor hidden =
      input_.model.CombineLayer(input_.layer, TileOf(self_, first, count),
                                TileOf(sums_, first, count) * scales.sum, scales.self);
  torch::Tensor stored = hidden;
  if (input_.last && (input_.scores || input_.labels != nullptr)) {
    const torch::Tensor scores = input_.model.Head(hidden);
    if (input_.labels != nullptr) tile_accuracy_[tile] = CountCorrect(first_row, scores);
    if (input_.scores) stored = scores;
  }
  CopyTo(output_.Rows(first_row, count), stored);
}

AccuracyCounts LayerPass::CountCorrect(Row first, const torch::Tensor& scores) const {
  const torch::Tensor best = scores.argmax(1).contiguous();
  AccuracyCounts counts;
  for (std::int64_t i = 0; i < best.size(0); ++i) {
    const auto row = static_cast<std::size_t>(first + i);
    counts.Add(input_.labels->split[row],
               best.data_ptr<std::int64_t>()[i] == input_.labels->label[row]);
  }
  return counts;
}

}  // namespace rhizome
