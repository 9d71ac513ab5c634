#include "rhizome/index/compaction.h"

#include <random>

#include "testing/update_history.h"

namespace rhizome {
namespace {

TEST(CompactionTest, HistoriesAgreeWithANaiveModel) {
  std::mt19937_64 rng(testing::TestSeed());
  testing::RunHistories(rng, 4, /*compact=*/true);
}

}  // namespace
}  // namespace rhizome
