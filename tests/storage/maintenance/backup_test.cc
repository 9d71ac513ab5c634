#include "rhizome/backup.h"

#include <gmock/gmock.h>

#include <fstream>
#include <set>

#include "rhizome/array_change.h"
#include "storage/catalog/catalog.h"
#include "storage/io/files.h"
#include "storage/maintenance/backup_format.h"
#include "storage/store/generation_writer.h"
#include "storage/store/store_files.h"
#include "storage/store_crash.h"

namespace rhizome {
namespace {

using testing::CrashMode;
using ::testing::ElementsAre;
using testing::ExpectRows;
using testing::ExpectSound;
using ::testing::HasSubstr;
using testing::StoreFileSystem;
using testing::TempDir;

Status Publish(FileSystem& fs, const Path& store, const std::string& name) {
  RHIZOME_RETURN_IF_ERROR(CreateDirectories(fs, store / "scratch/j"));
  RHIZOME_ASSIGN_OR_RETURN(
      const auto written,
      testing::WriteByFormula(fs, store / "scratch/j",
                              testing::MakeEntry(name, 300, 4, DataType::kFloat32,
                                                 ArrayLayout::kChunk, CodecKind::kZstd, 128)));
  RHIZOME_RETURN_IF_ERROR(
      Store::PublishArray(fs, store, 1, written.arrays, store / "scratch/j", written.files));
  return RemoveTree(fs, store / "scratch");
}

/// Adds `count` commits to the delta, each with a record and a row.
Status PutDelta(FileSystem& fs, const Path& path, std::uint64_t count) {
  RHIZOME_ASSIGN_OR_RETURN(const auto store, Store::Open(fs, path, Store::Mode::kWrite));
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string record = "record " + std::to_string(i);
    const std::string row = "row " + std::to_string(i);
    const DeltaRow put{7, static_cast<std::int64_t>(i), std::as_bytes(std::span(row))};
    RHIZOME_RETURN_IF_ERROR(store->CommitDelta(true, [&](std::uint64_t first, const HistoryState&) {
      return std::vector<DeltaCommit>{
          {first, std::as_bytes(std::span(record)), std::span(&put, 1)}};
    }));
  }
  return Status::Ok();
}

std::vector<std::string> DeltaOf(FileSystem& fs, const Path& path) {
  const auto store = Store::Open(fs, path, Store::Mode::kRead);
  EXPECT_OK(store);
  std::vector<std::string> records;
  if (!store) return records;
  EXPECT_OK((*store)->ScanDelta(
      (*store)->base_sequence(),
      [&](std::uint64_t sequence, std::span<const std::byte> record) -> Status {
        const std::string text(reinterpret_cast<const char*>(record.data()), record.size());
        std::string row(text.size() - 3, ' ');
        const std::int64_t vertex = std::stol(text.substr(7));
        RHIZOME_RETURN_IF_ERROR(
            (*store)->ReadDeltaRow(sequence, 7, vertex, std::as_writable_bytes(std::span(row))));
        records.push_back(text + ", " + row);
        return Status::Ok();
      }));
  return records;
}

class BackupTest : public ::testing::Test {
 protected:
  BackupTest() { EXPECT_OK(testing::MakeStore(fs_, store_)); }

  Result<BackupReport> Back(std::uint64_t keep = 0) {
    return BackupStore(fs_, store_, backups_, {.keep = keep}, JobControl());
  }
  Result<RestoreReport> Restore(const Path& to,
                                std::optional<std::uint64_t> number = std::nullopt) {
    return RestoreStore(fs_, backups_, to, number, JobControl());
  }

