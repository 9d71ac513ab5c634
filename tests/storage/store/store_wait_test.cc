// Waiting for the writer's lock, and changes that require a certain store.

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "rhizome/array_change.h"
#include "rhizome/job_control.h"
#include "rhizome/store.h"
#include "storage/array_fixture.h"
#include "testing/store_contents.h"

namespace rhizome {
namespace {

using testing::TempDir;

FileSystem& disk = FileSystem::Posix();

class StoreWaitTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(testing::MakeStore(disk, path_)); }
  static Result<std::unique_ptr<Store>> Writer(const Path& path, const LockWait& wait = {}) {
    return Store::Open(disk, path, Mode::kWrite, {.wait = wait});
  }

  TempDir dir_;
  Path path_ = dir_ / "s";
};

TEST_F(StoreWaitTest, TheLockIsTakenOnceItIsFree) {
  auto holder = Writer(path_);
  ASSERT_OK(holder);
  std::atomic<bool> waiting = false;
  JobControl control([&](const JobControl::Progress&) { waiting = true; });
  std::thread release([&] {
    EXPECT_TRUE(testing::Eventually([&] { return waiting.load(); }));
    holder->reset();
  });
  const auto waited = Writer(path_, {.seconds = 600, .control = &control});
  release.join();
  EXPECT_OK(waited);
}

TEST_F(StoreWaitTest, BusyNamesTheHolderAndTheOption) {
  const auto holder = Writer(path_);
  ASSERT_OK(holder);
  const std::string pid = std::to_string(getpid());
  const auto refused = Writer(path_);
  EXPECT_STATUS(refused, kBusy);
  EXPECT_NE(refused.error().message().find(pid), std::string::npos) << refused.error().message();
  EXPECT_NE(refused.error().message().find("`wait_seconds`"), std::string::npos);
  const auto late = Writer(path_, {.seconds = 0.2});
  EXPECT_STATUS(late, kBusy);
  EXPECT_NE(late.error().message().find(pid), std::string::npos) << late.error().message();
  EXPECT_NE(late.error().message().find("after 0.2 s"), std::string::npos);
  EXPECT_EQ(late.error().message().find("`wait_seconds`"), std::string::npos);
}

TEST_F(StoreWaitTest, CancellationEndsTheWait) {
  const auto holder = Writer(path_);
  ASSERT_OK(holder);
  JobControl control;
  control.Cancel();
  EXPECT_STATUS(Writer(path_, {.seconds = 600, .control = &control}), kInterrupted);
  EXPECT_STATUS(ArrayChange::Run(disk, path_, {.wait = {.seconds = 600, .control = &control}},
                                 [](ArrayChange&) { return Status::Ok(); }),
                kInterrupted);
}

/// A change for one store does not touch another one: neither its arrays, nor its orphans.
TEST_F(StoreWaitTest, AnotherStoreIsNotChanged) {
  StoreId wanted = testing::FixedStoreId();
  wanted.bytes[0] = static_cast<std::byte>(~static_cast<unsigned>(wanted.bytes[0]) & 255U);
  // An orphan, which every opening for writing would remove.
  const Path orphan = path_ / "generations/000002";
  std::filesystem::create_directories(orphan);
  const auto before = testing::GenerationBytes(path_);
  bool ran = false;
  const Status refused = ArrayChange::Run(disk, path_, {.id = wanted}, [&](ArrayChange& change) {
    ran = true;
    return change.Drop("feat");
  });
  EXPECT_STATUS(refused, kIoError);
  EXPECT_NE(refused.message().find("was moved"), std::string::npos) << refused.message();
  EXPECT_FALSE(ran);
  EXPECT_STATUS(ArrayChange::RemoveDropped(disk, path_, wanted), kIoError);
  EXPECT_TRUE(std::filesystem::exists(orphan));
  EXPECT_EQ(testing::GenerationBytes(path_), before);
  EXPECT_OK(ArrayChange::Run(disk, path_, {.id = testing::FixedStoreId()},
                             [](ArrayChange& change) { return change.Drop("feat"); }));
}

}  // namespace
}  // namespace rhizome
