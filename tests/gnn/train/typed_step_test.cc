#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <ostream>
#include <random>
#include <string>

#include "gnn/train/learner.h"
#include "testing/testing.h"

// The largest tensor of a training step of the kinds with weights by edge type.

namespace rhizome {
namespace {

constexpr std::int64_t kWidth = 32;
constexpr std::size_t kStepRelations = 3;
constexpr std::size_t kDegree = 60;
constexpr std::uint64_t kStepSeeds = 500, kStepTargets = 1500, kStepRows = 6000;

struct StepCase {
  const char* name;
  const char* kind;
  std::map<std::string, std::string> options;
};
void PrintTo(const StepCase& param, std::ostream* out) { *out << param.name; }

/// Forwards requests to the default allocator and records the largest.
class LargestAllocation final : public c10::Allocator {
 public:
  LargestAllocation() : next_(c10::GetCPUAllocator()) { c10::SetCPUAllocator(this, 1); }
  ~LargestAllocation() override { c10::SetCPUAllocator(next_, 1); }
  c10::DataPtr allocate(std::size_t bytes) override {
    std::size_t before = bytes_;
    while (bytes > before && !bytes_.compare_exchange_weak(before, bytes)) {
    }
    return next_->allocate(bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return next_->raw_deleter(); }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
  std::size_t bytes() const { return bytes_; }

 private:
  c10::Allocator* const next_;
  std::atomic<std::size_t> bytes_ = 0;
};

/// A minibatch of two hops with many more edges than groups of edges: 60 for each of 1,500 targets,
/// in at most three groups.
Minibatch DenseMinibatch(std::mt19937_64& random) {
  Minibatch made;
  made.seed_count = kStepSeeds;
  made.hop_offsets = {0, kStepSeeds, kStepTargets, kStepRows};
  for (std::uint64_t v = 0; v < kStepRows; ++v) {
    made.rows.push_back(static_cast<Row>(v));
    made.vertex_types.push_back(static_cast<TypeId>(random() % 2));
  }
  for (std::uint64_t t = 0; t < kStepTargets; ++t) {
    const std::uint64_t sources = t < kStepSeeds ? kStepTargets : kStepRows;
    for (std::size_t e = 0; e < kDegree; ++e) {
      made.neighbors.push_back(static_cast<std::uint32_t>(random() % sources));
      made.types.push_back(static_cast<TypeId>(random() % kStepRelations));
    }
    made.offsets.push_back(static_cast<std::uint32_t>(made.neighbors.size()));
  }
  auto features =
      FeatureRows::Own(DataType::kFloat32, made.rows.size(), static_cast<std::size_t>(kWidth));
  EXPECT_OK(features);
  made.features = std::move(*features);
  for (float& value : made.features.own_floats()) value = static_cast<float>(random() % 1000) / 500;
  return made;
}

/// Returns the larger of the rows and the groups of a minibatch: pairs of a target and a relation
/// between which there are edges.
std::size_t RowsOrGroups(const Minibatch& minibatch) {
  std::size_t groups = 0;
  for (std::size_t t = 0; t + 1 < minibatch.offsets.size(); ++t) {
    std::array<bool, kStepRelations> seen = {};
    for (std::uint32_t e = minibatch.offsets[t]; e < minibatch.offsets[t + 1]; ++e)
      seen[minibatch.types[e]] = true;
    groups += static_cast<std::size_t>(std::count(seen.begin(), seen.end(), true));
  }
  return std::max(groups, minibatch.rows.size());
}

/// Returns the bytes of the largest tensor that a training step allocates.
std::size_t LargestOfStep(const StepCase& param, std::int64_t hidden, const Minibatch& minibatch) {
  ModelShape shape{.spec = {.kind = param.kind,
                            .layers = 2,
                            .hidden = hidden,
                            .dropout = 0.5,
                            .options = param.options},
                   .inputs = kWidth,
                   .classes = 4};
  shape.relations = {"a", "b", "c"};
  shape.vertex_types = {"x", "y"};
  auto model = Model::Create(shape, 1);
  EXPECT_OK(model);
  Labels labels;
  labels.classes = 4;
  for (std::uint64_t v = 0; v < kStepRows; ++v)
    labels.label.push_back(static_cast<std::int32_t>(v % 4));
  const LearningOptions learning{};
  Learner learner(*model, labels, {.learning = learning});
  const LargestAllocation largest;
  learner.Learn(minibatch);
  return largest.bytes();
}

class TypedStepTest : public ::testing::TestWithParam<StepCase> {};

TEST_P(TypedStepTest, NoTensorIsLargerThanThreeRowsForEachGroup) {
  std::mt19937_64 random(testing::TestSeed());
  const Minibatch minibatch = DenseMinibatch(random);
  const std::size_t allowed = RowsOrGroups(minibatch) * 3 * kWidth * sizeof(float);
  ASSERT_GT(minibatch.neighbors.size() * kWidth * sizeof(float), 4 * allowed)
      << "a row for each edge would remain below the bound";
  const std::size_t largest = LargestOfStep(GetParam(), kWidth, minibatch);
  EXPECT_GE(largest, kStepTargets * kWidth * sizeof(float)) << "the step was not observed";
  EXPECT_LE(largest, allowed);
}

TEST(HgtStepTest, GroupsAndSourcesHaveRowsForSomeOfTheHeads) {
  std::mt19937_64 random(testing::TestSeed());
  const Minibatch minibatch = DenseMinibatch(random);
  constexpr std::size_t kColumnsOfHead = 64;
  const std::size_t largest = LargestOfStep({"Hgt", "hgt", {{"heads", "4"}}}, 256, minibatch);
  EXPECT_LE(largest, RowsOrGroups(minibatch) * 3 * kColumnsOfHead * sizeof(float));
}

INSTANTIATE_TEST_SUITE_P(Kinds, TypedStepTest,
                         ::testing::Values(StepCase{"RgcnFull", "rgcn", {}},
                                           StepCase{"RgcnBases", "rgcn", {{"bases", "2"}}},
                                           StepCase{"RgcnBlocks", "rgcn", {{"blocks", "4"}}},
                                           StepCase{"Hgt", "hgt", {{"heads", "4"}}},
                                           StepCase{"HgtOneHead", "hgt", {{"heads", "1"}}}),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace rhizome
