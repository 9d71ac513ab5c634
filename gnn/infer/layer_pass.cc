#include "gnn/infer/layer_pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "cache/job/compute_threads.h"
#include "cache/job/work_clock.h"
#include "cache/ranges/cost_meter.h"
#include "storage/base/check.h"
#include "storage/base/stopwatch.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr auto kTileTargets = static_cast<std::size_t>(kDenseRows);

/// Approximate max number of ranges with separately reported costs; a worker reports them in one
/// line.
constexpr std::uint64_t kMeasuredRanges = 64;

std::size_t TilesOf(const TargetRange& range) {
  return (range.count + kTileTargets - 1) / kTileTargets;
}

/// Calls body(tile) for tiles of kTileTargets targets, on the compute threads.
template <typename Body>
void ForTiles(const TargetRange& range, const Body& body) {
  ComputeFor(TilesOf(range), [&](std::size_t tile) {
    const c10::InferenceMode guard;
    const std::size_t before = tile * kTileTargets;
    body(TargetRange{range.first + before, std::min(kTileTargets, range.count - before)});
  });
}

}  // namespace

AccuracyCounts CountCorrect(const ClassLabels& labels, std::span<const Row> rows,
                            const torch::Tensor& scores) {
  const torch::Tensor best = scores.argmax(1).contiguous();
  const torch::Tensor dense = scores.contiguous();
  const std::int64_t classes = dense.size(1);
  AccuracyCounts counts;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = static_cast<std::size_t>(rows[i]);
    const std::int64_t answer = best.data_ptr<std::int64_t>()[i];
    // argmax treats NaN as the highest score; such a row counts as wrong.
    const bool answered =
        !std::isnan(dense.data_ptr<float>()[static_cast<std::int64_t>(i) * classes + answer]);
    counts.Add(labels.split[row], answered && answer == labels.label[row]);
  }
  return counts;
}

LayerPass::LayerPass(LayerPassInput input, LayerOutput& output)
    : input_(std::move(input)),
      output_(output),
      dim_(input_.source.entry().dim),
      has_cache_(ChunkReader::HasCache(input_.source.entry(), input_.pass.reader)),
      layer_(input_.model.layer(input_.layer)),
      row_types_(input_.graph) {
  layer_.Freeze();
}

Result<InferLayerReport> LayerPass::Run(const JobControl& control) {
  const c10::InferenceMode guard;
  if (layer_.pieces().reduce.symmetric) {
    row_scale_.assign(input_.graph.vertex_count(), 1);
    for (std::size_t row = 0; row < row_scale_.size() && !input_.pass.planner.draw.no_edges;
         ++row) {
      row_scale_[row] = GcnScale(input_.weighted_degrees.empty() ? input_.pass.planner.degrees[row]
                                                                 : input_.weighted_degrees[row]);
    }
  }
  const std::vector<Block> blocks = BlocksOfPass(input_.pass, output_.entry().rows, output_.done());
  if (blocks.empty()) return report_;
  report_.blocks = blocks.size();
  for (const Block& block : blocks) {
    report_.vertices += block.rows();
    max_targets_ = std::max<std::uint64_t>(max_targets_, block.rows());
  }
  control_ = &control;
  RHIZOME_ASSIGN_OR_RETURN(const std::unique_ptr<ChunkReader> reader, OpenReader(blocks));
  RHIZOME_ASSIGN_OR_RETURN(BlockPlanner planner,
                           BlockPlanner::Create(input_.graph, input_.pass.planner));
  RHIZOME_RETURN_IF_ERROR(RunBlocks(blocks, std::move(planner), *reader));
  const ChunkReaderStats stats = reader->Finish();
  report_.chunk_requests = stats.requests;
  report_.chunk_reads = stats.reads;
  report_.bytes_read = stats.bytes_read;
  report_.read_seconds = stats.read_seconds;
  report_.chunk_hits = stats.hits;
  return report_;
}

/// Opens the reader. With a cache, the reads of all blocks are planned first, because the policy
/// needs them.
Result<std::unique_ptr<ChunkReader>> LayerPass::OpenReader(const std::vector<Block>& blocks) {
  if (!has_cache_) {
    return std::make_unique<ChunkReader>(input_.source, input_.decoder, input_.pass.reader,
                                         *control_, input_.delta);
  }
  const Stopwatch watch;
  if (!input_.reads) {
    RHIZOME_ASSIGN_OR_RETURN(input_.reads,
                             PlanReads(input_.graph, input_.pass.planner, blocks, *control_));
  }
  report_.plan_seconds = watch.seconds();
  return std::make_unique<ChunkReader>(input_.source, input_.decoder,
                                       std::move(input_.reads->trace), input_.pass.reader,
                                       *control_, input_.delta);
}

