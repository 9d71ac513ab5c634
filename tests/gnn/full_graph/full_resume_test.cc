#include <gmock/gmock.h>

#include <fstream>
#include <map>
#include <string>
#include <string_view>

#include "cache/job/safetensors.h"
#include "gnn/full_graph/full_testing.h"
#include "rhizome/sampler.h"
#include "rhizome/train_options.h"

// Tests that full-graph training has the same bits for any memory limit, number of threads and
// spill rule, also if it is stopped inside a pass and resumed, or resumed after a spilled chunk was
// damaged.

namespace rhizome {
namespace {

using testing::DeepTraining;
using testing::LargerGraph;
using testing::LeastMemory;
using testing::PlannedArrays;
using testing::TempDir;
using testing::TestSeed;
using testing::Train;
using testing::WriteStore;

TEST(FullGraphTest, BitsDependNeitherOnMemoryNorOnThreads) {
  const TempDir folder;
  ASSERT_OK(WriteStore(folder / "s", LargerGraph(TestSeed())));
  TrainOptions options = DeepTraining(folder / "s", folder / "a.safetensors");
  const Result<TrainReport> reference = Train(options);
  ASSERT_OK(reference);
  EXPECT_EQ(reference->full_graph->planned_bytes, 0u);  // everything remains in memory
  const auto weights = LoadSafetensors(FileSystem::Posix(), options.job.out);
  ASSERT_OK(weights);
  const std::uint64_t least = LeastMemory(options, /*threads=*/4);
  const std::uint64_t arrays = PlannedArrays(options);
  options.job.out = folder / "b.safetensors";
  for (const std::uint64_t share : {1, 2, 4, 8, 0}) {
    options.resources.threads =
        share == 0 ? 3 : static_cast<std::uint32_t>(std::min<std::uint64_t>(share, 4));
    options.resources.memory_bytes = share == 0 ? least : least + arrays / share;
    options.full_graph()->spill = share == 2 ? SpillRule::kNone : SpillRule::kAuto;
    if (share == 0) options.resources.threads = 1;
    const Result<TrainReport> report = Train(options);
    ASSERT_OK(report);
    const auto again = LoadSafetensors(FileSystem::Posix(), options.job.out);
    ASSERT_OK(again);
    EXPECT_EQ(again->hash, weights->hash) << "arrays / " << share;
    for (std::size_t e = 0; e < report->epochs.size(); ++e) {
      EXPECT_EQ(report->epochs[e].loss, reference->epochs[e].loss);
      EXPECT_EQ(report->epochs[e].valid_loss, reference->epochs[e].valid_loss);
      EXPECT_EQ(report->epochs[e].spill_bytes_read + report->epochs[e].spill_bytes_written,
                report->full_graph->planned_bytes)
          << "arrays / " << share;
    }
    EXPECT_EQ(report->test_accuracy, reference->test_accuracy);
    EXPECT_LE(
        report->peak_memory_bytes,
        report->base_memory_bytes + options.resources.memory_bytes + (std::uint64_t{64} << 20));
  }
}

/// Returns a training whose scoring passes have many chunks.
TrainOptions ScoredTraining(const Path& store, const Path& out) {
  TrainOptions options = DeepTraining(store, out);
  options.model = {.kind = "gcn", .layers = 2, .hidden = 256, .dropout = 0.3};
  options.learning.epochs = 1;
  options.learning.train_metrics = true;
  options.resources.memory_bytes = LeastMemory(options, options.resources.threads);
  return options;
}

/// Trains in runs that are each stopped after three chunks of the pass named `pass`. No run could
/// finish that pass from its first chunk, so the training only ends if runs resume inside the pass.
/// `stops` receives the number of stops for each phase. Errors: kBusy, a phase does not end; any of
/// training.
Result<TrainReport> TrainStoppedInside(std::string_view pass, TrainOptions options,
                                       std::map<std::string, int>& stops) {
  options.job.checkpoint_every = 1;
  options.full_graph()->checkpoint_seconds = 0;  // write a checkpoint after every chunk
  while (true) {
    JobControl* stopped = nullptr;
    int seen = 0;
    JobControl control([&](const JobControl::Progress& progress) {
      if (progress.detail != pass || ++seen < 4) return;
      if (seen == 4) ++stops[std::string(progress.phase)];
      stopped->Cancel();
    });
    stopped = &control;
    Result<TrainReport> report = rhizome_gnn_entry_v1()->Train(options, control);
    options.job.resume = true;
    if (report || report.error().code() != StatusCode::kInterrupted) return report;
    for (const auto& [phase, times] : stops)
      if (times > 20) return Fail(Status::Busy(phase + " does not end"));
  }
}

// Training-set scores are computed during the learning pass, validation scores in a separate pass,
// and the scores of all sets at the end.
TEST(FullGraphTest, AJobThatIsAlwaysStoppedInsideAPassOfScoresEnds) {
  const TempDir folder;
  ASSERT_OK(WriteStore(folder / "s", LargerGraph(TestSeed())));
  TrainOptions options = ScoredTraining(folder / "s", folder / "a.safetensors");
  const Result<TrainReport> reference = Train(options);
  ASSERT_OK(reference);
  const auto weights = LoadSafetensors(FileSystem::Posix(), options.job.out);
  const EpochReport& wanted = reference->epochs.at(0);
  ASSERT_FALSE(wanted.train_metrics.empty());
  for (const char* const pass : {"forward 2, loss", "forward 2, scores"}) {
    const bool learns = std::string_view(pass) == "forward 2, loss";
    options.job.out = folder / (learns ? "b.safetensors" : "c.safetensors");
    std::map<std::string, int> stops;
    const Result<TrainReport> report = TrainStoppedInside(pass, options, stops);
    ASSERT_OK(report);
    const EpochReport& epoch = report->epochs.at(0);
    EXPECT_EQ(epoch.loss, wanted.loss);
    EXPECT_EQ(epoch.valid_loss, wanted.valid_loss);
    EXPECT_EQ(epoch.valid_accuracy, wanted.valid_accuracy);
    EXPECT_EQ(report->test_accuracy, reference->test_accuracy);
    // Training-set scores outlive the step that computes them.
    ASSERT_EQ(epoch.train_metrics.size(), wanted.train_metrics.size());
    for (std::size_t i = 0; i < epoch.train_metrics.size(); ++i)
      EXPECT_EQ(epoch.train_metrics[i].value, wanted.train_metrics[i].value);
    EXPECT_EQ(stops.size(), learns ? 1u : 2u);
    for (const auto& [phase, times] : stops) EXPECT_GE(times, 3) << phase;
    EXPECT_EQ(LoadSafetensors(FileSystem::Posix(), options.job.out)->hash, weights->hash);
  }
}

TEST(FullGraphTest, ADamagedChunkIsNamedAndAResumedRunComputesItAgain) {
  const TempDir folder;
  ASSERT_OK(WriteStore(folder / "s", LargerGraph(6)));
  TrainOptions options = DeepTraining(folder / "s", folder / "a.safetensors");
  ASSERT_OK(Train(options));
  const auto weights = LoadSafetensors(FileSystem::Posix(), options.job.out);
  options.job.out = folder / "b.safetensors";
  options.full_graph()->spill = SpillRule::kNone;
  options.job.checkpoint_every = 1;
  bool damaged = false;
  std::uint64_t seen = 0;
  const JobControl control([&](const JobControl::Progress& progress) {
    if (progress.phase != "epoch 2" || ++seen < 12 || damaged) return;
    for (const auto& file :
         std::filesystem::directory_iterator(folder / "s" / "scratch" / "train" / "arrays")) {
      if (!file.path().filename().string().starts_with("sums-")) continue;
      std::fstream stream(file.path(), std::ios::in | std::ios::out | std::ios::binary);
      stream.seekp(100);
      stream.put(static_cast<char>(0x5a));
      damaged = true;
    }
  });
  const Result<TrainReport> stopped = rhizome_gnn_entry_v1()->Train(options, control);
  ASSERT_TRUE(damaged);
  ASSERT_FALSE(stopped.has_value());
  EXPECT_EQ(stopped.error().code(), StatusCode::kCorruption);
  EXPECT_THAT(stopped.error().message(), ::testing::HasSubstr("arrays/sums-"));
  options.job.resume = true;
  ASSERT_OK(Train(options));
  EXPECT_EQ(LoadSafetensors(FileSystem::Posix(), options.job.out)->hash, weights->hash);
}

}  // namespace
}  // namespace rhizome
