#include <gtest/gtest.h>

#include "reliability/harness/input_check.h"
#include "reliability/harness/rows_check.h"

namespace rhizome::testing {
namespace {

TEST(RowsTest, StayWithTheirVertices) { EXPECT_EQ(CheckRows(), std::nullopt); }
TEST(InputsTest, AreWhatTheyAreTakenFor) { EXPECT_EQ(CheckInputs(), std::nullopt); }

}  // namespace
}  // namespace rhizome::testing
