#include <gtest/gtest.h>

#include "reliability/harness/history.h"

namespace rhizome::testing {
namespace {

TEST(SharingTest, ReadersKeepWhatTheySeeAndWritersExcludeEachOther) {
  EXPECT_EQ(CheckSharing(), std::nullopt);
}

}  // namespace
}  // namespace rhizome::testing
