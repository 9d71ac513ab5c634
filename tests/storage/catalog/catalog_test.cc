#include "storage/catalog/catalog.h"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <map>
#include <thread>

#include "storage/array_fixture.h"

namespace rhizome {
namespace {

using testing::FixedStoreId;
using testing::TempDir;
using Mode = Catalog::Mode;

CommitRecord Record(std::uint64_t sequence) {
  CommitRecord record;
  record.generation = 3;
  record.manifest_version = 10 + sequence;
  record.manifest_bytes = 12345;
  record.manifest_xxh3.fill(static_cast<std::byte>(sequence));
  record.sequence = sequence;
  record.base_sequence = sequence / 2;
  return record;
}

void ExpectRecord(const Result<CommitRecord>& found, std::uint64_t sequence) {
  ASSERT_OK(found);
  const CommitRecord expected = Record(sequence);
  EXPECT_EQ(found->generation, expected.generation);
  EXPECT_EQ(found->manifest_version, expected.manifest_version);
  EXPECT_EQ(found->manifest_bytes, expected.manifest_bytes);
  EXPECT_EQ(found->manifest_xxh3, expected.manifest_xxh3);
  EXPECT_EQ(found->sequence, expected.sequence);
  EXPECT_EQ(found->base_sequence, expected.base_sequence);
}

/// Creates a catalogue with one commit and closes it.
void MakeCatalog(const Path& path) {
  const auto catalog = Catalog::Open(FileSystem::Posix(), path, Mode::kCreate, FixedStoreId());
  ASSERT_OK(catalog);
  ASSERT_OK((*catalog)->Commit(Record(1)));
  ASSERT_OK((*catalog)->Close());
}

std::string ReadAll(const Path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<Path> FilesEndingIn(const Path& folder, std::string_view extension) {
  std::vector<Path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == extension) files.push_back(entry.path());
  return files;
}

// A killed writer leaves its unflushed commits in a log of many blocks.
TEST(CatalogTest, ALongLogIsReadToItsEnd) {
  TempDir dir;
  const auto writer = Catalog::Open(FileSystem::Posix(), dir / "c", Mode::kCreate, FixedStoreId());
  ASSERT_OK(writer);
  const std::vector<std::byte> record(10'000, std::byte{5});
  constexpr std::uint64_t kCommits = 100;
  for (std::uint64_t i = 1; i <= kCommits; ++i) {
    const DeltaCommit commit{.sequence = i, .record = record, .rows = {}};
    ASSERT_OK((*writer)->AppendDelta(std::span(&commit, 1), /*sync=*/false));
  }
  std::filesystem::copy(dir / "c", dir / "killed", std::filesystem::copy_options::recursive);
  for (const Mode mode : {Mode::kRead, Mode::kWrite}) {
    const auto left = Catalog::Open(FileSystem::Posix(), dir / "killed", mode, FixedStoreId());
    ASSERT_OK(left);
    const auto last = (*left)->LastDelta();
    ASSERT_OK(last);
    EXPECT_EQ(*last, kCommits);
  }
}

TEST(CatalogTest, ACommitIsThereAfterReopening) {
  TempDir dir;
  MakeCatalog(dir / "c");
  {
    const auto catalog =
        Catalog::Open(FileSystem::Posix(), dir / "c", Mode::kWrite, FixedStoreId());
    ASSERT_OK(catalog);
    ExpectRecord((*catalog)->Current(), 1);
    ASSERT_OK((*catalog)->Commit(Record(2)));
    ExpectRecord((*catalog)->Current(), 2);
    EXPECT_OK((*catalog)->VerifyChecksums());
  }
  const auto catalog = Catalog::Open(FileSystem::Posix(), dir / "c", Mode::kRead, FixedStoreId());
  ASSERT_OK(catalog);
  ExpectRecord((*catalog)->Current(), 2);
  EXPECT_OK((*catalog)->VerifyChecksums());
}

// Members of a group share a store in a common folder, with umask 002.
TEST(CatalogTest, EveryFileHasTheModeThatTheUmaskGives) {
  TempDir dir;
  const mode_t before = ::umask(002);
  MakeCatalog(dir / "c");
  ::umask(before);
  for (const auto& entry : std::filesystem::directory_iterator(dir / "c"))
    EXPECT_EQ(static_cast<unsigned>(entry.status().permissions()), 0664U) << entry.path();
}

// A killed process does not close its files, so a commit must be readable while the writer is still
// open.
TEST(CatalogTest, ACommitNeedsNoClose) {
  TempDir dir;
  const auto writer = Catalog::Open(FileSystem::Posix(), dir / "c", Mode::kCreate, FixedStoreId());
  ASSERT_OK(writer);
  ASSERT_OK((*writer)->Commit(Record(5)));
  std::filesystem::copy(dir / "c", dir / "copy", std::filesystem::copy_options::recursive);
  const auto copy = Catalog::Open(FileSystem::Posix(), dir / "copy", Mode::kWrite, FixedStoreId());
  ASSERT_OK(copy);
  ExpectRecord((*copy)->Current(), 5);
}

TEST(CatalogTest, AbsentAndEmptyCataloguesAreNotFound) {
  TempDir dir;
  for (const Mode mode : {Mode::kRead, Mode::kWrite})
    EXPECT_STATUS(Catalog::Open(FileSystem::Posix(), dir / "none", mode, FixedStoreId()),
                  kNotFound);
  EXPECT_FALSE(std::filesystem::exists(dir / "none"));
  { ASSERT_OK(Catalog::Open(FileSystem::Posix(), dir / "c", Mode::kCreate, FixedStoreId())); }
  for (const Mode mode : {Mode::kRead, Mode::kWrite}) {
    const auto catalog = Catalog::Open(FileSystem::Posix(), dir / "c", mode, FixedStoreId());
    ASSERT_OK(catalog);
    EXPECT_STATUS((*catalog)->Current(), kNotFound);
  }
}

TEST(CatalogTest, CreatingNeverTakesOverWhatIsThere) {
  TempDir dir;
  MakeCatalog(dir / "c");
  EXPECT_FALSE(Catalog::Open(FileSystem::Posix(), dir / "c", Mode::kCreate, FixedStoreId()));
  const auto catalog = Catalog::Open(FileSystem::Posix(), dir / "c", Mode::kRead, FixedStoreId());
  ASSERT_OK(catalog);
  ExpectRecord((*catalog)->Current(), 1);
}

TEST(CatalogTest, ASecondWriterIsRefused) {
  TempDir dir;
  MakeCatalog(dir / "c");
  const auto first = Catalog::Open(FileSystem::Posix(), dir / "c", Mode::kWrite, FixedStoreId());
  ASSERT_OK(first);
  EXPECT_STATUS(Catalog::Open(FileSystem::Posix(), dir / "c", Mode::kWrite, FixedStoreId()), kBusy);
}

TEST(CatalogTest, ASecondarySeesALaterCommitWhenItCatchesUp) {
  TempDir dir;
  const auto writer = Catalog::Open(FileSystem::Posix(), dir / "c", Mode::kCreate, FixedStoreId());
  ASSERT_OK(writer);
  ASSERT_OK((*writer)->Commit(Record(1)));
  const auto reader = Catalog::Open(FileSystem::Posix(), dir / "c", Mode::kRead, FixedStoreId());
  ASSERT_OK(reader);
  ExpectRecord((*reader)->Current(), 1);
  ASSERT_OK((*writer)->Commit(Record(2)));
  ExpectRecord((*reader)->Current(), 1);
  ASSERT_OK((*reader)->CatchUp());
  ExpectRecord((*reader)->Current(), 2);
  ASSERT_OK((*writer)->Close());  // flushes, which removes the log that the reader follows
  ASSERT_OK((*reader)->CatchUp());
  ExpectRecord((*reader)->Current(), 2);
}

// The reader has read a commit in the log of a writer that was killed or is still open. RocksDB's
// secondary keeps it in memory even when a later commit is in a table, and its log is gone.
TEST(CatalogTest, ACommitFromALogDoesNotHideLaterOnesInTables) {
  TempDir dir;
  auto writer = Catalog::Open(FileSystem::Posix(), dir / "c", Mode::kCreate, FixedStoreId());
  ASSERT_OK(writer);
  ASSERT_OK((*writer)->Commit(Record(1)));
  const auto reader = Catalog::Open(FileSystem::Posix(), dir / "c", Mode::kRead, FixedStoreId());
  ASSERT_OK(reader);
  ExpectRecord((*reader)->Current(), 1);
  ASSERT_OK((*writer)->Close());
  for (std::uint64_t i = 2; i <= 10; ++i) {
    writer = Catalog::Open(FileSystem::Posix(), dir / "c", Mode::kWrite, FixedStoreId());
    ASSERT_OK(writer);
    ASSERT_OK((*writer)->Commit(Record(i)));
    if (i % 3 == 0) {
      ASSERT_OK((*reader)->CatchUp());  // from the log
      ExpectRecord((*reader)->Current(), i);
    }
    ASSERT_OK((*writer)->Close());
    ASSERT_OK((*reader)->CatchUp());
    ExpectRecord((*reader)->Current(), i);
  }
}

// A table may be compacted away before a reader opens it. The MANIFEST with that change may never
// be read, because the next writer has started another.
TEST(CatalogTest, AReaderThatMissedATableShowsWhatCameAfterIt) {
  TempDir dir;
  MakeCatalog(dir / "c");
  const auto write = [&](std::uint64_t sequence) {
    const auto writer = Catalog::Open(FileSystem::Posix(), dir / "c", Mode::kWrite, FixedStoreId());
    ASSERT_OK(writer);
    ASSERT_OK((*writer)->Commit(Record(sequence)));
    ASSERT_OK((*writer)->Close());
  };
  const auto reader = Catalog::Open(FileSystem::Posix(), dir / "c", Mode::kRead, FixedStoreId());
  ASSERT_OK(reader);
  const std::vector<Path> before = FilesEndingIn(dir / "c", ".sst");
  ASSERT_NO_FATAL_FAILURE(write(2));
  std::vector<Path> hidden;
  for (const Path& table : FilesEndingIn(dir / "c", ".sst"))
    if (std::find(before.begin(), before.end(), table) == before.end()) hidden.push_back(table);
  ASSERT_FALSE(hidden.empty());
  for (const Path& table : hidden) std::filesystem::rename(table, dir / table.filename());
  EXPECT_STATUS((*reader)->CatchUp(), kCorruption);
  ExpectRecord((*reader)->Current(), 1);  // the state before the failed CatchUp
  for (const Path& table : hidden) std::filesystem::rename(dir / table.filename(), table);
  ASSERT_OK((*reader)->CatchUp());
  ExpectRecord((*reader)->Current(), 2);

  for (std::uint64_t i = 3; i <= 20; ++i) {
    ASSERT_NO_FATAL_FAILURE(write(i));
    ASSERT_OK((*reader)->CatchUp());
    ExpectRecord((*reader)->Current(), i);
  }
}

// Each writer starts a new MANIFEST when it opens, and removes the tables of the previous one, so a
// reader may find a MANIFEST whose tables are gone.
TEST(CatalogTest, ReadersOpenWhileWritersComeAndGo) {
  TempDir dir;
  MakeCatalog(dir / "c");
  std::atomic<bool> done = false;
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i)
    readers.emplace_back([&] {
      std::uint64_t seen = 1;
      while (!done) {
        const auto reader =
            Catalog::Open(FileSystem::Posix(), dir / "c", Mode::kRead, FixedStoreId());
        ASSERT_OK(reader);
        const auto record = (*reader)->Current();
        ASSERT_OK(record);
        ASSERT_GE(record->sequence, seen);
        seen = record->sequence;
        ASSERT_OK((*reader)->CatchUp());
        ASSERT_OK((*reader)->VerifyChecksums());
      }
    });
  for (std::uint64_t i = 2; i <= 60; ++i) {
    const auto writer = Catalog::Open(FileSystem::Posix(), dir / "c", Mode::kWrite, FixedStoreId());
    ASSERT_OK(writer);
    ASSERT_OK((*writer)->Commit(Record(i)));
    ASSERT_OK((*writer)->Close());
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
}

TEST(CatalogTest, ASecondaryWritesNothingIntoTheStore) {
  TempDir dir;
  MakeCatalog(dir / "c");
  std::map<Path, std::string> before;
  for (const auto& entry : std::filesystem::directory_iterator(dir / "c"))
    before[entry.path()] = ReadAll(entry.path());
  {
    const auto reader = Catalog::Open(FileSystem::Posix(), dir / "c", Mode::kRead, FixedStoreId());
    ASSERT_OK(reader);
    ASSERT_OK((*reader)->CatchUp());
  }
  std::map<Path, std::string> after;
  for (const auto& entry : std::filesystem::directory_iterator(dir / "c"))
    after[entry.path()] = ReadAll(entry.path());
  EXPECT_EQ(before, after);
}

TEST(CatalogTest, AnotherStoresCatalogueIsCorruption) {
  TempDir dir;
  MakeCatalog(dir / "c");
  const auto catalog = Catalog::Open(FileSystem::Posix(), dir / "c", Mode::kRead, FixedStoreId(2));
  ASSERT_OK(catalog);
  const auto record = (*catalog)->Current();
  EXPECT_STATUS(record, kCorruption);
  EXPECT_NE(testing::AsStatus(record).message().find("store id"), std::string::npos);
}

/// Flips bytes at regular distances in every table of a catalogue. The commit must be read
/// correctly or reported as damaged.
void FlipEverywhere(const Path& folder) {
  for (const Path& path : FilesEndingIn(folder, ".sst")) {
    const std::string good = ReadAll(path);
    ASSERT_FALSE(good.empty());
    const std::size_t step = std::max<std::size_t>(1, good.size() / 24);
    for (std::size_t at = 0; at < good.size(); at += step) {
      std::string bad = good;
      bad[at] ^= 0x10;
      std::ofstream(path, std::ios::binary) << bad;
      const auto catalog = Catalog::Open(FileSystem::Posix(), folder, Mode::kRead, FixedStoreId());
      if (!catalog) continue;
      const auto record = (*catalog)->Current();
      if (record) ExpectRecord(record, 1);
    }
    std::ofstream(path, std::ios::binary) << good;
  }
}

TEST(CatalogTest, ADamagedTableNeverGivesAWrongCommit) {
  TempDir dir;
  MakeCatalog(dir / "c");
  ASSERT_FALSE(FilesEndingIn(dir / "c", ".sst").empty());
  FlipEverywhere(dir / "c");
  const Path table = FilesEndingIn(dir / "c", ".sst").front();
  std::string bad = ReadAll(table);
  bad[10] ^= 1;  // in the first block, which holds the record
  std::ofstream(table, std::ios::binary) << bad;
  const auto catalog = Catalog::Open(FileSystem::Posix(), dir / "c", Mode::kRead, FixedStoreId());
  const Status found =
      catalog ? testing::AsStatus((*catalog)->Current()) : testing::AsStatus(catalog);
  EXPECT_STATUS(found, kCorruption);
  if (catalog) EXPECT_STATUS((*catalog)->VerifyChecksums(), kCorruption);
}

}  // namespace
}  // namespace rhizome
