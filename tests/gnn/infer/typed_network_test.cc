#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gnn/gnn_testing.h"
#include "gnn/infer/layerwise_testing.h"
#include "gnn/relations_testing.h"

// Tests of models with weights by edge type over a typed store with a delta: layerwise inference
// equals samplewise inference, and its bytes do not depend on blocks, windows and threads; modes
// that do not support such models, and stores with other edge types, are refused.

namespace rhizome {
namespace {

using testing::NetworkCase;
using testing::ReadArray;
using testing::SmallTraining;
using testing::TempDir;
using testing::WriteRelationStore;

const GnnEntry& Gnn() { return *rhizome_gnn_entry_v1(); }

class TypedNetworkTest : public ::testing::TestWithParam<NetworkCase> {
 protected:
  void SetUp() override {
    ASSERT_OK(WriteRelationStore(store(), {}, {"a", "b", "c"}));
    const auto trained = Train([](TrainOptions&) {});
    ASSERT_OK(trained);
    // Both directions are walked, and nothing of the edges is ignored.
    EXPECT_EQ(trained->direction, Direction::kBoth);
    const bool ignores_types = GetParam().spec.kind == "rgcn";  // of vertices
    EXPECT_EQ(trained->ignored.size(), ignores_types ? 1U : 0U);
    ASSERT_OK(testing::WriteRelationDelta(store(), testing::TestSeed()));
  }

  Result<TrainReport> Train(const std::function<void(TrainOptions&)>& change) const {
    TrainOptions options = SmallTraining(store());
    options.model = GetParam().spec;
    options.learning.epochs = 2;
    options.job.out = model();
    change(options);
    const JobControl control;
    return Gnn().Train(options, control);
  }

  Result<InferReport> Infer(InferMode mode, const std::string& out,
                            const std::function<void(InferOptions&)>& change = {}) const {
    InferOptions options;
    options.store = store();
    options.model_file = model();
    options.mode = mode;
    options.out = out;
    options.scores = true;
    if (change) change(options);
    const JobControl control;
    return Gnn().Infer(options, control);
  }

  void PutEdgeOfNewType() const {
    const auto writable = Store::Open(FileSystem::Posix(), store(), Store::Mode::kWrite);
    ASSERT_OK(writable);
    const auto graph = Graph::Open(**writable, {});
    ASSERT_OK(graph);
    WriteBatch batch;
    batch.PutEdge(ExternalId(std::int64_t{1}), ExternalId(std::int64_t{2}), {.type = "likes"});
    ASSERT_OK((*graph)->Write(batch, {.create_types = true}));
  }

  Path store() const { return folder_ / "s"; }
  Path model() const { return folder_ / "model.safetensors"; }

