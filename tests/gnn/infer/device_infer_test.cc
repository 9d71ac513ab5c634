#include <gmock/gmock.h>

#include <cmath>

#include "cuda/fake_device.h"
#include "gnn/gnn_testing.h"
#include "gnn/infer/device_tiles.h"
#include "gnn/infer/infer_array.h"
#include "gnn/infer/inference_memory.h"
#include "gnn/infer/layerwise_testing.h"
#include "gnn/ops/torch_guard.h"

// Tests of layerwise inference with matrix products on a device, without a real device: FakeDevice
// does the copies, and a libtorch backend in host memory does the products
// (gnn/train/host_backend.h, which another file of this binary registers).

namespace rhizome {
namespace {

using testing::FakeDevice;
using ::testing::HasSubstr;
using testing::NetworkCase;
using testing::TempDir;
using testing::WriteStore;

/// Device memory for one or two tiles of the models below; the graph has 1,200 rows.
constexpr std::uint64_t kDeviceBytes = 400'000;

ComputeDevice MakeFake(FakeDevice*& watched) {
  auto fake = std::make_unique<FakeDevice>(testing::TestSeed());
  fake->has_tensors = true;
  watched = fake.get();
  return {.kernels = std::move(fake),
          .place = torch::Device(c10::DeviceType::PrivateUse1, 0),
          .facts = {.name = "fake"}};
}

/// Writes a model with newly initialised weights for the features of a planted store.
Status WriteModel(const NetworkCase& network, const Path& path) {
  ModelShape shape{.spec = network.spec, .inputs = 16, .classes = 4};
  shape.spec.layers = 2;
  RHIZOME_ASSIGN_OR_RETURN(const Model model, Model::Create(shape, testing::TestSeed()));
  return SaveSafetensors(path, model.ToFile());
}

std::vector<NetworkCase> All() {
  std::vector<NetworkCase> networks = testing::UntypedNetworks();
  for (NetworkCase& variant : testing::NetworkVariants()) networks.push_back(std::move(variant));
  return networks;
}

void ExpectNear(const std::vector<float>& found, const std::vector<float>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(found[i], expected[i], 1e-4F * std::max(1.0F, std::abs(expected[i]))) << i;
}

// Inference in a single window, in several windows and in partial batches: on the device the
// product of a row has the same bits whichever rows are in its batch, and is close to the CPU's.
TEST(DeviceInferTest, EveryNetworkHasItsRowsWhateverGoesUpWithThem) {
  const TempDir folder;
  ASSERT_OK(WriteStore(folder / "s", {}));
  int count = 0;
  for (const NetworkCase& network : All()) {
    SCOPED_TRACE(network.name);
    ASSERT_OK(WriteModel(network, folder / "model"));
    const auto runs = testing::LayerwiseRuns::Open(folder / "s", folder / "model");
    ASSERT_OK(runs);
    LayerwiseOptions options;
    options.features = "feat";
    options.output.name = "x";
    options.scores = true;
    options.chunk_rows = 512;
    options.threads = 1;
    const auto next = [&] { return folder / ("scratch-" + std::to_string(++count)); };
    const auto expected = runs->Run(options, next());
    ASSERT_OK(expected);
    FakeDevice* watched = nullptr;
    const ComputeDevice device = MakeFake(watched);
    std::vector<float> first;
    {
      const auto tiles = DeviceTiles::Open(device, runs->model(), kDeviceBytes);
      ASSERT_OK(tiles);
      EXPECT_EQ((*tiles)->batch_rows() % 256, 0u);
      EXPECT_LT((*tiles)->batch_rows(), 1200u);
      for (const bool windows : {false, true}) {
        options.memory.stage_bytes = windows ? 300 * 24 * sizeof(float) : std::uint64_t{8} << 20;
        options.tuning.block_rows = windows ? 640 : 0;
        const auto found = runs->Run(options, next(), tiles->get());
        ASSERT_OK(found);
        ExpectNear(*found, *expected);
        if (!windows) first = *found;
        // Attention over several windows projects the targets' own rows on the CPU.
        if (!network.spec.kind.starts_with("gat")) {
          EXPECT_TRUE(*found == first);
        }
      }
      EXPECT_GT((*tiles)->report().upload_bytes, 0u);
      EXPECT_GT((*tiles)->report().download_bytes, 0u);
    }
    watched->Finish();
    EXPECT_THAT(watched->faults(), ::testing::IsEmpty());
  }
}

class DeviceInferJobTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(WriteStore(folder_ / "s", {}));
    ASSERT_OK(WriteModel({"sage", {.kind = "sage", .hidden = 16}}, folder_ / "model"));
    options_.store = folder_ / "s";
    options_.model_file = folder_ / "model";
    options_.out = "emb";
    options_.device = ComputeOn::kCuda;
    options_.device_memory_bytes = kDeviceBytes;
  }

