#include <gmock/gmock.h>

#include "cache/job/safetensors.h"
#include "gnn/full_graph/full_testing.h"
#include "rhizome/sampler.h"
#include "rhizome/train_options.h"

namespace rhizome {
namespace {

using testing::DeepTraining;
using testing::LargerGraph;
using testing::LeastMemory;
using testing::PlantedOptions;
using testing::TempDir;
using testing::TestSeed;
using testing::Train;
using testing::WriteStore;

struct NamedModel {
  std::string name;
  ModelSpec model;
};
void PrintTo(const NamedModel& model, std::ostream* out) { *out << model.name; }

class FullGraphResumeTest : public ::testing::TestWithParam<NamedModel> {};

/// Returns a model for each kind of aggregation: sums, maxima, maxima of transformed rows,
/// attention.
std::vector<NamedModel> ResumedNetworks() {
  return {{"Gcn", DeepTraining("", "").model},
          {"SageMax",
           {.kind = "sage",
            .layers = 3,
            .hidden = 48,
            .dropout = 0.3,
            .options = {{"aggregator", "max"}}}},
          {"SagePool",
           {.kind = "sage",
            .layers = 2,
            .hidden = 48,
            .dropout = 0.3,
            .options = {{"aggregator", "pool"}, {"norm", "batch"}}}},
          {"Gat",
           {.kind = "gat",
            .layers = 3,
            .hidden = 48,
            .dropout = 0.3,
            .options = {{"heads", "3"}, {"attention-dropout", "0.3"}}}},
          {"GatV2",
           {.kind = "gatv2",
            .layers = 2,
            .hidden = 24,
            .dropout = 0.3,
            .options = {{"heads", "3"}, {"attention-dropout", "0.3"}}}}};
}

INSTANTIATE_TEST_SUITE_P(Each, FullGraphResumeTest, ::testing::ValuesIn(ResumedNetworks()),
                         [](const auto& param) { return param.param.name; });

TEST_P(FullGraphResumeTest, AResumedTrainingEndsWithTheSameWeights) {
  const TempDir folder;
  PlantedOptions graph = LargerGraph(TestSeed());
  graph.vertices = 4000;
  ASSERT_OK(WriteStore(folder / "s", graph));
  TrainOptions options = DeepTraining(folder / "s", folder / "a.safetensors");
  options.model = GetParam().model;
  options.learning.epochs = 2;
  const Result<TrainReport> reference = Train(options);
  ASSERT_OK(reference);
  const auto weights = LoadSafetensors(FileSystem::Posix(), options.job.out);
  options.job.out = folder / "b.safetensors";
  options.job.checkpoint_every = 1;
  options.full_graph()->checkpoint_seconds = 0;  // write a checkpoint after every chunk
  options.full_graph()->spill = SpillRule::kNone;
  // Each run is stopped before it could finish an epoch from its first pass, so the training can
  // only end if runs resume inside an epoch. Every other run has a memory limit, and hence
  // different blocks.
  const std::uint64_t least = LeastMemory(options, /*threads=*/3);
  std::uint64_t reports = 0;
  for (const std::uint64_t stop = 15;;) {
    options.resources.memory_bytes = reports % 2 == 0 ? least : 0;
    JobControl* stopped = nullptr;
    std::uint64_t seen = 0;
    JobControl control([&](const JobControl::Progress&) {
      if (++seen == stop) stopped->Cancel();
    });
    stopped = &control;
    const Result<TrainReport> report = rhizome_gnn_entry_v1()->Train(options, control);
    options.job.resume = true;
    options.resources.threads = options.resources.threads % 3 + 1;
    if (!report) {
      ASSERT_EQ(report.error().code(), StatusCode::kInterrupted);
      ++reports;
      ASSERT_LT(reports, 200u);
      continue;
    }
    for (std::size_t e = 0; e < report->epochs.size(); ++e)
      EXPECT_EQ(report->epochs[e].loss, reference->epochs[e].loss);
    break;
  }
  EXPECT_GE(reports, 4u);
  const auto again = LoadSafetensors(FileSystem::Posix(), options.job.out);
  EXPECT_EQ(again->hash, weights->hash);
}

}  // namespace
}  // namespace rhizome