  const TempDir folder_;
};

std::vector<NetworkCase> Typed() {
  std::vector<NetworkCase> networks;
  for (const ModelInfo& info : Gnn().Models())
    if (info.typed) networks.push_back({info.name, {.kind = info.name, .hidden = 16}});
  using Options = std::map<std::string, std::string>;
  const auto add = [&](const char* kind, const std::string& name, const Options& options) {
    networks.push_back({kind + name, {.kind = kind, .hidden = 16, .options = options}});
  };
  add("rgcn", "Bases", {{"bases", "3"}, {"norm", "layer"}, {"residual", "true"}});
  add("rgcn", "Blocks", {{"blocks", "4"}, {"jump", "concat"}});
  add("rgcn", "NoHead", {{"head", "none"}, {"bases", "2"}});
  add("rgcn", "FeedForward", {{"feed-forward", "true"}, {"norm", "layer"}});
  add("hgt", "Residual", {{"heads", "8"}, {"norm", "layer"}, {"residual", "true"}});
  add("hgt", "Jump", {{"heads", "1"}, {"jump", "concat"}});
  add("hgt", "NoHead", {{"head", "none"}, {"heads", "2"}});
  add("hgt", "FeedForward", {{"feed-forward", "true"}, {"norm", "layer"}});
  return networks;
}
INSTANTIATE_TEST_SUITE_P(All, TypedNetworkTest, ::testing::ValuesIn(Typed()),
                         ::testing::PrintToStringParamName());

TEST_P(TypedNetworkTest, LayerwiseEqualsSamplewise) {
  std::vector<std::vector<float>> results;
  for (const InferMode mode : {InferMode::kLayerwise, InferMode::kSamplewise}) {
    const auto report = Infer(mode, mode == InferMode::kLayerwise ? "a" : "b");
    ASSERT_OK(report);
    EXPECT_EQ(report->direction, Direction::kBoth);
    const auto rows = ReadArray(store(), report->array);
    ASSERT_OK(rows);
    results.push_back(*rows);
  }
  ASSERT_EQ(results[0].size(), results[1].size());
  for (std::size_t i = 0; i < results[0].size(); ++i) {
    const float most = std::max(1.0F, std::abs(results[1][i]));
    ASSERT_NEAR(results[0][i], results[1][i], 1e-4F * most) << i;
  }
  // A walk of one direction gives something else.
  const auto one = Infer(InferMode::kLayerwise, "c", [](InferOptions& options) {
    options.data.sampling.direction = Direction::kIn;
  });
  ASSERT_OK(one);
  EXPECT_NE(*ReadArray(store(), one->array), results[0]);
}

TEST_P(TypedNetworkTest, BytesDoNotDependOnBlocksWindowsOrThreads) {
  const auto runs = testing::LayerwiseRuns::Open(store(), model());
  ASSERT_OK(runs);
  int count = 0;
  const auto run = [&](std::uint64_t stage_rows, std::uint64_t block_rows) {
    LayerwiseOptions options;
    options.features = "feat";
    options.sampling.sampler.direction = Direction::kBoth;
    options.output.name = "x";
    options.chunk_rows = 512;
    if (stage_rows != 0) options.memory.stage_bytes = stage_rows * 24 * sizeof(float);
    options.tuning.block_rows = block_rows;
    options.threads = 1 + block_rows % 3;
    return runs->Run(options, folder_ / ("scratch-" + std::to_string(++count)));
  };
  const auto whole = run(0, 0);
  ASSERT_OK(whole);
  const std::pair<std::uint64_t, std::uint64_t> cuts[] = {
      {1, 256}, {7, 1280}, {100, 128}, {700, 640}, {2000, 1280}};
  for (const auto& [stage_rows, block_rows] : cuts) {
    const auto cut = run(stage_rows, block_rows);
    ASSERT_OK(cut);
    EXPECT_TRUE(*whole == *cut) << stage_rows << " staged, blocks of " << block_rows;
  }
}

using TypedModesTest = TypedNetworkTest;
INSTANTIATE_TEST_SUITE_P(All, TypedModesTest,
                         ::testing::Values(NetworkCase{"Rgcn", {.kind = "rgcn", .hidden = 16}}),
                         ::testing::PrintToStringParamName());

TEST_P(TypedModesTest, OtherModesOfTrainingAreRefusedByName) {
  const auto full = Train([](TrainOptions& options) { options.mode = FullGraphOptions(); });
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(full.error().message().find("model rgcn"), std::string::npos);
  const auto device =
      Train([](TrainOptions& options) { options.minibatch()->device = DeviceOptions(); });
  ASSERT_FALSE(device);
  EXPECT_NE(device.error().message().find("model rgcn"), std::string::npos);
  const auto ranks =
      Train([](TrainOptions& options) { options.minibatch()->ranks = RankOptions(); });
  ASSERT_FALSE(ranks);
  EXPECT_NE(ranks.error().message().find("model rgcn"), std::string::npos);
}

TEST_P(TypedModesTest, WeightsBeyondTheMemoryAreRefusedWithTheirBytes) {
  const auto trained = Train([](TrainOptions& options) {
    options.model.hidden = 1024;
    options.resources.memory_bytes = std::uint64_t{64} << 20;
  });
  ASSERT_FALSE(trained);
  EXPECT_EQ(trained.error().code(), StatusCode::kOutOfMemory);
  EXPECT_NE(trained.error().message().find("bases"), std::string::npos);
}

TEST_P(TypedModesTest, AnEdgeTypeWithoutWeightsIsRefusedByName) {
  ASSERT_NO_FATAL_FAILURE(PutEdgeOfNewType());
  const auto report = Infer(InferMode::kLayerwise, "a");
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code(), StatusCode::kUnsupported);
  EXPECT_NE(report.error().message().find("likes"), std::string::npos);
}

TEST_P(TypedModesTest, NewEdgeTypesCanBeLeftOut) {
  const auto before = Infer(InferMode::kLayerwise, "before");
  ASSERT_OK(before);
  ASSERT_NO_FATAL_FAILURE(PutEdgeOfNewType());
  const auto leave_out = [](InferOptions& options) {
    options.data.sampling.typed_fanouts = {
        {"likes", {0, 0}}, {std::string(kOtherTypes), {kAllNeighbors, kAllNeighbors}}};
  };
  for (const InferMode mode : {InferMode::kLayerwise, InferMode::kSamplewise}) {
    const std::string name = mode == InferMode::kLayerwise ? "after" : "sampled";
    const auto after = Infer(mode, name, leave_out);
    ASSERT_OK(after);
    const auto rows = ReadArray(store(), after->array), old = ReadArray(store(), before->array);
    ASSERT_EQ(rows->size(), old->size());
    for (std::size_t i = 0; i < rows->size(); ++i)
      ASSERT_NEAR((*rows)[i], (*old)[i], mode == InferMode::kLayerwise ? 0 : 1e-4) << i;
  }
}

}  // namespace
}  // namespace rhizome
