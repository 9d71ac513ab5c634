#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "rhizome/gnn/scratch_array.h"
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
  // One that is larger takes the place of one that is free.
  EXPECT_OK(space.Take(2 * kBytes));
  EXPECT_EQ(space.held_bytes(), 5 * kBytes);
}

TEST(ScratchSpaceTest, BeyondTheRoomNothingIsKept) {
  const TempDir folder;
  ScratchSpace space(FileSystem::Posix(), folder / "arrays");
  auto taken = TakeMany(space, 4);
  taken.resize(3);
  space.SetRoom(3 * kBytes);  // what is free goes at once
  EXPECT_EQ(space.held_bytes(), 3 * kBytes);
  space.SetRoom(kBytes);  // what is in use goes when nobody holds it
  EXPECT_EQ(space.held_bytes(), 3 * kBytes);
  taken.resize(1);
  EXPECT_EQ(space.held_bytes(), kBytes);
  taken.clear();
  EXPECT_EQ(space.held_bytes(), kBytes);
  space.SetRoom(0);
  EXPECT_EQ(space.held_bytes(), 0u);
}

}  // namespace
}  // namespace rhizome
