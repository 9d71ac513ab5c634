#include "testing/fake_file_system.h"

#include <cerrno>
#include <string>
#include <string_view>

#include "storage/io/files.h"
#include "storage/io/io_queue.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using testing::FakeFileSystem;
using CrashMode = FakeFileSystem::CrashMode;
using Operation = FakeFileSystem::Operation;

std::span<const std::byte> BytesOfFakeFileSystem(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string Text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Returns the text of a file, or "absent".
std::string Read(FileSystem& fs, const Path& path) {
  const auto bytes = ReadWholeFile(fs, path, 1 << 20);
  return bytes ? Text(*bytes) : "absent";
}

TEST(FakeFileSystemTest, BytesSurviveOnlyIfTheFileAndItsNameWereSynced) {
  FakeFileSystem fs;
  const auto bytes_lost = fs.CreateFile("/bytes_lost");
  ASSERT_OK((*bytes_lost)->Append(BytesOfFakeFileSystem("abc")));
  ASSERT_OK((*bytes_lost)->Close());  // closing syncs nothing
  ASSERT_OK(WriteWholeFile(fs, "/kept", BytesOfFakeFileSystem("abc")));
  ASSERT_OK(fs.SyncDirectory("/"));
  ASSERT_OK(WriteWholeFile(fs, "/name_lost", BytesOfFakeFileSystem("abc")));
  for (const char* name : {"/bytes_lost", "/kept", "/name_lost"}) EXPECT_EQ(Read(fs, name), "abc");

  fs.Crash();
  EXPECT_EQ(Read(fs, "/bytes_lost"), "");
  EXPECT_EQ(Read(fs, "/kept"), "abc");
  EXPECT_EQ(Read(fs, "/name_lost"), "absent");
}

TEST(FakeFileSystemTest, OnlyTheSyncedPrefixSurvives) {
  FakeFileSystem fs;
  {
    const auto file = fs.CreateFile("/log");
    ASSERT_OK((*file)->Append(BytesOfFakeFileSystem("synced")));
    ASSERT_OK((*file)->Sync());
    ASSERT_OK(fs.SyncDirectory("/"));
    ASSERT_OK((*file)->Append(BytesOfFakeFileSystem(" lost")));
    EXPECT_EQ(Read(fs, "/log"), "synced lost");
    fs.Crash();
    EXPECT_STATUS((*file)->Append(BytesOfFakeFileSystem("x")),
                  kIoError);  // opened before the crash
  }
  EXPECT_EQ(Read(fs, "/log"), "synced");
  const auto again = fs.OpenAppend("/log", 4);
  ASSERT_OK((*again)->Append(BytesOfFakeFileSystem("!")));
  ASSERT_OK((*again)->Sync());
  fs.Crash();
  EXPECT_EQ(Read(fs, "/log"), "sync!");
}

TEST(FakeFileSystemTest, ALostDirectoryTakesItsFilesAlong) {
  FakeFileSystem fs;
  ASSERT_OK(fs.CreateDirectory("/a"));
  ASSERT_OK(WriteWholeFile(fs, "/a/f", BytesOfFakeFileSystem("x")));
  ASSERT_OK(fs.SyncDirectory("/a"));
  fs.Crash();
  EXPECT_STATUS(fs.Stat("/a"), kNotFound);
  ASSERT_OK(CreateDirectories(fs, "/a/b/c"));  // the helper syncs each parent
  fs.Crash();
  EXPECT_OK(fs.Stat("/a/b/c"));
  ASSERT_OK(fs.CreateDirectory("/killed"));  // by a process that died before its sync
  ASSERT_OK(CreateDirectories(fs, "/killed"));
  fs.Crash();
  EXPECT_OK(fs.Stat("/killed"));
}

TEST(FakeFileSystemTest, RemovalIsUndoneUnlessTheDirectoryWasSynced) {
  FakeFileSystem fs;
  for (const char* name : {"/f", "/g"})
    ASSERT_OK(WriteWholeFile(fs, name, BytesOfFakeFileSystem("x")));
  ASSERT_OK(fs.SyncDirectory("/"));
  ASSERT_OK(fs.RemoveFile("/f"));
  ASSERT_OK(fs.SyncDirectory("/"));
  ASSERT_OK(fs.RemoveFile("/g"));
  EXPECT_EQ(Read(fs, "/g"), "absent");
  fs.Crash();
  EXPECT_EQ(Read(fs, "/f"), "absent");
  EXPECT_EQ(Read(fs, "/g"), "x");
}

TEST(FakeFileSystemTest, LinksShareBytesAndCount) {
  FakeFileSystem fs;
  ASSERT_OK(WriteWholeFile(fs, "/f", BytesOfFakeFileSystem("x")));
  ASSERT_OK(fs.CreateDirectory("/d"));
  ASSERT_OK(fs.LinkFile("/f", "/d/g"));
  EXPECT_STATUS(fs.LinkFile("/f", "/d/g"), kAlreadyExists);
  EXPECT_EQ(fs.Stat("/f")->link_count, 2U);
  ASSERT_OK(fs.RemoveFile("/f"));
  EXPECT_EQ(Read(fs, "/d/g"), "x");
  EXPECT_EQ(fs.Stat("/d/g")->link_count, 1U);
  fs.RefuseLinks(true);
  EXPECT_STATUS(fs.LinkFile("/d/g", "/h"), kUnsupported);
}

TEST(FakeFileSystemTest, KeepUnsyncedIsAKilledProcess) {
  FakeFileSystem fs;
  auto file = fs.CreateFile("/f");
  ASSERT_OK((*file)->Append(BytesOfFakeFileSystem("abc")));
  auto lock = fs.Lock("/LOCK", FileSystem::LockMode::kExclusive, "me");
  ASSERT_OK(lock);
  fs.Crash(CrashMode::kKeepUnsynced);
  EXPECT_EQ(Read(fs, "/f"), "abc");
  const auto again = fs.Lock("/LOCK", FileSystem::LockMode::kExclusive, "other");
  EXPECT_OK(again);  // locks die with their holder
  lock->reset();     // its late destructor must not release the new lock
  EXPECT_STATUS(fs.Lock("/LOCK", FileSystem::LockMode::kShared, ""), kBusy);
}

// Over many seeds, random crashes produce both the old and the new contents, and every result is a
// prefix of the file.
TEST(FakeFileSystemTest, RandomCrashesKeepSyncedBytesAndSomeOfTheRest) {
  std::map<std::string, int> outcomes;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    FakeFileSystem fs;
    ASSERT_OK(WriteWholeFile(fs, "/old", BytesOfFakeFileSystem("1234")));
    ASSERT_OK(fs.SyncDirectory("/"));
    const auto file = fs.OpenAppend("/old", 4);
    ASSERT_OK((*file)->Append(BytesOfFakeFileSystem("5678")));
    ASSERT_OK(WriteWholeFile(fs, "/new", BytesOfFakeFileSystem("n")));
    fs.Crash(CrashMode::kRandom, seed);
    const std::string old_text = Read(fs, "/old");
    EXPECT_EQ(old_text.substr(0, 4), "1234");
    EXPECT_LE(old_text.size(), 8U);
    ++outcomes["old " + old_text];
    ++outcomes["new " + Read(fs, "/new")];
    const auto files = fs.Files();
    fs.Crash();  // what survived is durable
    EXPECT_EQ(fs.Files(), files);
  }
  EXPECT_GT(outcomes["old 1234"], 0);
  EXPECT_GT(outcomes["old 12345678"], 0);
  EXPECT_GT(outcomes["new n"], 0);
  EXPECT_GT(outcomes["new absent"], 0);
}

