#pragma once

#include <cerrno>
#include <string>

#include "rhizome/verify.h"
#include "storage/array_fixture.h"
#include "storage/io/files.h"
#include "storage/maintenance/verify_files.h"
#include "storage/store/generation_writer.h"
#include "testing/fake_file_system.h"

// Checks of stores on a disk that stops at a chosen operation. The quick tests stop at some
// operations; the ci tier stops at each one.

namespace rhizome::testing {

using CrashMode = FakeFileSystem::CrashMode;

/// A fake disk on which the store's catalogue is on the real disk, because RocksDB can use no
/// other. What RocksDB writes survives a crash of the fake disk, as its synced writes would.
class StoreFileSystem : public FakeFileSystem {
 public:
  explicit StoreFileSystem(const Path& store) : store_(store), catalog_(store / "catalog") {
    std::filesystem::create_directories(store);
    EXPECT_OK(CreateDirectories(*this, store.parent_path()));
  }
  Result<std::vector<DirectoryEntry>> List(const Path& path) override {
    if (IsReal(path)) return Posix().List(path);
    auto entries = FakeFileSystem::List(path);
    if (entries && path == store_ && HasCatalog())
      entries->push_back({"catalog", DirectoryEntry::Kind::kDirectory});
    return entries;
  }
  Result<FileInfo> Stat(const Path& path) override {
    return IsReal(path) ? Posix().Stat(path) : FakeFileSystem::Stat(path);
  }
  Status RemoveFile(const Path& path) override {
    return IsReal(path) ? Posix().RemoveFile(path) : FakeFileSystem::RemoveFile(path);
  }
  Status RemoveDirectory(const Path& path) override {
    return IsReal(path) ? Posix().RemoveDirectory(path) : FakeFileSystem::RemoveDirectory(path);
  }
  bool HasCatalog() const { return std::filesystem::exists(catalog_); }

  /// Makes all operations fail after the next `count`.
  void StopAfter(std::uint64_t count) { FailAt(operation_count() + count, EIO, /*sticky=*/true); }