  TempDir dir_;
  FileSystem& fs_ = FileSystem::Posix();
  const Path store_ = dir_ / "s";
  const Path backups_ = dir_ / "b";
};

TEST_F(BackupTest, RestoredStoresHoldWhatTheBackupsDid) {
  ASSERT_OK(PutDelta(fs_, store_, 2));
  const auto first = Back();
  ASSERT_OK(first);
  EXPECT_EQ(first->backup.number, 1U);
  EXPECT_EQ(first->files_shared, 0U);
  EXPECT_EQ(first->backup.delta_entries, 4U);
  ASSERT_OK(Publish(fs_, store_, "emb"));
  ASSERT_OK(PutDelta(fs_, store_, 1));
  const auto second = Back();
  ASSERT_OK(second);
  EXPECT_EQ(second->backup.number, 2U);
  EXPECT_EQ(second->files_copied, 4U);  // three chunks and a zarr.json
  EXPECT_EQ(second->files_shared, first->backup.files);

  const auto newest = Restore(dir_ / "r2");
  ASSERT_OK(newest);
  EXPECT_EQ(newest->backup.number, 2U);
  ExpectSound(fs_, dir_ / "r2");
  const auto restored = Store::Open(fs_, dir_ / "r2", Store::Mode::kRead);
  ASSERT_OK(restored);
  ExpectRows(**restored, "emb", 300);
  EXPECT_EQ(DeltaOf(fs_, dir_ / "r2"), DeltaOf(fs_, store_));
  EXPECT_EQ(DeltaOf(fs_, dir_ / "r2").size(), 3U);

  ASSERT_OK(Restore(dir_ / "r1", 1));
  ExpectSound(fs_, dir_ / "r1");
  EXPECT_EQ(DeltaOf(fs_, dir_ / "r1").size(), 2U);
  const auto older = Store::Open(fs_, dir_ / "r1", Store::Mode::kRead);
  ASSERT_OK(older);
  EXPECT_STATUS((*older)->OpenArray("emb"), kNotFound);
  EXPECT_EQ((*older)->manifest().version, 1U);

  // Writing to a restored store works: new commits do not collide with the restored delta.
  ASSERT_OK(PutDelta(fs_, dir_ / "r2", 1));
  EXPECT_EQ(DeltaOf(fs_, dir_ / "r2").size(), 4U);
  ASSERT_OK(Publish(fs_, dir_ / "r2", "more"));
  ExpectSound(fs_, dir_ / "r2");
}

TEST_F(BackupTest, AWriterMayGoOn) {
  const auto writer = Store::Open(fs_, store_, Store::Mode::kWrite);
  ASSERT_OK(writer);
  EXPECT_OK(Back());
  EXPECT_OK(Restore(dir_ / "r"));
  ExpectSound(fs_, dir_ / "r");
}

TEST_F(BackupTest, OldBackupsGoWithTheFilesThatOnlyTheyHold) {
  ASSERT_OK(Publish(fs_, store_, "emb"));
  ASSERT_OK(Back());
  ASSERT_OK(ArrayChange::Run(fs_, store_, {.generation = 1},
                             [](ArrayChange& c) { return c.Drop("emb"); }));
  ASSERT_OK(Back());
  const auto third = Back(/*keep=*/2);
  ASSERT_OK(third);
  EXPECT_THAT(third->removed, ElementsAre(1));
  EXPECT_EQ(third->files_copied, 0U);
  std::set<std::string> files;
  ASSERT_OK(WalkFiles(fs_, backups_ / "files", [&](const std::string& path, auto) {
    files.insert(path);
    return Status::Ok();
  }));
  EXPECT_EQ(files.size(), third->backup.files);
  const auto list = ListBackups(fs_, backups_);
  ASSERT_OK(list);
  EXPECT_EQ(list->size(), 2U);
  EXPECT_EQ(list->front().number, 2U);
  EXPECT_STATUS(Restore(dir_ / "r", 1), kNotFound);
  EXPECT_OK(Restore(dir_ / "r", 2));
}

TEST_F(BackupTest, DamageIsFoundOnBothWays) {
  ASSERT_OK(Back());
  const auto flip = [](const Path& path) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(7);
    const char byte = static_cast<char>(file.get() ^ 1);
    file.seekp(7);
    file.put(byte);
  };
  // If the backup is damaged, nothing is restored, and the error names the file.
  const auto store = Store::Open(fs_, store_, Store::Mode::kRead);
  ASSERT_OK(store);
  const FileEntry& entry = (*store)->manifest().files.front();
  flip(backups_ / BackupFilePath(entry.xxh3));
  const auto refused = Restore(dir_ / "r");
  EXPECT_STATUS(refused, kCorruption);
  EXPECT_THAT(refused.error().message(), HasSubstr(BackupFilePath(entry.xxh3)));
  EXPECT_STATUS(Store::Open(fs_, dir_ / "r", Store::Mode::kRead), kNotFound);
  flip(backups_ / BackupFilePath(entry.xxh3));
  EXPECT_OK(Restore(dir_ / "r"));  // over the leftovers of the failed restore
  flip(backups_ / "deltas/000001");
  // If the store is damaged, no backup is made.
  ASSERT_OK(Publish(fs_, store_, "emb"));
  flip(store_ / "generations/000001/arrays/emb/c.1.0");
  const auto damaged = Back();
  EXPECT_STATUS(damaged, kCorruption);
  EXPECT_THAT(damaged.error().message(), HasSubstr("c.1.0"));
  EXPECT_EQ(ListBackups(fs_, backups_)->size(), 1U);
}

