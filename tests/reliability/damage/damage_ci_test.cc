#include "reliability/damage/damage_testing.h"

namespace rhizome::testing {
namespace {

// A part of them, drawn anew in each run; damage_long_test.cc goes through all.
TEST(DamageTest, NoFlippedBitIsSilent) { ExpectNoFlippedBitIsSilent(10); }

TEST(DamageTest, NoFlippedBitOfALogIsSilent) { ExpectNoFlippedBitOfALogIsSilent(4); }

TEST(DamageTest, NoInjuredFileIsSilent) { ExpectNoInjuredFileIsSilent(10); }

}  // namespace
}  // namespace rhizome::testing
