#include "rhizome/file_system.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "storage/io/files.h"
#include "storage/io/io_queue.h"
#include "testing/child_process.h"
#include "testing/testing.h"

// Tests of the POSIX file system: writing, reading, links, locks, permissions and full disks; then
// of the helpers for whole files and trees, and of OutputFile.

namespace rhizome {
namespace {

using testing::TempDir;
using LockMode = FileSystem::LockMode;

std::span<const std::byte> BytesOfFileSystem(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string ReadOfFileSystem(const Path& path) {
  const auto bytes = ReadWholeFile(FileSystem::Posix(), path, 1 << 30);
  if (!bytes) return "error: " + bytes.error().ToString();
  return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
}

class PosixFileSystemTest : public ::testing::Test {
 protected:
  FileSystem& fs_ = FileSystem::Posix();
  TempDir dir_;
};

TEST_F(PosixFileSystemTest, WritesAndReadsBack) {
  std::mt19937_64 random(testing::TestSeed());
  std::string all;
  const auto file = fs_.CreateFile(dir_ / "f");
  ASSERT_OK(file);
  for (int i = 0; i < 60; ++i) {  // pieces below and above the size of the write buffer
    const std::string piece(random() % (i % 7 == 0 ? 200'000 : 5'000),
                            static_cast<char>('a' + i % 26));
    ASSERT_OK((*file)->Append(BytesOfFileSystem(piece)));
    all += piece;
    EXPECT_EQ((*file)->size_bytes(), all.size());
    if (i % 20 == 0) {
      ASSERT_OK((*file)->Sync());
      EXPECT_EQ(ReadOfFileSystem(dir_ / "f"), all);
    }
  }
  ASSERT_OK((*file)->Close());
  EXPECT_OK((*file)->Close());
  EXPECT_STATUS((*file)->Append(BytesOfFileSystem("x")), kInvalidArgument);
  EXPECT_EQ(ReadOfFileSystem(dir_ / "f"), all);
}

TEST_F(PosixFileSystemTest, AnUnclosedFileKeepsWhatWasWritten) {
  {
    const auto file = fs_.CreateFile(dir_ / "f");
    ASSERT_OK((*file)->Append(BytesOfFileSystem("abc")));
  }
  EXPECT_EQ(ReadOfFileSystem(dir_ / "f"), "abc");
}

TEST_F(PosixFileSystemTest, CreateRefusesWhatIsThere) {
  ASSERT_OK(WriteWholeFile(fs_, dir_ / "f", BytesOfFileSystem("abc")));
  EXPECT_STATUS(fs_.CreateFile(dir_ / "f"), kAlreadyExists);
  EXPECT_STATUS(WriteWholeFile(fs_, dir_ / "f", BytesOfFileSystem("x")), kAlreadyExists);
  ASSERT_EQ(symlink("nowhere", (dir_ / "dangling").c_str()), 0);
  EXPECT_STATUS(fs_.CreateFile(dir_ / "dangling"), kAlreadyExists);
  EXPECT_STATUS(fs_.CreateFile(dir_ / "no" / "f"), kNotFound);
  EXPECT_EQ(ReadOfFileSystem(dir_ / "f"), "abc");
}

TEST_F(PosixFileSystemTest, AppendGoesOnAfterWhatIsKept) {
  ASSERT_OK(WriteWholeFile(fs_, dir_ / "f", BytesOfFileSystem("abcdef")));
  {
    const auto file = fs_.OpenAppend(dir_ / "f", 2);
    ASSERT_OK(file);
    EXPECT_EQ((*file)->size_bytes(), 2U);
    ASSERT_OK((*file)->Append(BytesOfFileSystem("XYZ")));
    ASSERT_OK((*file)->Sync());
    EXPECT_EQ((*file)->size_bytes(), 5U);
  }
  EXPECT_EQ(ReadOfFileSystem(dir_ / "f"), "abXYZ");
  EXPECT_STATUS(fs_.OpenAppend(dir_ / "f", 6), kInvalidArgument);
  EXPECT_STATUS(fs_.OpenAppend(dir_ / "g", 0), kNotFound);
  EXPECT_EQ(ReadOfFileSystem(dir_ / "f"), "abXYZ");
}

// A pipe in a store's folder must not be opened, because opening it would block.
TEST_F(PosixFileSystemTest, OnlyRegularFilesAreOpened) {
  ASSERT_OK(WriteWholeFile(fs_, dir_ / "f", BytesOfFileSystem("abc")));
  ASSERT_EQ(symlink("f", (dir_ / "link").c_str()), 0);
  ASSERT_EQ(mkfifo((dir_ / "pipe").c_str(), 0600), 0);
  for (const bool direct : {false, true}) {
    for (const char* name : {"link", "pipe", "."}) {
      EXPECT_STATUS(fs_.OpenRead(dir_ / name, {.direct = direct}), kIoError);
    }
    EXPECT_STATUS(fs_.OpenRead(dir_ / "absent", {.direct = direct}), kNotFound);
    EXPECT_STATUS(fs_.OpenRead(dir_ / "f" / "below", {.direct = direct}), kNotFound);
  }
  const Status link = testing::AsStatus(fs_.OpenRead(dir_ / "link"));
  EXPECT_NE(link.message().find("symbolic link"), std::string::npos) << link.message();
  EXPECT_STATUS(fs_.OpenAppend(dir_ / "link", 0), kIoError);
  EXPECT_STATUS(fs_.Lock(dir_ / "link", LockMode::kExclusive, "x"), kIoError);
  EXPECT_STATUS(fs_.Lock(dir_ / "pipe", LockMode::kShared, ""), kIoError);
  EXPECT_STATUS(fs_.OpenAppend("/dev/null", 0), kIoError);
  EXPECT_EQ(ReadOfFileSystem(dir_ / "f"), "abc");
}

TEST_F(PosixFileSystemTest, DirectReadsWorkOrFallBack) {
  const std::string text(10'001, 'x');
  ASSERT_OK(WriteWholeFile(fs_, dir_ / "f", BytesOfFileSystem(text)));
  for (const Path& path : {dir_ / "f", Path("/proc/self/status")}) {  // proc refuses O_DIRECT
    const auto file = fs_.OpenRead(path, {.direct = true});
    ASSERT_OK(file);
    const std::uint32_t unit = (*file)->alignment_bytes();
    EXPECT_EQ(unit & (unit - 1), 0U);
    EXPECT_LE(unit, AlignedBuffer::kAlignmentBytes);
    const auto memory = AlignedBuffer::Allocate(4096);
    ASSERT_OK(memory);
    const auto got = (*file)->ReadAt(0, memory->bytes().first(std::max(unit, 512U)));
    ASSERT_OK(got);
    EXPECT_GT(*got, 0U);
    EXPECT_GE((*file)->descriptor(), 0);
    // io_uring must not see O_NONBLOCK. O_DIRECT shows how the file was opened.
    const int flags = fcntl((*file)->descriptor(), F_GETFL);
    EXPECT_EQ(flags & O_NONBLOCK, 0);
    EXPECT_EQ((flags & O_DIRECT) != 0, unit > 1);
    EXPECT_NE(fcntl((*file)->descriptor(), F_GETFD) & FD_CLOEXEC, 0);
  }
  EXPECT_EQ((*fs_.OpenRead(dir_ / "f"))->alignment_bytes(), 1U);
  EXPECT_EQ((*fs_.OpenRead(dir_ / "f"))->size_bytes(), text.size());
}

// Large files bypass the page cache in whole units of 4 KiB, for any size and alignment of the
// pieces.
TEST_F(PosixFileSystemTest, LargeFilesHoldWhatWasAppended) {
  std::mt19937_64 random(testing::TestSeed());
  const Result<AlignedBuffer> memory = AlignedBuffer::Allocate(std::size_t{4} << 20);
  ASSERT_OK(memory);
  for (std::byte& byte : memory->bytes()) byte = static_cast<std::byte>(random());
  constexpr std::size_t kUnit = AlignedBuffer::kAlignmentBytes;
  for (int round = 0; round < 8; ++round) {
    const Path path = dir_ / ("large" + std::to_string(round));
    const auto file = fs_.CreateFile(path);
    ASSERT_OK(file);
    std::string all;
    for (int i = 0; i < 6; ++i) {
      std::size_t offset = random() % (std::size_t{1} << 20);
      std::size_t size = random() % (std::size_t{3} << 20);
      if (random() % 2 == 0) offset -= offset % kUnit;
      if (random() % 2 == 0) size -= size % kUnit;
      if (random() % 4 == 0) size %= 1000;
      const auto piece = std::span<const std::byte>(memory->bytes()).subspan(offset, size);
      ASSERT_OK((*file)->Append(piece));
      all.append(reinterpret_cast<const char*>(piece.data()), piece.size());
      EXPECT_EQ((*file)->size_bytes(), all.size());
      if (random() % 4 == 0) {
        ASSERT_OK((*file)->Sync());
        ASSERT_TRUE(ReadOfFileSystem(path) == all);
      }
    }
    ASSERT_OK((*file)->Close());
    ASSERT_TRUE(ReadOfFileSystem(path) == all);
  }
}

TEST_F(PosixFileSystemTest, NoSpaceIsOutOfSpaceAndSticks) {
  struct rlimit old = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto file = fs_.CreateFile(dir_ / "f");
  ASSERT_OK(file);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small = {10'000, old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status append = (*file)->Append(BytesOfFileSystem(std::string(3'000'000, 'x')));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_STATUS(append, kOutOfSpace);
  EXPECT_NE(append.message().find((dir_ / "f").string()), std::string::npos);
  // The disk has free space again, but part of the data that was appended is missing.
  EXPECT_STATUS((*file)->Append(BytesOfFileSystem("x")), kOutOfSpace);
  EXPECT_STATUS((*file)->Sync(), kOutOfSpace);
  EXPECT_STATUS((*file)->Close(), kOutOfSpace);
}

TEST_F(PosixFileSystemTest, FoldersAndNames) {
  ASSERT_OK(fs_.CreateDirectory(dir_ / "d"));
  EXPECT_STATUS(fs_.CreateDirectory(dir_ / "d"), kAlreadyExists);
  EXPECT_STATUS(fs_.CreateDirectory(dir_ / "x" / "y"), kNotFound);
  ASSERT_OK(WriteWholeFile(fs_, dir_ / "d" / "b", BytesOfFileSystem("12345")));
  ASSERT_OK(fs_.CreateDirectory(dir_ / "d" / "a"));
  ASSERT_EQ(symlink("b", (dir_ / "d" / "c").c_str()), 0);
  const auto list = fs_.List(dir_ / "d");
  ASSERT_OK(list);
  ASSERT_EQ(list->size(), 3U);
  EXPECT_EQ((*list)[0].name, "a");
  EXPECT_EQ((*list)[0].kind, DirectoryEntry::Kind::kDirectory);
  EXPECT_EQ((*list)[1].name, "b");
  EXPECT_EQ((*list)[1].kind, DirectoryEntry::Kind::kFile);
  EXPECT_EQ((*list)[2].kind, DirectoryEntry::Kind::kOther);
  EXPECT_STATUS(fs_.List(dir_ / "none"), kNotFound);
  EXPECT_STATUS(fs_.RemoveDirectory(dir_ / "d"), kAlreadyExists);  // not empty

  const auto info = fs_.Stat(dir_ / "d" / "b");
  ASSERT_OK(info);
  EXPECT_EQ(info->size_bytes, 5U);
  EXPECT_EQ(info->link_count, 1U);
  EXPECT_EQ(fs_.Stat(dir_ / "d" / "c")->kind, DirectoryEntry::Kind::kOther);
  EXPECT_STATUS(fs_.Stat(dir_ / "none"), kNotFound);
  EXPECT_OK(fs_.SyncDirectory(dir_ / "d"));
  EXPECT_STATUS(fs_.SyncDirectory(dir_ / "none"), kNotFound);
  EXPECT_GT(*fs_.FreeBytes(dir_.path()), 0U);
  EXPECT_STATUS(fs_.FreeBytes(dir_ / "none"), kNotFound);
}

TEST_F(PosixFileSystemTest, LinksShareBytes) {
  ASSERT_OK(WriteWholeFile(fs_, dir_ / "f", BytesOfFileSystem("abc")));
  ASSERT_OK(fs_.LinkFile(dir_ / "f", dir_ / "g"));
  EXPECT_EQ(fs_.Stat(dir_ / "f")->link_count, 2U);
  EXPECT_STATUS(fs_.LinkFile(dir_ / "f", dir_ / "g"), kAlreadyExists);
  EXPECT_STATUS(fs_.LinkFile(dir_ / "none", dir_ / "h"), kNotFound);
  ASSERT_OK(fs_.RemoveFile(dir_ / "f"));
  EXPECT_EQ(ReadOfFileSystem(dir_ / "g"), "abc");
  EXPECT_STATUS(fs_.RemoveFile(dir_ / "f"), kNotFound);
}

TEST_F(PosixFileSystemTest, LocksExcludeAndNameTheirHolder) {
  const Path path = dir_ / "LOCK";
  auto held = fs_.Lock(path, LockMode::kExclusive, "rhizome\n4711\n");
  ASSERT_OK(held);
  EXPECT_EQ(ReadOfFileSystem(path), "rhizome\n4711\n");
  for (const LockMode mode : {LockMode::kExclusive, LockMode::kShared}) {
    const auto refused = fs_.Lock(path, mode, "thief");
    EXPECT_STATUS(refused, kBusy);
    // The message names the holder as the kernel reports it. If the kernel does not list its locks,
    // it contains the text in the lock file.
    const std::string& message = refused.error().message();
    const std::string holder = "by this process " + std::to_string(getpid()) + " itself";
    EXPECT_TRUE(message.find(holder) != message.npos ||
                message.find("rhizome 4711") != message.npos)
        << message;
  }
  EXPECT_EQ(ReadOfFileSystem(path),
            "rhizome\n4711\n");  // a failed attempt keeps the holder's text
  held->reset();
  const auto next = fs_.Lock(path, LockMode::kExclusive, "short");
  ASSERT_OK(next);
  EXPECT_EQ(ReadOfFileSystem(path), "short");
}

// The holder of a shared lock does not write to the file, so the text in it is from a writer that
// has ended.
TEST_F(PosixFileSystemTest, AWriterThatHasEndedIsNotTakenForTheHolder) {
  auto child = testing::ChildProcess::Fork([] { return 0; });
  const pid_t ended = child.id();
  ASSERT_EQ(child.Wait(), 0);
  const std::string content = "rhizome " + std::to_string(ended) + "\n";
  ASSERT_OK(WriteWholeFile(fs_, dir_ / "LOCK", std::as_bytes(std::span(content))));
  const auto reader = fs_.Lock(dir_ / "LOCK", LockMode::kShared, "");
  ASSERT_OK(reader);
  const auto refused = fs_.Lock(dir_ / "LOCK", LockMode::kExclusive, "rhizome 1\n");
  EXPECT_STATUS(refused, kBusy);
  const std::string& message = refused.error().message();
  EXPECT_EQ(message.find(": rhizome " + std::to_string(ended)), message.npos) << message;
  EXPECT_TRUE(message.find("process " + std::to_string(getpid())) != message.npos ||
              message.find("has ended") != message.npos)
      << message;
}

TEST_F(PosixFileSystemTest, SharedLocksAreShared) {
  EXPECT_STATUS(fs_.Lock(dir_ / "PIN", LockMode::kShared, ""), kNotFound);
  ASSERT_OK(WriteWholeFile(fs_, dir_ / "PIN", {}));
  auto first = fs_.Lock(dir_ / "PIN", LockMode::kShared, "");
  auto second = fs_.Lock(dir_ / "PIN", LockMode::kShared, "");
  ASSERT_OK(first);
  ASSERT_OK(second);
  first->reset();
  const auto probe = fs_.Lock(dir_ / "PIN", LockMode::kExclusive, "");
  EXPECT_STATUS(probe, kBusy);
  // The message has no holder: asking the kernel for it takes some 10 ms.
  EXPECT_EQ(probe.error().message(), "'" + (dir_ / "PIN").string() + "' is locked");
  second->reset();
  EXPECT_OK(fs_.Lock(dir_ / "PIN", LockMode::kExclusive, ""));
}

// A lock on a removed file excludes no process. The next process creates a new file.
TEST_F(PosixFileSystemTest, ARemovedLockFileIsMadeAnew) {
  const auto first = fs_.Lock(dir_ / "LOCK", LockMode::kExclusive, "a");
  ASSERT_OK(first);
  ASSERT_OK(fs_.RemoveFile(dir_ / "LOCK"));
  EXPECT_OK(fs_.Lock(dir_ / "LOCK", LockMode::kExclusive, "b"));
}

TEST_F(PosixFileSystemTest, AKilledHolderLosesTheLock) {
  int ready[2] = {};
  ASSERT_EQ(pipe(ready), 0);
  auto child = testing::ChildProcess::Fork([&] {
    const auto held = fs_.Lock(dir_ / "LOCK", LockMode::kExclusive, "child");
    const char byte = held ? 'y' : 'n';
    if (write(ready[1], &byte, 1) == 1) pause();
    return 0;
  });
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  ASSERT_EQ(byte, 'y');
  const auto refused = fs_.Lock(dir_ / "LOCK", LockMode::kExclusive, "parent");
  EXPECT_STATUS(refused, kBusy);
  EXPECT_NE(refused.error().message().find("by another process: "), std::string::npos);
  child.Kill();
  EXPECT_OK(fs_.Lock(dir_ / "LOCK", LockMode::kExclusive, "parent"));
  close(ready[0]);
  close(ready[1]);
}

// Root bypasses permissions, so the child drops its privileges first.
TEST_F(PosixFileSystemTest, RefusalOfTheSystemIsPermissionDenied) {
  constexpr uid_t kDeletedVertex = 65534;
  ASSERT_OK(WriteWholeFile(fs_, dir_ / "f", BytesOfFileSystem("abc")));
  ASSERT_EQ(chmod((dir_ / "f").c_str(), 0), 0);
  ASSERT_EQ(chmod(dir_.path().c_str(), 0555), 0);
  const auto refused = [&] {
    if (geteuid() == 0 && setuid(kDeletedVertex) != 0) return 1;
    const auto denied = [](const auto& outcome) {
      return testing::AsStatus(outcome).code() == StatusCode::kPermissionDenied;
    };
    const bool all = denied(fs_.OpenRead(dir_ / "f")) && denied(fs_.CreateFile(dir_ / "g")) &&
                     denied(fs_.CreateDirectory(dir_ / "d")) && denied(fs_.RemoveFile(dir_ / "f"));
    return all ? 0 : 2;
  };
  EXPECT_EQ(testing::RunForked(refused), 0);
  ASSERT_EQ(chmod(dir_.path().c_str(), 0755), 0);
}

TEST_F(PosixFileSystemTest, ReadExactlyAndReadWholeFileCheckLengths) {
  ASSERT_OK(WriteWholeFile(fs_, dir_ / "f", BytesOfFileSystem("abcdef")));
  const auto file = fs_.OpenRead(dir_ / "f");
  std::vector<std::byte> out(4);
  ASSERT_OK(ReadExactly(**file, 2, out));
  EXPECT_EQ(std::memcmp(out.data(), "cdef", 4), 0);
  EXPECT_STATUS(ReadExactly(**file, 3, out), kCorruption);
  EXPECT_STATUS(ReadExactly(**file, 100, out), kCorruption);
  EXPECT_OK(ReadExactly(**file, 100, {}));
  EXPECT_OK(ReadWholeFile(fs_, dir_ / "f", 6));
  EXPECT_STATUS(ReadWholeFile(fs_, dir_ / "f", 5), kCorruption);
  EXPECT_STATUS(ReadWholeFile(fs_, dir_ / "g", 5), kNotFound);
}

TEST_F(PosixFileSystemTest, CreateDirectoriesMakesWhatIsMissing) {
  EXPECT_OK(CreateDirectories(fs_, dir_ / "a" / "b" / "c"));
  EXPECT_OK(CreateDirectories(fs_, dir_ / "a" / "b" / "c"));
  EXPECT_OK(CreateDirectories(fs_, dir_ / "a" / "d/"));
  EXPECT_EQ(fs_.Stat(dir_ / "a" / "d")->kind, DirectoryEntry::Kind::kDirectory);
  ASSERT_EQ(symlink("b", (dir_ / "a" / "link").c_str()), 0);
  EXPECT_OK(CreateDirectories(fs_, dir_ / "a" / "link"));
  EXPECT_OK(CreateDirectories(fs_, dir_ / "a" / "link" / "e"));
  EXPECT_OK(fs_.Stat(dir_ / "a" / "b" / "e"));
  ASSERT_OK(WriteWholeFile(fs_, dir_ / "file", {}));
  EXPECT_STATUS(CreateDirectories(fs_, dir_ / "file"), kAlreadyExists);
  EXPECT_FALSE(CreateDirectories(fs_, dir_ / "file" / "x").ok());
  EXPECT_OK(CreateDirectories(fs_, "/"));
  EXPECT_OK(CreateDirectories(fs_, "."));
}

// Links are removed, but their targets are not.
TEST_F(PosixFileSystemTest, RemoveTreeStaysInside) {
  ASSERT_OK(CreateDirectories(fs_, dir_ / "tree" / "a" / "b"));
  ASSERT_OK(CreateDirectories(fs_, dir_ / "outside"));
  ASSERT_OK(WriteWholeFile(fs_, dir_ / "outside" / "precious", BytesOfFileSystem("x")));
  ASSERT_OK(WriteWholeFile(fs_, dir_ / "tree" / "a" / "f", BytesOfFileSystem("x")));
  ASSERT_EQ(symlink("../../outside", (dir_ / "tree" / "a" / "link").c_str()), 0);
  EXPECT_OK(RemoveTree(fs_, dir_ / "tree"));
  EXPECT_STATUS(fs_.Stat(dir_ / "tree"), kNotFound);
  EXPECT_EQ(ReadOfFileSystem(dir_ / "outside" / "precious"), "x");
  EXPECT_OK(RemoveTree(fs_, dir_ / "tree"));
}

TEST(CheckNameTest, AllowsNamesAndRefusesPaths) {
  for (const char* good : {"a", "feat", "A-b_c.9", "feat.crc32c", "0"})
    EXPECT_OK(CheckName("an array", good));
  EXPECT_OK(CheckName("an array", std::string(128, 'x')));
  for (const char* bad : {"", ".", "..", ".hidden", "a..b", "../etc", "a/b", "a b", "a@1", "ä",
                          "a\n", "a\\b", "a:b", "~"}) {
    EXPECT_STATUS(CheckName("an array", bad), kInvalidArgument);
  }
  EXPECT_STATUS(CheckName("an array", std::string(129, 'x')), kInvalidArgument);
  EXPECT_STATUS(CheckName("an array", std::string_view("a\0b", 3)), kInvalidArgument);
  EXPECT_NE(CheckName("an array", "../x").message().find("'../x'"), std::string::npos);
}

class OutputFileTest : public PosixFileSystemTest {
 protected:
  std::size_t FileCount() { return fs_.List(dir_.path())->size(); }
};

TEST_F(OutputFileTest, ReplacesTheOldFileOnlyOnCommit) {
  const Path path = dir_ / "model";
  ASSERT_OK(WriteWholeFile(fs_, path, BytesOfFileSystem("old")));
  auto output = OutputFile::Create(path);
  ASSERT_OK(output);
  ASSERT_OK(output->Append(BytesOfFileSystem("new")));
  EXPECT_EQ(ReadOfFileSystem(path), "old");
  ASSERT_OK(output->Commit());
  EXPECT_EQ(ReadOfFileSystem(path), "new");
  EXPECT_EQ(FileCount(), 1U);
  EXPECT_STATUS(output->Append(BytesOfFileSystem("x")), kInvalidArgument);
  EXPECT_STATUS(output->Commit(), kInvalidArgument);
}

TEST_F(OutputFileTest, LeavesNothingBehindWithoutCommit) {
  {
    auto output = OutputFile::Create(dir_ / "f");
    ASSERT_OK(output);
    ASSERT_OK(output->Append(BytesOfFileSystem("half")));
    OutputFile moved = *std::move(output);
    EXPECT_EQ(FileCount(), 1U);
  }
  EXPECT_EQ(FileCount(), 0U);
}

TEST_F(OutputFileTest, FollowsLinksAndRefusesWhatIsNoFile) {
  ASSERT_OK(WriteWholeFile(fs_, dir_ / "real", BytesOfFileSystem("old")));
  ASSERT_EQ(symlink("real", (dir_ / "link").c_str()), 0);
  auto output = OutputFile::Create(dir_ / "link");
  ASSERT_OK(output);
  ASSERT_OK(output->Append(BytesOfFileSystem("new")));
  ASSERT_OK(output->Commit());
  EXPECT_EQ(ReadOfFileSystem(dir_ / "real"), "new");
  EXPECT_EQ(fs_.Stat(dir_ / "link")->kind, DirectoryEntry::Kind::kOther);

  EXPECT_STATUS(OutputFile::Create("/dev/null"), kInvalidArgument);
  EXPECT_STATUS(OutputFile::Create(dir_.path()), kInvalidArgument);
  EXPECT_STATUS(OutputFile::Create(dir_ / ""), kInvalidArgument);
  EXPECT_STATUS(OutputFile::Create(dir_ / "none" / "f"), kNotFound);
}

TEST_F(OutputFileTest, TwoWritersOfOnePathDoNotMix) {
  auto first = OutputFile::Create(dir_ / "f");
  auto second = OutputFile::Create(dir_ / "f");
  ASSERT_OK(first);
  ASSERT_OK(second);
  ASSERT_OK(first->Append(BytesOfFileSystem("first")));
  ASSERT_OK(second->Append(BytesOfFileSystem("2")));
  ASSERT_OK(first->Commit());
  EXPECT_EQ(ReadOfFileSystem(dir_ / "f"), "first");
  ASSERT_OK(second->Commit());
  EXPECT_EQ(ReadOfFileSystem(dir_ / "f"), "2");
}

}  // namespace
}  // namespace rhizome
