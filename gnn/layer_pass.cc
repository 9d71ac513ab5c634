#include "rhizome/gnn/layer_pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "rhizome/gnn/compute_threads.h"
#include "rhizome/gnn/minibatch_sampler.h"
#include "rhizome/storage/check.h"

namespace rhizome {
namespace {

using Clock = std::chrono::steady_clock;

/// Rows that one task copies to the stage.
constexpr std::uint32_t kCopiedRows = 256;

/// Chunks whose rows are copied together, and bytes of them: they are held meanwhile.
constexpr std::size_t kCopiedChunks = 64;
constexpr std::uint64_t kCopiedBytes = std::uint64_t{16} << 20;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

AccuracyCounts CountCorrect(const Labels& labels, std::span<const Row> rows,
                            const torch::Tensor& scores) {
  const torch::Tensor best = scores.argmax(1).contiguous();
  AccuracyCounts counts;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = static_cast<std::size_t>(rows[i]);
    counts.Add(labels.split[row], best.data_ptr<std::int64_t>()[i] == labels.label[row]);
  }
  return counts;
}

LayerPass::LayerPass(const LayerPassInput& input, LayerOutput& output)
    : input_(input),
      output_(output),
      dim_(input.source.entry().dim),
      weights_(input.model.layer(input.layer)) {}

Result<std::vector<Block>> BlocksOfLayer(const Graph& graph, const ArrayEntry& output,
                                         const BlockPlannerOptions& planner,
                                         std::uint64_t block_rows, std::uint64_t block_edges,
                                         const std::vector<bool>& done) {
  Status status;
  const auto edges_of = [&](std::uint64_t place) -> std::uint64_t {
    const Row row = planner.target_order == nullptr ? static_cast<Row>(place)
                                                    : planner.target_order->RowAt(place);
    const Result<std::uint32_t> degree = InDegree(graph, row);
    if (!degree) {
      status = degree.error();
      return 0;
    }
    return planner.fanout == kAllNeighbors
               ? *degree
               : std::min<std::uint64_t>(*degree, static_cast<std::uint64_t>(planner.fanout));
  };
  BlockEdges edges;
  if (!planner.no_edges && block_edges != ~std::uint64_t{0}) edges = {block_edges, edges_of};
  std::vector<Block> blocks = MakeBlocks(output.rows, output.chunk_rows, block_rows, done, edges);
  if (!status.ok()) return Fail(status);
  return blocks;
}

Result<InferLayerReport> LayerPass::Run(const JobControl& control) {
  const c10::InferenceMode guard;
  if (input_.model.shape().spec.kind == ModelKind::kGcn) {
    gcn_scale_.assign(input_.graph.vertex_count(), 1);
    for (std::uint64_t row = 0; row < gcn_scale_.size() && !input_.planner.no_edges; ++row) {
      RHIZOME_ASSIGN_OR_RETURN(const std::uint32_t degree,
                               InDegree(input_.graph, static_cast<Row>(row)));
      gcn_scale_[row] = GcnScale(degree);
    }
  }
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<Block> blocks,
                           BlocksOfLayer(input_.graph, output_.entry(), input_.planner,
                                         input_.block_rows, input_.block_edges, output_.done()));
  if (blocks.empty()) return report_;
  const Clock::time_point start = Clock::now();
  RHIZOME_ASSIGN_OR_RETURN(Trace trace, PlanTrace(input_.graph, input_.planner, blocks, control));
  report_.plan_seconds = SecondsSince(start);
  const std::uint64_t stage_rows =
      std::min<std::uint64_t>(input_.planner.stage_rows, input_.graph.vertex_count());
  stage_ = at::empty({static_cast<std::int64_t>(stage_rows), static_cast<std::int64_t>(dim_)});
  if (!gcn_scale_.empty()) stage_scale_.resize(stage_rows);
  ChunkReader reader(input_.source, input_.decoder, std::move(trace), input_.reader, control,
                     input_.delta);
  BoundedQueue<BlockLists> planned(1);
  std::thread planner([&] { planned.Finish(PlanBlocks(blocks, planned)); });
  const Status status = RunBlocks(blocks, planned, reader, control);
  planned.Cancel();
  planner.join();
  RHIZOME_RETURN_IF_ERROR(status);
  for (const Block& block : blocks) report_.computed += block.rows();
  const ChunkReaderStats stats = reader.Finish();
  report_.chunk_requests = stats.requests;
  report_.chunk_reads = stats.reads;
  report_.bytes_read = stats.bytes_read;
  report_.hit_rate = stats.requests == 0
                         ? 0
                         : static_cast<double>(stats.hits) / static_cast<double>(stats.requests);
  return report_;
}

Status LayerPass::PlanBlocks(const std::vector<Block>& blocks,
                             BoundedQueue<BlockLists>& planned) const {
  RHIZOME_ASSIGN_OR_RETURN(BlockPlanner planner,
                           BlockPlanner::Create(input_.graph, input_.planner));
  for (const Block& block : blocks) {
    if (!planned.WaitForRoom()) break;
    RHIZOME_ASSIGN_OR_RETURN(BlockLists lists, planner.Plan(block));
    if (!planned.Push(std::move(lists))) break;
  }
  return Status::Ok();
}