  Result<InferReport> Infer(std::uint64_t fail_at = FakeDevice::kNever) {
    const JobControl control;
    return GuardedTorch([&] {
      return InferArray(options_, control, [&]() -> Result<ComputeDevice> {
        FakeDevice* watched = nullptr;
        ComputeDevice device = MakeFake(watched);
        watched->fail_at = fail_at;
        return device;
      });
    });
  }

  const TempDir folder_;
  InferOptions options_;
};

TEST_F(DeviceInferJobTest, SaysWhatTheDeviceDid) {
  options_.scores = true;
  const auto report = Infer();
  ASSERT_OK(report);
  ASSERT_TRUE(report->device.has_value());
  EXPECT_EQ(report->device->name, "fake");
  EXPECT_GT(report->device->batch_rows, 0u);
  // The CPU finds the same number of correct predictions.
  options_.device = ComputeOn::kCpu;
  options_.out = "processor";
  const auto processor = Infer();
  ASSERT_OK(processor);
  EXPECT_FALSE(processor->device.has_value());
  EXPECT_EQ(report->valid_accuracy, processor->valid_accuracy);
  EXPECT_EQ(report->test_accuracy, processor->test_accuracy);
}

TEST_F(DeviceInferJobTest, FailuresOfTheDeviceAreErrorsAndTheRunGoesOnAfterThem) {
  std::uint64_t failures = 0;
  for (std::uint64_t call = 0; call < 12; call += 1 + call / 3) {
    const auto report = Infer(call);
    if (report) break;
    ++failures;
    EXPECT_THAT(report.error().message(), HasSubstr("this call fails")) << call;
    options_.resume = true;
  }
  EXPECT_GT(failures, 3u);
  options_.resume = true;
  EXPECT_OK(Infer());
}

// Memory pinned for a device counts towards the limit.
TEST_F(DeviceInferJobTest, PinnedMemoryCountsInTheLimit) {
  const auto store = Store::Open(FileSystem::Posix(), options_.store, Store::Mode::kRead);
  ASSERT_OK(store);
  const auto graph = Graph::Open(std::as_const(**store));
  ASSERT_OK(graph);
  const auto file = LoadSafetensors(FileSystem::Posix(), options_.model_file);
  ASSERT_OK(file);
  const auto model = Model::FromFile(file->file);
  ASSERT_OK(model);
  LayerwiseOptions layerwise;
  layerwise.features = options_.data.features;
  layerwise.output.name = "x";
  const auto output = MakeOutputEntry(**graph, *model, layerwise);
  ASSERT_OK(output);
  layerwise.output = *output;
  options_.resources.memory_bytes = std::uint64_t{2} << 30;
  const auto divide = [&](std::uint64_t pinned) {
    return DivideMemory({.graph = **graph,
                         .model = *model,
                         .options = options_,
                         .layerwise = layerwise,
                         .pinned_bytes = pinned});
  };
  EXPECT_OK(divide(0));
  EXPECT_STATUS(divide(options_.resources.memory_bytes), kOutOfMemory);
}

TEST_F(DeviceInferJobTest, SaysWhatCannotBeHad) {
  const JobControl control;
  // There is no CUDA module beside the test binary.
  const auto none = rhizome_gnn_entry_v1()->Infer(options_, control);
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code(), StatusCode::kUnsupported);
  EXPECT_THAT(none.error().message(), HasSubstr("librhizome_cuda.so"));
  options_.device_memory_bytes = 10'000;
  const auto little = Infer();
  ASSERT_FALSE(little.has_value());
  EXPECT_EQ(little.error().code(), StatusCode::kOutOfMemory);
  EXPECT_THAT(little.error().message(), HasSubstr("`device_memory_bytes`"));
  options_.mode = InferMode::kSamplewise;
  EXPECT_EQ(testing::AsStatus(Infer()).code(), StatusCode::kInvalidArgument);
  options_.mode = InferMode::kLayerwise;
  options_.workers.count = 2;
  EXPECT_EQ(testing::AsStatus(Infer()).code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace rhizome
