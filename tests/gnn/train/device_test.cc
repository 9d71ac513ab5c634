#include <gmock/gmock.h>

#include <cmath>
#include <map>

#include "cache/job/safetensors.h"
#include "cuda/fake_device.h"
#include "gnn/gnn_testing.h"
#include "gnn/ops/torch_guard.h"
#include "gnn/train/host_backend.h"
#include "gnn/train/train.h"
#include "rhizome/policy.h"

// Tests of training on a device, without a real one. A FakeDevice runs the kernels. The device's
// tensors are libtorch's CPU tensors, or tensors of a backend in host memory (host_backend.h), for
// which an operation that mixes them with CPU tensors fails.

namespace rhizome {
namespace {

using testing::FakeDevice;
using ::testing::HasSubstr;
using testing::NetworkCase;
using testing::SmallTraining;
using testing::TempDir;
using testing::WriteStore;

/// Faults and calls that a device recorded, and whether it may register host memory.
struct Traces {
  std::vector<std::string> faults = {};
  std::uint64_t calls = 0;
  bool may_register = true;
};

/// A fake device that records its faults in `Traces` when it is destroyed.
class WatchedDevice final : public FakeDevice {
 public:
  WatchedDevice(std::uint64_t seed, Traces& traces) : FakeDevice(seed), traces_(traces) {
    has_tensors = true;
  }
  ~WatchedDevice() override {
    Finish();
    traces_.faults.insert(traces_.faults.end(), faults().begin(), faults().end());
    traces_.calls = calls();
  }

