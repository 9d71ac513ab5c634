#include "cache/ranks/remote_traces.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "cache/feed/labels.h"
#include "cache/feed/minibatch_sampler.h"
#include "cache/feed/resolve_sampling.h"
#include "cache/feed/task_labels.h"
#include "cache/ranks/home_epochs.h"

namespace rhizome {
inline namespace internal {
namespace {

Status CheckTraceOptions(const RemoteTraceOptions& options) {
  if (options.batch_size == 0 || options.epochs == 0)
    return Status::InvalidArgument("batch size and epochs must be at least 1");
  if (options.epochs > EpochPlan::kMaxEpochs) {
    return Status::InvalidArgument(
        fmt::format("{} epochs; at most {} are possible", options.epochs, EpochPlan::kMaxEpochs));
  }
  return Status::Ok();
}

/// Returns the rows of a step that belong to other ranks.
std::vector<CacheKey> OfOthers(std::span<const CacheKey> rows,
                               std::span<const std::uint16_t> rank_of, std::uint32_t rank) {
  std::vector<CacheKey> remote;
  for (const CacheKey row : rows)
    if (rank_of[static_cast<std::size_t>(row)] != rank) remote.push_back(row);
  return remote;
}

}  // namespace

Result<std::vector<RemoteTrace>> DrawRemoteTraces(const GraphSnapshot& graph, const RowHomes& homes,
                                                  const RemoteTraceOptions& options,
                                                  const JobControl& control) {
  RHIZOME_RETURN_IF_ERROR(CheckTraceOptions(options));
  RHIZOME_RETURN_IF_ERROR(CheckRanks(options.ranks, homes));
  RHIZOME_ASSIGN_OR_RETURN(const ClassLabels labels, ReadLabels(graph, "", options.split));
  const std::vector<VertexId> train = labels.Members(graph, Split::kTrain);
  RHIZOME_RETURN_IF_ERROR(CheckTrainingSet(train, options.split));
  RHIZOME_ASSIGN_OR_RETURN(auto of_home, homes.Divide(graph, train));
  const std::vector<std::uint16_t> rank_of = homes.RanksOfRows(options.ranks);
  std::vector<RemoteTrace> traces(options.ranks);
  for (const VertexId vertex : train) {
    RHIZOME_ASSIGN_OR_RETURN(const Row row, graph.RowOf(vertex));
    traces[rank_of[static_cast<std::size_t>(row)]].training_rows.push_back(row);
  }
  const HomeEpochs epochs(
      std::move(of_home), std::vector<std::vector<VertexId>>(homes.count),
      {.batch_size = options.batch_size, .seed = options.seed, .epochs = options.epochs});
  RHIZOME_ASSIGN_OR_RETURN(MinibatchSamplerOptions sampling,
                           ResolveSampling({}, {}, options.fanouts, graph));
  SetSamplers(options.seed, options.threads, sampling);
  sampling.degrees = sampling.weighted_degrees = false;
  RHIZOME_ASSIGN_OR_RETURN(const MinibatchSampler sampler,
                           MinibatchSampler::Create(graph, sampling, nullptr));
  HomeSeeds seeds(epochs, 0, homes.count, epochs.counts().all());
  std::uint32_t epoch = 0;
  const auto end_epoch = [&] {
    for (RemoteTrace& trace : traces) trace.epochs.push_back(trace.rows.steps());
  };
  while (const std::optional<SeedBatch> batch = seeds.Next()) {
    RHIZOME_RETURN_IF_ERROR(
        control.Report({.phase = "sample", .done = seeds.step(), .total = epochs.counts().all()}));
    for (; epoch < EpochPlan::Decode(batch->tag).epoch; ++epoch) end_epoch();
    RHIZOME_ASSIGN_OR_RETURN(const Minibatch minibatch, sampler.Sample(*batch));
    Trace step;
    AddStep(minibatch, step);
    const std::uint32_t rank = homes.RankOf(epochs.Decode(batch->tag).home, options.ranks);
    traces[rank].rows_requested += step.keys.size();
    traces[rank].rows.AddStep(OfOthers(step.keys, rank_of, rank));
  }
  end_epoch();
  for (RemoteTrace& trace : traces) trace.epoch_steps = trace.epochs[1];
  return traces;
}

}  // namespace internal
}  // namespace rhizome
