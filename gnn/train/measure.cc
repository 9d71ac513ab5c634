#include "gnn/train/measure.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "cache/blocks/block_plan.h"
#include "cache/feed/lists_on_disk.h"
#include "cache/feed/resolve_sampling.h"
#include "gnn/infer/layer_sizes.h"
#include "gnn/infer/layerwise_run.h"

namespace rhizome {
inline namespace internal {
namespace {

const std::optional<SplitMetrics>& MeasuredSet(const TaskMetrics& metrics) {
  return metrics.test ? metrics.test : metrics.valid;
}

/// Returns the number of rows of the chunks that processes share: a few chunks per process, and up
/// to 4 MiB of the widest layer per chunk.
std::uint64_t SharedChunkRows(const GraphSnapshot& graph, const Model& model,
                              std::uint32_t processes) {
  constexpr std::uint64_t kChunksEach = 4, kMaxBytes = std::uint64_t{4} << 20;
  std::uint64_t widest = 1;
  for (std::uint32_t layer = 0; layer < model.layers(); ++layer)
    widest = std::max(widest, static_cast<std::uint64_t>(model.layer(layer).raw_out()));
  const std::uint64_t rows = graph.vertex_count() / (kChunksEach * processes) + 1;
  return RoundUpToTiles(std::min(rows, kMaxBytes / (widest * sizeof(float)) + 1));
}

}  // namespace

TaskMetrics MetricsOfAllSets(const ScoreTable& scores) {
  TaskMetrics metrics;
  for (const auto& [set, into] : {std::pair{Split::kTrain, &metrics.train},
                                  {Split::kValid, &metrics.valid},
                                  {Split::kTest, &metrics.test}}) {
    SplitMetrics of_set = scores.Metrics(set);
    if (of_set.vertices > 0) *into = std::move(of_set);
  }
  return metrics;
}

Result<TaskMetrics> MeasureModel(const TrainJob& job, const TrainOptions& options,
                                 std::uint64_t cache_bytes, const Path& scratch,
                                 const JobControl& control, LayerSharing* sharing) {
  // All lists are read in order, twice per layer, so a cache for some of them would not help.
  std::unique_ptr<ListsOnDisk> lists;
  if (!options.model.no_edges) {
    RHIZOME_ASSIGN_OR_RETURN(lists, ListsOnDisk::Open(*job.graph, options.data.sampling.walked(), 0,
                                                      {}, options.resources.io, control));
  }
  LayerwiseOptions layerwise;
  layerwise.features = options.data.features;
  layerwise.inputs = job.inputs;
  layerwise.sampling = WithAllNeighbors(job.sampling);
  RHIZOME_ASSIGN_OR_RETURN(
      layerwise.groups, MostGroups(*job.graph, *job.model, layerwise.sampling.sampler.direction));
  layerwise.output.name = "evaluation";
  layerwise.output.codec = {.kind = CodecKind::kBloscLz4, .level = 1};
  layerwise.write_output = false;
  layerwise.memory.cache_bytes = cache_bytes;
  layerwise.seed = options.learning.seed;
  if (lists != nullptr) layerwise.neighbors = lists->source();
  layerwise.threads = std::max<std::uint32_t>(options.resources.threads, 1);
  if (sharing != nullptr)
    layerwise.chunk_rows = SharedChunkRows(*job.graph, *job.model, sharing->processes());
  RHIZOME_ASSIGN_OR_RETURN(layerwise.output, MakeOutputEntry(*job.graph, *job.model, layerwise));
  ScoreTable scores(job.labels, std::nullopt);
  RHIZOME_ASSIGN_OR_RETURN(const LayerwiseResult result, RunLayerwise({.graph = *job.graph,
                                                                       .model = *job.model,
                                                                       .sink = &scores,
                                                                       .scratch = scratch,
                                                                       .sharing = sharing},
                                                                      layerwise, control));
  if (sharing != nullptr) RHIZOME_RETURN_IF_ERROR(sharing->ShareScores(scores));
  return MetricsOfAllSets(scores);
}

std::optional<double> MajorityAccuracy(const Labels& labels) {
  const std::vector<std::uint64_t> counts = labels.CountClasses(Split::kTrain);
  if (counts.empty()) return std::nullopt;
  const auto most = std::max_element(counts.begin(), counts.end()) - counts.begin();
  AccuracyCounts accuracy;
  for (std::size_t row = 0; row < labels.label.size(); ++row)
    accuracy.Add(labels.split[row], labels.label[row] == most);
  return accuracy.Of(Split::kTest);
}

std::vector<MetricSpread> SpreadOf(std::span<const SeedReport> seeds) {
  std::vector<MetricSpread> spreads;
  if (seeds.empty() || !MeasuredSet(seeds.front().metrics)) return spreads;
  for (const MetricValue& measured : MeasuredSet(seeds.front().metrics)->values) {
    MetricSpread spread{.metric = measured.metric};
    std::vector<double> values;
    for (const SeedReport& seed : seeds) {
      const std::optional<SplitMetrics>& metrics = MeasuredSet(seed.metrics);
      const std::optional<double> value = metrics ? metrics->Of(measured.metric) : std::nullopt;
      if (value) values.push_back(*value);
    }
    if (values.empty()) continue;
    const auto count = static_cast<double>(values.size());
    spread.seeds = static_cast<std::uint32_t>(values.size());
    for (const double value : values) spread.mean += value / count;
    double squares = 0;
    for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
    if (values.size() > 1) spread.deviation = std::sqrt(squares / (count - 1));
    spreads.push_back(spread);
  }
  return spreads;
}

}  // namespace internal
}  // namespace rhizome