Status LayerPass::RunBlocks(const std::vector<Block>& blocks, BlockPlanner planner,
                            ChunkReader& reader) {
  const std::uint64_t stage_rows =
      std::min<std::uint64_t>(input_.pass.planner.stage_rows, input_.graph.vertex_count());
  if (layer_.prepares()) {
    RHIZOME_ASSIGN_OR_RETURN(
        prepared_, AlignedBuffer::Allocate(stage_rows * prepared_columns() * sizeof(float)));
  }
  if (layer_.pieces().relates) {
    RHIZOME_ASSIGN_OR_RETURN(
        related_, RelatedRows::Create(layer_, stage_rows, input_.pass.planner.draw.relations));
  }
  RHIZOME_ASSIGN_OR_RETURN(const std::unique_ptr<BlockStager> stager,
                           BlockStager::Create(std::move(planner), blocks, reader, stage_rows, dim_,
                                               row_scale_, has_cache_));
  // Stages work ahead, so the time of a block includes some work for the next one.
  const WorkClock clock;
  double before = 0;
  CostMeter meter(kTileRows, report_.vertices / kMeasuredRanges);
  for (const Block& block : blocks) {
    RHIZOME_RETURN_IF_ERROR(RunBlock(block, *stager));
    rows_done_ += block.rows();
    const double now = clock.cpu_seconds();
    meter.Add({static_cast<std::uint64_t>(block.begin), static_cast<std::uint64_t>(block.end),
               now - before});
    before = now;
  }
  for (const MeasuredRange& range : meter.ranges())
    report_.costs.push_back({range.begin, range.end, range.cpu_seconds});
  report_.copy_seconds = stager->copy_seconds();
  return Report(0);
}

Result<StagedWindow> LayerPass::NextWindow(BlockStager& stager) {
  const Stopwatch watch;
  RHIZOME_ASSIGN_OR_RETURN(StagedWindow window, stager.Next());
  report_.fill_seconds += watch.seconds();
  RHIZOME_RETURN_IF_ERROR(
      Report(window.lists->targets.size() * window.window / window.lists->windows()));
  return window;
}

/// Reports progress in rows, including the finished part of the current block.
Status LayerPass::Report(std::uint64_t rows_of_block) const {
  return control_->Report({.phase = fmt::format("layer {}", input_.layer + 1),
                           .done = rows_done_ + rows_of_block,
                           .total = report_.vertices,
                           .detail = {}});
}

/// Runs one block. If its rows fit into one window, finishes all targets from that window.
/// Otherwise (1) begins the attention of the targets with windows of their own rows, if the layer
/// attends; (2) adds the windows of source rows to the sums; (3) finishes the targets, from windows
/// of their own rows if the layer reads these now.
Status LayerPass::RunBlock(const Block& block, BlockStager& stager) {
  RHIZOME_ASSIGN_OR_RETURN(StagedWindow window, NextWindow(stager));
  const BlockLists& lists = *window.lists;
  const std::size_t targets = lists.targets.size();
  std::span<float> sums;
  if (lists.numbers.empty()) {
    RHIZOME_ASSIGN_OR_RETURN(sums, Sums(lists));
  }
  TileLayer layer(lists, layer_, row_scale_, FactsOf(lists.targets), sums);
  if (!lists.numbers.empty()) return FinishTargets(block, window, {0, targets}, layer);
  if (lists.own.before) {
    RHIZOME_RETURN_IF_ERROR(ForOwnWindows(window, stager, [&](const TargetRange& range) {
      const Stopwatch watch;
      const WindowRows rows = Prepared(window);
      ForTiles(range, [&](const TargetRange& tile) { layer.Begin(rows, tile, range.first); });
      report_.model_seconds += watch.seconds();
      return Status::Ok();
    }));
  }
  if (related_) related_->Begin(lists);
  while (lists.is_sum(window.window)) {
    AddWindow(window, layer);
    if (window.is_last()) break;
    RHIZOME_ASSIGN_OR_RETURN(window, NextWindow(stager));
  }
  if (!lists.own.after) return FinishTargets(block, window, {0, targets}, layer);
  return ForOwnWindows(window, stager, [&](const TargetRange& range) {
    return FinishTargets(block, window, range, layer);
  });
}

/// Adds a window of source rows to the sums of all targets.
void LayerPass::AddWindow(const StagedWindow& window, TileLayer& layer) {
  const TargetRange all{0, window.lists->targets.size()};
  const std::size_t number = window.window - window.lists->first_sum;
  const WindowRows rows = Prepared(window);
  const Stopwatch watch;
  if (related_) {
    related_->FindPairs(number);
    while (related_->NextRun(rows))
      ForTiles(all, [&](const TargetRange& tile) { layer.AddRelated(*related_, tile); });
  } else {
    ForTiles(all, [&](const TargetRange& tile) { layer.AddWindow(number, rows, tile); });
  }
  report_.model_seconds += watch.seconds();
  report_.sum_seconds += watch.seconds();
}

