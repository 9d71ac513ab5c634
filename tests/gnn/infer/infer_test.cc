#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <utility>

#include "cache/blocks/pass_order.h"
#include "gnn/gnn_testing.h"
#include "gnn/infer/layerwise_testing.h"
#include "rhizome/graph.h"
#include "rhizome/policy.h"
#include "rhizome/train_options.h"
#include "rhizome/write_batch.h"

// Tests of inference jobs. Layerwise inference equals samplewise inference; its bytes do not depend
// on threads, cache policy, blocks, windows, layout or shards; concurrent writes and compactions do
// not affect it; an interrupted or killed job resumes to the same bytes; wrong inputs and damaged
// intermediate chunks are refused.

namespace rhizome {
namespace {

using testing::FilesOf;
using testing::PlantedOptions;
using testing::ReadArray;
using testing::SmallTraining;
using testing::TempDir;
using testing::WriteStore;

Result<InferReport> InferOfInfer(const InferOptions& options) {
  const JobControl control;
  return rhizome_gnn_entry_v1()->Infer(options, control);
}

/// A store with a trained model beside it.
class InferTest : public ::testing::TestWithParam<testing::NetworkCase> {
 protected:
  void SetUp() override {
    ASSERT_OK(WriteStore(store(), {}));
    TrainOptions options = SmallTraining(store());
    options.model = GetParam().spec;
    options.learning.epochs = 1;
    options.job.out = model();
    const JobControl control;
    const auto report = rhizome_gnn_entry_v1()->Train(options, control);
    ASSERT_OK(report);
    trained_ = *report;
  }

  Path store() const { return folder_ / "s"; }
  Path model() const { return folder_ / "model.safetensors"; }

  InferOptions Options(const std::string& out) const {
    InferOptions options;
    options.store = store();
    options.model_file = model();
    options.out = out;
    options.tuning.block_rows = 256;
    options.chunk_rows = 256;
    return options;
  }

  void ExpectSameBytes(const std::string& a, const std::string& b) const {
    const auto files_a = FilesOf(store(), a);
    const auto files_b = FilesOf(store(), b);
    ASSERT_OK(files_a);
    ASSERT_OK(files_b);
    ASSERT_FALSE(files_a->empty());
    EXPECT_EQ(*files_a, *files_b) << a << " and " << b;
  }

