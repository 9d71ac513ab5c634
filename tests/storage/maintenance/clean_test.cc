#include <sys/file.h>

#include <filesystem>
#include <fstream>

#include "rhizome/store.h"
#include "rhizome/store_options.h"
#include "storage/array_fixture.h"
#include "storage/io/job_folder.h"

namespace rhizome {
namespace {

using testing::TempDir;
using State = JobScratchFolder::State;

FileSystem& disk = FileSystem::Posix();

class CleanTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(testing::MakeStore(disk, path_)); }

  /// Creates the scratch folder of a job that was killed.
  static void Killed(const Path& folder) {
    ASSERT_OK(ClaimJobFolder(disk, folder));
    std::ofstream(folder / "spill") << "0123456789";
  }
  static std::map<std::string, State> States(const CleanReport& report) {
    std::map<std::string, State> states;
    for (const JobScratchFolder& folder : report.folders)
      states[folder.path.filename().string()] = folder.state;
    return states;
  }

  TempDir dir_;
  Path path_ = dir_ / "s";
};

TEST_F(CleanTest, RemovesOnlyFoldersOfJobsThatEnded) {
  Killed(path_ / "scratch/killed");
  Killed(path_ / "scratch/running");
  const auto running = ClaimJobFolder(disk, path_ / "scratch/running");
  ASSERT_OK(running);
  std::filesystem::create_directories(path_ / "scratch/mine");
  std::ofstream(path_ / "scratch/mine/notes.txt") << "not of a job";
  const std::map<std::string, State> all = {
      {"killed", State::kEnded}, {"mine", State::kForeign}, {"running", State::kRunning}};

  const auto dry = CleanScratch(disk, path_, {.dry_run = true});
  ASSERT_OK(dry);
  EXPECT_EQ(States(*dry), all);
  EXPECT_EQ(dry->removed, 0U);
  EXPECT_TRUE(std::filesystem::exists(path_ / "scratch/killed/spill"));

  // A writer may have the store open.
  const auto writer = Store::Open(disk, path_, Store::Mode::kRead);
  ASSERT_OK(writer);
  const auto done = CleanScratch(disk, path_);
  ASSERT_OK(done);
  EXPECT_EQ(States(*done), all);
  EXPECT_EQ(done->removed, 1U);
  EXPECT_GE(done->removed_bytes, 10U);
  EXPECT_FALSE(std::filesystem::exists(path_ / "scratch/killed"));
  EXPECT_TRUE(std::filesystem::exists(path_ / "scratch/running/spill"));
  EXPECT_TRUE(std::filesystem::exists(path_ / "scratch/mine/notes.txt"));
}

TEST_F(CleanTest, AlsoCleansAFolderElsewhere) {
  const Path elsewhere = dir_ / "fast";
  Killed(elsewhere / testing::FixedStoreId().ToString() / "killed");
  Killed(elsewhere / StoreId::Random().ToString() / "of-another-store");
  const auto done = CleanScratch(disk, path_, {.scratch = elsewhere});
  ASSERT_OK(done);
  EXPECT_EQ(States(*done), (std::map<std::string, State>{{"killed", State::kEnded}}));
  EXPECT_EQ(done->removed, 1U);
}

TEST_F(CleanTest, NeedsAStore) {
  EXPECT_STATUS(CleanScratch(disk, dir_ / "none"), kNotFound);
  std::filesystem::create_directories(dir_ / "folder/scratch/killed");
  EXPECT_STATUS(CleanScratch(disk, dir_ / "folder"), kNotFound);
  EXPECT_TRUE(std::filesystem::exists(dir_ / "folder/scratch/killed"));
}

}  // namespace
}  // namespace rhizome
