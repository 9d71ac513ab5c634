#include "gnn/infer/samplewise_run.h"

#include <fmt/format.h>

#include <cstring>
#include <numeric>

#include "cache/blocks/block_plan.h"
#include "cache/feed/feed_pipeline.h"
#include "gnn/infer/layer_pass.h"
#include "index/delta/graph_parts.h"
#include "storage/base/check.h"
#include "storage/base/stopwatch.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Number of minibatches that are scheduled together.
constexpr std::uint32_t kSuperbatch = 32;

/// Computes the embeddings of a minibatch, writes its rows to the output and adds its correct
/// answers to `counts`.
void ComputeBlock(const Minibatch& minibatch, const Block& block, const Model& model,
                  const ClassLabels* labels, bool want_scores, LayerOutput& output,
                  AccuracyCounts& counts) {
  const c10::InferenceMode guard;
  const std::vector<LayerGraph> graphs = model.MakeGraphs(minibatch);
  torch::Tensor stored =
      model.Embed(model.FirstRows(minibatch, model.Features(minibatch), {}), graphs, {});
  if (want_scores || labels != nullptr) {
    const torch::Tensor scores = model.Head(stored);
    if (labels != nullptr) {
      std::vector<Row> rows(block.rows());
      std::iota(rows.begin(), rows.end(), block.begin);
      counts.Add(CountCorrect(*labels, rows, scores));
    }
    if (want_scores) stored = scores;
  }
  const torch::Tensor dense = stored.contiguous();
  const std::span<float> out = output.Rows(block.begin, block.rows());
  std::memcpy(out.data(), dense.data_ptr<float>(), out.size_bytes());
}

void AddCosts(const MinibatchCosts& costs, InferLayerReport& report) {
  report.chunk_requests += costs.rows_requested;
  report.chunk_hits += costs.pool_hits;
  report.chunk_reads += costs.rows_read;
  report.bytes_read += costs.bytes_read;
}

FeedPipelineOptions MakePipelineOptions(const Model& model, const Path& scratch,
                                        const LayerwiseOptions& options) {
  const ModelSpec& spec = model.shape().spec;
  FeedPipelineOptions pipeline;
  pipeline.sampler = options.sampling;
  pipeline.sampler.sampler.seed = options.seed;
  pipeline.sampler.sampler.threads = options.threads;
  if (options.inputs.empty()) pipeline.features = options.features;
  pipeline.inputs = options.inputs;
  pipeline.normalize = spec.normalize_features;
  pipeline.policy = options.tuning.cache;
  pipeline.cache_bytes = options.memory.cache_bytes;
  pipeline.superbatch = kSuperbatch;
  pipeline.scratch = scratch;
  return pipeline;
}

FeedPipeline::NextSeeds SeedsOfBlocks(const GraphSnapshot& graph,
                                      const std::vector<Block>& blocks) {
  return [&graph, &blocks, next = std::size_t{0}]() mutable -> std::optional<SeedBatch> {
    if (next == blocks.size()) return std::nullopt;
    const Block& block = blocks[next];
    SeedBatch seeds{.tag = next, .key = next, .vertices = {}};
    const auto parts = graph.parts();
    for (Row row = block.begin; row < block.end; ++row) {
      seeds.vertices.push_back(parts->VertexAt(row));
    }
    ++next;
    return seeds;
  };
}

Status ComputeAll(const std::vector<Block>& blocks, FeedPipeline& pipeline, const Model& model,
                  const ClassLabels* labels, const LayerwiseOptions& options, LayerOutput& output,
                  InferLayerReport& report, const JobControl& control) {
  AccuracyCounts counts;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    RHIZOME_RETURN_IF_ERROR(
        control.Report({.phase = "samplewise", .done = i, .total = blocks.size(), .detail = {}}));
    const Stopwatch watch;
    RHIZOME_ASSIGN_OR_RETURN(std::optional<Minibatch> minibatch, pipeline.Next());
    RHIZOME_CHECK(minibatch.has_value());  // one for each block
    report.fill_seconds += watch.seconds();
    const Stopwatch computing;
    ComputeBlock(*minibatch, blocks[i], model, labels, options.scores, output, counts);
    AddCosts(minibatch->costs, report);
    report.model_seconds += computing.seconds();
    const auto end = static_cast<std::uint64_t>(blocks[i].end);
    if (end % output.entry().chunk_rows != 0 && end != output.entry().rows) continue;
    RHIZOME_RETURN_IF_ERROR(output.FinishChunk((end - 1) / output.entry().chunk_rows, counts));
    counts = {};
  }
  return Status::Ok();
}

}  // namespace

Status CheckSamplewise(const InferOptions& options) {
  if (options.resume) return Status::InvalidArgument("`resume` works in layerwise mode only");
  if (options.incremental) {
    return Status::InvalidArgument("`incremental` works in layerwise mode only");
  }
  if (options.data.topology == TopologyPlace::kDirect) {
    return Status::InvalidArgument("`topology=direct` works in layerwise mode only");
  }
  if (options.workers.count != 0) {
    return Status::InvalidArgument("`workers` work in layerwise mode only");
  }
  if (options.device == ComputeOn::kCuda) {
    return Status::InvalidArgument("`device=cuda` works in layerwise mode only");
  }
  return Status::Ok();
}

Result<LayerwiseResult> RunSamplewise(const LayerwiseInput& input, const LayerwiseOptions& options,
                                      const JobControl& control) {
  const GraphSnapshot& graph = input.graph;
  if (input.model.inputs() == nullptr) {
    RHIZOME_ASSIGN_OR_RETURN(const auto features, graph.store().OpenArray(options.features));
    RHIZOME_RETURN_IF_ERROR(CheckFeatures(features->entry(), input.model, graph));
  }
  const ArrayEntry& entry = options.output;
  RHIZOME_ASSIGN_OR_RETURN(const std::unique_ptr<LayerOutput> output,
                           LayerOutput::Create(graph.store().fs(), input.scratch / "output", entry,
                                               {}, options.memory.writers));
  std::vector<Block> blocks;
  for (const Block& block :
       MakeBlocks(entry.rows, entry.chunk_rows, options.tuning.block_rows, output->done())) {
    for (const Block& part : SplitAtChunks(block.begin, block.end, entry.chunk_rows)) {
      blocks.push_back(part);
    }
  }
  RHIZOME_ASSIGN_OR_RETURN(
      const std::unique_ptr<FeedPipeline> pipeline,
      FeedPipeline::Open(graph, MakePipelineOptions(input.model, input.scratch, options),
                         SeedsOfBlocks(graph, blocks), control));
  LayerwiseResult result;
  result.layers.resize(1);
  InferLayerReport& report = result.layers.front();
  report.kind = input.model.shape().spec.kind;
  report.passes = 1;
  RHIZOME_RETURN_IF_ERROR(
      ComputeAll(blocks, *pipeline, input.model, input.labels, options, *output, report, control));
  result.accuracy = output->accuracy();
  RHIZOME_ASSIGN_OR_RETURN(result.output, output->Finish());
  result.non_finite_rows = output->non_finite_rows();
  report.write_seconds = output->write_seconds();
  report.bytes_written = output->bytes_written();
  return result;
}

}  // namespace internal
}  // namespace rhizome