  const TempDir folder_;
  TrainReport trained_;
};

INSTANTIATE_TEST_SUITE_P(Kinds, InferTest, ::testing::ValuesIn(testing::RegisteredNetworks()),
                         ::testing::PrintToStringParamName());

TEST_P(InferTest, LayerwiseEqualsSamplewiseWithAllNeighbours) {
  for (const bool scores : {false, true}) {
    InferOptions options = Options(scores ? "a-scores" : "a");
    options.scores = scores;
    const auto layerwise = InferOfInfer(options);
    ASSERT_OK(layerwise);
    options.mode = InferMode::kSamplewise;
    options.out = scores ? "b-scores" : "b";
    const auto samplewise = InferOfInfer(options);
    ASSERT_OK(samplewise);
    const auto a = ReadArray(store(), layerwise->array);
    const auto b = ReadArray(store(), samplewise->array);
    ASSERT_OK(a);
    ASSERT_OK(b);
    ASSERT_EQ(a->size(), 1200u * (scores ? 4 : 16));
    ASSERT_EQ(a->size(), b->size());
    for (std::size_t i = 0; i < a->size(); ++i) ASSERT_NEAR((*a)[i], (*b)[i], 1e-4) << i;
    EXPECT_EQ(layerwise->layers.size(), 2u);
    EXPECT_EQ(layerwise->test_accuracy, samplewise->test_accuracy);
    EXPECT_EQ(*layerwise->test_accuracy, trained_.test_accuracy);
    EXPECT_EQ(*layerwise->valid_accuracy, trained_.valid_accuracy);
  }
}

TEST_P(InferTest, ThePlanIsWhatIsRead) {
  int count = 0;
  for (const std::vector<std::int64_t>& fanouts : {std::vector<std::int64_t>(), {3, 5}}) {
    for (const PolicyKind policy : {PolicyKind::kBelady, PolicyKind::kFifo, PolicyKind::kNone}) {
      InferOptions options = Options("counted-" + std::to_string(++count));
      options.fanouts = fanouts;
      options.tuning.cache = policy;
      options.tuning.cache_bytes = 3 * 128 * 16 * sizeof(float);
      options.tuning.block_rows = 100;
      options.chunk_rows = 100;
      const JobControl control;
      const auto plan = rhizome_gnn_entry_v1()->PlanInfer(options, control);
      ASSERT_OK(plan);
      const auto report = InferOfInfer(options);
      ASSERT_OK(report);
      ASSERT_EQ(plan->layers.size(), report->layers.size());
      EXPECT_EQ(plan->vertices, report->vertices);
      for (std::size_t i = 0; i < plan->layers.size(); ++i) {
        const InferPlanLayer& layer = plan->layers[i];
        EXPECT_EQ(layer.chunk_requests, report->layers[i].chunk_requests) << "layer " << i;
        EXPECT_EQ(layer.chunk_reads, report->layers[i].chunk_reads) << "layer " << i;
        EXPECT_EQ(layer.chosen_layouts.size(), plan->workers);
        for (const InferPlanLayer::Layout& layout : layer.layouts) {
          EXPECT_LE(layer.chosen_reads, layout.chunk_reads) << layout.name;
        }
      }
    }
  }
}

/// Adds a vertex and an edge, and compacts.
void WriteAndCompact(const Path& path) {
  const auto store = Store::Open(FileSystem::Posix(), path, Store::Mode::kWrite);
  ASSERT_OK(store);
  const auto graph = Graph::Open(**store, {});
  ASSERT_OK(graph);
  WriteBatch batch;
  batch.PutEdge(ExternalId(std::int64_t{7}), ExternalId(std::int64_t{1'000'000}));
  ASSERT_OK((*graph)->Write(batch, {}));
  const JobControl control;
  ASSERT_OK((*graph)->Compact({}, control));
}

TEST_P(InferTest, RowsAreMovedWhenTheStoreWasCompactedMeanwhile) {
  ASSERT_OK(InferOfInfer(Options("before")));
  bool compacted = false;
  const JobControl control([&](const JobControl::Progress&) {
    if (!std::exchange(compacted, true)) WriteAndCompact(store());
  });
  ASSERT_OK(rhizome_gnn_entry_v1()->Infer(Options("meanwhile"), control));
  ASSERT_TRUE(compacted);
  // The compaction has carried the first array over, so both are in the current order.
  const auto before = ReadArray(store(), "before");
  const auto meanwhile = ReadArray(store(), "meanwhile");
  ASSERT_OK(before);
  ASSERT_OK(meanwhile);
  EXPECT_EQ(before->size(), 1201u * 16);
  EXPECT_EQ(*before, *meanwhile);
}

TEST_P(InferTest, AHeldStateIsComputedWhateverCameSince) {
  ASSERT_OK(InferOfInfer(Options("before")));
  auto held = Store::Open(FileSystem::Posix(), store(), Store::Mode::kRead);
  ASSERT_OK(held);
  auto graph = Graph::Open(std::as_const(**held), {});
  ASSERT_OK(graph);
  WriteAndCompact(store());
  InferOptions options = Options("at");
  options.new_version = true;
  options.at = (*graph)->Snapshot()->point();
  for (int version = 1; version <= 2; ++version) {
    ASSERT_OK(InferOfInfer(options));
    const auto at = ReadArray(store(), "at@" + std::to_string(version));
    ASSERT_OK(at);
    EXPECT_EQ(*at, *ReadArray(store(), "before"));
  }
  options.resume = true;
  const auto again = InferOfInfer(options);
  ASSERT_OK(again);
  EXPECT_TRUE(again->published_before);
  EXPECT_EQ(again->array, "at@2");
  const auto now = Store::Open(FileSystem::Posix(), store(), Store::Mode::kRead);
  ASSERT_OK(now);
  const Manifest& manifest = (*now)->manifest();
  EXPECT_NE(manifest.FindArray("at@1")->array_id, manifest.FindArray("at@2")->array_id);
  // An array that exists now is refused as a name, even though the requested snapshot does not
  // contain it. A snapshot that no handle holds is no longer available.
  InferOptions taken = Options("since");
  taken.at = options.at;
  ASSERT_OK(InferOfInfer(taken));
  EXPECT_STATUS(InferOfInfer(taken), kAlreadyExists);
  graph->reset();
  held->reset();
  WriteAndCompact(store());
  EXPECT_STATUS(InferOfInfer(options), kNotFound);
}

TEST_P(InferTest, BytesDoNotDependOnThreadsCachePolicyOrBlocks) {
  ASSERT_OK(InferOfInfer(Options("reference")));
  int count = 0;
  for (const PolicyKind policy : {PolicyKind::kBelady, PolicyKind::kLru, PolicyKind::kFifo,
                                  PolicyKind::kStatic, PolicyKind::kNone}) {
    InferOptions options = Options("variant-" + std::to_string(++count));
    options.tuning.cache = policy;
    options.tuning.cached_first = count % 2 == 0;
    options.tuning.cache_bytes = static_cast<std::uint64_t>(count) * 128 * 16 * sizeof(float);
    options.resources.threads = 1 + static_cast<std::uint32_t>(count % 3);
    options.tuning.block_rows = 100 * static_cast<std::uint64_t>(count);
    const auto report = InferOfInfer(options);
    ASSERT_OK(report);
    for (const InferLayerReport& layer : report->layers) {
      EXPECT_GT(layer.chunk_requests, 0u);
      EXPECT_LE(layer.hit_rate(), 1);
      EXPECT_EQ(layer.vertices, 1200u);
      if (policy == PolicyKind::kNone) {
        EXPECT_EQ(layer.chunk_reads, layer.chunk_requests);
      }
    }
    ExpectSameBytes("reference", options.out);
  }
}

// Sums are computed in ascending row order, for any row order of layer 1, and with neighbour lists
// in memory or on disk.
TEST_P(InferTest, BytesDoNotDependOnTheLayoutOrWhereListsAre) {
  for (const std::vector<std::int64_t>& fanouts : {std::vector<std::int64_t>(), {3, 5}}) {
    const std::string suffix = fanouts.empty() ? "-all" : "-drawn";
    InferOptions options = Options("reference" + suffix);
    options.fanouts = fanouts;
    options.tuning.layout = RowRule::kStored;
    ASSERT_OK(InferOfInfer(options));
    int count = 0;
    for (const RowRule rule : {RowRule::kNatural, RowRule::kPds, RowRule::kBfs, RowRule::kFirstUse,
                               RowRule::kReferences, RowRule::kBlockCount, RowRule::kBlocks}) {
      options.out = "layout-" + std::to_string(++count) + suffix;
      options.tuning.layout = rule;
      options.tuning.cache_bytes = 1 << 20;
      options.tuning.block_rows = 128 * static_cast<std::uint64_t>(count);
      options.data.topology = count % 2 == 0 ? TopologyPlace::kDirect : TopologyPlace::kMemory;
      const auto report = InferOfInfer(options);
      ASSERT_OK(report);
      EXPECT_EQ(report->layers[0].layout, RowRuleName(rule));
      EXPECT_EQ(report->list_reads.has_value(), options.data.topology == TopologyPlace::kDirect);
      ExpectSameBytes("reference" + suffix, options.out);
    }
  }
}

// The bytes are the same for any division of sums into blocks of targets and windows of rows, and
// whether a target's own row is read with the other rows or after them.
TEST_P(InferTest, BytesDoNotDependOnBlocksOrWindows) {
  const auto runs = testing::LayerwiseRuns::Open(store(), model());
  ASSERT_OK(runs);
  int count = 0;
  const auto run = [&](const LayerwiseOptions& options) {
    return runs->Run(options, folder_ / ("scratch-" + std::to_string(++count)));
  };
  for (const std::vector<std::int64_t>& fanouts : {std::vector<std::int64_t>(), {3, 5}}) {
    LayerwiseOptions options;
    options.features = "feat";
    options.fanouts = fanouts;
    options.output.name = "x";
    options.chunk_rows = 512;
    const auto whole = run(options);
    ASSERT_OK(whole);
    ASSERT_EQ(whole->size(), 1200u * 16);
    for (const std::uint64_t stage_rows : {23, 100, 700, 1200}) {
      for (const std::uint64_t block_rows : {128, 640, 1280}) {
        options.memory.stage_bytes = stage_rows * 16 * sizeof(float);
        options.tuning.block_rows = block_rows;
        options.threads = 1 + block_rows % 3;
        const auto cut = run(options);
        ASSERT_OK(cut);
        EXPECT_EQ(*whole, *cut) << stage_rows << " staged, blocks of " << block_rows;
      }
    }
    options.tuning.block_rows = 0;
    for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{100} << 10}) {
      options.memory.block_bytes = bytes;
      const auto cut = run(options);
      ASSERT_OK(cut);
      EXPECT_EQ(*whole, *cut) << "blocks of " << bytes << " bytes";
    }
  }
}

