#include "rhizome/gnn/layer_pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "rhizome/gnn/compute_threads.h"
#include "rhizome/storage/check.h"

namespace rhizome {
namespace {

using Clock = std::chrono::steady_clock;

/// Rows that one task copies to the stage.
constexpr std::uint32_t kCopiedRows = 256;

/// Chunks whose rows are copied together, and bytes of them: they are held meanwhile.
constexpr std::size_t kCopiedChunks = 64;
constexpr std::uint64_t kCopiedBytes = std::uint64_t{8} << 20;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

constexpr auto kTileTargets = static_cast<std::size_t>(kDenseRows);

std::size_t TilesOf(const TargetRange& range) {
  return (range.count + kTileTargets - 1) / kTileTargets;
}

/// Calls body(tile) for parts of kTileTargets targets, on the compute threads.
template <typename Body>
void ForTiles(const TargetRange& range, const Body& body) {
  ComputeFor(TilesOf(range), [&](std::size_t tile) {
    const c10::InferenceMode guard;
    const std::size_t before = tile * kTileTargets;
    body(TargetRange{range.first + before, std::min(kTileTargets, range.count - before)});
  });
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

std::vector<Block> BlocksOfLayer(const ArrayEntry& output, const BlockPlannerOptions& planner,
                                 std::uint64_t block_rows, std::uint64_t block_edges,
                                 const std::vector<bool>& done) {
  BlockEdges edges;
  if (!planner.no_edges && block_edges != ~std::uint64_t{0}) {
    edges = {block_edges, [&](std::uint64_t place) {
               return EdgesOfRow(planner, planner.target_order == nullptr
                                              ? static_cast<Row>(place)
                                              : planner.target_order->RowAt(place));
             }};
  }
  return MakeBlocks(output.rows, output.chunk_rows, block_rows, done, edges);
}

Result<InferLayerReport> LayerPass::Run(const JobControl& control) {
  const c10::InferenceMode guard;
  if (input_.model.shape().spec.kind == ModelKind::kGcn) {
    gcn_scale_.assign(input_.graph.vertex_count(), 1);
    for (std::size_t row = 0; row < gcn_scale_.size() && !input_.planner.no_edges; ++row) {
      gcn_scale_[row] = GcnScale(input_.planner.degrees[row]);
    }
  }
  const std::vector<Block> blocks = BlocksOfLayer(
      output_.entry(), input_.planner, input_.block_rows, input_.block_edges, output_.done());
  if (blocks.empty()) return report_;
  report_.blocks = blocks.size();
  const Clock::time_point start = Clock::now();
  RHIZOME_ASSIGN_OR_RETURN(Trace trace, PlanTrace(input_.graph, input_.planner, blocks, control));
  report_.plan_seconds = SecondsSince(start);
  windows_ = trace.steps();
  control_ = &control;
  const std::uint64_t stage_rows =
      std::min<std::uint64_t>(input_.planner.stage_rows, input_.graph.vertex_count());
  stage_ = at::empty({static_cast<std::int64_t>(stage_rows), static_cast<std::int64_t>(dim_)});
  if (!gcn_scale_.empty()) stage_scale_.resize(stage_rows);
  ChunkReader reader(input_.source, input_.decoder, std::move(trace), input_.reader, control,
                     input_.delta);
  BoundedQueue<BlockLists> planned(1);
  std::thread planner([&] { planned.Finish(PlanBlocks(blocks, planned)); });
  const Status status = RunBlocks(blocks, planned, reader);
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
                            ChunkReader& reader) {
  for (const Block& block : blocks) {
    const Clock::time_point start = Clock::now();
    RHIZOME_ASSIGN_OR_RETURN(const std::optional<BlockLists> lists, planned.Pop());
    report_.fill_seconds += SecondsSince(start);
    RHIZOME_CHECK(lists.has_value());  // one for each block
    RHIZOME_RETURN_IF_ERROR(RunBlock(block, *lists, reader));
  }
  return Report();
}

Status LayerPass::Report() const {
  return control_->Report({.phase = fmt::format("layer {}", input_.layer + 1),
                           .done = staged_,
                           .total = windows_,
                           .detail = {}});
}

Status LayerPass::RunBlock(const Block& block, const BlockLists& lists, ChunkReader& reader) {
  std::vector<std::uint32_t> degrees(gcn_scale_.empty() ? 0 : block.rows(), 0);
  for (std::size_t t = 0; t < degrees.size() && !input_.planner.no_edges; ++t) {
    degrees[t] = input_.planner.degrees[static_cast<std::size_t>(lists.targets[t])];
  }
  TileLayer layer(lists, weights_, stage_, stage_scale_, gcn_scale_, std::move(degrees));
  const std::size_t targets = lists.targets.size();
  if (!lists.numbers.empty()) {
    RHIZOME_RETURN_IF_ERROR(StageWindow(lists, 0, reader));
    return FinishTargets(block, lists, {0, targets}, layer);
  }
  std::size_t window = 0;
  for (; window < lists.sum_windows(); ++window) {
    RHIZOME_RETURN_IF_ERROR(StageWindow(lists, window, reader));
    const Clock::time_point start = Clock::now();
    ForTiles({0, targets}, [&](const TargetRange& tile) { layer.AddWindow(window, tile); });
    report_.model_seconds += SecondsSince(start);
  }
  for (std::size_t first = 0; first < targets; first += lists.stage_rows, ++window) {
    RHIZOME_RETURN_IF_ERROR(StageWindow(lists, window, reader));
    const std::size_t count = std::min<std::size_t>(lists.stage_rows, targets - first);
    RHIZOME_RETURN_IF_ERROR(FinishTargets(block, lists, {first, count}, layer));
  }
  return Status::Ok();
}

/// Of targets whose own rows are staged.
Status LayerPass::FinishTargets(const Block& block, const BlockLists& lists,
                                const TargetRange& targets, TileLayer& layer) {
  const Row begin = block.begin + static_cast<Row>(targets.first);
  const std::uint64_t chunk_rows = output_.entry().chunk_rows;
  for (const Block& part :
       SplitAtChunks(begin, begin + static_cast<Row>(targets.count), chunk_rows)) {
    const Clock::time_point start = Clock::now();
    const TargetRange range{static_cast<std::size_t>(part.begin - block.begin), part.rows()};
    std::vector<AccuracyCounts> accuracy(TilesOf(range));
    ForTiles(range, [&](const TargetRange& tile) {
      FinishTile(block, lists, tile, targets.first, layer,
                 accuracy[(tile.first - range.first) / kTileTargets]);
    });
    for (const AccuracyCounts& counts : accuracy) chunk_accuracy_.Add(counts);
    report_.model_seconds += SecondsSince(start);
    const auto end = static_cast<std::uint64_t>(part.end);
    if (end % chunk_rows != 0 && end != output_.entry().rows) continue;
    RHIZOME_RETURN_IF_ERROR(output_.FinishChunk((end - 1) / chunk_rows, chunk_accuracy_));
    chunk_accuracy_ = {};
  }
  return Status::Ok();
}

void LayerPass::FinishTile(const Block& block, const BlockLists& lists, const TargetRange& range,
                           std::size_t own_first, TileLayer& layer, AccuracyCounts& accuracy) {
  torch::Tensor stored = layer.Finish(range, own_first);
  if (input_.last && (input_.scores || input_.labels != nullptr)) {
    const torch::Tensor scores = input_.model.HeadOfTile(stored);
    if (input_.labels != nullptr)
      accuracy = CountCorrect(*input_.labels,
                              std::span(lists.targets).subspan(range.first, range.count), scores);
    if (input_.scores) stored = scores.contiguous();
  }
  const std::span<float> out =
      output_.Rows(block.begin + static_cast<Row>(range.first), range.count);
  std::memcpy(out.data(), stored.data_ptr<float>(), out.size_bytes());
}

// Copies what the window needs of its chunks, as they come: some of them at a time, on all threads.
Status LayerPass::StageWindow(const BlockLists& lists, std::size_t window, ChunkReader& reader) {
  struct Piece {
    const float* chunk;
    std::uint32_t first;  // into lists.staged
    std::uint32_t last;
  };
  RHIZOME_RETURN_IF_ERROR(Report());
  ++staged_;
  const Clock::time_point start = Clock::now();
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
  report_.fill_seconds += SecondsSince(start);
  if (gcn_scale_.empty() || window >= lists.sum_windows()) return Status::Ok();
  const std::size_t first = window * lists.stage_rows;
  const std::size_t last = std::min<std::size_t>(first + lists.stage_rows, lists.rows.size());
  for (std::size_t n = first; n < last; ++n) stage_scale_[n - first] = gcn_scale_[lists.rows[n]];
  return Status::Ok();
}

}  // namespace rhizome