TargetFacts LayerPass::FactsOf(std::span<const Row> targets) const {
  TargetFacts facts;
  if (layer_.pieces().reduce.needs_degrees()) {
    facts.degrees.assign(targets.size(), 0);
    for (std::size_t t = 0; t < targets.size() && !input_.pass.planner.draw.no_edges; ++t)
      facts.degrees[t] = input_.pass.planner.degrees[static_cast<std::size_t>(targets[t])];
  }
  if (layer_.pieces().by_vertex_type) facts.types = TypesOf(targets);
  return facts;
}

/// Returns the vertex types of rows, as the model numbers them.
template <typename Rows>
std::vector<TypeId> LayerPass::TypesOf(const Rows& rows) const {
  std::vector<TypeId> types;
  types.reserve(rows.size());
  for (const auto row : rows)
    types.push_back(input_.model.NumberOfType(row_types_.Of(static_cast<Row>(row))));
  return types;
}

/// Calls body(range) for each window of own rows, starting with `window`. On return, `window` is
/// the next window after them, if there is one.
template <typename Body>
Status LayerPass::ForOwnWindows(StagedWindow& window, BlockStager& stager, const Body& body) {
  const BlockLists& lists = *window.lists;
  const std::size_t targets = lists.targets.size();
  for (std::size_t first = 0; first < targets; first += lists.stage_rows) {
    RHIZOME_RETURN_IF_ERROR(
        body(TargetRange{first, std::min<std::size_t>(lists.stage_rows, targets - first)}));
    if (window.is_last()) break;
    RHIZOME_ASSIGN_OR_RETURN(window, NextWindow(stager));
  }
  return Status::Ok();
}

/// Returns the rows of a window as the layer reduces them. Windows of own rows are not prepared.
WindowRows LayerPass::Prepared(const StagedWindow& window) {
  const StagedRows& staged = window.staged;
  WindowRows rows{
      .raw = staged.rows, .reduced = staged.rows, .reduced_stride = dim_, .scale = staged.scale};
  const BlockLists& lists = *window.lists;
  if (!layer_.prepares() || !lists.is_sum(window.window)) return rows;
  const std::uint64_t before = (window.window - lists.first_sum) * lists.stage_rows;
  const std::size_t count = std::min<std::uint64_t>(lists.rows.size() - before, lists.stage_rows);
  const Stopwatch watch;
  auto* const prepared = reinterpret_cast<float*>(prepared_.bytes().data());
  if (input_.device != nullptr) {
    input_.device->Prepare(input_.layer, staged.rows, count, prepared);
  } else {
    std::vector<TypeId> types;
    if (layer_.pieces().by_vertex_type)
      types = TypesOf(std::span(lists.rows).subspan(before, count));
    PrepareWindow(layer_, staged.rows, types, count, prepared);
  }
  report_.model_seconds += watch.seconds();
  rows.reduced = prepared;
  rows.reduced_stride = prepared_columns();
  return rows;
}

/// Returns the state memory for the targets or groups of a block. All blocks share it, so that the
/// system zeroes its pages only once. It grows if a block has more groups than the ones before.
Result<std::span<float>> LayerPass::Sums(const BlockLists& lists) {
  const std::size_t count = lists.state_count();
  RHIZOME_CHECK(lists.grouped() || count <= max_targets_);
  const std::size_t rows = lists.related() ? count : std::max<std::size_t>(count, max_targets_);
  const std::size_t bytes = std::max<std::size_t>(rows, 1) * state_columns() * sizeof(float);
  if (sums_.size_bytes() < bytes) {
    sums_ = {};
    RHIZOME_ASSIGN_OR_RETURN(sums_, AlignedBuffer::Allocate(bytes));
  }
  return std::span(reinterpret_cast<float*>(sums_.bytes().data()), count * state_columns());
}

