#include "reliability/damage/damage_testing.h"

namespace rhizome::testing {
namespace {

// Tests all bits.
TEST(DamageLongTest, NoFlippedBitIsSilent) { ExpectNoFlippedBitIsSilent(1); }

TEST(DamageLongTest, NoFlippedBitOfALogIsSilent) { ExpectNoFlippedBitOfALogIsSilent(1); }

TEST(DamageLongTest, NoInjuredFileIsSilent) { ExpectNoInjuredFileIsSilent(1); }

}  // namespace
}  // namespace rhizome::testing
