#include <gmock/gmock.h>

#include <fstream>

#include "gnn/full/full_testing.h"
#include "rhizome/cache/safetensors.h"

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
  EXPECT_EQ(reference->full_graph->planned_bytes, 0u);  // all stays
  const auto weights = LoadSafetensors(FileSystem::Posix(), options.out);
  ASSERT_OK(weights);
  const std::uint64_t least = LeastMemory(options, /*threads=*/4);
  const std::uint64_t arrays = PlannedArrays(options);
  options.out = folder / "b.safetensors";
  for (const std::uint64_t share : {1, 2, 4, 8, 0}) {
    options.threads =
        share == 0 ? 3 : static_cast<std::uint32_t>(std::min<std::uint64_t>(share, 4));
    options.memory_bytes = share == 0 ? least : least + arrays / share;
    options.spill = share == 2 ? SpillRule::kNone : SpillRule::kAuto;
    if (share == 0) options.threads = 1;
    const Result<TrainReport> report = Train(options);
    ASSERT_OK(report);
    const auto again = LoadSafetensors(FileSystem::Posix(), options.out);
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
    EXPECT_LE(report->peak_memory_bytes,
              report->base_memory_bytes + options.memory_bytes + (std::uint64_t{64} << 20));
  }
}

TEST(FullGraphTest, ADamagedChunkIsNamedAndAResumedRunComputesItAgain) {
  const TempDir folder;
  ASSERT_OK(WriteStore(folder / "s", LargerGraph(6)));
  TrainOptions options = DeepTraining(folder / "s", folder / "a.safetensors");
  ASSERT_OK(Train(options));
  const auto weights = LoadSafetensors(FileSystem::Posix(), options.out);
  options.out = folder / "b.safetensors";
  options.spill = SpillRule::kNone;
  options.checkpoint_every = 1;
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
  options.resume = true;
  ASSERT_OK(Train(options));
  EXPECT_EQ(LoadSafetensors(FileSystem::Posix(), options.out)->hash, weights->hash);
}

}  // namespace
}  // namespace rhizome