TEST(FakeFileSystemTest, LocksExcludeAndNameTheirHolder) {
  FakeFileSystem fs;
  const auto held = fs.Lock("/LOCK", FileSystem::LockMode::kExclusive, "holder 7");
  ASSERT_OK(held);
  const auto refused = fs.Lock("/LOCK", FileSystem::LockMode::kShared, "");
  EXPECT_STATUS(refused, kBusy);
  EXPECT_NE(refused.error().message().find("holder 7"), std::string::npos);
  EXPECT_STATUS(fs.Lock("/PIN", FileSystem::LockMode::kShared, ""), kNotFound);
  ASSERT_OK(WriteWholeFile(fs, "/PIN", {}));
  auto first = fs.Lock("/PIN", FileSystem::LockMode::kShared, "");
  const auto second = fs.Lock("/PIN", FileSystem::LockMode::kShared, "");
  ASSERT_OK(second);
  EXPECT_STATUS(fs.Lock("/PIN", FileSystem::LockMode::kExclusive, ""), kBusy);
  first->reset();
  EXPECT_STATUS(fs.Lock("/PIN", FileSystem::LockMode::kExclusive, ""), kBusy);
}

TEST(FakeFileSystemTest, TheNthOperationFailsOnceOrForEver) {
  for (const bool sticky : {false, true}) {
    FakeFileSystem fs;
    ASSERT_OK(fs.CreateDirectory("/a"));
    fs.FailAt(fs.operation_count() + 1, ENOSPC, sticky);
    EXPECT_OK(fs.CreateDirectory("/b"));
    EXPECT_STATUS(fs.CreateDirectory("/c"), kOutOfSpace);
    const Status later = fs.CreateDirectory("/c");
    EXPECT_EQ(later.code(), sticky ? StatusCode::kOutOfSpace : StatusCode::kOk);
    fs.ClearFailures();
    EXPECT_OK(fs.CreateDirectory("/d"));
  }
}

