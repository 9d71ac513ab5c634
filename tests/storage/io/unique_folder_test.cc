#include "storage/io/unique_folder.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "testing/testing.h"

namespace rhizome {
namespace {

using testing::TempDir;

TEST(UniqueFolderTest, TwoOfOnePrefixAreTwoFolders) {
  const TempDir dir;
  const auto one = MakeUniqueFolder(dir / "x-", "make");
  const auto other = MakeUniqueFolder(dir / "x-", "make");
  ASSERT_OK(one);
  ASSERT_OK(other);
  EXPECT_NE(*one, *other);
  for (const Path& made : {*one, *other}) {
    EXPECT_TRUE(std::filesystem::is_directory(made)) << made;
    EXPECT_TRUE(made.filename().string().starts_with("x-")) << made;
  }
}

TEST(UniqueFolderTest, AnErrorSaysWhatWasWanted) {
  const TempDir dir;
  const auto made = MakeUniqueFolder(dir / "none" / "x-", "make a folder for scratch files");
  EXPECT_STATUS(made, kNotFound);
  EXPECT_NE(made.error().message().find("make a folder for scratch files"), std::string::npos);
}

}  // namespace
}  // namespace rhizome
