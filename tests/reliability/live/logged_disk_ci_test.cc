#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <vector>

#include "reliability/live/logged_disk.h"
#include "rhizome/file_system.h"
#include "testing/testing.h"

namespace rhizome::testing {
namespace {

constexpr std::uint64_t kBytes = 1 << 20;

std::vector<std::byte> Block(int value) { return {4096, std::byte(value)}; }

class LoggedDiskTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can mount a file system";
    std::filesystem::create_directory(folder_);
    auto image = MemoryFile(kBytes);
    ASSERT_OK(image);
    auto disk = LoggedDisk::Make(image->fd(), folder_);
    if (!disk) GTEST_SKIP() << "no logged disk here: " << disk.error().ToString();
    disk_ = std::move(*disk);
  }

  void Write(std::uint64_t offset, int value) {
    ASSERT_OK(WriteAt(disk_->image(), offset, Block(value).data(), Block(value).size()));
  }

  const TempDir dir_;
  const Path folder_ = dir_ / "shown";
  const UnmountAtDeath at_death_{{folder_}};
  std::unique_ptr<LoggedDisk> disk_;
};

TEST_F(LoggedDiskTest, KeepsTheOrderOfWritesAndFlushes) {
  Write(8192, 1);
  ASSERT_EQ(disk_->position(), 1U) << "a write is logged when it has returned";
  ASSERT_EQ(fdatasync(disk_->image()), 0);
  Write(0, 2);
  Write(8192, 3);
  ASSERT_EQ(fsync(disk_->image()), 0);
  EXPECT_EQ(disk_->flushes(), 2U);
  const auto log = disk_->TakeLog();
  ASSERT_EQ(log.size(), 5U);
  const std::vector<bool> flushes = {false, true, false, false, true};
  for (std::size_t i = 0; i < log.size(); ++i) EXPECT_EQ(log[i].is_flush, flushes[i]) << i;
  EXPECT_EQ(log[0].offset, 8192U);
  EXPECT_EQ(log[0].bytes, Block(1));
  EXPECT_EQ(log[2].offset, 0U);
  EXPECT_EQ(log[2].bytes, Block(2));
  EXPECT_EQ(log[3].offset, 8192U);
  EXPECT_EQ(log[3].bytes, Block(3));
}

TEST_F(LoggedDiskTest, HoldsWhatWasWrittenAndNoMoreThanItsSize) {
  Write(kBytes - 4096, 7);
  EXPECT_EQ(disk_->TakeLog().size(), 1U);
  Write(0, 8);
  EXPECT_EQ(disk_->position(), 0U) << "the log was taken";
  std::vector<std::byte> all(kBytes + 4096);
  ASSERT_EQ(pread(disk_->image(), all.data(), all.size(), 0), static_cast<ssize_t>(kBytes));
  EXPECT_EQ(std::count(all.begin(), all.end(), std::byte(8)), 4096);
  EXPECT_EQ(std::count(all.begin(), all.end(), std::byte(7)), 4096);
  EXPECT_FALSE(WriteAt(disk_->image(), kBytes, Block(9).data(), 4096).ok());
}

}  // namespace
}  // namespace rhizome::testing
