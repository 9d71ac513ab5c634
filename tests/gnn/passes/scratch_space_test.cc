#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

#include "gnn/passes/scratch_array.h"
#include "storage/io/forwarding_file_system.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using testing::TempDir;

constexpr std::uint64_t kBytes = std::uint64_t{1} << 16;

std::vector<std::shared_ptr<float[]>> TakeMany(ScratchSpace& space, int count) {
  std::vector<std::shared_ptr<float[]>> taken;
  for (int i = 0; i < count; ++i) {
    Result<std::shared_ptr<float[]>> one = space.Take(kBytes);
    EXPECT_OK(one);
    taken.push_back(*std::move(one));
  }
  return taken;
}

TEST(ScratchSpaceTest, MemoryIsUsedAgain) {
  const TempDir folder;
  ScratchSpace space(FileSystem::Posix(), folder / "arrays");
  auto taken = TakeMany(space, 4);
  EXPECT_EQ(space.held_bytes(), 4 * kBytes);
  taken.clear();
  EXPECT_EQ(space.held_bytes(), 4 * kBytes);
  taken = TakeMany(space, 3);
  EXPECT_EQ(space.held_bytes(), 4 * kBytes);
  // A larger buffer replaces a free one.
  EXPECT_OK(space.Take(2 * kBytes));
  EXPECT_EQ(space.held_bytes(), 5 * kBytes);
}

TEST(ScratchSpaceTest, BeyondTheRoomNothingIsKept) {
  const TempDir folder;
  ScratchSpace space(FileSystem::Posix(), folder / "arrays");
  auto taken = TakeMany(space, 4);
  taken.resize(3);
  space.SetRoom(3 * kBytes);  // free buffers are released at once
  EXPECT_EQ(space.held_bytes(), 3 * kBytes);
  space.SetRoom(kBytes);  // buffers in use are released when their last owner drops them
  EXPECT_EQ(space.held_bytes(), 3 * kBytes);
  taken.resize(1);
  EXPECT_EQ(space.held_bytes(), kBytes);
  taken.clear();
  EXPECT_EQ(space.held_bytes(), kBytes);
  space.SetRoom(0);
  EXPECT_EQ(space.held_bytes(), 0u);
}

/// A file system that removes files only while it is allowed to, and slowly.
class SlowRemovals final : public ForwardingFileSystem {
 public:
  SlowRemovals() : ForwardingFileSystem(FileSystem::Posix()) {}
  Status RemoveFile(const Path& path) override {
    may_remove_.wait(false);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return ForwardingFileSystem::RemoveFile(path);
  }
  void Let(bool may) {
    may_remove_ = may;
    may_remove_.notify_all();
  }

 private:
  std::atomic<bool> may_remove_ = true;
};

TEST(ScratchSpaceTest, AFileThatIsBeingRemovedCanBeMadeAgain) {
  const TempDir folder;
  SlowRemovals slow;
  ScratchSpace space(slow, folder.path());
  ScratchArray array(space, {.name = "a", .rows = 8, .dim = 4, .chunk_rows = 2}, 0);
  for (const float value : {1.0F, 2.0F, 3.0F}) {
    for (std::uint64_t chunk = 0; chunk < 4; ++chunk) {
      const auto values = array.Take(chunk);
      ASSERT_OK(values);
      std::fill_n(values->get(), 8, value);
      ASSERT_OK(array.Store(chunk, values->get()));
    }
    for (std::uint64_t chunk = 0; chunk < 4; ++chunk) {
      const auto values = array.Load(chunk);
      ASSERT_OK(values);
      EXPECT_EQ((*values)[7], value);
    }
    slow.Let(false);
    array.RemoveFiles();
    EXPECT_FALSE(std::filesystem::is_empty(folder.path()));  // RemoveFiles did not wait
    slow.Let(true);
  }
  space.WaitForRemovals();
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(ScratchSpaceTest, AProtectedFileIsRemovedWhenItNoLongerIs) {
  const TempDir folder;
  ScratchSpace space(FileSystem::Posix(), folder.path());
  ScratchArray array(space, {.name = "a", .rows = 4, .dim = 4, .chunk_rows = 2}, 0);
  for (std::uint64_t chunk = 0; chunk < 2; ++chunk) {
    const auto values = array.Take(chunk);
    ASSERT_OK(values);
    std::fill_n(values->get(), 8, 1.0F);
    ASSERT_OK(array.Store(chunk, values->get()));
  }
  space.Protect({array.FileOf(0, 1)});
  array.RemoveFiles();
  space.WaitForRemovals();
  EXPECT_FALSE(std::filesystem::exists(array.FileOf(0, 0)));
  EXPECT_TRUE(std::filesystem::exists(array.FileOf(0, 1)));
  space.Protect({});
  space.WaitForRemovals();
  EXPECT_FALSE(std::filesystem::exists(array.FileOf(0, 1)));
}

}  // namespace
}  // namespace rhizome