TEST_P(InferTest, TheChosenLayoutReadsNoMoreThanTheStoredOrder) {
  InferOptions options = Options("stored");
  options.fanouts = {1, 1};  // with few edges, counting reads is cheap
  options.chunk_rows = 128;
  options.tuning.block_rows = 128;
  options.tuning.cache_bytes = 3 * 128 * 16 * sizeof(float);
  options.tuning.layout = RowRule::kStored;
  const auto stored = InferOfInfer(options);
  ASSERT_OK(stored);
  options.out = "chosen";
  options.tuning.layout.reset();
  const auto chosen = InferOfInfer(options);
  ASSERT_OK(chosen);
  std::uint64_t stored_reads = 0;
  std::uint64_t chosen_reads = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    stored_reads += stored->layers[i].chunk_reads;
    chosen_reads += chosen->layers[i].chunk_reads;
  }
  EXPECT_LE(chosen_reads, stored_reads);
  ASSERT_GT(chosen->layers[0].layouts.size(), 1u);  // reads were counted for other orders, too
  EXPECT_EQ(chosen->layers[0].layouts[0].name, "stored");
  EXPECT_EQ(chosen->layers[0].layouts[0].bytes, stored_reads * 128 * 16 * sizeof(float));
  for (const InferLayerReport::Layout& layout : chosen->layers[0].layouts) {
    EXPECT_LE(chosen_reads * 128 * 16 * sizeof(float), layout.bytes) << layout.name;
    EXPECT_EQ(chosen_reads * 128 * 16 * sizeof(float) == layout.bytes,
              layout.name == chosen->layers[0].layout)
        << layout.name;
  }
  ExpectSameBytes("stored", "chosen");
}