TEST_F(BackupTest, WrongPlacesAreRefused) {
  EXPECT_STATUS(BackupStore(fs_, dir_ / "none", backups_, {}, JobControl()), kNotFound);
  EXPECT_STATUS(Restore(dir_ / "r"), kNotFound);
  EXPECT_STATUS(ListBackups(fs_, backups_), kNotFound);
  EXPECT_STATUS(BackupStore(fs_, store_, store_, {}, JobControl()), kAlreadyExists);
  ASSERT_OK(Back());
  EXPECT_STATUS(Restore(store_), kAlreadyExists);
  EXPECT_STATUS(Restore(backups_), kAlreadyExists);
  EXPECT_STATUS(Restore(dir_ / "r", 9), kNotFound);
  // The folder holds backups of another store.
  {
    const auto other = Store::Create(fs_, dir_ / "o", testing::FixedStoreId(2));
    ASSERT_OK(other);
    const auto writer = GenerationWriter::Create(**other);
    ASSERT_OK(writer);
    ASSERT_OK((*writer)->Commit(testing::SmallInfo(0)));
  }
  EXPECT_STATUS(BackupStore(fs_, dir_ / "o", backups_, {}, JobControl()), kInvalidArgument);
  const auto lock = fs_.Lock(backups_ / "LOCK", FileSystem::LockMode::kExclusive, "rhizome 1\n");
  ASSERT_OK(lock);
  EXPECT_STATUS(Back(), kBusy);
  EXPECT_STATUS(Restore(dir_ / "r"), kBusy);
  JobControl cancelled;
  cancelled.Cancel();
  EXPECT_STATUS(BackupStore(fs_, store_, dir_ / "c", {}, cancelled), kInterrupted);
}

// Records of version 1 have no states.
class BackupRecordTest : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(States, BackupRecordTest, ::testing::Bool());

TEST_P(BackupRecordTest, EveryFlippedBitAndTruncationIsCorruption) {
  const bool states = GetParam();
  BackupRecord record;
  record.number = 3;
  record.sequence = 9;
  record.base_sequence = 4;
  record.manifest.generation = 1;
  record.manifest.version = 2;
  record.manifest.info = testing::SmallInfo();
  if (states) {
    record.base_state.commits.fill(std::byte{1});
    record.last_delta = 8;
    record.state.commits.fill(std::byte{2});
    record.state.leader =
        LeaderState{.store = testing::FixedStoreId(3), .commit = 5, .commits = {}};
  }
  auto bytes = EncodeBackupRecord(record, testing::FixedStoreId());
  const auto decoded = DecodeBackupRecord(bytes, testing::FixedStoreId());
  ASSERT_OK(decoded);
  EXPECT_EQ(decoded->sequence, 9U);
  EXPECT_EQ(decoded->state, record.state);
  EXPECT_EQ(EncodeBackupRecord(*decoded, testing::FixedStoreId()), bytes);
  EXPECT_STATUS(DecodeBackupRecord(bytes, testing::FixedStoreId(2)), kCorruption);
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    ASSERT_FALSE(DecodeBackupRecord(bytes, testing::FixedStoreId())) << bit;
    bytes[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
  }
  for (std::size_t length = 0; length < bytes.size(); ++length)
    ASSERT_FALSE(DecodeBackupRecord(std::span(bytes).first(length), testing::FixedStoreId()));
}