 private:
  Traces& traces_;
};

Result<TrainReport> TrainWatched(TrainOptions options, Traces& traces,
                                 std::uint64_t fail_at = FakeDevice::kNever,
                                 const torch::Device& place = torch::kCPU) {
  if (!options.minibatch()->device) options.minibatch()->device.emplace();
  const JobControl control;
  return GuardedTorch([&] {
    return TrainModel(options, control, [&]() -> Result<ComputeDevice> {
      auto device = std::make_unique<WatchedDevice>(testing::TestSeed(), traces);
      device->fail_at = fail_at;
      device->may_register = traces.may_register;
      return ComputeDevice{.kernels = std::move(device), .place = place, .facts = {.name = "fake"}};
    });
  });
}

Result<TrainReport> TrainAsAsked(const TrainOptions& options) {
  const JobControl control;
  return rhizome_gnn_entry_v1()->Train(options, control);
}

Result<TrainReport> TrainOnProcessor(TrainOptions options) {
  options.minibatch()->device.reset();
  return TrainAsAsked(options);
}

std::vector<double> LossesOf(const TrainReport& report) {
  std::vector<double> losses;
  for (const EpochReport& epoch : report.epochs) {
    losses.push_back(epoch.loss);
    losses.push_back(epoch.valid_loss.value_or(0));
  }
  return losses;
}

void UseDevice(bool device, TrainOptions& options) {
  options.minibatch()->device.reset();
  if (device) options.minibatch()->device = DeviceOptions{.memory_bytes = 64 * 200};
}

TrainOptions DeviceTraining(const Path& store) {
  TrainOptions options = SmallTraining(store);
  options.learning.epochs = 2;
  options.learning.test = false;
  options.minibatch()->device.emplace();
  options.minibatch()->device->memory_bytes =
      64 * 200;  // enough for 200 of 1,200 rows of 16 floats
  return options;
}

/// Returns whether a model's results on a device have other bits than on the CPU. The device
/// multiplies sums in one matrix of all targets and adds the bias and its gradient separately, or
/// adds the parts of the gradient of attention rows before multiplying them.
bool IsFused(const ModelSpec& spec) {
  const auto found = spec.options.find("aggregator");
  const std::string aggregator = found == spec.options.end() ? "mean" : found->second;
  return spec.kind == "gcn" || spec.kind.starts_with("gat") ||
         (spec.kind == "sage" && aggregator != "max" && aggregator != "pool");
}

/// Returns every model that trains on a device, with dropout.
std::vector<NetworkCase> NetworksForDevices() {
  std::vector<NetworkCase> networks = testing::UntypedNetworks();
  for (NetworkCase& variant : testing::NetworkVariants()) networks.push_back(std::move(variant));
  for (NetworkCase& network : networks) {
    network.spec.dropout = 0.3;
    if (network.spec.kind.starts_with("gat")) network.spec.options["attention-dropout"] = "0.2";
  }
  return networks;
}

TEST(DeviceTrainTest, EveryKindLearnsAsOnTheProcessor) {
  const TempDir folder;
  ASSERT_OK(WriteStore(folder / "s", {}));
  for (const NetworkCase& network : NetworksForDevices()) {
    SCOPED_TRACE(network.name);
    TrainOptions options = DeviceTraining(folder / "s");
    options.model = network.spec;
    const Result<TrainReport> processor = TrainOnProcessor(options);
    ASSERT_OK(processor);
    Traces traces;
    const Result<TrainReport> device = TrainWatched(options, traces);
    ASSERT_OK(device);
    EXPECT_THAT(traces.faults, ::testing::IsEmpty());
    const std::vector<double> expected = LossesOf(*processor), found = LossesOf(*device);
    if (IsFused(network.spec)) {
      // A bias before a batch norm affects only the running mean. Its gradient is rounding noise,
      // which Adam scales to full steps.
      const double bound = network.name == "ResidualBatch" ? 2e-2 : 1e-4;
      for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_NEAR(found[i], expected[i], bound * std::abs(expected[i]));
    } else {
      EXPECT_EQ(found, expected);
    }
    EXPECT_EQ(device->device->name, "fake");
    EXPECT_GT(device->epochs[0].upload_bytes, 0u);
  }
}

TEST(DeviceTrainTest, ModelsDoNotDependOnWhatStaysOnTheDevice) {
  const TempDir folder;
  ASSERT_OK(WriteStore(folder / "s", {.dtype = DataType::kFloat16}));
  TrainOptions options = DeviceTraining(folder / "s");
  options.model.kind = "gin";
  options.job.out = folder / "reference.safetensors";
  const Result<TrainReport> reference = TrainOnProcessor(options);
  ASSERT_OK(reference);
  const auto weights = LoadSafetensors(FileSystem::Posix(), options.job.out);
  ASSERT_OK(weights);
  options.job.out = folder / "device.safetensors";
  std::map<PolicyKind, std::uint64_t> hits;
  for (const PolicyKind policy :
       {PolicyKind::kBelady, PolicyKind::kStatic, PolicyKind::kMatch, PolicyKind::kNone}) {
    for (const std::uint32_t superbatch : {3, 100, 101}) {
      SCOPED_TRACE(std::string(PolicyName(policy)) + " " + std::to_string(superbatch));
      options.minibatch()->device->cache = policy;
      options.minibatch()->feed.superbatch = superbatch;
      options.minibatch()->feed.overlap = superbatch == 3 ? Overlap::kChangeset : Overlap::kAll;
      options.minibatch()->feed.cache = superbatch == 3 ? PolicyKind::kLru : PolicyKind::kBelady;
      options.minibatch()->feed.cache_bytes =
          32 * 50;  // so that rows of finished minibatches are overwritten
      Traces traces;
      traces.may_register = superbatch != 101;
      const Result<TrainReport> report = TrainWatched(options, traces);
      ASSERT_OK(report);
      EXPECT_THAT(traces.faults, ::testing::IsEmpty());
      // Neighbour lists that share memory with the cache by turns have no fixed address, which the
      // device would need.
      EXPECT_EQ(report->device->reaches, superbatch == 100);
      EXPECT_EQ(LossesOf(*report), LossesOf(*reference));
      const auto found = LoadSafetensors(FileSystem::Posix(), options.job.out);
      ASSERT_OK(found);
      EXPECT_EQ(found->hash, weights->hash);
      hits[policy] = report->epochs[1].device_hits;
    }
  }
  EXPECT_EQ(hits[PolicyKind::kNone], 0u);
  EXPECT_GT(hits[PolicyKind::kStatic], 0u);
  EXPECT_GT(hits[PolicyKind::kBelady], hits[PolicyKind::kStatic]);
  EXPECT_GT(hits[PolicyKind::kBelady], hits[PolicyKind::kMatch]);
}

// The memory plan, made from the first minibatch, includes the host memory that the device needs.
TEST(DeviceTrainTest, TheMemoryOfTheHostIsPlanned) {
  const TempDir folder;
  ASSERT_OK(WriteStore(folder / "s", {}));
  TrainOptions options = DeviceTraining(folder / "s");
  options.learning.epochs = 1;
  std::map<std::uint64_t, TrainMemory> by_frames;
  for (const auto& [kind, may_register] :
       {std::pair("sage", true), std::pair("sage", false), std::pair("gatv2", true)}) {
    for (const std::uint64_t rows : {0, 100, 1200}) {
      SCOPED_TRACE(std::string(kind) + " " + std::to_string(rows) + " " +
                   std::to_string(may_register));
      options.model.kind = kind;
      options.minibatch()->device->memory_bytes = 64 * rows;
      Traces traces;
      traces.may_register = may_register;
      const Result<TrainReport> report = TrainWatched(options, traces);
      ASSERT_OK(report);
      const DeviceReport& device = *report->device;
      EXPECT_EQ(device.reaches, may_register);
      EXPECT_GT(device.host_bytes, 4 * 64 * 100u);
      EXPECT_GE(device.planned_host_bytes, device.host_bytes);
      EXPECT_LE(device.planned_host_bytes, 2 * device.host_bytes);
      EXPECT_GE(report->memory.working, device.planned_host_bytes);
      by_frames[rows] = report->memory;
    }
  }
  // A frame takes memory for its position, key, step and history.
  EXPECT_GE(by_frames[1200].working, by_frames[100].working + 1100 * 50);
}

TEST(DeviceTrainTest, GoesOnOnTheOtherSideFromACheckpoint) {
  const TempDir folder;
  ASSERT_OK(WriteStore(folder / "s", {}));
  TrainOptions options = DeviceTraining(folder / "s");
  options.model.kind = "commnet";
  options.learning.epochs = 3;
  options.job.out = folder / "whole.safetensors";
  ASSERT_OK(TrainOnProcessor(options));
  const auto whole = LoadSafetensors(FileSystem::Posix(), options.job.out);
  ASSERT_OK(whole);
  options.job.checkpoint_every = 1;
  options.job.out = folder / "resumed.safetensors";
  for (const bool device_first : {true, false}) {
    Traces traces;
    options.job.resume = false;
    UseDevice(device_first, options);
    std::uint64_t left = 4;
    JobControl* self = nullptr;
    JobControl control([&](const JobControl::Progress& progress) {
      if (progress.phase == "train" && --left == 0) self->Cancel();
    });
    self = &control;
    const auto open = [&]() -> Result<ComputeDevice> {
      return ComputeDevice{.kernels = std::make_unique<WatchedDevice>(testing::TestSeed(), traces)};
    };
    EXPECT_EQ(testing::AsStatus(TrainModel(options, control, open)).code(),
              StatusCode::kInterrupted);
    options.job.resume = true;
    UseDevice(!device_first, options);
    const JobControl going;
    const Result<TrainReport> resumed = TrainModel(options, going, open);
    ASSERT_OK(resumed);
    EXPECT_GT(resumed->resumed_minibatches, 0u);
    const auto found = LoadSafetensors(FileSystem::Posix(), options.job.out);
    ASSERT_OK(found);
    EXPECT_EQ(found->hash, whole->hash);
    EXPECT_THAT(traces.faults, ::testing::IsEmpty());
  }
}

TEST(DeviceTrainTest, FailuresOfTheDeviceAreErrors) {
  const TempDir folder;
  ASSERT_OK(WriteStore(folder / "s", {}));
  TrainOptions options = DeviceTraining(folder / "s");
  options.model.kind = "sage";
  options.model.options = {{"aggregator", "pool"}};
  options.learning.epochs = 1;
  options.minibatch()->steps = 3;
  Traces traces;
  ASSERT_OK(TrainWatched(options, traces));
  const std::uint64_t calls = traces.calls;
  for (std::uint64_t call = 0; call < calls; call += 1 + call / 3) {
    const Result<TrainReport> report = TrainWatched(options, traces, call);
    // A failure while resources are being released is ignored.
    if (report) continue;
    EXPECT_THAT(report.error().message(), HasSubstr("this call fails")) << call;
    EXPECT_TRUE(report.error().code() == StatusCode::kIoError ||
                report.error().code() == StatusCode::kOutOfMemory)
        << call;
  }
}

// Everything is computed on the device, with libtorch's products. Losses equal the CPU's up to the
// order of summation.
TEST(DeviceTrainTest, NoOperationTakesTheHostsTensorsForTheDevices) {
  const TempDir folder;
  ASSERT_OK(WriteStore(folder / "s", {}));
  for (const NetworkCase& network : NetworksForDevices()) {
    SCOPED_TRACE(network.name);
    TrainOptions options = DeviceTraining(folder / "s");
    options.model = network.spec;
    options.model.options["input-dropout"] = "0.1";
    options.learning.loss.class_weights = "balanced";
    options.learning.optimizer.clip_norm = 1;
    options.learning.train_metrics = true;
    if (network.spec.kind == "gin") options.learning.optimizer.kind = OptimizerKind::kSgd;
    if (network.spec.kind == "commnet") options.learning.optimizer.kind = OptimizerKind::kAdagrad;
    const Result<TrainReport> processor = TrainOnProcessor(options);
    ASSERT_OK(processor);
    Traces traces;
    const Result<TrainReport> device =
        TrainWatched(options, traces, FakeDevice::kNever, testing::HostBackend());
    ASSERT_OK(device);
    EXPECT_THAT(traces.faults, ::testing::IsEmpty());
    const std::vector<double> expected = LossesOf(*processor), found = LossesOf(*device);
    const double bound = network.name == "ResidualBatch" ? 2e-2 : 1e-4;
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(found[i], expected[i], bound * std::abs(expected[i]));
  }
}

TEST(DeviceTrainTest, OtherTasksLearnThereToo) {
  const TempDir folder;
  testing::PlantedOptions planted_options;
  planted_options.classes = 2;
  ASSERT_OK(WriteStore(folder / "s", planted_options));
  TrainOptions options = DeviceTraining(folder / "s");
  options.learning.task = Task::kBinary;
  options.learning.loss.label_smoothing = 0.1;
  for (const char* const weights : {"", "balanced"}) {
    options.learning.loss.class_weights = weights;
    const Result<TrainReport> processor = TrainOnProcessor(options);
    ASSERT_OK(processor);
    Traces traces;
    const Result<TrainReport> device =
        TrainWatched(options, traces, FakeDevice::kNever, testing::HostBackend());
    ASSERT_OK(device);
    const std::vector<double> expected = LossesOf(*processor), found = LossesOf(*device);
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(found[i], expected[i], 1e-4 * std::abs(expected[i]));
  }
}

TEST(DeviceTrainTest, SaysWhatCannotBeHad) {
  const TempDir folder;
  ASSERT_OK(WriteStore(folder / "s", {}));
  TrainOptions options = DeviceTraining(folder / "s");
  // There is no CUDA module beside the test binary.
  const Result<TrainReport> none = TrainAsAsked(options);
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code(), StatusCode::kUnsupported);
  EXPECT_THAT(none.error().message(), HasSubstr("librhizome_cuda.so"));
  EXPECT_THAT(none.error().message(), HasSubstr("nvcc"));
  Traces traces;
  options.model.kind = "sage";
  options.minibatch()->device->cache = PolicyKind::kLru;
  EXPECT_EQ(testing::AsStatus(TrainWatched(options, traces)).code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(traces.faults, ::testing::IsEmpty());
}

}  // namespace
}  // namespace rhizome
