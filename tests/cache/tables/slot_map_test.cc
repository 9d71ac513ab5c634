#include "cache/tables/slot_map.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "testing/testing.h"

// Test of SlotMap against std::map under random changes, with many collisions.

namespace rhizome {
namespace {

TEST(SlotMapTest, EqualsAStdMap) {
  std::mt19937_64 random(testing::TestSeed());
  for (const std::size_t slots : {1U, 2U, 7U, 100U}) {
    SlotMap map(slots);
    std::map<Row, SlotId> model;
    std::vector<Row> rows(slots, -1);  // by slot
    const auto row_of = [&](SlotId slot) { return rows[slot]; };
    for (int step = 0; step < 20000; ++step) {
      const auto slot = static_cast<SlotId>(random() % slots);
      if (rows[slot] >= 0) {
        map.Erase(slot, row_of);
        const auto found = model.find(rows[slot]);
        if (found != model.end() && found->second == slot) model.erase(found);
        rows[slot] = -1;
      } else {
        rows[slot] = static_cast<Row>(random() % (2 * slots));
        map.Set(slot, row_of);
        model[rows[slot]] = slot;  // another slot of the row is no longer found
      }
      const auto row = static_cast<Row>(random() % (2 * slots));
      const auto found = model.find(row);
      ASSERT_EQ(map.Find(row, row_of), found == model.end() ? kNowhere : found->second);
    }
  }
}

}  // namespace
}  // namespace rhizome
