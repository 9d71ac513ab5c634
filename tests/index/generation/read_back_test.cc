#include "index/generation/read_back.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "storage/io/files.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using ::testing::HasSubstr;

class ReadBackTest : public ::testing::Test {
 protected:
  /// Writes a file below the folder and returns its entry.
  FileEntry Write(const std::string& name, std::size_t size) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 31 + size);
    EXPECT_OK(WriteWholeFile(fs_, dir_ / name, bytes));
    return {name, size, Xxh3(bytes), Crc32c(bytes)};
  }

  testing::TempDir dir_;
  FileSystem& fs_ = FileSystem::Posix();
  const JobControl control_{};
};

TEST_F(ReadBackTest, WhatWasWrittenIsThere) {
  std::vector<FileEntry> files;
  for (std::size_t i = 0; i < 8; ++i) files.push_back(Write(fmt::format("f{}", i), i * 70001));
  for (const std::size_t told : {std::size_t{0}, std::size_t{3}, files.size()}) {
    ReadBack read_back(fs_, nullptr, control_);
    for (std::size_t i = 0; i < told; ++i) read_back.Add(dir_.path(), files[i]);
    EXPECT_OK(read_back.Finish(dir_.path(), files, 2));
  }
}

// The error names the file that differs, for any kind of difference, and whether or not the file
// was announced early.
TEST_F(ReadBackTest, AFileThatDiffersIsNamed) {
  std::vector<FileEntry> files = {Write("good", 5000), Write("bad", 300000)};
  FileEntry& bad = files.back();
  const FileEntry right = bad;
  for (int what = 0; what < 4; ++what) {
    bad = right;
    if (what == 0) bad.xxh3[3] ^= std::byte{1};
    if (what == 1) bad.crc32c ^= 4;
    if (what == 2) ++bad.size_bytes;
    if (what == 3) bad.path = "bad-and-missing";
    for (const bool early : {false, true}) {
      ReadBack read_back(fs_, nullptr, control_);
      if (early) read_back.Add(dir_.path(), bad);
      const Status status = read_back.Finish(dir_.path(), files, 1);
      EXPECT_EQ(status.code(), what == 3 ? StatusCode::kNotFound : StatusCode::kCorruption);
      if (what < 2) {
        EXPECT_THAT(status.message(), HasSubstr("bad"));
      }
    }
  }
}

TEST_F(ReadBackTest, ItEndsWhenTheJobIsCancelled) {
  const std::vector<FileEntry> files = {Write("f", 100)};
  JobControl control;
  control.Cancel();
  ReadBack read_back(fs_, nullptr, control);
  read_back.Add(dir_.path(), files.front());
  EXPECT_STATUS(read_back.Finish(dir_.path(), files, 1), kInterrupted);
}

// Destroying it without waiting for the result abandons the remaining work.
TEST_F(ReadBackTest, ItMayBeGivenUp) {
  ReadBack read_back(fs_, nullptr, control_);
  read_back.Add(dir_.path(), Write("f", 100));
}

}  // namespace
}  // namespace rhizome
