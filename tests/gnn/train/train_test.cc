#include <c10/util/Half.h>

#include <limits>

#include "cache/feed/epoch_plan.h"
#include "cache/job/memory_plan.h"
#include "cache/job/safetensors.h"
#include "gnn/gnn_testing.h"
#include "rhizome/ingest.h"
#include "rhizome/policy.h"
#include "rhizome/train_options.h"

// Tests of minibatch training: what it learns does not depend on cache policy, I/O backend, memory,
// or where neighbour lists are; bad options, labels and features are refused. MemoryPlanTest checks
// how memory is divided, EpochPlanTest the order of minibatches.

namespace rhizome {
namespace {

using testing::MakePlanted;
using testing::PlantedGraph;
using testing::PlantedOptions;
using testing::SmallTraining;
using testing::TempDir;
using testing::WriteStore;

Result<TrainReport> TrainOfTrain(const TrainOptions& options) {
  const JobControl control;
  return rhizome_gnn_entry_v1()->Train(options, control);
}

std::vector<double> Losses(const TrainReport& report) {
  std::vector<double> losses;
  for (const EpochReport& epoch : report.epochs) losses.push_back(epoch.loss);
  return losses;
}

bool IsEmptyOrAbsent(const std::filesystem::path& folder) {
  return !std::filesystem::exists(folder) || std::filesystem::is_empty(folder);
}

TEST(TrainTest, LearnsAPlantedPartitionFarBetterThanWithoutEdges) {
  const TempDir folder;
  ASSERT_OK(WriteStore(folder / "s", {}));
  for (const char* const kind : {"sage", "gcn"}) {
    TrainOptions options = SmallTraining(folder / "s");
    options.model.kind = kind;
    options.model.hidden = 32;
    options.minibatch()->fanouts = {10, 10};
    options.learning.epochs = 25;
    const Result<TrainReport> with_edges = TrainOfTrain(options);
    ASSERT_OK(with_edges);
    options.model.no_edges = true;
    const Result<TrainReport> without = TrainOfTrain(options);
    ASSERT_OK(without);
    EXPECT_GE(*with_edges->test_accuracy, 0.85);
    EXPECT_LE(*without->test_accuracy, *with_edges->test_accuracy - 0.2);
    EXPECT_LE(with_edges->majority_accuracy, 0.3);
    EXPECT_LT(with_edges->epochs.back().loss, with_edges->epochs.front().loss);
    EXPECT_TRUE(IsEmptyOrAbsent(folder / "s" / "scratch"));
  }
}

// The cache policy, I/O backend and memory through which rows are read do not change what is
// learnt.
TEST(TrainTest, LossesAndWeightsDoNotDependOnPolicyMakerOrMemory) {
  const TempDir folder;
  ASSERT_OK(WriteStore(folder / "s", {}));
  TrainOptions options = SmallTraining(folder / "s");
  options.job.out = folder / "reference.safetensors";
  const Result<TrainReport> reference = TrainOfTrain(options);
  ASSERT_OK(reference);
  const auto weights = LoadSafetensors(FileSystem::Posix(), options.job.out);
  ASSERT_OK(weights);

  struct Variant {
    PolicyKind policy;
    IoMaker maker;
    std::uint64_t cache_bytes;
    std::uint32_t superbatch;
    Overlap overlap = Overlap::kAll;
  };
  const std::vector<Variant> variants = {
      {PolicyKind::kBelady, IoMaker::kPread, 64 * 30, 3},
      {PolicyKind::kBelady, IoMaker::kPread, 64 * 100, 2, Overlap::kChangeset},
      {PolicyKind::kLru, IoMaker::kPread, 64 * 100, 3, Overlap::kChangeset},
      {PolicyKind::kNone, IoMaker::kPread, 0, 1000, Overlap::kChangeset},
      {PolicyKind::kLru, IoMaker::kPread, 64 * 100, 1},
      {PolicyKind::kFifo, IoMaker::kPread, 64 * 100, 7},
      {PolicyKind::kStatic, IoMaker::kPread, 64 * 100, 5},
      {PolicyKind::kMatch, IoMaker::kPread, 64 * 100, 4},
      {PolicyKind::kNone, IoMaker::kPread, 0, 2},
      {PolicyKind::kBelady, IoMaker::kUring, 64 * 100, 4},
      {PolicyKind::kBelady, IoMaker::kAuto, 1 << 20, 1000},
  };
  for (const Variant& variant : variants) {
    options.minibatch()->feed.cache = variant.policy;
    options.resources.io = variant.maker;
    options.minibatch()->feed.cache_bytes = variant.cache_bytes;
    options.minibatch()->feed.superbatch = variant.superbatch;
    options.minibatch()->feed.overlap = variant.overlap;
    options.job.out = folder / "variant.safetensors";
    const Result<TrainReport> report = TrainOfTrain(options);
    if (!report && report.error().code() == StatusCode::kUnsupported) continue;  // no io_uring
    ASSERT_OK(report);
    EXPECT_EQ(Losses(*report), Losses(*reference)) << PolicyName(variant.policy);
    EXPECT_EQ(report->test_accuracy, reference->test_accuracy);
    const auto again = LoadSafetensors(FileSystem::Posix(), options.job.out);
    ASSERT_OK(again);
    EXPECT_EQ(again->hash, weights->hash) << PolicyName(variant.policy);
    EXPECT_EQ(report->superbatch, variant.superbatch);
  }
}

void ExpectListReads(const ListReadsReport& lists, std::uint64_t cache_bytes) {
  EXPECT_GT(lists.lists, 0u);
  EXPECT_GE(lists.entries, lists.lists);
  EXPECT_LE(lists.cache_bytes, cache_bytes);
  EXPECT_EQ(lists.cached_lists > 0, cache_bytes > 0);
  const bool all = cache_bytes == 1 << 20;  // every list fits
  EXPECT_EQ(lists.hits == lists.lists, all);
  EXPECT_EQ(lists.reads > 0, !all);
  EXPECT_EQ(lists.bytes_read > 0, !all);
  EXPECT_EQ(lists.hits > 0, cache_bytes > 0);
}

// Neither the place of neighbour lists nor when their cache is in memory changes what is learnt.
TEST(TrainTest, LossesAndWeightsDoNotDependOnWhereListsAre) {
  const TempDir folder;
  for (const TopologyCodec codec : {TopologyCodec::kNone, TopologyCodec::kEliasFano}) {
    const Path store = folder / (codec == TopologyCodec::kNone ? "plain" : "compressed");
    PlantedOptions planted;
    planted.codec = codec;
    ASSERT_OK(WriteStore(store, planted));
    TrainOptions options = SmallTraining(store);
    options.learning.epochs = 2;
    options.model.kind = codec == TopologyCodec::kNone ? "sage" : "gcn";
    options.job.out = folder / "reference.safetensors";
    const Result<TrainReport> reference = TrainOfTrain(options);
    ASSERT_OK(reference);
    EXPECT_FALSE(reference->list_reads.has_value());
    const auto weights = LoadSafetensors(FileSystem::Posix(), options.job.out);
    ASSERT_OK(weights);
    options.data.topology = TopologyPlace::kDirect;
    options.resources.io = IoMaker::kPread;
    options.job.out = folder / "variant.safetensors";
    options.minibatch()->feed.superbatch = 2;
    for (const Overlap overlap : {Overlap::kAll, Overlap::kChangeset}) {
      options.minibatch()->feed.overlap = overlap;
      for (const std::uint64_t cache_bytes : {0, 24 << 10, 1 << 20}) {
        SCOPED_TRACE(cache_bytes);
        options.minibatch()->feed.neighbor_cache_bytes = cache_bytes;
        const Result<TrainReport> report = TrainOfTrain(options);
        ASSERT_OK(report);
        EXPECT_EQ(Losses(*report), Losses(*reference));
        EXPECT_EQ(report->test_accuracy, reference->test_accuracy);
        const auto again = LoadSafetensors(FileSystem::Posix(), options.job.out);
        ASSERT_OK(again);
        EXPECT_EQ(again->hash, weights->hash);
        ASSERT_TRUE(report->list_reads.has_value());
        ExpectListReads(*report->list_reads, cache_bytes);
        // The neighbour cache is loaded again for each superbatch if it takes turns with the
        // feature cache.
        const std::uint64_t superbatches = (report->minibatches * options.learning.epochs + 1) / 2;
        const bool loads = overlap == Overlap::kChangeset && cache_bytes > 0;
        EXPECT_GE(report->list_reads->cache_loads, loads ? superbatches : 0);
        EXPECT_LE(report->list_reads->cache_loads, loads ? superbatches + 1 : 0);
      }
    }
  }
}

// float16 rows have half the size but hold the same numbers, and sums are computed in float32.
TEST(TrainTest, Float16FeaturesTrainAsTheSameNumbersInFloat32) {
  const TempDir folder;
  PlantedOptions planted;
  PlantedGraph graph = MakePlanted(planted);
  for (float& value : graph.features) value = static_cast<float>(c10::Half(value));
  ASSERT_OK(WriteStore(folder / "wide", planted, graph));
  planted.dtype = DataType::kFloat16;
  ASSERT_OK(WriteStore(folder / "half", planted, graph));
  for (const bool normalize : {false, true}) {
    for (const char* const kind : {"sage", "gcn"}) {
      for (const std::int64_t hidden : {4, 48}) {  // multiplying before aggregating, and after
        TrainOptions options = SmallTraining(folder / "wide");
        options.model.kind = kind;
        options.model.hidden = hidden;
        options.model.normalize_features = normalize;
        options.learning.epochs = 2;
        options.minibatch()->feed.cache_bytes = 32 * 200;
        const Result<TrainReport> wide = TrainOfTrain(options);
        ASSERT_OK(wide);
        options.store = folder / "half";
        const Result<TrainReport> half = TrainOfTrain(options);
        ASSERT_OK(half);
        EXPECT_EQ(Losses(*half), Losses(*wide)) << kind << " " << hidden;
        EXPECT_EQ(half->test_accuracy, wide->test_accuracy);
        EXPECT_LT(half->epochs[0].bytes_read, wide->epochs[0].bytes_read);
      }
    }
  }
}

TEST(TrainTest, ANeighborCacheWithoutRoomForItsTableIsRefused) {
  const TempDir folder;
  ASSERT_OK(WriteStore(folder / "s", {}));
  TrainOptions options = SmallTraining(folder / "s");
  options.data.topology = TopologyPlace::kDirect;
  options.minibatch()->feed.neighbor_cache_bytes = 100;
  EXPECT_STATUS(TrainOfTrain(options), kInvalidArgument);
  // Without edges no neighbour list is read.
  options.model.no_edges = true;
  options.learning.epochs = 1;
  const Result<TrainReport> report = TrainOfTrain(options);
  ASSERT_OK(report);
  EXPECT_FALSE(report->list_reads.has_value());
}

TEST(TrainTest, TheReportAddsUp) {
  const TempDir folder;
  ASSERT_OK(WriteStore(folder / "s", {}));
  TrainOptions options = SmallTraining(folder / "s");
  options.minibatch()->feed.cache_bytes = 64 * 200;
  const Result<TrainReport> report = TrainOfTrain(options);
  ASSERT_OK(report);
  ASSERT_EQ(report->epochs.size(), options.learning.epochs);
  for (const EpochReport& epoch : report->epochs) {
    EXPECT_GT(epoch.rows_requested, 0u);
    EXPECT_GE(epoch.rows_read + epoch.pool_hits, epoch.rows_requested);
    EXPECT_GT(epoch.compute_seconds, 0);
    EXPECT_GT(epoch.sample_seconds, 0);
    EXPECT_LE(epoch.compute_seconds, epoch.seconds);
  }
  EXPECT_GE(report->best_epoch, 1u);
  EXPECT_LE(report->best_epoch, options.learning.epochs);
  EXPECT_GT(report->peak_memory_bytes, 0u);
  EXPECT_GT(report->base_memory_bytes, 0u);
  EXPECT_NE(report->maker, IoMaker::kAuto);
}

TEST(TrainTest, AnotherSeedGivesAnotherModel) {
  const TempDir folder;
  ASSERT_OK(WriteStore(folder / "s", {}));
  TrainOptions options = SmallTraining(folder / "s");
  options.learning.epochs = 1;
  const Result<TrainReport> first = TrainOfTrain(options);
  options.learning.seed = 4;
  const Result<TrainReport> second = TrainOfTrain(options);
  ASSERT_OK(first);
  ASSERT_OK(second);
  EXPECT_NE(Losses(*first), Losses(*second));
}

TEST(TrainTest, BadSettingsAreRefused) {
  const TempDir folder;
  ASSERT_OK(WriteStore(folder / "s", {}));
  const TrainOptions good = SmallTraining(folder / "s");
  TrainOptions options = good;
  options.minibatch()->fanouts = {5};
  EXPECT_STATUS(TrainOfTrain(options), kInvalidArgument);
  options = good;
  options.learning.epochs = 0;
  EXPECT_STATUS(TrainOfTrain(options), kInvalidArgument);
  options = good;
  options.learning.learning_rate = 0;
  EXPECT_STATUS(TrainOfTrain(options), kInvalidArgument);
  options = good;
  options.data.features = "label";
  EXPECT_STATUS(TrainOfTrain(options), kInvalidArgument);
  options = good;
  options.data.labels = "feat";
  EXPECT_STATUS(TrainOfTrain(options), kInvalidArgument);
  options = good;
  options.data.split = "none";
  EXPECT_STATUS(TrainOfTrain(options), kNotFound);
  options = good;
  options.store = folder / "elsewhere";
  EXPECT_STATUS(TrainOfTrain(options), kNotFound);
  options = good;
  options.job.name = "../outside";
  EXPECT_STATUS(TrainOfTrain(options), kInvalidArgument);
  options = good;
  options.job.out = folder / "no" / "such" / "folder.safetensors";
  options.learning.epochs = 1;
  EXPECT_STATUS(TrainOfTrain(options), kNotFound);
}

TEST(TrainTest, VerticesOfASetWithoutLabelAreNamed) {
  const TempDir folder;
  PlantedOptions planted;
  planted.vertices = 200;
  PlantedGraph graph = MakePlanted(planted);
  graph.labels[4] = -1;
  ASSERT_OK(WriteStore(folder / "s", planted, graph));
  const Result<TrainReport> report = TrainOfTrain(SmallTraining(folder / "s"));
  EXPECT_STATUS(report, kInvalidArgument);
  EXPECT_NE(report.error().message().find("vertex 4 "), std::string::npos)
      << report.error().message();

  graph.labels[4] = 1 << 20;
  ASSERT_OK(WriteStore(folder / "t", planted, graph));
  EXPECT_STATUS(TrainOfTrain(SmallTraining(folder / "t")), kInvalidArgument);

  graph.labels[4] = -1;
  graph.split[4] = 255;
  ASSERT_OK(WriteStore(folder / "u", planted, graph));
  ASSERT_OK(TrainOfTrain(SmallTraining(folder / "u")));
}

TEST(TrainTest, ALossThatIsNotANumberStopsTheJob) {
  const TempDir folder;
  PlantedOptions planted;
  planted.vertices = 200;
  PlantedGraph graph = MakePlanted(planted);
  for (float& value : graph.features) value = std::numeric_limits<float>::quiet_NaN();
  ASSERT_OK(WriteStore(folder / "s", planted, graph));
  const Result<TrainReport> report = TrainOfTrain(SmallTraining(folder / "s"));
  EXPECT_STATUS(report, kInvalidArgument);
  EXPECT_NE(report.error().message().find("not a number"), std::string::npos);
  EXPECT_TRUE(IsEmptyOrAbsent(folder / "s" / "scratch"));
}

/// Returns models with a batch norm over the seeds of a minibatch.
std::vector<ModelSpec> NormedNetworks() {
  return {{.kind = "gin", .hidden = 16},
          {.kind = "sage", .hidden = 16, .options = {{"norm", "batch"}}},
          {.kind = "gin", .hidden = 16, .options = {{"feed-forward", "true"}, {"norm", "batch"}}}};
}

// A single row has no variance, and the last minibatch of an epoch may have one vertex.
TEST(TrainTest, ABatchNormTakesAMinibatchOfOneVertex) {
  const TempDir folder;
  ASSERT_OK(WriteStore(folder / "s", {}));
  TrainOptions options = SmallTraining(folder / "s");
  options.learning.epochs = 20;
  options.minibatch()->batch_size = 399;  // of 400 training vertices, so that one remains
  for (const ModelSpec& model : NormedNetworks()) {
    SCOPED_TRACE(model.kind);
    options.model = model;
    const auto report = TrainOfTrain(options);
    ASSERT_OK(report);
    EXPECT_GT(report->epochs.back().loss, 0);
    EXPECT_GT(*report->test_accuracy, 0.3);  // 0.25 by chance
  }
}

// If all minibatches have one vertex, the statistics could never be learnt.
TEST(TrainTest, ABatchNormOfMinibatchesOfOneVertexIsRefused) {
  const TempDir folder;
  PlantedOptions planted;
  planted.vertices = 60;
  PlantedGraph graph = MakePlanted(planted);
  ASSERT_OK(WriteStore(folder / "s", planted, graph));
  std::fill(graph.split.begin() + 1, graph.split.end(), std::uint8_t{1});
  ASSERT_OK(WriteStore(folder / "one", planted, graph));
  TrainOptions options = SmallTraining(folder / "s");
  options.learning.epochs = 1;
  for (const ModelSpec& model : NormedNetworks()) {
    options.model = model;
    options.store = folder / "s";
    options.minibatch()->batch_size = 1;
    const auto small = TrainOfTrain(options);
    EXPECT_STATUS(small, kInvalidArgument);
    EXPECT_NE(small.error().message().find("the batch size is 1"), std::string::npos);
    options.store = folder / "one";
    options.minibatch()->batch_size = 10;
    const auto one = TrainOfTrain(options);
    EXPECT_STATUS(one, kInvalidArgument);
    EXPECT_NE(one.error().message().find("the training set has one"), std::string::npos);
  }
  // These norms also include the neighbours, or are over each row alone.
  options.store = folder / "s";
  options.minibatch()->batch_size = 1;
  for (const char* const norm : {"batch", "layer"}) {
    options.model = {
        .kind = "sage", .hidden = 16, .options = {{"norm", norm}, {"feed-forward", "true"}}};
    EXPECT_OK(TrainOfTrain(options));
  }
}

TEST(TrainTest, CancellingLeavesNothingBehind) {
  const TempDir folder;
  ASSERT_OK(WriteStore(folder / "s", {}));
  TrainOptions options = SmallTraining(folder / "s");
  options.learning.epochs = 1000;
  JobControl* self = nullptr;
  std::string detail;
  JobControl control([&](const JobControl::Progress& progress) {
    detail = progress.detail;
    if (progress.done >= 5) self->Cancel();
  });
  self = &control;
  EXPECT_STATUS(rhizome_gnn_entry_v1()->Train(options, control), kInterrupted);
  EXPECT_EQ(detail.substr(0, 5), "loss ");
  EXPECT_TRUE(IsEmptyOrAbsent(folder / "s" / "scratch"));
}

TEST(TrainTest, TwoJobsOfOneNameDoNotMix) {
  const TempDir folder;
  ASSERT_OK(WriteStore(folder / "s", {}));
  const TrainOptions options = SmallTraining(folder / "s");
  Status inner;
  const JobControl control([&](const JobControl::Progress&) {
    if (inner.ok()) inner = testing::AsStatus(TrainOfTrain(options));
  });
  ASSERT_OK(rhizome_gnn_entry_v1()->Train(options, control));
  EXPECT_STATUS(inner, kBusy);
}

TEST(TrainTest, ATooSmallMemoryLimitSaysWhatIsNeeded) {
  const TempDir folder;
  ASSERT_OK(WriteStore(folder / "s", {}));
  TrainOptions options = SmallTraining(folder / "s");
  options.resources.memory_bytes = 1 << 20;
  const Result<TrainReport> report = TrainOfTrain(options);
  EXPECT_STATUS(report, kOutOfMemory);
  EXPECT_NE(report.error().message().find("at least"), std::string::npos);
  options.resources.memory_bytes = std::uint64_t{512} << 20;
  ASSERT_OK(TrainOfTrain(options));
}

constexpr MemoryNeeds kNeeds = {.held_bytes = 100,
                                .working_bytes = 200,
                                .schedule_bytes = 20,
                                .cacheable_bytes = 5000,
                                .min_cache_bytes = 50,
                                .minibatches = 400};

TEST(MemoryPlanTest, APlanNeverExceedsItsLimit) {
  for (std::uint64_t limit = 1; limit < 9000; limit += 7) {
    const Result<JobMemoryPlan> plan = PlanMemory(limit, {}, kNeeds);
    if (!plan) {
      EXPECT_STATUS(plan, kOutOfMemory);
      EXPECT_LT(limit, 100u + 200 + 50 + 20);
      continue;
    }
    EXPECT_LE(300 + 20 * plan->superbatch + plan->cache_bytes, limit);
    EXPECT_GE(plan->superbatch, 1u);
    EXPECT_GE(plan->cache_bytes, 50u);
    EXPECT_LE(plan->cache_bytes, 5000u);
  }
}

// A pool that restarts with every minibatch saves no reads, however large it is.
TEST(MemoryPlanTest, SuperbatchesComeBeforeMoreCache) {
  const Result<JobMemoryPlan> plan = PlanMemory(300 + 8 * 20 + 50, {}, kNeeds);
  ASSERT_OK(plan);
  EXPECT_EQ(plan->superbatch, 8u);
  EXPECT_EQ(plan->cache_bytes, 50u);
}

TEST(MemoryPlanTest, ATrialChoosesAmongSuperbatchesThatFit) {
  const auto choose = [](std::uint64_t limit, const FixedMemory& fixed, std::uint32_t most,
                         std::uint32_t best) {
    const SuperbatchTrial trial{.most = most,
                                .seconds = [=](std::uint32_t superbatch, std::uint64_t cache) {
                                  EXPECT_LE(300 + 20 * superbatch + cache, limit);
                                  return superbatch <= best ? 100.0 / superbatch : 100.0;
                                }};
    return PlanMemory(limit, fixed, kNeeds, trial);
  };
  EXPECT_EQ(choose(2000, {}, 16, 6)->superbatch, 6u);
  // longer ones may be better; at most a share of the memory
  EXPECT_EQ(choose(9000, {}, 16, 16)->superbatch, 54u);
  EXPECT_EQ(choose(2000, {}, 16, 6)->cache_bytes, 2000u - 300 - 6 * 20);
  EXPECT_EQ(choose(2000, {}, 4, 1)->superbatch, 1u);  // no difference in time: the shortest
  EXPECT_EQ(choose(300 + 50 + 5 * 20, {}, 16, 4)->superbatch, 4u);
  EXPECT_EQ(choose(300 + 50 + 3 * 20, {}, 16, 4)->superbatch, 2u);
  EXPECT_EQ(choose(2000, {.cache_bytes = 1500}, 16, 8)->superbatch, 8u);
  EXPECT_EQ(choose(2000, {.cache_bytes = 1500}, 16, 8)->cache_bytes, 1500u);
  EXPECT_EQ(choose(2000, {.superbatch = 3}, 16, 8)->superbatch, 3u);
}

TEST(MemoryPlanTest, WhatTheCallerFixedIsKeptOrRefused) {
  const Result<JobMemoryPlan> plan =
      PlanMemory(2000, {.cache_bytes = 300, .superbatch = 7}, kNeeds);
  ASSERT_OK(plan);
  EXPECT_EQ(plan->cache_bytes, 300u);
  EXPECT_EQ(plan->superbatch, 7u);
  EXPECT_STATUS((PlanMemory(2000, {.cache_bytes = 1900, .superbatch = 7}, kNeeds)), kOutOfMemory);
  EXPECT_STATUS((PlanMemory(2000, {.cache_bytes = 300, .superbatch = 90}, kNeeds)), kOutOfMemory);
}

// While the neighbour cache is being built, only held_bytes are taken.
TEST(MemoryPlanTest, ANeighborCacheFitsBesideTheRestAndWhileItIsBuilt) {
  MemoryNeeds needs = kNeeds;
  needs.neighbor_full_bytes = 900;
  needs.neighbor_table_bytes = 40;
  needs.neighbor_build_bytes = 500;
  bool none = false;
  bool all = false;
  for (std::uint64_t limit = 1; limit < 9000; limit += 7) {
    const Result<JobMemoryPlan> plan = PlanMemory(limit, {.in_turn = false}, needs);
    if (!plan) {
      EXPECT_STATUS(plan, kOutOfMemory);
      EXPECT_LT(limit, 100u + 200 + 50 + 20);
      continue;
    }
    const std::uint64_t cache = plan->neighbor_cache_bytes;
    EXPECT_LE(300 + 20 * plan->superbatch + plan->cache_bytes + cache, limit);
    EXPECT_TRUE(cache == 0 || (cache >= 40 && cache <= 900 && 100 + cache + 500 <= limit)) << cache;
    none = none || cache == 0;
    all = all || cache == 900;
  }
  EXPECT_TRUE(none && all);
  EXPECT_EQ(PlanMemory(0, {}, needs)->neighbor_cache_bytes, 900u);
}

TEST(MemoryPlanTest, CachesThatTakeTurnsHaveTheSameMemoryEach) {
  MemoryNeeds needs = kNeeds;
  needs.neighbor_full_bytes = 900;
  needs.neighbor_table_bytes = 40;
  needs.neighbor_build_bytes = 500;
  for (std::uint64_t limit = 1; limit < 9000; limit += 7) {
    const Result<JobMemoryPlan> plan = PlanMemory(limit, {.in_turn = true}, needs);
    const Result<JobMemoryPlan> alone = PlanMemory(limit, {}, kNeeds);
    ASSERT_EQ(plan.has_value(), alone.has_value());
    if (!plan) continue;
    EXPECT_EQ(plan->cache_bytes, alone->cache_bytes);
    EXPECT_EQ(plan->superbatch, alone->superbatch);
    const std::uint64_t cache = plan->neighbor_cache_bytes;
    EXPECT_LE(cache, plan->cache_bytes);
    EXPECT_TRUE(cache == 0 || (cache >= 40 && cache <= 900 && 100 + cache + 500 <= limit)) << cache;
  }
  EXPECT_EQ(PlanMemory(8000, {.in_turn = true}, needs)->neighbor_cache_bytes, 900u);
  EXPECT_EQ((PlanMemory(8000, {.neighbor_cache_bytes = 70, .in_turn = true}, needs))
                ->neighbor_cache_bytes,
            70u);
  EXPECT_STATUS((PlanMemory(1000, {.neighbor_cache_bytes = 900, .in_turn = true}, needs)),
                kOutOfMemory);
  EXPECT_EQ(PlanMemory(0, {.in_turn = true}, needs)->neighbor_cache_bytes, 900u);
  // Turns are chosen where all neighbour lists fit that way.
  bool seen_turns = false;
  for (std::uint64_t limit = 1000; limit < 9000; limit += 7) {
    const Result<JobMemoryPlan> plan = PlanMemory(limit, {}, needs);
    const Result<JobMemoryPlan> beside = PlanMemory(limit, {.in_turn = false}, needs);
    ASSERT_OK(plan);
    ASSERT_OK(beside);
    EXPECT_EQ(plan->in_turn,
              plan->neighbor_cache_bytes == 900 && beside->neighbor_cache_bytes < 900);
    seen_turns = seen_turns || plan->in_turn;
  }
  EXPECT_TRUE(seen_turns);
}

TEST(MemoryPlanTest, AGivenNeighborCacheIsKeptOrRefused) {
  MemoryNeeds needs = kNeeds;
  needs.neighbor_full_bytes = 900;
  needs.neighbor_table_bytes = 40;
  needs.neighbor_build_bytes = 500;
  const auto given = [&](std::uint64_t limit, std::uint64_t bytes) {
    return PlanMemory(limit, {.neighbor_cache_bytes = bytes}, needs);
  };
  EXPECT_EQ(given(3000, 700)->neighbor_cache_bytes, 700u);
  EXPECT_EQ(given(3000, 0)->neighbor_cache_bytes, 0u);
  EXPECT_EQ(given(3000, 5000)->neighbor_cache_bytes, 900u);  // more has no effect
  EXPECT_STATUS(given(100 + 700 + 500 - 1, 700), kOutOfMemory);
  EXPECT_OK(given(100 + 700 + 500, 700));
  EXPECT_EQ(given(370, 0)->neighbor_cache_bytes, 0u);
  EXPECT_EQ(PlanMemory(3000, {.neighbor_cache_bytes = 700}, kNeeds)->neighbor_cache_bytes, 0u)
      << "lists are in memory";
}

TEST(EpochPlanTest, EveryEpochHoldsEachVertexOnceAndOrdersDiffer) {
  std::vector<VertexId> train, valid;
  for (VertexId v = 0; v < 25; ++v) (v % 5 == 0 ? valid : train).push_back(v);
  EpochPlan plan(train, valid, {.batch_size = 6, .epochs = 3, .seed = 9});
  std::vector<std::vector<VertexId>> orders(3), valids(3);
  std::vector<std::uint64_t> valid_keys;
  while (const std::optional<SeedBatch> batch = plan.Next()) {
    const EpochPlan::Tag tag = EpochPlan::Decode(batch->tag);
    auto& into = tag.is_valid ? valids[tag.epoch] : orders[tag.epoch];
    into.insert(into.end(), batch->vertices.begin(), batch->vertices.end());
    if (tag.is_valid) valid_keys.push_back(batch->key);
  }
  EXPECT_NE(orders[0], orders[1]);
  EXPECT_EQ(valids[0], valid);
  EXPECT_EQ(valids[2], valid);
  EXPECT_EQ(valid_keys[0], valid_keys[1]);
  for (std::vector<VertexId>& order : orders) {
    std::sort(order.begin(), order.end());
    EXPECT_EQ(order, train);
  }
}

}  // namespace
}  // namespace rhizome