TEST_P(InferTest, ShardsHoldTheSameRows) {
  ASSERT_OK(InferOfInfer(Options("plain")));
  InferOptions options = Options("sharded");
  options.inner_rows = 64;
  ASSERT_OK(InferOfInfer(options));
  options.out = "chosen";
  options.chunk_rows = 0;
  options.inner_rows = kChosenInnerRows;
  ASSERT_OK(InferOfInfer(options));
  const auto plain = ReadArray(store(), "plain");
  ASSERT_OK(plain);
  for (const char* name : {"sharded", "chosen"}) {
    const auto sharded = ReadArray(store(), name);
    ASSERT_OK(sharded);
    EXPECT_EQ(*plain, *sharded) << name;
  }
  const auto opened = Store::Open(FileSystem::Posix(), store(), Store::Mode::kRead);
  ASSERT_OK(opened);
  EXPECT_EQ((*opened)->manifest().FindArray("sharded")->inner_rows, 64u);
  EXPECT_NE((*opened)->manifest().FindArray("chosen")->inner_rows, 0u);
  options.out = "unfit";
  options.inner_rows = 100;
  options.chunk_rows = 256;
  EXPECT_STATUS(InferOfInfer(options), kInvalidArgument);
}

TEST_P(InferTest, BeladyReadsNoMoreChunksThanOthers) {
  std::map<PolicyKind, std::uint64_t> reads;
  int count = 0;
  for (const PolicyKind policy :
       {PolicyKind::kBelady, PolicyKind::kLru, PolicyKind::kFifo, PolicyKind::kStatic}) {
    InferOptions options = Options("policy-" + std::to_string(++count));
    options.tuning.cache = policy;
    options.tuning.cache_bytes = 4 * 128 * 16 * sizeof(float);
    const auto report = InferOfInfer(options);
    ASSERT_OK(report);
    reads[policy] = report->layers[0].chunk_reads;
  }
  for (const auto& [policy, count_of_reads] : reads) {
    EXPECT_LE(reads[PolicyKind::kBelady], count_of_reads) << PolicyName(policy);
  }
}

