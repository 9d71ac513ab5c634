#include <cstdio>
#include <string>
#include <string_view>

#include "cuda/kernel_cases.h"
#include "testing/testing.h"

// Seeded mistakes of the kernels (RZ_MUTANT in their source). The test cases must catch each of
// them. The name of a mistake starts with the name of its case.

namespace rhizome {
namespace {

constexpr const char* kMutants[] = {
    "gather: places are ignored",
    "gather: row check off by one",
    "gather: negative rows pass",
    "gather: the flag is written plainly",
    "gather: warps step by threads",
    "gather: one position too many",
    "gather: rows of the output are dense",
    "gather: the last word is left out",
    "gather: all rows are aligned",
    "id map: the search of a full table does not end",
    "id map: keys are read plainly",
    "id map: a key is stored, not exchanged",
    "id map: exchange with its operands swapped",
    "id map: a thread that loses the exchange takes the slot",
    "id map: probing does not wrap around",
    "id map: one probe only",
    "id map: the sentinel passes as an id",
    "id map: a full table is no error",
    "id map: the first position is compared, then stored",
    "id map: positions of earlier calls are forgotten",
    "id map: a position counts itself",
    "id map: known ids are numbered again",
    "id map: the words' counts are not scanned",
    "three steps: the warp's sum lacks its last lane",
    "three steps: no barrier after the sums",
    "three steps: threads beyond the end leave before the barrier",
    "three steps: every thread writes the total",
    "sum: edges beyond the list are read",
    "sum: last edge left out",
    "sum: rows lie as far apart as they are wide",
    "sum: columns beyond the width are read",
    "sum: groups step by threads",
    "sum: all rows are read four columns at a time",
    "sum: long lists are summed whole, too",
    "sum: a list has two pieces",
    "shared sums: they do not begin at zero",
    "shared sums: staged before all have read",
    "shared sums: read before all have staged",
    "max: a NaN is not larger",
    "max: the last of equals wins",
    "max gradient: places for edges",
    "edge dots: the tree is turned over",
    "edge dots: every lane writes",
    "attention: the maximum never rises",
    "attention: denominators are not rescaled",
    "attention: the own edge is left out",
    "attention: edges are dropped together",
    "attention: gradients forget that weights add up to 1",
    "attention: LeakyReLU has slope 1 in gradients",
    "attention: queries forget the own edge",
    "attention v2: LeakyReLU comes before the sum",
    "attention v2: sums are not rescaled",
    "attention v2: all sums are positive",
    "attention v2: queries forget the own edge",
    "activate: all rows have one mask",
    "activate: the larger draws are dropped",
    "activate: gradients pass what is dropped",
};

/// Returns the number of schedules until one of the mutant's cases catches it; 0 if 200 do not.
int SchedulesUntilCaught(std::string_view mutant, std::uint64_t seed) {
  for (std::uint64_t i = 0; i < 200; ++i) {
    for (const simulator::KernelCase& kernel : simulator::kKernelCases) {
      if (!mutant.starts_with(kernel.name)) continue;
      simulator::Random random(seed + i);
      simulator::Machine machine(seed ^ i << 20);
      simulator::active_mutant = mutant;
      const std::string wrong = kernel.run(random);
      simulator::active_mutant = {};
      if (!wrong.empty()) return static_cast<int>(i) + 1;
    }
  }
  return 0;
}

TEST(KernelMutantsTest, EachSeededMistakeIsCaught) {
  const std::uint64_t seed = testing::TestSeed();
  for (const char* const mutant : kMutants) {
    const int schedules = SchedulesUntilCaught(mutant, seed);
    EXPECT_GT(schedules, 0) << mutant << " is not caught";
    std::printf("%4d  %s\n", schedules, mutant);
  }
}

// A mistake that is missing from the list above would never be activated.
TEST(KernelMutantsTest, TheListHasEveryMistakeOfTheKernels) {
  simulator::asked_mutants.emplace();
  const std::uint64_t seed = testing::TestSeed();
  for (const simulator::KernelCase& kernel : simulator::kKernelCases) {
    for (std::uint64_t i = 0; i < 60; ++i) {
      simulator::Random random(seed + i);
      simulator::Machine machine(seed + i);
      EXPECT_EQ(kernel.run(random), "");
    }
  }
  std::set<std::string_view> listed(std::begin(kMutants), std::end(kMutants));
  EXPECT_EQ(*simulator::asked_mutants, listed);
  simulator::asked_mutants.reset();
}

}  // namespace
}  // namespace rhizome
