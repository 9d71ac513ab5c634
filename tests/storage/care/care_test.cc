#include "testing/care.h"

#include <gtest/gtest.h>

namespace rhizome::testing {
namespace {

using Named = std::pair<const std::string, std::function<Complaint()>>;

class CareTest : public ::testing::TestWithParam<Named> {};

TEST_P(CareTest, NothingIsWrong) { EXPECT_EQ(GetParam().second(), std::nullopt); }

INSTANTIATE_TEST_SUITE_P(Complaints, CareTest, ::testing::ValuesIn(Complaints()),
                         [](const auto& info) { return info.param.first; });

}  // namespace
}  // namespace rhizome::testing
