#include "storage/maintenance/upgrade.h"

#include "storage/array_fixture.h"
#include "storage/io/files.h"
#include "storage/store/store_files.h"
#include "testing/fake_file_system.h"

namespace rhizome {
namespace {

using testing::FakeFileSystem;

Status WriteFormat(FileSystem& fs, const Path& store, std::uint64_t format) {
  static_cast<void>(fs.RemoveFile(store / kFormatName));
  std::string text = FormatText(testing::FixedStoreId());
  text.replace(text.find("format 1"), 8, "format " + std::to_string(format));
  return WriteWholeFile(fs, store / kFormatName, std::as_bytes(std::span(text)));
}

TEST(UpgradeTest, AStoreOfThisFormatIsNotTouched) {
  FakeFileSystem fs;
  ASSERT_OK(fs.CreateDirectory("/s"));
  ASSERT_OK(WriteFormat(fs, "/s", kStoreFormatVersion));
  const auto before = fs.Files();
  const auto report = UpgradeStore(fs, "/s", JobControl());
  ASSERT_OK(report);
  EXPECT_EQ(report->from, kStoreFormatVersion);
  EXPECT_EQ(report->to, kStoreFormatVersion);
  EXPECT_EQ(fs.Files(), before);
}

TEST(UpgradeTest, NewerFormatsAndOtherFoldersAreRefused) {
  FakeFileSystem fs;
  EXPECT_STATUS(UpgradeStore(fs, "/s", JobControl()), kNotFound);
  ASSERT_OK(fs.CreateDirectory("/s"));
  EXPECT_STATUS(UpgradeStore(fs, "/s", JobControl()), kNotFound);
  ASSERT_OK(WriteFormat(fs, "/s", kStoreFormatVersion + 1));
  EXPECT_STATUS(UpgradeStore(fs, "/s", JobControl()), kUnsupported);
}

/// An upgrade step that only records that it ran.
template <std::uint64_t from>
Status Step(FileSystem& fs, const Path& store, const JobControl&) {
  return WriteFormat(fs, store, from + 1);
}

TEST(UpgradeTest, StepsFollowOneAnother) {
  FakeFileSystem fs;
  ASSERT_OK(fs.CreateDirectory("/s"));
  ASSERT_OK(WriteFormat(fs, "/s", 1));
  const UpgradeStep steps[] = {{1, Step<1>}, {2, Step<2>}};
  const auto report = UpgradeStore(fs, "/s", 3, steps, JobControl());
  ASSERT_OK(report);
  EXPECT_EQ(report->from, 1U);
  EXPECT_EQ(*ReadFormatVersion(fs, "/s"), 3U);
  EXPECT_STATUS(UpgradeStore(fs, "/s", 5, steps, JobControl()), kUnsupported);
  ASSERT_OK(WriteFormat(fs, "/s", 1));
  const auto lock = fs.Lock("/s/LOCK", FileSystem::LockMode::kExclusive, "rhizome 1\n");
  ASSERT_OK(lock);
  EXPECT_STATUS(UpgradeStore(fs, "/s", 3, steps, JobControl()), kBusy);
}

// There is a golden store for every upgrade step that this build knows.
TEST(UpgradeTest, StepsLeadToThisFormat) {
  std::uint64_t format = kStoreFormatVersion - UpgradeSteps().size();
  for (const UpgradeStep& step : UpgradeSteps()) EXPECT_EQ(step.from, format++);
  EXPECT_EQ(format, kStoreFormatVersion);
}

}  // namespace
}  // namespace rhizome
