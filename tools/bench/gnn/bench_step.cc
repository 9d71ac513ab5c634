#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <fstream>
#include <random>

#include "cache/feed/minibatch_sampler.h"
#include "cache/job/process_memory.h"
#include "cache/job/work_clock.h"
#include "cache/kernels/simd.h"
#include "gnn/models/model_kinds.h"
#include "gnn/ops/torch_guard.h"
#include "gnn/ops/torch_threads.h"
#include "gnn/train/learner.h"
#include "tools/bench/gnn/bench_kernels.h"
#include "tools/bench/harness/bench_common.h"

namespace rhizome {
namespace {

/// Fills in features in advance, as the loader has done when a step begins.
Status FillFeatures(std::int64_t dim, std::uint64_t seed, Minibatch& minibatch) {
  std::mt19937 random(static_cast<std::uint32_t>(seed));
  RHIZOME_ASSIGN_OR_RETURN(
      minibatch.features,
      FeatureRows::Own(DataType::kFloat32, minibatch.rows.size(), static_cast<std::size_t>(dim)));
  for (float& value : minibatch.features.own_floats())
    value = static_cast<float>(random() >> 8) * 0x1p-24F;
  return Status::Ok();
}

/// Gives each edge a relation at random, regardless of its type.
void DrawRelations(std::uint32_t relations, std::uint64_t seed, Minibatch& minibatch) {
  std::mt19937 random(static_cast<std::uint32_t>(seed));
  minibatch.types.resize(minibatch.neighbors.size());
  for (TypeId& type : minibatch.types) type = static_cast<TypeId>(random() % relations);
}

Result<std::vector<Minibatch>> SampleAll(const GraphSnapshot& graph, const Model& model,
                                         const StepBenchOptions& options,
                                         const JobControl& control) {
  MinibatchSamplerOptions sampling{
      .sampler = {.fanouts = options.fanouts, .seed = options.seed, .threads = options.threads}};
  model.FitSampling(sampling);
  RHIZOME_ASSIGN_OR_RETURN(const MinibatchSampler sampler,
                           MinibatchSampler::Create(graph, sampling, nullptr));
  std::vector<Minibatch> minibatches;
  for (std::size_t i = 0; i < options.seeds.size(); ++i) {
    RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
    RHIZOME_ASSIGN_OR_RETURN(Minibatch minibatch,
                             sampler.Sample({.tag = i, .key = i, .vertices = options.seeds[i]}));
    RHIZOME_RETURN_IF_ERROR(FillFeatures(options.dim, options.seed + i, minibatch));
    if (model.typed()) DrawRelations(options.relations, options.seed + i, minibatch);
    minibatches.push_back(std::move(minibatch));
  }
  return minibatches;
}

/// Resets the peak memory of the process to its current memory, and returns the old peak. The peak
/// is unchanged if the kernel does not permit a reset.
std::uint64_t RestartPeak() {
  const std::uint64_t peak = PeakResidentBytes();
  std::ofstream("/proc/self/clear_refs") << "5";
  return peak;
}

/// Returns the number of edges over all layers.
double EdgesOf(const Minibatch& minibatch) {
  double edges = 0;
  for (std::size_t hop = 1; hop + 1 < minibatch.hop_offsets.size(); ++hop) {
    edges += minibatch.offsets[minibatch.hop_offsets[hop]];
  }
  return edges;
}

Result<StepBenchReport> TrainAndTime(const GraphSnapshot& graph, const StepBenchOptions& options,
                                     const JobControl& control) {
  RHIZOME_RETURN_IF_ERROR(CheckSimdSetting());
  if (options.seeds.empty()) return Fail(Status::InvalidArgument("no minibatch to train on"));
  SetTorchThreads(options.threads);
  ModelShape shape{.spec = options.model, .inputs = options.dim, .classes = options.classes};
  shape.spec.layers = static_cast<std::uint32_t>(options.fanouts.size());
  RHIZOME_ASSIGN_OR_RETURN(const ModelInfo info, FindModelInfo(shape.spec.kind));
  for (std::uint32_t r = 0; info.typed && r < options.relations; ++r)
    shape.relations.push_back(fmt::format("{}", r));
  RHIZOME_ASSIGN_OR_RETURN(Model model, Model::Create(shape, options.seed));
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<Minibatch> minibatches,
                           SampleAll(graph, model, options, control));
  Labels labels;
  labels.classes = options.classes;
  labels.label.resize(graph.vertex_count());
  std::mt19937 random(static_cast<std::uint32_t>(options.seed));
  for (std::int32_t& label : labels.label) {
    label = static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(options.classes));
  }
  const LearningOptions learning{.seed = options.seed};
  Learner learner(model, labels, {.learning = learning});
  StepBenchReport report;
  report.simd = SimdPathName(CurrentSimdPath());
  const std::uint64_t peak_before = RestartPeak();
  const std::uint64_t before = ResidentBytes();
  std::vector<double> seconds, cpu_seconds;
  for (std::uint32_t round = 0; round <= options.rounds; ++round) {
    for (const Minibatch& minibatch : minibatches) {
      RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
      const WorkClock clock;
      const BatchOutcome outcome = learner.Learn(minibatch);
      if (round == 0) continue;  // the first round warms caches and allocator
      seconds.push_back(clock.seconds());
      cpu_seconds.push_back(clock.cpu_seconds());
      report.last_loss = outcome.loss_sum / static_cast<double>(outcome.seeds);
    }
  }
  const std::uint64_t peak = PeakResidentBytes();
  report.step_memory = peak - std::min(before, peak);
  report.peak_memory = std::max(peak, peak_before);
  report.step_seconds = Median(seconds);
  report.step_cpu_seconds = Median(cpu_seconds);
  for (const Minibatch& minibatch : minibatches) {
    report.rows += static_cast<double>(minibatch.rows.size());
    report.edges += EdgesOf(minibatch);
  }
  report.rows /= static_cast<double>(minibatches.size());
  report.edges /= static_cast<double>(minibatches.size());
  return report;
}

}  // namespace

Result<StepBenchReport> MeasureStep(const GraphSnapshot& graph, const StepBenchOptions& options,
                                    const JobControl& control) {
  return GuardedTorch([&] { return TrainAndTime(graph, options, control); });
}

}  // namespace rhizome
