#include "rhizome/gnn/samplewise_inference.h"

#include <fmt/format.h>

#include <cstring>

#include "rhizome/cache/block_plan.h"
#include "rhizome/index/graph_parts.h"
#include "rhizome/storage/check.h"
#include "rhizome/storage/stopwatch.h"

namespace rhizome {
namespace {

/// Number of minibatches that are scheduled together.
constexpr std::uint32_t kSuperbatch = 32;

/// Embeds a minibatch, and adds its rows to the output and its correct answers to `counts`.
void ComputeBlock(const Minibatch& minibatch, const Block& block, const Model& model,
                  const ClassLabels* labels, bool want_scores, LayerOutput& output,
                  AccuracyCounts& counts) {
  const c10::InferenceMode guard;
  const std::vector<LayerGraph> graphs = model.MakeGraphs(minibatch);
  torch::Tensor stored = model.Embed(minibatch, graphs, nullptr);
  if (want_scores || labels != nullptr) {
    const torch::Tensor scores = model.Head(stored);
    const torch::Tensor best = scores.argmax(1).contiguous();
    for (std::uint64_t i = 0; labels != nullptr && i < block.rows(); ++i) {
      const std::size_t row = static_cast<std::size_t>(block.begin) + i;
      counts.Add(labels->split[row], best.data_ptr<std::int64_t>()[i] == labels->label[row]);
    }
    if (want_scores) stored = scores;
  }
  const torch::Tensor dense = stored.contiguous();
  const std::span<float> out = output.Rows(block.begin, block.rows());
  std::memcpy(out.data(), dense.data_ptr<float>(), out.size_bytes());
}

void AddCosts(const MinibatchCosts& costs, InferLayerReport& report) {
  report.chunk_requests += costs.rows_requested;
  report.chunk_reads += costs.rows_read;
  report.bytes_read += costs.bytes_read;
  report.hit_rate += static_cast<double>(costs.pool_hits);  // a count until the end
}

LoaderOptions MakeLoaderOptions(const Model& model, const Path& scratch,
                                const LayerwiseOptions& options) {
  const ModelSpec& spec = model.shape().spec;
  LoaderOptions loader;
  loader.sampler.fanouts = options.fanouts;
  if (loader.sampler.fanouts.empty()) loader.sampler.fanouts.assign(spec.layers, kAllNeighbors);
  loader.sampler.no_edges = spec.no_edges;
  loader.sampler.degrees = spec.kind == ModelKind::kGcn;
  loader.sampler.seed = options.seed;
  loader.sampler.threads = options.threads;
  loader.features = options.features;
  loader.normalize = spec.normalize_features;
  loader.policy = options.policy;
  loader.cache_bytes = options.cache_bytes;
  loader.superbatch = kSuperbatch;
  loader.scratch = scratch;
  return loader;
}

Loader::NextSeeds SeedsOfBlocks(const GraphSnapshot& graph, const std::vector<Block>& blocks) {
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

Status ComputeAll(const std::vector<Block>& blocks, Loader& loader, const Model& model,
                  const ClassLabels* labels, const LayerwiseOptions& options, LayerOutput& output,
                  InferLayerReport& report, const JobControl& control) {
  AccuracyCounts counts;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    RHIZOME_RETURN_IF_ERROR(
        control.Report({.phase = "samplewise", .done = i, .total = blocks.size(), .detail = {}}));
    const Stopwatch watch;
    RHIZOME_ASSIGN_OR_RETURN(std::optional<Minibatch> minibatch, loader.Next());
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

Result<LayerwiseResult> RunSamplewise(const GraphSnapshot& graph, const Model& model,
                                      const ClassLabels* labels, const Path& scratch,
                                      const LayerwiseOptions& options, const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(const auto features, graph.store().OpenArray(options.features));
  RHIZOME_RETURN_IF_ERROR(CheckFeatures(features->entry(), model, graph));
  RHIZOME_ASSIGN_OR_RETURN(const ArrayEntry entry, MakeOutputEntry(graph, model, options));
  RHIZOME_ASSIGN_OR_RETURN(
      const std::unique_ptr<LayerOutput> output,
      LayerOutput::Create(graph.store().fs(), scratch / "output", entry, {}, options.writers));
  std::vector<Block> blocks;
  for (const Block& block :
       MakeBlocks(entry.rows, entry.chunk_rows, options.block_rows, output->done())) {
    for (const Block& part : SplitAtChunks(block.begin, block.end, entry.chunk_rows)) {
      blocks.push_back(part);
    }
  }
  RHIZOME_ASSIGN_OR_RETURN(const std::unique_ptr<Loader> loader,
                           Loader::Open(graph, MakeLoaderOptions(model, scratch, options),
                                        SeedsOfBlocks(graph, blocks), control));
  LayerwiseResult result;
  result.layers.resize(1);
  InferLayerReport& report = result.layers.front();
  RHIZOME_RETURN_IF_ERROR(
      ComputeAll(blocks, *loader, model, labels, options, *output, report, control));
  if (report.chunk_requests > 0) report.hit_rate /= static_cast<double>(report.chunk_requests);
  result.accuracy = output->accuracy();
  RHIZOME_ASSIGN_OR_RETURN(result.output, output->Finish());
  report.write_seconds = output->write_seconds();
  report.bytes_written = output->bytes_written();
  return result;
}

}  // namespace rhizome