 private:
  bool IsReal(const Path& path) const { return path.native().starts_with(catalog_.native()); }
  const Path store_;
  const Path catalog_;
};

/// Expects that the rows of an array follow the formula.
inline void ExpectRows(const Store& store, const std::string& name, std::uint64_t rows) {
  const auto array = store.OpenArray(name);
  ASSERT_OK(array);
  std::vector<std::byte> bytes(rows * (*array)->entry().row_bytes());
  ASSERT_OK((*array)->ReadRows(0, rows, bytes));
  EXPECT_EQ(bytes, testing::RowsByFormula(0, rows, (*array)->entry().row_bytes()));
}

inline void ExpectSound(FileSystem& fs, const Path& path) {
  const auto report = VerifyFiles(fs, path, JobControl());
  ASSERT_OK(report);
  for (const Damage& damage : report->damaged) ADD_FAILURE() << damage.file << ": " << damage.what;
}

// The catalogue must be created after FORMAT. Without FORMAT, a store could not be distinguished
// from an unrelated database.
inline void ExpectFormatBeforeCatalog(const StoreFileSystem& fs, const Path& path) {
  if (!fs.HasCatalog()) return;
  EXPECT_TRUE(fs.Files().contains((path / "FORMAT").string()));
}

/// The operations at which a disk stops: number `first`, and every `stride`-th after it.
struct Stops {
  std::uint64_t first = 0;
  std::uint64_t stride = 1;
};

/// Calls `attempt(count)` with an increasing number of allowed operations, until it returns true
/// for a completed attempt.
template <typename Attempt>
void StopEverywhere(const Stops& stops, Attempt attempt) {
  for (std::uint64_t count = stops.first;; count += stops.stride) {
    SCOPED_TRACE("stopped after operations: " + std::to_string(count));
    const bool ended = attempt(count);
    if (ended || ::testing::Test::HasFailure()) return;
  }
}

inline void ExpectGeneration(FileSystem& fs, const Path& path, std::uint64_t generation,
                             std::uint64_t rows) {
  ExpectSound(fs, path);
  const auto store = Store::Open(fs, path, Store::Mode::kRead);
  ASSERT_OK(store);
  EXPECT_EQ((*store)->manifest().generation, generation);
  EXPECT_EQ((*store)->manifest().info.vertices, rows);
  ExpectRows(**store, "feat", rows);
}

inline void ExpectNoStore(FileSystem& fs, const Path& path) {
  EXPECT_STATUS(Store::Open(fs, path, Store::Mode::kRead), kNotFound);
  EXPECT_STATUS(Store::Open(fs, path, Store::Mode::kWrite), kNotFound);
  EXPECT_STATUS(VerifyFiles(fs, path, JobControl()), kNotFound);
}

/// Checks an ingestion that is interrupted, followed by one that is not.
inline void CheckIngestion(const Stops& stops, CrashMode mode, std::uint64_t seed) {
  StopEverywhere(stops, [&](std::uint64_t count) {
    TempDir dir;
    const Path path = dir / "s";
    StoreFileSystem fs(path);
    fs.StopAfter(count);
    const bool ended = MakeStore(fs, path).ok();
    fs.Crash(mode, seed + count);
    ExpectFormatBeforeCatalog(fs, path);
    if (!ended) {
      ExpectNoStore(fs, path);
      EXPECT_OK(MakeStore(fs, path));
    }
    ExpectGeneration(fs, path, 1, 300);
    return ended;
  });
}

/// Checks a series of interrupted ingestions. Each starts from the leftovers of the previous one
/// and gets one more step.
inline void CheckIngestionAgainAndAgain(const Stops& stops, CrashMode mode, std::uint64_t seed) {
  TempDir dir;
  const Path path = dir / "s";
  StoreFileSystem fs(path);
  StopEverywhere(stops, [&](std::uint64_t count) {
    fs.StopAfter(count);
    const Status made = MakeStore(fs, path);
    fs.Crash(mode, seed + count);
    ExpectFormatBeforeCatalog(fs, path);
    if (made.ok()) {
      ExpectGeneration(fs, path, 1, 300);
    } else {
      EXPECT_STATUS(made, kIoError);
      ExpectNoStore(fs, path);
    }
    return made.ok();
  });
}

/// Opens the store for writing and commits a new generation with an array of `rows` rows.
inline Status NextGeneration(FileSystem& fs, const Path& path, std::uint64_t rows) {
  RHIZOME_ASSIGN_OR_RETURN(const auto store, Store::Open(fs, path, Store::Mode::kWrite));
  RHIZOME_ASSIGN_OR_RETURN(const auto writer, GenerationWriter::Create(*store));
  RHIZOME_ASSIGN_OR_RETURN(
      const auto written,
      WriteByFormula(fs, writer->root(),
                     MakeEntry("feat", rows, 3, DataType::kFloat32, ArrayLayout::kRow)));
  RHIZOME_RETURN_IF_ERROR(writer->AddArray(written.arrays, written.files));
  return writer->Commit(SmallInfo(rows));
}

inline void CheckNextGeneration(const Stops& stops, CrashMode mode, std::uint64_t seed) {
  TempDir dir;
  const Path path = dir / "s";
  StoreFileSystem fs(path);
  ASSERT_OK(MakeStore(fs, path));
  StopEverywhere(stops, [&](std::uint64_t count) {
    fs.StopAfter(count);
    const bool ended = NextGeneration(fs, path, 200).ok();
    fs.Crash(mode, seed + count);
    ExpectGeneration(fs, path, ended ? 2 : 1, ended ? 200 : 300);
    return ended;
  });
}

inline void CheckCleaningUp(const Stops& stops, CrashMode mode, std::uint64_t seed) {
  TempDir dir;
  const Path path = dir / "s";
  StoreFileSystem fs(path);
  ASSERT_OK(MakeStore(fs, path));
  ASSERT_OK(NextGeneration(fs, path, 200));
  {
    const auto store = Store::Open(fs, path, Store::Mode::kWrite);
    ASSERT_OK(store);
    ASSERT_OK((*store)->Keep({.generations = 0}));
  }
  ASSERT_OK(CreateDirectories(fs, path / "scratch/job"));
  ASSERT_OK(WriteWholeFile(fs, path / "generations/000002/torn", {}));
  StopEverywhere(stops, [&](std::uint64_t count) {
    fs.StopAfter(count);
    const bool ended = Store::Open(fs, path, Store::Mode::kWrite).has_value();
    fs.Crash(mode, seed + count);
    ExpectGeneration(fs, path, 2, 200);
    return ended;
  });
  ASSERT_OK(Store::Open(fs, path, Store::Mode::kWrite));
  const auto report = VerifyFiles(fs, path, JobControl());
  ASSERT_OK(report);
  EXPECT_TRUE(report->orphans.empty()) << report->orphans.front();
  EXPECT_STATUS(fs.Stat(path / "generations/000001"), kNotFound);
}

/// Writes the array "emb" into a scratch folder as a job does.
inline Result<WrittenArray> WriteScratch(FileSystem& fs, const Path& scratch) {
  RHIZOME_RETURN_IF_ERROR(CreateDirectories(fs, scratch));
  return WriteByFormula(
      fs, scratch,
      MakeEntry("emb", 300, 4, DataType::kFloat32, ArrayLayout::kChunk, CodecKind::kZstd, 128));
}

inline void CheckPublishing(const Stops& stops, CrashMode mode, std::uint64_t seed, bool links) {
  TempDir dir;
  const Path path = dir / "s";
  StoreFileSystem fs(path);
  fs.RefuseLinks(!links);
  ASSERT_OK(MakeStore(fs, path));
  const Path scratch = path / "scratch/job";
  const auto written = WriteScratch(fs, scratch);
  ASSERT_OK(written);
  StopEverywhere(stops, [&](std::uint64_t count) {
    fs.StopAfter(count);
    const bool ended =
        Store::PublishArray(fs, path, 1, written->arrays, scratch, written->files).ok();
    fs.Crash(mode, seed + count);
    ExpectGeneration(fs, path, 1, 300);
    const auto store = Store::Open(fs, path, Store::Mode::kRead);
    EXPECT_OK(store);
    if (!store) return true;
    EXPECT_EQ((*store)->manifest().version, ended ? 2u : 1u);
    if (ended)
      ExpectRows(**store, "emb", 300);
    else
      EXPECT_STATUS((*store)->OpenArray("emb"), kNotFound);
    return ended;
  });
}

}  // namespace rhizome::testing