TEST_P(InferTest, SampledNeighboursAreDrawnOnce) {
  InferOptions options = Options("sampled");
  options.fanouts = {3, 2};
  ASSERT_OK(InferOfInfer(options));
  options.out = "sampled-again";
  options.tuning.block_rows = 640;
  options.resources.threads = 2;
  ASSERT_OK(InferOfInfer(options));
  ExpectSameBytes("sampled", "sampled-again");
  options.out = "sampled-otherwise";
  options.seed = 99;
  ASSERT_OK(InferOfInfer(options));
  EXPECT_NE(*FilesOf(store(), "sampled"), *FilesOf(store(), "sampled-otherwise"));
}

TEST_P(InferTest, WhereAllWorkersAreDeadTheJobCanBeResumed) {
  ASSERT_OK(InferOfInfer(Options("whole")));
  InferOptions options = Options("left");
  options.workers.count = 2;
  options.workers.command = {"false"};
  const auto dead = InferOfInfer(options);
  ASSERT_FALSE(dead);
  EXPECT_EQ(dead.error().code(), StatusCode::kIoError);
  EXPECT_NE(dead.error().message().find("`resume`"), std::string::npos) << dead.error().message();
  options.workers.count = 0;
  options.resume = true;
  ASSERT_OK(InferOfInfer(options));
  ExpectSameBytes("whole", "left");
}

/// Stops a job after `steps` progress reports, by cancelling it or by killing the process.
void RunInterrupted(const InferOptions& options, std::uint64_t steps, bool kill) {
  JobControl* self = nullptr;
  std::uint64_t seen = 0;
  JobControl control([&](const JobControl::Progress&) {
    if (++seen < steps) return;
    if (kill) ::kill(::getpid(), SIGKILL);
    self->Cancel();
  });
  self = &control;
  static_cast<void>(rhizome_gnn_entry_v1()->Infer(options, control));
}

TEST_P(InferTest, AnInterruptedJobResumesAndGivesTheSameBytes) {
  ASSERT_OK(InferOfInfer(Options("whole")));
  std::mt19937_64 random(testing::TestSeed());
  std::uint64_t resumed = 0;
  for (int round = 0; round < 4; ++round) {
    InferOptions options = Options("round-" + std::to_string(round));
    options.tuning.block_rows = 128;
    options.tuning.layout = round % 2 == 0 ? RowRule::kBlocks : RowRule::kStored;
    // The second round stops late, so that for any seed there is something to resume.
    RunInterrupted(options, round == 1 ? 16 : 1 + random() % 20, /*kill=*/false);
    EXPECT_TRUE(std::filesystem::exists(store() / "scratch" / ("infer-" + options.out)));
    options.resume = true;
    options.tuning.layout = RowRule::kBfs;  // a layer that was begun keeps its layout
    options.resources.threads = 2;
    options.tuning.cache_bytes = 1 << 14;
    options.tuning.block_rows = 200;
    const auto report = InferOfInfer(options);
    ASSERT_OK(report);
    resumed += report->resumed_chunks;
    ExpectSameBytes("whole", options.out);
    EXPECT_EQ(*report->test_accuracy, trained_.test_accuracy);
    EXPECT_FALSE(std::filesystem::exists(store() / "scratch" / ("infer-" + options.out)));
  }
  EXPECT_GT(resumed, 0u);
}

