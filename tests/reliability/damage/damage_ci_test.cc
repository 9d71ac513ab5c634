#include "reliability/damage/damage_testing.h"

namespace rhizome::testing {
namespace {

// Tests a random part of the bits in each run; damage_long_test.cc tests all.
TEST(DamageTest, NoFlippedBitIsSilent) { ExpectNoFlippedBitIsSilent(29); }

TEST(DamageTest, NoFlippedBitOfALogIsSilent) { ExpectNoFlippedBitOfALogIsSilent(9); }

TEST(DamageTest, NoInjuredFileIsSilent) { ExpectNoInjuredFileIsSilent(31); }

}  // namespace
}  // namespace rhizome::testing
