#include <gtest/gtest.h>

#include "reliability/rows_check.h"

namespace rhizome::testing {
namespace {

TEST(RowsTest, StayWithTheirVertices) { EXPECT_EQ(CheckRows(), std::nullopt); }

}  // namespace
}  // namespace rhizome::testing