// A resumed job verifies the chunks that it reads, including its own.
TEST_P(InferTest, ADamagedChunkBetweenLayersIsNamedAndNothingPublished) {
  InferOptions options = Options("x");
  options.tuning.block_rows = 128;
  JobControl* self = nullptr;
  JobControl control([&](const JobControl::Progress& progress) {
    if (progress.phase == "layer 2" && progress.done > 0) self->Cancel();
  });
  self = &control;
  EXPECT_STATUS(rhizome_gnn_entry_v1()->Infer(options, control), kInterrupted);
  const Path between = store() / "scratch" / "infer-x" / "layer-1" / "arrays" / "hidden-1";
  ASSERT_TRUE(std::filesystem::exists(between / "zarr.json")) << "layer 1 is not whole";
  const Path chunk = between / "c.2.0";
  const auto raw_bytes = options.chunk_rows * 16 * sizeof(float);
  if (GetParam().spec.kind == "sage") {  // ReLU makes zeros, which compress
    EXPECT_LT(std::filesystem::file_size(chunk), raw_bytes) << "zeros are kept";
  }
  std::mt19937_64 random(testing::TestSeed());
  {
    std::fstream file(chunk, std::ios::in | std::ios::out | std::ios::binary);
    const auto at = static_cast<std::streamoff>(random() % std::filesystem::file_size(chunk));
    file.seekg(at);
    const char byte = static_cast<char>(file.get() ^ (1 << random() % 8));
    file.seekp(at);
    file.put(byte);
  }
  options.resume = true;
  const auto report = InferOfInfer(options);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code(), StatusCode::kCorruption) << report.error().ToString();
  EXPECT_NE(report.error().message().find("c.2.0"), std::string::npos) << report.error().message();
  const auto opened = Store::Open(FileSystem::Posix(), store(), Store::Mode::kRead);
  ASSERT_OK(opened);
  EXPECT_EQ((*opened)->manifest().FindArray("x"), nullptr);
  // Without --resume it starts over and ignores the damaged chunk.
  options.resume = false;
  ASSERT_OK(InferOfInfer(options));
}

TEST_P(InferTest, AWriterIsMetBeforeTheWork) {
  const auto writer =
      FileSystem::Posix().Lock(store() / "LOCK", FileSystem::LockMode::kExclusive, "rhizome\n1\n");
  ASSERT_OK(writer);
  bool worked = false;
  const JobControl control([&](const JobControl::Progress&) { worked = true; });
  EXPECT_STATUS(rhizome_gnn_entry_v1()->Infer(Options("x"), control), kBusy);
  EXPECT_FALSE(worked);
  EXPECT_FALSE(std::filesystem::exists(store() / "scratch" / "infer-x"));
}

// The job finishes all layers and then fails to publish because another process holds the writer
// lock. A resumed job computes no layer again.
TEST_P(InferTest, AJobThatCouldNotPublishResumesAtItsEnd) {
  ASSERT_OK(InferOfInfer(Options("reference")));
  InferOptions options = Options("late");
  {
    Result<std::unique_ptr<FileLock>> writer = Fail(Status::Busy("nobody"));
    const JobControl control([&](const JobControl::Progress&) {
      if (!writer)
        writer = FileSystem::Posix().Lock(store() / "LOCK", FileSystem::LockMode::kExclusive,
                                          "rhizome\n1\n");
    });
    EXPECT_STATUS(rhizome_gnn_entry_v1()->Infer(options, control), kBusy);
    ASSERT_OK(writer);
  }
  options.resume = true;
  const auto report = InferOfInfer(options);
  ASSERT_OK(report);
  EXPECT_EQ(report->resumed_chunks, 10u);  // 1,200 rows in chunks of 256, two layers
  ExpectSameBytes("reference", "late");
}

TEST_P(InferTest, AResumeWithOtherSettingsIsRefused) {
  InferOptions options = Options("x");
  RunInterrupted(options, 8, /*kill=*/false);
  options.resume = true;
  options.fanouts = {2, 2};
  EXPECT_STATUS(InferOfInfer(options), kInvalidArgument);
  options.fanouts.clear();
  ASSERT_OK(InferOfInfer(options));  // the refusal removed nothing
  options = Options("y");
  RunInterrupted(options, 8, /*kill=*/false);
  options.seed = 5;
  ASSERT_OK(InferOfInfer(options));  // without resume it starts over
}

