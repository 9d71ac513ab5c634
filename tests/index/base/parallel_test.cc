#include "index/base/parallel.h"

#include <array>
#include <numeric>
#include <vector>

#include "testing/testing.h"

namespace rhizome {
namespace {

TEST(ParallelTest, EveryPieceIsDoneOnce) {
  for (const std::size_t count : {0, 1, 2, 1000}) {
    std::vector<int> done(count, 0);
    ParallelFor(count, [&](std::size_t i) { ++done[i]; });
    EXPECT_EQ(std::accumulate(done.begin(), done.end(), std::size_t{0}), count);
  }
}

// Each piece in flight has its own slot. Results arrive in order.
TEST(ParallelTest, InOrderFinishesInOrderAndNeverSharesASlot) {
  for (const std::size_t in_flight : {1, 2, 7}) {
    std::array<std::size_t, 7> slots{};
    std::vector<std::size_t> finished;
    ParallelInOrder(
        500, in_flight, [&](std::size_t i) { slots[i % in_flight] = i; },
        [&](std::size_t i) {
          finished.push_back(slots[i % in_flight]);
          return true;
        });
    std::vector<std::size_t> expected(500);
    std::iota(expected.begin(), expected.end(), std::size_t{0});
    EXPECT_EQ(finished, expected);
  }
}

TEST(ParallelTest, InOrderStopsWhenItIsTold) {
  std::size_t last = 0;
  ParallelInOrder(
      1000, 4, [](std::size_t) {},
      [&](std::size_t i) {
        last = i;
        return i < 10;
      });
  EXPECT_EQ(last, 10u);
}

}  // namespace
}  // namespace rhizome