// If any operation of a write fails, the write is reported as failed.
TEST(FakeFileSystemTest, EveryFailureOfAWriteIsReported) {
  for (std::uint64_t k = 0;; ++k) {
    FakeFileSystem fs;
    fs.FailAt(k, EIO, false);
    const Status status = WriteWholeFile(fs, "/f", BytesOfFakeFileSystem("abcd"));
    if (status.ok()) {
      EXPECT_EQ(k, 4U);  // create, append, sync, close
      break;
    }
    EXPECT_STATUS(status, kIoError);
  }
}

TEST(FakeFileSystemTest, AFailedSyncStaysFailed) {
  FakeFileSystem fs;
  const auto file = fs.CreateFile("/f");
  ASSERT_OK(fs.SyncDirectory("/"));
  ASSERT_OK((*file)->Append(BytesOfFakeFileSystem("abcd")));
  fs.FailWhen([](Operation operation, const Path&) { return operation == Operation::kSync; }, EIO);
  EXPECT_STATUS((*file)->Sync(), kIoError);
  fs.ClearFailures();
  EXPECT_STATUS((*file)->Sync(), kIoError);
  EXPECT_STATUS((*file)->Append(BytesOfFakeFileSystem("x")), kIoError);
  fs.Crash();
  EXPECT_EQ(Read(fs, "/f"), "");
  EXPECT_EQ(fs.Trace().at(3), "sync /f");
}

TEST(FakeFileSystemTest, AnswersAsAFileSystemDoes) {
  FakeFileSystem fs;
  EXPECT_STATUS(fs.OpenRead("/x"), kNotFound);
  EXPECT_STATUS(fs.CreateFile("/x/y"), kNotFound);
  EXPECT_STATUS(fs.RemoveFile("/x"), kNotFound);
  EXPECT_STATUS(fs.List("/x"), kNotFound);
  EXPECT_STATUS(fs.SyncDirectory("/x"), kNotFound);
  ASSERT_OK(fs.CreateDirectory("x"));  // relative paths begin at the root
  EXPECT_STATUS(fs.CreateDirectory("/x"), kAlreadyExists);
  EXPECT_STATUS(fs.OpenRead("/x"), kIoError);
  ASSERT_OK(WriteWholeFile(fs, "/x/./f", BytesOfFakeFileSystem("abc")));
  EXPECT_STATUS(fs.CreateFile("/x/f"), kAlreadyExists);
  EXPECT_STATUS(fs.RemoveDirectory("/x"), kAlreadyExists);
  EXPECT_STATUS(fs.OpenAppend("/x/f", 4), kInvalidArgument);
  EXPECT_EQ(fs.Stat("/x/f")->size_bytes, 3U);
  EXPECT_EQ(fs.List("/x")->at(0).name, "f");
  EXPECT_OK(RemoveTree(fs, "/x"));
  EXPECT_TRUE(fs.List("/")->empty());
  fs.SetFreeBytes(5);
  EXPECT_EQ(*fs.FreeBytes("/"), 5U);
}

TEST(FakeFileSystemTest, DamageIsSeenByReadersAndIsDurable) {
  FakeFileSystem fs;
  ASSERT_OK(WriteWholeFile(fs, "/f", BytesOfFakeFileSystem("abc")));
  ASSERT_OK(fs.SyncDirectory("/"));
  ASSERT_OK(fs.FlipBit("/f", 9));
  EXPECT_EQ(Read(fs, "/f"), "a`c");
  ASSERT_OK(fs.Overwrite("/f", {}));
  fs.Crash();
  EXPECT_EQ(Read(fs, "/f"), "");
  EXPECT_STATUS(fs.FlipBit("/f", 0), kNotFound);
  EXPECT_STATUS(fs.Overwrite("/g", {}), kNotFound);
}

TEST(FakeFileSystemTest, BothQueuesReadItDirectOrNot) {
  FakeFileSystem fs;
  std::string text(10'000, 'a');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i % 26);
  ASSERT_OK(WriteWholeFile(fs, "/f", BytesOfFakeFileSystem(text)));
  fs.SetDirectAlignment(512);
  const auto file = fs.OpenRead("/f", {.direct = true});
  ASSERT_OK(file);
  EXPECT_EQ((*file)->alignment_bytes(), 512U);
  const auto memory = AlignedBuffer::Allocate(10'240);
  ASSERT_OK(memory);
  for (const IoMaker maker : {IoMaker::kAuto, IoMaker::kPread}) {
    const auto queue = IoQueue::Open({.maker = maker});
    ASSERT_OK(queue);
    std::fill(memory->bytes().begin(), memory->bytes().end(), std::byte{0});
    ReadRequest request = {.file = file->get(), .buffer = memory->bytes()};
    ASSERT_OK((*queue)->ReadAll(std::span(&request, 1)));
    EXPECT_EQ(Text(memory->bytes().first(text.size())), text);
    request.offset_bytes = 100;  // not aligned
    EXPECT_STATUS((*queue)->ReadAll(std::span(&request, 1)), kIoError);
  }
}

}  // namespace
}  // namespace rhizome
