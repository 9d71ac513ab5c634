#include <utility>

#include "gnn/gnn_testing.h"
#include "gnn/infer/layerwise_testing.h"
#include "rhizome/graph.h"
#include "rhizome/train_options.h"
#include "rhizome/write_batch.h"

namespace rhizome {
namespace {

using testing::NetworkCase;
using testing::ReadArray;
using testing::SmallTraining;
using testing::TempDir;
using testing::WriteStore;

/// Adds vertices and edges and deletes others, so that the store has a delta.
void WriteDelta(const Path& path, std::uint64_t seed) {
  const auto store = Store::Open(FileSystem::Posix(), path, Store::Mode::kWrite);
  ASSERT_OK(store);
  const auto graph = Graph::Open(**store, {});
  ASSERT_OK(graph);
  std::mt19937_64 random(seed);
  const auto any = [&] { return ExternalId(static_cast<std::int64_t>(random() % 1200)); };
  WriteBatch batch;
  for (int i = 0; i < 200; ++i) batch.PutEdge(any(), any());
  for (std::int64_t i = 0; i < 5; ++i) batch.PutEdge(any(), ExternalId(1'000'000 + i));
  for (int i = 0; i < 5; ++i) batch.DeleteVertex(any());
  ASSERT_OK((*graph)->Write(batch, {}));
}

/// Trains each model a little, over a store with a delta.
class NetworkTest : public ::testing::TestWithParam<NetworkCase> {
 protected:
  void SetUp() override {
    ASSERT_OK(WriteStore(store(), {}));
    TrainOptions options = SmallTraining(store());
    options.model = GetParam().spec;
    options.learning.epochs = 1;
    options.learning.test = false;
    options.job.out = model();
    const JobControl control;
    ASSERT_OK(rhizome_gnn_entry_v1()->Train(options, control));
    WriteDelta(store(), testing::TestSeed());
  }

  Path store() const { return folder_ / "s"; }
  Path model() const { return folder_ / "model.safetensors"; }

  const TempDir folder_;
};

std::vector<NetworkCase> All() {
  std::vector<NetworkCase> networks = testing::RegisteredNetworks();
  for (NetworkCase& variant : testing::NetworkVariants()) networks.push_back(std::move(variant));
  return networks;
}
INSTANTIATE_TEST_SUITE_P(All, NetworkTest, ::testing::ValuesIn(All()),
                         ::testing::PrintToStringParamName());

TEST_P(NetworkTest, LayerwiseEqualsSamplewise) {
  std::vector<std::vector<float>> results;
  for (const InferMode mode : {InferMode::kLayerwise, InferMode::kSamplewise}) {
    InferOptions options;
    options.store = store();
    options.model_file = model();
    options.mode = mode;
    options.out = mode == InferMode::kLayerwise ? "a" : "b";
    options.scores = true;
    const JobControl control;
    const auto report = rhizome_gnn_entry_v1()->Infer(options, control);
    ASSERT_OK(report);
    const auto rows = ReadArray(store(), report->array);
    ASSERT_OK(rows);
    results.push_back(*rows);
  }
  ASSERT_EQ(results[0].size(), results[1].size());
  ASSERT_GE(results[0].size(), 1200u * 4);
  for (std::size_t i = 0; i < results[0].size(); ++i) {
    const float most = std::max(1.0F, std::abs(results[1][i]));
    ASSERT_NEAR(results[0][i], results[1][i], 1e-4F * most) << i;
  }
}

// The bytes are the same for any division of a layer into blocks of targets and windows of rows,
// and for any number of threads.
TEST_P(NetworkTest, BytesDoNotDependOnBlocksWindowsOrThreads) {
  const auto runs = testing::LayerwiseRuns::Open(store(), model());
  ASSERT_OK(runs);
  int count = 0;
  const auto run = [&](std::uint64_t stage_rows, std::uint64_t block_rows) {
    LayerwiseOptions options;
    options.features = "feat";
    options.output.name = "x";
    options.chunk_rows = 512;
    // Memory for at least stage_rows rows of the widest layer.
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

}  // namespace
}  // namespace rhizome