TEST_P(InferTest, ARunningJobOfTheSameNameIsBusy) {
  const InferOptions options = Options("x");
  Status inner;
  const JobControl control([&](const JobControl::Progress&) {
    if (inner.ok()) inner = testing::AsStatus(InferOfInfer(options));
  });
  ASSERT_OK(rhizome_gnn_entry_v1()->Infer(options, control));
  EXPECT_STATUS(inner, kBusy);
}

TEST_P(InferTest, WrongInputsAreRefused) {
  InferOptions options = Options("feat");
  EXPECT_STATUS(InferOfInfer(options), kAlreadyExists);
  EXPECT_STATUS(InferOfInfer(Options("../x")), kInvalidArgument);
  options = Options("x");
  options.data.features = "label";
  EXPECT_STATUS(InferOfInfer(options), kInvalidArgument);
  options = Options("x");
  options.data.features = "none";
  EXPECT_STATUS(InferOfInfer(options), kNotFound);
  options = Options("x");
  options.fanouts = {1, 2, 3};
  EXPECT_STATUS(InferOfInfer(options), kInvalidArgument);
  options = Options("x");
  options.model_file = folder_ / "none";
  EXPECT_STATUS(InferOfInfer(options), kNotFound);
  options = Options("x");
  options.model_file = store() / "FORMAT";  // not a model file; the store itself is not damaged
  EXPECT_STATUS(InferOfInfer(options), kInvalidArgument);
  options = Options("x");
  options.resources.memory_bytes = 1 << 20;
  EXPECT_STATUS(InferOfInfer(options), kOutOfMemory);
}

TEST_P(InferTest, TheArraySaysWhereItCameFrom) {
  ASSERT_OK(InferOfInfer(Options("x")));
  const auto opened = Store::Open(FileSystem::Posix(), store(), Store::Mode::kRead);
  ASSERT_OK(opened);
  const ArrayEntry* entry = (*opened)->manifest().FindArray("x");
  ASSERT_NE(entry, nullptr);
  std::map<std::string, std::string> attributes(entry->attributes.begin(), entry->attributes.end());
  EXPECT_EQ(attributes["model_xxh3"].size(), 32u);
  EXPECT_EQ(attributes["fanout"], "all");
  EXPECT_EQ(attributes["snapshot"],
            "generation 1 version 1 sequence " + std::to_string((*opened)->base_sequence()));
}

// libtorch's threads do not survive a fork, so the child process is this program again, running
// only this test.
TEST(InferKillTest, ChildRunsUntilItIsKilled) {
  const char* path = std::getenv("RHIZOME_TEST_KILLED_STORE");
  if (path == nullptr) GTEST_SKIP() << "runs as a child of the next test";
  InferOptions options;
  options.store = path;
  options.model_file = Path(path).parent_path() / "model.safetensors";
  options.out = "killed";
  options.tuning.block_rows = 128;
  options.chunk_rows = 256;
  RunInterrupted(options, std::strtoull(std::getenv("RHIZOME_TEST_KILL_AFTER"), nullptr, 10),
                 /*kill=*/true);
}

TEST_P(InferTest, AKilledJobResumesAndGivesTheSameBytes) {
  ASSERT_OK(InferOfInfer(Options("whole")));
  std::mt19937_64 random(testing::TestSeed());
  const std::uint64_t steps = 2 + random() % 18;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command =
      "unset GTEST_TOTAL_SHARDS GTEST_SHARD_INDEX; RHIZOME_TEST_KILLED_STORE=" + store().string() +
      " RHIZOME_TEST_KILL_AFTER=" + std::to_string(steps) + " exec " + self +
      " --gtest_filter=InferKillTest.* > /dev/null 2>&1";
  const int outcome = std::system(command.c_str());
  ASSERT_TRUE(WIFSIGNALED(outcome) && WTERMSIG(outcome) == SIGKILL) << outcome;
  InferOptions options = Options("killed");
  options.resume = true;
  ASSERT_OK(InferOfInfer(options));
  ExpectSameBytes("whole", "killed");
}

}  // namespace
}  // namespace rhizome