/// Finishes targets whose own rows are staged, and the output chunks that they complete.
Status LayerPass::FinishTargets(const Block& block, const StagedWindow& window,
                                const TargetRange& targets, TileLayer& layer) {
  const Row begin = block.begin + static_cast<Row>(targets.first);
  // If own rows are not read again, the window is the last one that was reduced.
  const bool has_rows = !window.lists->numbers.empty() || !window.lists->is_sum(window.window);
  const WindowRows rows = has_rows ? Prepared(window) : WindowRows{};
  const std::uint64_t chunk_rows = output_.entry().chunk_rows;
  for (const Block& part :
       SplitAtChunks(begin, begin + static_cast<Row>(targets.count), chunk_rows)) {
    const Stopwatch watch;
    const TargetRange range{static_cast<std::size_t>(part.begin - block.begin), part.rows()};
    if (input_.device != nullptr) {
      FinishOnDevice(block, window, rows, range, targets.first, layer);
    } else {
      FinishPart(block, window, rows, range, targets.first, layer);
    }
    report_.model_seconds += watch.seconds();
    const auto end = static_cast<std::uint64_t>(part.end);
    if (end % chunk_rows != 0 && end != output_.entry().rows) continue;
    RHIZOME_RETURN_IF_ERROR(output_.FinishChunk((end - 1) / chunk_rows, chunk_accuracy_));
    chunk_accuracy_ = {};
  }
  return Status::Ok();
}

/// Finishes targets tile by tile on the CPU.
void LayerPass::FinishPart(const Block& block, const StagedWindow& window, const WindowRows& rows,
                           const TargetRange& range, std::size_t own_first, TileLayer& layer) {
  std::vector<AccuracyCounts> accuracy(TilesOf(range));
  ForTiles(range, [&](const TargetRange& tile) {
    const torch::Tensor made = layer.Finish(rows, tile, own_first).contiguous();
    torch::Tensor scores;
    if (wants_scores()) scores = input_.model.HeadOfTile(made).contiguous();
    TakeTile(block, window, tile, made, scores,
             accuracy[(tile.first - range.first) / kTileTargets]);
  });
  for (const AccuracyCounts& counts : accuracy) chunk_accuracy_.Add(counts);
}

/// Finishes targets in batches: the CPU reduces them, the device computes the products.
void LayerPass::FinishOnDevice(const Block& block, const StagedWindow& window,
                               const WindowRows& rows, const TargetRange& range,
                               std::size_t own_first, TileLayer& layer) {
  DeviceTiles& device = *input_.device;
  std::vector<AccuracyCounts> accuracy(TilesOf(range));
  for (std::size_t first = 0; first < range.count; first += device.batch_rows()) {
    const TargetRange batch{range.first + first,
                            std::min(device.batch_rows(), range.count - first)};
    ForTiles(batch, [&](const TargetRange& tile) {
      PutOnDevice(layer.Reduce(rows, tile, own_first, TileLayer::Entering::kIfNeeded),
                  tile.first - batch.first, tile.count);
    });
    const DeviceTiles::Finished made = device.Finish(input_.layer, batch.count, wants_scores());
    ForTiles(batch, [&](const TargetRange& tile) {
      const auto begin = static_cast<std::int64_t>(tile.first - batch.first);
      const auto tile_of = [begin](const torch::Tensor& all) {
        return all.defined() ? all.narrow(0, begin, kDenseRows) : all;
      };
      TakeTile(block, window, tile, tile_of(made.rows), tile_of(made.scores),
               accuracy[(tile.first - range.first) / kTileTargets]);
    });
  }
  for (const AccuracyCounts& counts : accuracy) chunk_accuracy_.Add(counts);
}

/// Copies the targets of a tile into the upload buffer, as rows [first, first + count) of the
/// batch.
void LayerPass::PutOnDevice(const TileLayer::Reduced& reduced, std::size_t first,
                            std::size_t count) {
  DeviceTiles& device = *input_.device;
  const auto put = [&](const torch::Tensor& from, float* to) {
    const auto columns = static_cast<std::size_t>(from.size(1));
    std::memcpy(to + first * columns, from.data_ptr<float>(), count * columns * sizeof(float));
  };
  put(reduced.tile, device.tiles());
  if (device.WantsRaw(input_.layer)) put(reduced.raw, device.raw_rows(input_.layer));
}

/// Stores the rows of a tile's targets, [kDenseRows, raw_out]. If scores [kDenseRows, classes] are
/// defined, counts the correct answers and passes the scores to the sink.
void LayerPass::TakeTile(const Block& block, const StagedWindow& window, const TargetRange& range,
                         const torch::Tensor& made, const torch::Tensor& scores,
                         AccuracyCounts& accuracy) {
  const auto targets = std::span(window.lists->targets).subspan(range.first, range.count);
  if (scores.defined() && input_.labels != nullptr)
    accuracy = CountCorrect(*input_.labels, targets, scores);
  if (scores.defined() && input_.sink != nullptr) {
    input_.sink->Take(targets,
                      {scores.data_ptr<float>(), static_cast<std::size_t>(scores.numel())});
  }
  const torch::Tensor& stored = input_.last && input_.scores ? scores : made;
  const std::span<float> out =
      output_.Rows(block.begin + static_cast<Row>(range.first), range.count);
  std::memcpy(out.data(), stored.data_ptr<float>(), out.size_bytes());
}

}  // namespace internal
}  // namespace rhizome
