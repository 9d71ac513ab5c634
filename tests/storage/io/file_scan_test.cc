#include "storage/io/file_scan.h"

#include <atomic>
#include <random>

#include "storage/io/files.h"
#include "testing/fake_file_system.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using testing::FakeFileSystem;

/// Sums the bytes that it receives, and checks that they arrive in order.
class SummingWatcher : public FileWatcher {
 public:
  SummingWatcher(std::atomic<std::uint64_t>& bytes, std::atomic<bool>& in_order)
      : bytes_(bytes), in_order_(in_order) {}
  void See(std::uint64_t offset_bytes, std::span<const std::byte> bytes) override {
    if (offset_bytes != next_) in_order_ = false;
    next_ = offset_bytes + bytes.size();
    bytes_ += bytes.size();
  }

 private:
  std::atomic<std::uint64_t>& bytes_;
  std::atomic<bool>& in_order_;
  std::uint64_t next_ = 0;
};

class FileScanTest : public ::testing::Test {
 protected:
  FileScanTest() { EXPECT_OK(fs_.CreateDirectory("/d")); }

  void Add(std::uint64_t size) {
    std::vector<std::byte> bytes(size);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_());
    const Path path = "/d/" + std::to_string(files_.size());
    EXPECT_OK(WriteWholeFile(fs_, path, bytes));
    files_.push_back({path, size});
    hashes_.push_back(Xxh3(bytes));
    crcs_.push_back(Crc32c(bytes));
  }

  FakeFileSystem fs_;
  std::mt19937_64 random_{testing::TestSeed()};
  std::vector<ScanFile> files_;
  std::vector<Hash128> hashes_;
  std::vector<std::uint32_t> crcs_;
};

TEST_F(FileScanTest, HashesAreThoseOfTheFiles) {
  for (const std::uint64_t size : {0, 1, 511, 512, 4097, 1 << 20, (1 << 20) + 1, 3 << 20})
    Add(size);
  for (int i = 0; i < 30; ++i) Add(random_() % 3000000);
  for (const std::uint32_t alignment : {1U, 512U, 4096U}) {
    fs_.SetDirectAlignment(alignment);
    for (const std::uint32_t threads : {1U, 3U}) {
      for (const std::uint32_t depth : {1U, 2U, 16U}) {
        std::atomic<std::uint64_t> seen{0};
        std::atomic<bool> in_order{true};
        std::uint64_t total = 0;
        for (ScanFile& file : files_) {
          total += file.size_bytes;
          file.watch = [&] { return std::make_unique<SummingWatcher>(seen, in_order); };
        }
        const auto outcomes =
            ScanFiles(fs_, files_, {.threads = threads, .io = {.depth = depth}}, JobControl());
        ASSERT_OK(outcomes);
        ASSERT_EQ(outcomes->size(), files_.size());
        for (std::size_t i = 0; i < files_.size(); ++i) {
          ASSERT_OK((*outcomes)[i].status);
          EXPECT_EQ((*outcomes)[i].xxh3, hashes_[i]) << i;
          EXPECT_EQ((*outcomes)[i].crc32c, crcs_[i]) << i;
        }
        EXPECT_EQ(seen, total);
        EXPECT_TRUE(in_order);
      }
    }
  }
}

// A scan that is slowed down in favour of commits receives the same bytes, piece by piece.
TEST_F(FileScanTest, PacedItSeesTheSame) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{131072},
                                 std::size_t{131073}, std::size_t{2500000}})
    Add(size);
  IoPacer pacer;
  const IoPacer::Commit commit(pacer);
  for (const std::uint32_t threads : {1U, 3U}) {
    const auto outcomes =
        ScanFiles(fs_, files_, {.threads = threads, .pacer = &pacer}, JobControl());
    ASSERT_OK(outcomes);
    for (std::size_t i = 0; i < files_.size(); ++i) {
      ASSERT_OK((*outcomes)[i].status);
      EXPECT_EQ((*outcomes)[i].xxh3, hashes_[i]) << i;
      EXPECT_EQ((*outcomes)[i].crc32c, crcs_[i]) << i;
    }
  }
}

TEST_F(FileScanTest, WhatIsWrongWithAFileConcernsOnlyIt) {
  for (int i = 0; i < 6; ++i) Add(2500000);
  ASSERT_OK(fs_.RemoveFile(files_[1].path));
  files_[2].size_bytes += 1;
  fs_.FailWhen(
      [&](FakeFileSystem::Operation operation, const Path& path) {
        return operation == FakeFileSystem::Operation::kRead && path == files_[4].path;
      },
      EIO);
  const auto outcomes = ScanFiles(fs_, files_, {.threads = 2}, JobControl());
  ASSERT_OK(outcomes);
  EXPECT_STATUS((*outcomes)[1].status, kNotFound);
  EXPECT_STATUS((*outcomes)[2].status, kCorruption);
  EXPECT_STATUS((*outcomes)[4].status, kIoError);
  for (const std::size_t i : {0, 3, 5}) {
    EXPECT_OK((*outcomes)[i].status);
    EXPECT_EQ((*outcomes)[i].xxh3, hashes_[i]);
  }
}

TEST_F(FileScanTest, CancellingEndsIt) {
  for (int i = 0; i < 10; ++i) Add(2000000);
  int reports = 0;
  JobControl* self = nullptr;
  JobControl control([&](const JobControl::Progress&) {
    if (++reports == 3) self->Cancel();
  });
  self = &control;
  EXPECT_STATUS(ScanFiles(fs_, files_, {.threads = 2}, control), kInterrupted);
  EXPECT_LT(reports, 10);
  EXPECT_TRUE(ScanFiles(fs_, {}, {}, JobControl())->empty());
}

}  // namespace
}  // namespace rhizome