Status LayerPass::RunBlocks(const std::vector<Block>& blocks, BoundedQueue<BlockLists>& planned,
                            ChunkReader& reader, const JobControl& control) {
  const std::string phase = fmt::format("layer {}", input_.layer + 1);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    RHIZOME_RETURN_IF_ERROR(
        control.Report({.phase = phase, .done = i, .total = blocks.size(), .detail = {}}));
    const Clock::time_point start = Clock::now();
    RHIZOME_ASSIGN_OR_RETURN(const std::optional<BlockLists> lists, planned.Pop());
    report_.fill_seconds += SecondsSince(start);
    RHIZOME_CHECK(lists.has_value());  // one for each block
    RHIZOME_RETURN_IF_ERROR(RunBlock(blocks[i], *lists, reader));
    const bool complete =
        i + 1 == blocks.size() || blocks[i + 1].output_chunk != blocks[i].output_chunk;
    if (!complete) continue;
    RHIZOME_RETURN_IF_ERROR(output_.FinishChunk(blocks[i].output_chunk, chunk_accuracy_));
    chunk_accuracy_ = {};
  }
  return control.Report(
      {.phase = phase, .done = blocks.size(), .total = blocks.size(), .detail = {}});
}

Status LayerPass::RunBlock(const Block& block, const BlockLists& lists, ChunkReader& reader) {
  std::vector<std::uint32_t> degrees(gcn_scale_.empty() ? 0 : block.rows(), 0);
  for (std::size_t t = 0; t < degrees.size() && !input_.planner.no_edges; ++t) {
    RHIZOME_ASSIGN_OR_RETURN(degrees[t], InDegree(input_.graph, lists.targets[t]));
  }
  TileLayer tiles(lists, weights_, stage_, stage_scale_, gcn_scale_, std::move(degrees));
  tile_accuracy_.assign(tiles.tiles(), {});
  for (std::size_t window = 0; window < lists.windows(); ++window) {
    Clock::time_point start = Clock::now();
    RHIZOME_RETURN_IF_ERROR(StageWindow(lists, window, reader));
    report_.fill_seconds += SecondsSince(start);
    start = Clock::now();
    const bool last = window + 1 == lists.windows();
    ComputeFor(tiles.tiles(), [&](std::size_t tile) {
      const c10::InferenceMode guard;
      if (last) {
        FinishTile(block, lists, tiles, tile);
      } else {
        tiles.AddWindow(window, tile);
      }
    });
    report_.model_seconds += SecondsSince(start);
  }
  for (const AccuracyCounts& counts : tile_accuracy_) chunk_accuracy_.Add(counts);
  return Status::Ok();
}

// Copies what the window needs of its chunks, as they come: some of them at a time, on all threads.
Status LayerPass::StageWindow(const BlockLists& lists, std::size_t window, ChunkReader& reader) {
  struct Piece {
    const float* chunk;
    std::uint32_t first;  // into lists.staged
    std::uint32_t last;
  };
  const std::span<const BlockLists::Visit> visits = lists.VisitsOf(window);
  const std::uint64_t chunk_bytes = ChunkReader::DecodedBytes(input_.source.entry());
  const std::size_t together =
      std::clamp<std::uint64_t>(kCopiedBytes / chunk_bytes, 1, kCopiedChunks);
  float* const stage = stage_.data_ptr<float>();
  std::vector<DecodedChunk> held;
  std::vector<Piece> pieces;
  for (std::size_t v = 0; v < visits.size();) {
    held.clear();
    pieces.clear();
    for (; v < visits.size() && held.size() < together; ++v) {
      RHIZOME_ASSIGN_OR_RETURN(DecodedChunk chunk, reader.Next());
      const BlockLists::Visit& visit = visits[chunk.request - next_request_];
      RHIZOME_CHECK(visit.chunk == chunk.chunk);
      for (std::uint32_t at = visit.first; at < visit.last; at += kCopiedRows) {
        pieces.push_back({chunk.values.get(), at, std::min(at + kCopiedRows, visit.last)});
      }
      held.push_back(std::move(chunk));
    }
    ComputeFor(pieces.size(), [&](std::size_t p) {
      for (std::uint32_t i = pieces[p].first; i < pieces[p].last; ++i) {
        const BlockLists::StagedRow& row = lists.staged[i];
        std::memcpy(stage + row.slot * dim_, pieces[p].chunk + row.in_chunk * dim_,
                    dim_ * sizeof(float));
      }
    });
  }
  next_request_ += visits.size();
  if (gcn_scale_.empty()) return Status::Ok();
  const std::size_t first = window * lists.stage_rows;
  const std::size_t last = std::min<std::size_t>(first + lists.stage_rows, lists.rows.size());
  for (std::size_t n = first; n < last; ++n) stage_scale_[n - first] = gcn_scale_[lists.rows[n]];
  return Status::Ok();
}

void LayerPass::FinishTile(const Block& block, const BlockLists& lists, TileLayer& tiles,
                           std::size_t tile) {
  const std::size_t first = tile * static_cast<std::size_t>(kDenseRows);
  const std::size_t count = std::min<std::size_t>(kDenseRows, block.rows() - first);
  torch::Tensor stored = tiles.Finish(tile);
  if (input_.last && (input_.scores || input_.labels != nullptr)) {
    const torch::Tensor scores = input_.model.HeadOfTile(stored);
    if (input_.labels != nullptr)
      tile_accuracy_[tile] =
          CountCorrect(*input_.labels, std::span(lists.targets).subspan(first, count), scores);
    if (input_.scores) stored = scores.contiguous();
  }
  const std::span<float> out = output_.Rows(block.begin + static_cast<Row>(first), count);
  std::memcpy(out.data(), stored.data_ptr<float>(), out.size_bytes());
}

}  // namespace rhizome
