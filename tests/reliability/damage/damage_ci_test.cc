#include "reliability/damage/damage_testing.h"

namespace rhizome::testing {
namespace {

// Tests a random part of the bits in each run; damage_long_test.cc tests all.
TEST(DamageTest, NoFlippedBitIsSilent) { ExpectNoFlippedBitIsSilent(12); }

TEST(DamageTest, NoFlippedBitOfALogIsSilent) { ExpectNoFlippedBitOfALogIsSilent(4); }

TEST(DamageTest, NoInjuredFileIsSilent) { ExpectNoInjuredFileIsSilent(13); }

}  // namespace
}  // namespace rhizome::testing
