#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstring>
#include <fstream>

#include "gnn/full_graph/full_job.h"
#include "gnn/full_graph/full_testing.h"
#include "gnn/full_graph/step_run.h"
#include "gnn/ops/torch_threads.h"

// Tests the spill rules of full-graph training. Each rule runs an epoch (one learning step and one
// evaluation) at two memory limits. The epoch must have the same losses and gradients, to the bit,
// as one in memory, and read and write exactly the bytes that its plan says.

namespace rhizome {
namespace {

using testing::FullTraining;
using testing::LargerGraph;
using testing::TempDir;
using testing::TestSeed;
using testing::WriteStore;

/// Returns the bytes that this process has passed to write calls, as counted by the kernel.
std::uint64_t WrittenByProcess() {
  std::ifstream file("/proc/self/io");
  std::string name;
  for (std::uint64_t value = 0; file >> name >> value;)
    if (name == "wchar:") return value;
  ADD_FAILURE() << "/proc/self/io has no wchar";
  return 0;
}

/// Results of one epoch and the bytes that it moved.
struct Epoch {
  double loss = 0, valid_loss = 0;
  std::vector<torch::Tensor> gradients;
  ScratchMoved moved;
  std::uint64_t written_by_process = 0;
  std::uint64_t feature_bytes = 0;
  FullGraphReport report;
};

bool SameBits(const torch::Tensor& a, const torch::Tensor& b) {
  if (a.defined() != b.defined()) return false;
  return !a.defined() ||
         (a.sizes() == b.sizes() && std::memcmp(a.data_ptr(), b.data_ptr(), a.nbytes()) == 0);
}

struct Scores final : VertexScoreSink {
  void Take(std::span<const Row>, std::span<const float>) override {}
};

/// Plans an epoch and runs it in `folder`.
Result<Epoch> RunEpoch(const TrainOptions& options, const Path& folder) {
  const JobControl control;
  SetTorchThreads(options.resources.threads);
  RHIZOME_ASSIGN_OR_RETURN(const TrainJob job, OpenTrainJob(options));
  RHIZOME_ASSIGN_OR_RETURN(const std::unique_ptr<FullJob> full,
                           FullJob::Open(job, options, folder, nullptr, control));
  RHIZOME_RETURN_IF_ERROR(full->Prepare(nullptr));
  Epoch epoch;
  epoch.report = full->report();
  const std::uint64_t before = WrittenByProcess();
  {
    StepRun run(*full, {.measures = false});
    RHIZOME_ASSIGN_OR_RETURN(
        epoch.loss,
        full->network().Learn(options.learning.seed, nullptr, [&](const GraphPass& pass) {
          return run.Run(pass, "learn", control);
        }));
  }
  for (const torch::Tensor& parameter : job.model->Parameters())
    epoch.gradients.push_back(parameter.grad().clone());
  StepRun run(*full, {.measures = true});
  Scores scores;
  RHIZOME_ASSIGN_OR_RETURN(epoch.valid_loss,
                           full->network().Evaluate(scores, [&](const GraphPass& pass) {
                             return run.Run(pass, "measure", control);
                           }));
  epoch.written_by_process = WrittenByProcess() - before;
  epoch.moved = full->moved();
  epoch.feature_bytes = full->feature_bytes_read();
  return epoch;
}

constexpr std::uint32_t kMaxThreads = 3;

/// Returns the minimum memory for which a training with kMaxThreads threads can be planned,
/// rounded to a MiB, and the bytes of its arrays.
std::pair<std::uint64_t, std::uint64_t> LeastAndArrays(TrainOptions options, const Path& folder) {
  const JobControl control;
  const Result<TrainJob> job = OpenTrainJob(options);
  EXPECT_OK(job);
  const auto whole = FullJob::Open(*job, options, folder, nullptr, control);
  EXPECT_OK(whole);
  std::uint64_t arrays = 0;
  for (const FullGraphReport::Array& array : (*whole)->report().arrays) arrays += array.bytes;
  options.resources.memory_bytes = 1 << 20;
  options.resources.threads = kMaxThreads;
  options.full_graph()->sums = FullSums::kAuto;
  const auto none = FullJob::Open(*job, options, folder, nullptr, control);
  EXPECT_FALSE(none);
  std::smatch found;
  const std::string message = none.error().message();
  EXPECT_TRUE(std::regex_search(message, found, std::regex("needs at least (\\d+) MiB")));
  return {std::stoull(found[1]) << 20, arrays};
}

constexpr std::pair<SpillRule, const char*> kRules[] = {
    {SpillRule::kNone, "none"},     {SpillRule::kLru, "lru"}, {SpillRule::kLruLive, "lru-live"},
    {SpillRule::kBelady, "belady"}, {SpillRule::kDp, "dp"},   {SpillRule::kDpTensor, "dp-tensor"},
    {SpillRule::kAuto, "auto"}};

class FullGraphSpillTest : public ::testing::TestWithParam<testing::NetworkCase> {};

std::vector<testing::NetworkCase> SpilledNetworks() {
  using Options = std::map<std::string, std::string>;
  const auto made = [](const char* name, const char* kind, std::uint32_t layers,
                       const Options& options) {
    return testing::NetworkCase{
        name, {.kind = kind, .layers = layers, .hidden = 48, .dropout = 0.3, .options = options}};
  };
  return {made("DeepResidualGcn", "gcn", 4, {{"residual", "true"}}),
          made("BatchGin", "gin", 2, {{"norm", "batch"}}),
          made("NarrowSage", "sage", 3, {{"head", "none"}}),
          made("PoolSage", "sage", 3, {{"aggregator", "pool"}}),
          made("Gat", "gat", 3, {{"attention-dropout", "0.3"}}),
          made("GatV2", "gatv2", 3, {{"attention-dropout", "0.3"}})};
}

INSTANTIATE_TEST_SUITE_P(Each, FullGraphSpillTest, ::testing::ValuesIn(SpilledNetworks()),
                         [](const auto& info) { return info.param.name; });

TEST_P(FullGraphSpillTest, EveryRuleMovesWhatItPlansAndGivesTheSameBits) {
  const std::uint64_t seed = TestSeed();
  const TempDir folder;
  ASSERT_OK(WriteStore(folder / "s", LargerGraph(seed)));
  TrainOptions options = FullTraining(folder / "s", GetParam().spec);
  options.learning.seed = seed;
  const Path arrays = folder / "arrays";
  const Result<Epoch> whole = RunEpoch(options, arrays);
  ASSERT_OK(whole);
  EXPECT_EQ(whole->report.planned_bytes, 0u);
  EXPECT_EQ(whole->written_by_process, 0u);
  const auto [least, bytes] = LeastAndArrays(options, arrays);
  std::uint64_t spilled = 0, blocks = 0, kept = 0, recomputed = 0;
  for (const std::uint64_t share : {0, 3}) {
    options.resources.memory_bytes = least + (share == 0 ? 0 : bytes / share);
    std::uint64_t fewest = 0;
    for (const auto& [rule, name] : kRules) {
      for (const FullSums sums : {FullSums::kAuto, FullSums::kRecompute}) {
        // A few rules suffice to test recomputed sums.
        const bool again = sums == FullSums::kRecompute;
        if (again && (GetParam().spec.layers < 4 || share == 0)) continue;
        if (again && rule != SpillRule::kBelady && rule != SpillRule::kDp) continue;
        SCOPED_TRACE(fmt::format("{} of 1/{}, sums {}, seed {}", name, share,
                                 again ? "recompute" : "auto", seed));
        options.full_graph()->spill = rule;
        options.full_graph()->sums = sums;
        options.resources.threads = options.resources.threads % kMaxThreads + 1;
        const Result<Epoch> epoch = RunEpoch(options, arrays);
        if (!epoch && rule == SpillRule::kDpTensor) {  // one whole array does not fit
          EXPECT_EQ(epoch.error().code(), StatusCode::kOutOfMemory);
          continue;
        }
        ASSERT_OK(epoch);
        const FullGraphReport& report = epoch->report;
        EXPECT_EQ(epoch->loss, whole->loss);
        EXPECT_EQ(epoch->valid_loss, whole->valid_loss);
        for (std::size_t i = 0; i < whole->gradients.size(); ++i)
          EXPECT_TRUE(SameBits(epoch->gradients[i], whole->gradients[i])) << "weight " << i;
        EXPECT_EQ(epoch->moved.read, report.planned_read_bytes);
        EXPECT_EQ(epoch->moved.read + epoch->moved.written, report.planned_bytes);
        EXPECT_EQ(epoch->written_by_process, epoch->moved.written);
        const std::uint64_t all_bytes = report.planned_bytes + report.feature_bytes;
        EXPECT_EQ(epoch->feature_bytes, report.feature_bytes);
        EXPECT_GE(all_bytes, report.lower_bound_bytes);
        if (rule == SpillRule::kAuto) {
          for (const FullGraphReport::Policy& policy : report.policies)
            EXPECT_LE(all_bytes, policy.bytes) << policy.name;
        } else {
          EXPECT_EQ(report.spill, name);
        }
        if (rule == SpillRule::kNone && sums == FullSums::kAuto) fewest = all_bytes;
        if (rule == SpillRule::kAuto && sums == FullSums::kAuto) {
          EXPECT_LE(all_bytes, fewest);
        }
        spilled += report.planned_bytes;
        for (const FullGraphPass& pass : report.passes) {
          blocks = std::max(blocks, pass.blocks);
          recomputed += pass.sums == "recomputed";
          for (const FullGraphPass::Moved& moved : pass.resident) kept += moved.bytes;
        }
        if (HasFailure()) return;
      }
    }
  }
  EXPECT_GT(spilled, 0u);
  EXPECT_GT(kept, 0u);
  EXPECT_GT(blocks, 1u);
  if (GetParam().spec.layers == 4) {
    EXPECT_GT(recomputed, 0u);
  }
}

}  // namespace
}  // namespace rhizome
