#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "rhizome/file_system.h"
#include "storage/io/files.h"
#include "storage/io/io_queue.h"
#include "testing/fake_file_system.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

constexpr std::size_t kFileBytes = 100'000;

std::vector<std::byte> Content() {
  std::vector<std::byte> bytes(kFileBytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7 / 3);
  return bytes;
}

std::unique_ptr<IoQueue> OpenMapped(std::uint32_t depth) {
  auto queue = IoQueue::Open({.maker = IoMaker::kMapped, .depth = depth});
  EXPECT_OK(queue);
  return *std::move(queue);
}

TEST(MappedQueueTest, ReadsAreCopiesOfTheFile) {
  const testing::TempDir dir;
  const auto content = Content();
  ASSERT_OK(WriteWholeFile(FileSystem::Posix(), dir / "a", content));
  const auto file = FileSystem::Posix().OpenRead(dir / "a");
  ASSERT_OK(file);
  const auto queue = OpenMapped(4);
  EXPECT_EQ(queue->maker(), IoMaker::kMapped);
  std::vector<std::byte> out(30 * 1000);
  queue->RegisterMemory(out);
  std::vector<ReadRequest> requests(30);
  for (std::size_t i = 0; i < requests.size(); ++i)
    requests[i] = {.file = file->get(),
                   .offset_bytes = i * 3301,
                   .buffer = std::span(out).subspan(i * 1000, 1000),
                   .status = {}};
  ASSERT_OK(queue->ReadAll(requests));
  for (std::size_t i = 0; i < requests.size(); ++i)
    EXPECT_TRUE(std::equal(out.begin() + static_cast<std::ptrdiff_t>(i * 1000),
                           out.begin() + static_cast<std::ptrdiff_t>((i + 1) * 1000),
                           content.begin() + static_cast<std::ptrdiff_t>(i * 3301)));
  EXPECT_EQ(queue->stats().reads, 30U);
  EXPECT_EQ(queue->stats().read_bytes, out.size());
}

TEST(MappedQueueTest, NoMoreThanItsDepthIsTakenAtATime) {
  const testing::TempDir dir;
  ASSERT_OK(WriteWholeFile(FileSystem::Posix(), dir / "a", Content()));
  const auto file = FileSystem::Posix().OpenRead(dir / "a");
  ASSERT_OK(file);
  const auto queue = OpenMapped(2);
  std::vector<std::byte> out(30);
  std::vector<ReadRequest> requests(3);
  for (std::size_t i = 0; i < 3; ++i)
    requests[i] = {.file = file->get(),
                   .offset_bytes = i,
                   .buffer = std::span(out).subspan(i * 10, 10),
                   .status = {}};
  EXPECT_EQ(*queue->Submit(requests), 2U);
  EXPECT_EQ(queue->in_flight(), 2U);
  EXPECT_EQ(*queue->Submit(std::span(requests).subspan(2)), 0U);
  EXPECT_EQ(queue->Reap(1)->size(), 2U);
  EXPECT_EQ(queue->in_flight(), 0U);
}

TEST(MappedQueueTest, WhatIsNotInTheFileIsAnError) {
  const testing::TempDir dir;
  ASSERT_OK(WriteWholeFile(FileSystem::Posix(), dir / "a", Content()));
  const auto file = FileSystem::Posix().OpenRead(dir / "a");
  ASSERT_OK(file);
  const auto queue = OpenMapped(4);
  std::vector<std::byte> out(100);
  for (const std::uint64_t offset : {kFileBytes - 99, kFileBytes + 1, ~std::size_t{0}}) {
    ReadRequest request{.file = file->get(), .offset_bytes = offset, .buffer = out, .status = {}};
    const Status status = queue->ReadAll(std::span(&request, 1));
    EXPECT_EQ(status.code(), StatusCode::kCorruption) << offset;
    EXPECT_NE(status.message().find((dir / "a").string()), std::string::npos);
  }
}

TEST(MappedQueueTest, AFileWithoutADescriptorCannotBeMapped) {
  testing::FakeFileSystem fs;
  ASSERT_OK(WriteWholeFile(fs, "/a", Content()));
  const auto file = fs.OpenRead("/a");
  ASSERT_OK(file);
  const auto queue = OpenMapped(4);
  std::vector<std::byte> out(100);
  ReadRequest request{.file = file->get(), .offset_bytes = 0, .buffer = out, .status = {}};
  EXPECT_FALSE(queue->ReadAll(std::span(&request, 1)).ok());
}

}  // namespace
}  // namespace rhizome
