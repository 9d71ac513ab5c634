#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "cache/job/safetensors.h"
#include "gnn/full_graph/full_testing.h"
#include "rhizome/sampler.h"
#include "rhizome/train_options.h"

// Tests of the memory plan of full-graph training: a training follows the plan that was printed for
// it, a limit that is too small is refused with the limit that suffices, a plan estimates the time
// of each pass, and recomputed sums have the same bits as stored ones.

namespace rhizome {
namespace {

using testing::FullTraining;
using testing::LargerGraph;
using testing::LeastMemory;
using testing::PlannedArrays;
using testing::PlanOf;
using testing::TempDir;
using testing::TestSeed;
using testing::Train;
using testing::WriteStore;

void ExpectSamePlan(const FullGraphReport& plan, const FullGraphReport& trained) {
  EXPECT_EQ(plan.planned_bytes, trained.planned_bytes);
  EXPECT_EQ(plan.planned_read_bytes, trained.planned_read_bytes);
  EXPECT_EQ(plan.feature_bytes, trained.feature_bytes);
  EXPECT_EQ(plan.lower_bound_bytes, trained.lower_bound_bytes);
  EXPECT_EQ(plan.memory_bytes, trained.memory_bytes);
  EXPECT_EQ(plan.disk_bytes, trained.disk_bytes);
  EXPECT_EQ(plan.chunk_rows, trained.chunk_rows);
  EXPECT_EQ(plan.spill, trained.spill);
  EXPECT_EQ(plan.measure_spill, trained.measure_spill);
  ASSERT_EQ(plan.passes.size(), trained.passes.size());
  for (std::size_t p = 0; p < plan.passes.size(); ++p) {
    EXPECT_EQ(plan.passes[p].name, trained.passes[p].name);
    EXPECT_EQ(plan.passes[p].blocks, trained.passes[p].blocks);
    EXPECT_EQ(plan.passes[p].sums, trained.passes[p].sums);
  }
}

// A plan does not depend on what else the process or its allocator holds: at every memory limit a
// training moves exactly the bytes that the printed plan says.
TEST(FullGraphTest, ATrainingHasThePlanThatWasPrinted) {
  const TempDir folder;
  ASSERT_OK(WriteStore(folder / "s", LargerGraph(TestSeed())));
  TrainOptions options = FullTraining(folder / "s", {.kind = "gcn",
                                                     .layers = 3,
                                                     .hidden = 48,
                                                     .dropout = 0.3,
                                                     .options = {{"residual", "true"}}});
  const std::uint64_t least = LeastMemory(options, options.resources.threads);
  const std::uint64_t arrays = PlannedArrays(options);
  std::uint64_t moved = 0;
  for (std::uint64_t sixth = 0; sixth <= 6; ++sixth) {
    SCOPED_TRACE(sixth);
    options.resources.memory_bytes = least + arrays * sixth / 6;
    const Result<FullGraphReport> plan = PlanOf(options);
    ASSERT_OK(plan);
    moved += plan->planned_bytes;
    const std::vector<char> held((sixth % 3) << 24, 'x');
    if (sixth % 2 == 1) {
      const Result<FullGraphReport> again = PlanOf(options);
      ASSERT_OK(again);
      ExpectSamePlan(*plan, *again);
      continue;
    }
    const Result<TrainReport> trained = Train(options);
    ASSERT_OK(trained);
    ExpectSamePlan(*plan, *trained->full_graph);
    const EpochReport& epoch = trained->epochs.front();
    EXPECT_EQ(epoch.spill_bytes_read + epoch.spill_bytes_written, plan->planned_bytes);
    EXPECT_EQ(epoch.feature_bytes_read, plan->feature_bytes);
  }
  EXPECT_GT(moved, 0u);
  options.resources.memory_bytes = least - (std::uint64_t{1} << 20);
  EXPECT_EQ(PlanOf(options).error().code(), StatusCode::kOutOfMemory);
}

// With a small graph, libtorch and the open store take most of the memory, and the error says so.
// The sufficient limit in the error message works for every spill rule, and it does not depend on
// the limit that was refused.
TEST(FullGraphTest, ALimitThatIsTooSmallSaysWhatTakesTheMemory) {
  const TempDir folder;
  ASSERT_OK(WriteStore(folder / "s", {.vertices = 2048}));
  TrainOptions options = FullTraining(folder / "s", {.kind = "gcn", .layers = 3, .hidden = 48});
  options.resources.memory_bytes = std::uint64_t{64} << 20;
  const Result<FullGraphReport> plan = PlanOf(options);
  EXPECT_STATUS(plan, kOutOfMemory);
  EXPECT_THAT(plan.error().message(),
              ::testing::HasSubstr("82.0 MiB for libtorch and an open store"));
  std::uint64_t min_of_rules = 0, max_of_rules = 0;
  for (const SpillRule rule : {SpillRule::kAuto, SpillRule::kNone, SpillRule::kLru,
                               SpillRule::kBelady, SpillRule::kDp, SpillRule::kDpTensor}) {
    SCOPED_TRACE(static_cast<int>(rule));
    options.full_graph()->spill = rule;
    for (const std::uint64_t mib : {1, 80, 82}) {
      options.resources.memory_bytes = mib << 20;
      const Result<FullGraphReport> refused = PlanOf(options);
      EXPECT_STATUS(refused, kOutOfMemory);
      std::smatch found;
      const std::string message = refused.error().message();
      ASSERT_TRUE(std::regex_search(message, found, std::regex("needs at least (\\d+) MiB")));
      options.resources.memory_bytes = std::stoull(found[1]) << 20;
      EXPECT_OK(PlanOf(options));
    }
    EXPECT_OK(Train(options));
    min_of_rules = min_of_rules == 0 ? options.resources.memory_bytes
                                     : std::min(min_of_rules, options.resources.memory_bytes);
    max_of_rules = std::max(max_of_rules, options.resources.memory_bytes);
  }
  EXPECT_LT(min_of_rules, max_of_rules);  // dp-tensor keeps whole arrays in memory
}

TEST(FullGraphTest, APlanGuessesTheTimeOfEachPassAndLeavesNothingBehind) {
  const TempDir folder;
  ASSERT_OK(WriteStore(folder / "s", LargerGraph(TestSeed())));
  TrainOptions options = FullTraining(folder / "s", {.kind = "gat", .layers = 2});
  for (const ModelSpec& model :
       {ModelSpec{.kind = "gat", .layers = 2, .hidden = 32},
        ModelSpec{.kind = "gatv2", .layers = 2, .hidden = 32},
        ModelSpec{.kind = "sage", .layers = 2, .hidden = 32, .options = {{"aggregator", "max"}}},
        ModelSpec{.kind = "gin", .layers = 3, .hidden = 32},
        ModelSpec{.kind = "gcn", .layers = 3, .hidden = 32, .options = {{"norm", "batch"}}}}) {
    SCOPED_TRACE(model.kind);
    options.model = model;
    options.resources.memory_bytes = LeastMemory(options, options.resources.threads);
    const Result<FullGraphReport> plan = PlanOf(options);
    ASSERT_OK(plan);
    double seconds = 0;
    for (const FullGraphPass& pass : plan->passes) {
      EXPECT_GT(pass.compute_seconds, 0) << pass.name;
      std::uint64_t bytes = pass.feature_bytes;
      for (const auto* const moved : {&pass.reads, &pass.writes})
        for (const FullGraphPass::Moved& one : *moved) bytes += one.bytes;
      EXPECT_EQ(pass.disk_seconds > 0, bytes > 0) << pass.name;
      seconds += std::max(pass.compute_seconds, pass.disk_seconds);
    }
    EXPECT_NEAR(plan->seconds, seconds, 1e-9 * seconds);
    EXPECT_GT(plan->disk_read_rate, 0);
    EXPECT_GT(plan->disk_write_rate, 0);
    EXPECT_FALSE(std::filesystem::exists(folder / "s" / "scratch" / "train-trial"));
  }
}

TEST(FullGraphTest, AStoreInWhichNothingCanBeWrittenIsPlannedWithoutItsDisk) {
  const TempDir folder;
  ASSERT_OK(WriteStore(folder / "s", LargerGraph(TestSeed())));
  TrainOptions options = FullTraining(folder / "s", {.kind = "gcn", .layers = 2, .hidden = 32});
  const Result<FullGraphReport> usual = PlanOf(options);
  ASSERT_OK(usual);
  EXPECT_EQ(usual->disk_problem, "");
  options.job.scratch = "/proc/rhizome";  // no user can create a folder there
  const Result<FullGraphReport> plan = PlanOf(options);
  ASSERT_OK(plan);
  ExpectSamePlan(*plan, *usual);
  EXPECT_THAT(plan->disk_problem, ::testing::HasSubstr("/proc/rhizome"));
  EXPECT_EQ(plan->disk_read_rate, 0);
  EXPECT_GT(plan->seconds, 0);
}

TEST(FullGraphTest, SumsThatAreGatheredAgainGiveTheSameBits) {
  const TempDir folder;
  ASSERT_OK(WriteStore(folder / "s", LargerGraph(TestSeed())));
  TrainOptions options =
      FullTraining(folder / "s", {.kind = "gcn", .layers = 4, .hidden = 32, .dropout = 0.2});
  std::vector<Hash128> models;
  for (const FullSums sums : {FullSums::kStore, FullSums::kRecompute}) {
    options.full_graph()->sums = sums;
    options.job.out = folder / "m.safetensors";
    const Result<TrainReport> report = Train(options);
    ASSERT_OK(report);
    std::size_t again = 0;
    for (const FullGraphPass& pass : report->full_graph->passes) again += pass.sums == "recomputed";
    EXPECT_EQ(again, sums == FullSums::kRecompute ? 2u : 0u);
    const auto model = LoadSafetensors(FileSystem::Posix(), options.job.out);
    ASSERT_OK(model);
    models.push_back(model->hash);
  }
  EXPECT_EQ(models[0], models[1]);
}

}  // namespace
}  // namespace rhizome
