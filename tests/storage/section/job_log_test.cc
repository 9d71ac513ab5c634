#include "storage/section/job_log.h"

#include "testing/fake_file_system.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using testing::FakeFileSystem;

std::vector<std::string> Reopened(FileSystem& fs) {
  const auto log = JobLog::Open(fs, "/log");
  EXPECT_OK(log);
  return log ? (*log)->records() : std::vector<std::string>{"failed"};
}

const std::vector<std::string> kJobLogRecords = {"", "one", std::string(1000, 'x'), "12345678"};

void WriteRecords(FileSystem& fs) {
  const auto log = JobLog::Open(fs, "/log");
  ASSERT_OK(log);
  for (const auto& record : kJobLogRecords) ASSERT_OK((*log)->Append(record));
}

TEST(JobLogTest, RecordsSurviveAPowerCutAndMayBeContinued) {
  FakeFileSystem fs;
  WriteRecords(fs);
  fs.Crash();
  {
    const auto log = JobLog::Open(fs, "/log");
    ASSERT_OK(log);
    EXPECT_EQ((*log)->records(), kJobLogRecords);
    ASSERT_OK((*log)->Append("more"));
    EXPECT_STATUS((*log)->Append(std::string(JobLog::kMaxRecordBytes + 1, 'x')), kInvalidArgument);
  }
  fs.Crash();
  auto expected = kJobLogRecords;
  expected.push_back("more");
  EXPECT_EQ(Reopened(fs), expected);
}

TEST(JobLogTest, EveryTruncationLeavesAPrefixThatGoesOn) {
  FakeFileSystem fs;
  WriteRecords(fs);
  const auto whole = fs.Files().at("/log");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    ASSERT_OK(fs.Overwrite("/log", {whole.begin(), whole.begin() + static_cast<long>(length)}));
    auto records = Reopened(fs);
    ASSERT_LT(records.size(), kJobLogRecords.size());
    ASSERT_TRUE(std::equal(records.begin(), records.end(), kJobLogRecords.begin()));
    {
      const auto log = JobLog::Open(fs, "/log");
      ASSERT_OK((*log)->Append("next"));
    }
    records.push_back("next");
    ASSERT_EQ(Reopened(fs), records);
  }
}

TEST(JobLogTest, EveryFlippedBitIsCorruptionOrCutsTheLastRecord) {
  FakeFileSystem fs;
  WriteRecords(fs);
  const auto whole = fs.Files().at("/log");
  const std::vector<std::string> shorter(kJobLogRecords.begin(), kJobLogRecords.end() - 1);
  std::size_t cut = 0;
  for (std::size_t bit = 0; bit < whole.size() * 8; bit += 3) {
    ASSERT_OK(fs.Overwrite("/log", whole));
    ASSERT_OK(fs.FlipBit("/log", bit));
    const auto log = JobLog::Open(fs, "/log");
    if (!log) {
      const bool newer =
          log.error().code() == StatusCode::kUnsupported && bit / 8 >= 8 && bit / 8 < 12;
      ASSERT_TRUE(newer || log.error().code() == StatusCode::kCorruption) << bit;
      continue;
    }
    ASSERT_EQ((*log)->records(), shorter) << "bit " << bit;
    ASSERT_GE(bit / 8, whole.size() - 32) << "only the last record may be taken for torn";
    ++cut;
  }
  EXPECT_GT(cut, 0u);
}

TEST(JobLogTest, ForeignFileIsRefused) {
  FakeFileSystem fs;
  WriteRecords(fs);
  ASSERT_OK(fs.Overwrite("/log", std::vector<std::byte>(100, std::byte{'z'})));
  EXPECT_STATUS(JobLog::Open(fs, "/log"), kCorruption);
}

TEST(JobLogTest, AFailedSyncIsReported) {
  FakeFileSystem fs;
  const auto log = JobLog::Open(fs, "/log");
  ASSERT_OK(log);
  fs.FailWhen(
      [](auto operation, const Path&) { return operation == FakeFileSystem::Operation::kSync; },
      EIO);
  EXPECT_STATUS((*log)->Append("lost"), kIoError);
}

}  // namespace
}  // namespace rhizome
