#include "storage/io/io_pacer.h"

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "storage/io/files.h"
#include "storage/io/paced_file_system.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

constexpr std::size_t kMany = IoPacer::kPieceBytes * 5 + 3;

TEST(IoPacerTest, OnlyWhileSomebodyCommitsPiecesAreSmall) {
  IoPacer pacer(std::chrono::nanoseconds(0));
  EXPECT_FALSE(pacer.busy());
  EXPECT_EQ(PieceBytes(&pacer, kMany), kMany);
  {
    const IoPacer::Commit one(pacer);
    {
      const IoPacer::Commit other(pacer);
      EXPECT_TRUE(pacer.busy());
    }
    EXPECT_TRUE(pacer.busy());
    EXPECT_EQ(PieceBytes(&pacer, kMany), IoPacer::kPieceBytes);
    EXPECT_EQ(PieceBytes(&pacer, 7), 7U);
  }
  EXPECT_FALSE(pacer.busy());
  EXPECT_EQ(PieceBytes(nullptr, kMany), kMany);
}

TEST(IoPacerTest, TheNextCommitIsExpectedForAWhile) {
  IoPacer pacer(std::chrono::hours(1));
  EXPECT_FALSE(pacer.busy());
  { const IoPacer::Commit commit(pacer); }
  EXPECT_TRUE(pacer.busy());
}

// With any number of background threads, one piece runs at a time, and every thread gets its turn.
TEST(IoPacerTest, TurnsExcludeEachOtherWhileSomebodyCommits) {
  IoPacer pacer;
  std::optional<IoPacer::Commit> commit(pacer);
  std::atomic<int> inside{0};
  std::atomic<int> turns{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const IoPacer::Turn turn(&pacer);
        EXPECT_EQ(inside.fetch_add(1), 0);
        ++turns;
        inside.fetch_sub(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(turns, 800);
  commit.reset();
}

// Without commits, threads do not wait for each other's turns.
TEST(IoPacerTest, WithoutCommitsTurnsAreFree) {
  IoPacer pacer(std::chrono::nanoseconds(0));
  const IoPacer::Turn one(&pacer);
  const IoPacer::Turn other(&pacer);
  const IoPacer::Turn none(nullptr);
  const IoPacer::Commit commit(pacer);
  const IoPacer::Turn last(&pacer);
}

TEST(IoPacerTest, FilesHaveTheSameBytes) {
  const testing::TempDir dir;
  std::vector<std::byte> bytes(kMany);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7 % 251);
  IoPacer pacer(std::chrono::nanoseconds(0));
  PacedFileSystem fs(FileSystem::Posix(), &pacer);
  for (const bool busy : {false, true}) {
    SCOPED_TRACE(busy);
    std::optional<IoPacer::Commit> commit;
    if (busy) commit.emplace(pacer);
    const Path path = dir / (busy ? "busy" : "idle");
    const auto file = fs.CreateFile(path);
    ASSERT_OK(file);
    ASSERT_OK((*file)->Append(bytes));
    ASSERT_OK((*file)->Append({}));
    ASSERT_OK((*file)->Append(std::span(bytes).first(5)));
    EXPECT_EQ((*file)->size_bytes(), bytes.size() + 5);
    ASSERT_OK((*file)->Sync());
    ASSERT_OK((*file)->Close());
    auto wanted = bytes;
    wanted.insert(wanted.end(), bytes.begin(), bytes.begin() + 5);
    const auto read = ReadWholeFile(fs, path, wanted.size());
    ASSERT_OK(read);
    EXPECT_TRUE(*read == wanted);
  }
}

}  // namespace
}  // namespace rhizome
