#include "index/delta/delta.h"

#include <random>

#include "testing/update_history.h"

namespace rhizome {
namespace {

TEST(DeltaTest, HistoriesAgreeWithANaiveModel) {
  std::mt19937_64 rng(testing::TestSeed());
  testing::RunHistories(rng, 3, /*compact=*/false);
}

}  // namespace
}  // namespace rhizome
