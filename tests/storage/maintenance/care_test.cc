#include "testing/care.h"

#include <gtest/gtest.h>

#include "testing/sanitizer.h"

namespace rhizome::testing {
namespace {

using Named = std::pair<const std::string, std::function<Complaint()>>;

class CareTest : public ::testing::TestWithParam<Named> {};

TEST_P(CareTest, NothingIsWrong) {
  const auto& [name, complaint] = GetParam();
  const std::string unfit = UnfitForSanitizers(name);
  if (kSanitized && !unfit.empty()) GTEST_SKIP() << unfit;
  EXPECT_EQ(complaint(), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(Complaints, CareTest, ::testing::ValuesIn(Complaints()),
                         [](const auto& info) { return info.param.first; });

}  // namespace
}  // namespace rhizome::testing