// --- Power cuts
// ------------------------------------------------------------------------------------

/// The second backup is interrupted. The first remains valid, and the next run completes the
/// second.
void CheckBackupStops(CrashMode mode, std::uint64_t seed) {
  TempDir dir;
  const Path path = dir / "s";
  const Path backups = dir / "b";
  StoreFileSystem fs(path);
  ASSERT_OK(testing::MakeStore(fs, path));
  ASSERT_OK(BackupStore(fs, path, backups, {}, JobControl()));
  ASSERT_OK(Publish(fs, path, "emb"));
  testing::StopEverywhere({seed % 9, 9}, [&](std::uint64_t count) {
    fs.StopAfter(count);
    const auto made = BackupStore(fs, path, backups, {}, JobControl());
    fs.Crash(mode, seed + count);
    const auto list = ListBackups(fs, backups);
    EXPECT_OK(list);
    if (!list || list->empty()) return true;
    EXPECT_EQ(list->front().number, 1U);
    if (!made) return false;
    EXPECT_EQ(list->back().number, made->backup.number);
    for (const auto& [number, name] :
         {std::pair(std::uint64_t{1}, "feat"), std::pair(made->backup.number, "emb")}) {
      TempDir other;
      StoreFileSystem target(other / "r");  // with its own catalogue
      const auto files = fs.Files();
      for (const auto& [file, bytes] : files) {
        if (!file.starts_with(backups.string())) continue;
        EXPECT_OK(CreateDirectories(target, Path(file).parent_path()));
        EXPECT_OK(WriteWholeFile(target, file, bytes));
      }
      EXPECT_OK(RestoreStore(target, backups, other / "r", number, JobControl()));
      ExpectSound(target, other / "r");
      const auto store = Store::Open(target, other / "r", Store::Mode::kRead);
      EXPECT_OK(store);
      if (store) ExpectRows(**store, name, 300);
    }
    return true;
  });
}

TEST(BackupCrashTest, EarlierBackupsStay) {
  const std::uint64_t seed = testing::TestSeed();
  CheckBackupStops(CrashMode::kDropUnsynced, seed);
  CheckBackupStops(CrashMode::kRandom, seed);
}

/// An interrupted restore leaves no store, and can be repeated.
TEST(BackupCrashTest, ARestoreIsThereWholeOrNotAtAll) {
  const std::uint64_t seed = testing::TestSeed();
  TempDir dir;
  const Path path = dir / "s";
  StoreFileSystem from(path);
  ASSERT_OK(testing::MakeStore(from, path));
  ASSERT_OK(BackupStore(from, path, dir / "b", {}, JobControl()));
  StoreFileSystem fs(dir / "r");
  for (const auto& [file, bytes] : from.Files()) {
    if (!file.starts_with((dir / "b").string())) continue;
    ASSERT_OK(CreateDirectories(fs, Path(file).parent_path()));
    ASSERT_OK(WriteWholeFile(fs, file, bytes));
    ASSERT_OK(fs.SyncDirectory(Path(file).parent_path()));
  }
  testing::StopEverywhere({seed % 17, 17}, [&](std::uint64_t count) {
    fs.StopAfter(count);
    const auto made = RestoreStore(fs, dir / "b", dir / "r", std::nullopt, JobControl());
    fs.Crash(CrashMode::kRandom, seed + count);
    // A restore may return an error after its commit. The store is then complete.
    const bool there = Store::Open(fs, dir / "r", Store::Mode::kRead).has_value();
    EXPECT_TRUE(there || !made);
    if (there)
      testing::ExpectGeneration(fs, dir / "r", 1, 300);
    else
      testing::ExpectNoStore(fs, dir / "r");
    return there;
  });
}

}  // namespace
}  // namespace rhizome
