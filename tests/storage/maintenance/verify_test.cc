#include "rhizome/verify.h"

#include <fstream>
#include <set>

#include "rhizome/backup.h"
#include "rhizome/store.h"
#include "storage/array_fixture.h"
#include "storage/io/job_folder.h"
#include "storage/maintenance/repair_store.h"
#include "storage/maintenance/verify_files.h"
#include "storage/store/generation_writer.h"

namespace rhizome {
namespace {

using testing::MakeStore;
using testing::TempDir;

FileSystem& posix = FileSystem::Posix();

/// Returns whether verify reports this file as damaged.
bool Names(const Path& store, const std::string& file) {
  const auto report = VerifyFiles(posix, store, JobControl());
  if (!report) return false;
  for (const Damage& damage : report->damaged)
    if (damage.file == file) return true;
  return false;
}

std::string ReadAllOfVerify(const Path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void WriteAll(const Path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST(VerifyTest, SoundStoreIsOk) {
  TempDir dir;
  ASSERT_OK(MakeStore(posix, dir / "s"));
  const auto report = VerifyFiles(posix, dir / "s", JobControl());
  ASSERT_OK(report);
  EXPECT_TRUE(report->ok()) << report->damaged[0].file << ": " << report->damaged[0].what;
  EXPECT_GT(report->files, 6u);
  EXPECT_GT(report->bytes, 300u * 12);
}

TEST(VerifyTest, FlippedMissingAndLongerFilesAreNamed) {
  TempDir dir;
  ASSERT_OK(MakeStore(posix, dir / "s"));
  std::vector<Path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir / "s/generations"))
    if (entry.is_regular_file()) files.push_back(entry.path());
  ASSERT_GE(files.size(), 8u);
  for (const Path& path : files) {
    const std::string name = path.lexically_relative(dir / "s").generic_string();
    SCOPED_TRACE(name);
    const std::string good = ReadAllOfVerify(path);
    for (std::size_t i = 0; i < 5 && i < good.size(); ++i) {
      std::string bad = good;
      bad[i * (good.size() - 1) / 4] ^= 1;
      WriteAll(path, bad);
      EXPECT_TRUE(Names(dir / "s", name));
    }
    WriteAll(path, good + "x");
    EXPECT_TRUE(Names(dir / "s", name));
    std::filesystem::remove(path);
    EXPECT_TRUE(Names(dir / "s", name));
    WriteAll(path, good);
  }
  EXPECT_TRUE(VerifyFiles(posix, dir / "s", JobControl())->ok());
}

TEST(VerifyTest, FilesThatDoNotBelongThereAreNamed) {
  TempDir dir;
  ASSERT_OK(MakeStore(posix, dir / "s"));
  for (const char* name :
       {"stray", "generations/1", "generations/x", "scratch/x", "generations/000001/MANIFEST-1"}) {
    SCOPED_TRACE(name);
    std::filesystem::create_directories((dir / "s" / name).parent_path());
    WriteAll(dir / "s" / name, "x");
    EXPECT_TRUE(Names(dir / "s", name));
    std::filesystem::remove(dir / "s" / name);
  }
  std::filesystem::create_symlink("PIN", dir / "s/generations/000001/link");
  EXPECT_TRUE(Names(dir / "s", "generations/000001/link"));
}

// Operating systems, file servers and editors leave files in any folder.
TEST(VerifyTest, FilesOfOtherProgramsAreNoDamageAndStay) {
  TempDir dir;
  ASSERT_OK(MakeStore(posix, dir / "s"));
  std::set<std::string> foreign;
  for (const std::string folder : {"", "catalog/", "generations/", "generations/000001/",
                                   "generations/000001/arrays/feat/", "scratch/"}) {
    std::filesystem::create_directories(dir / "s" / folder);
    for (const char* name : {".DS_Store", "._FORMAT", "Thumbs.db", "desktop.ini", ".nfs00000001",
                             "FORMAT~", "#FORMAT#", ".FORMAT.swp", "FORMAT.bak"}) {
      WriteAll(dir / "s" / folder / name, "x");
      foreign.insert(folder + name);
    }
  }
  for (const char* name : {"lost+found", "generations/lost+found", "scratch/.Trash-1000"}) {
    std::filesystem::create_directory(dir / "s" / name);
    foreign.insert(name);
  }
  const auto expect_listed = [&] {
    const auto report = VerifyFiles(posix, dir / "s", JobControl());
    ASSERT_OK(report);
    EXPECT_TRUE(report->ok()) << report->damaged[0].file << ": " << report->damaged[0].what;
    EXPECT_EQ(std::set(report->strangers.begin(), report->strangers.end()), foreign);
    EXPECT_TRUE(report->orphans.empty());
  };
  expect_listed();
  ASSERT_OK(Store::Open(posix, dir / "s", Store::Mode::kWrite));
  ASSERT_OK(Store::Open(posix, dir / "s", Store::Mode::kRead));
  expect_listed();
  const auto repaired = RepairStore(posix, dir / "s", {}, JobControl());
  ASSERT_OK(repaired);
  EXPECT_EQ(repaired->quarantine, "");
  expect_listed();

  ASSERT_OK(BackupStore(posix, dir / "s", dir / "b", {}, JobControl()));
  for (const char* name : {".DS_Store", "files/.DS_Store", "deltas/Thumbs.db", "backups/.nfs1"})
    WriteAll(dir / "b" / name, "x");
  const auto backups = VerifyBackups(posix, dir / "b", JobControl());
  ASSERT_OK(backups);
  EXPECT_TRUE(backups->ok()) << backups->damaged[0].file;
  EXPECT_TRUE(backups->orphans.empty());
  EXPECT_EQ(backups->strangers.size(), 3U);
  ASSERT_OK(BackupStore(posix, dir / "s", dir / "b", {.keep = 1}, JobControl()));
  EXPECT_TRUE(std::filesystem::exists(dir / "b/files/.DS_Store"));
}

// The root of a disk has a folder lost+found, and a file manager puts its files into empty folders.
TEST(VerifyTest, AStoreAndBackupsBeginBesideFilesOfOtherPrograms) {
  TempDir dir;
  for (const char* folder : {"s", "b"}) {
    std::filesystem::create_directories(dir / folder / "lost+found");
    WriteAll(dir / folder / ".DS_Store", "x");
  }
  ASSERT_OK(MakeStore(posix, dir / "s"));
  ASSERT_OK(BackupStore(posix, dir / "s", dir / "b", {}, JobControl()));
  EXPECT_TRUE(VerifyFiles(posix, dir / "s", JobControl())->ok());
  EXPECT_TRUE(std::filesystem::exists(dir / "s/lost+found"));
  std::filesystem::create_directories(dir / "s/scratch/job");
  WriteAll(dir / "s/scratch/job/.DS_Store", "x");
  EXPECT_OK(ClaimJobFolder(posix, dir / "s/scratch/job"));
}

TEST(VerifyTest, WhatKilledWritersLeaveIsNoDamageAndIsListed) {
  TempDir dir;
  ASSERT_OK(MakeStore(posix, dir / "s"));
  const Path generation = dir / "s/generations/000001";
  std::filesystem::create_directories(generation / "arrays/half");
  WriteAll(generation / "arrays/half/c.0.0", "x");
  WriteAll(generation / "MANIFEST-000002", "torn");
  std::filesystem::create_directories(dir / "s/generations/000002/topology");
  WriteAll(dir / "s/generations/000002/MANIFEST-000001", "torn");
  std::filesystem::create_directories(dir / "s/scratch/dead");
  std::filesystem::create_directories(dir / "s/scratch/alive");
  auto held =
      posix.Lock(dir / "s/scratch/alive/LOCK", FileSystem::LockMode::kExclusive, "rhizome 1");
  ASSERT_OK(held);
  const auto report = VerifyFiles(posix, dir / "s", JobControl());
  ASSERT_OK(report);
  EXPECT_TRUE(report->ok()) << report->damaged[0].file << ": " << report->damaged[0].what;
  const std::set<std::string> orphans(report->orphans.begin(), report->orphans.end());
  EXPECT_EQ(orphans, (std::set<std::string>{"generations/000001/MANIFEST-000002",
                                            "generations/000001/arrays/half/c.0.0",
                                            "generations/000002", "scratch/dead"}));
  {
    const auto writer = Store::Open(posix, dir / "s", Store::Mode::kWrite);
    ASSERT_OK(writer);
    WriteAll(generation / "arrays/new", "x");  // a file of an active writer is no leftover
    EXPECT_TRUE(VerifyFiles(posix, dir / "s", JobControl())->orphans.empty());
    std::filesystem::remove(generation / "arrays/new");
  }
  EXPECT_TRUE(VerifyFiles(posix, dir / "s", JobControl())->orphans.empty());
  EXPECT_TRUE(std::filesystem::exists(dir / "s/scratch/alive"));
}

TEST(VerifyTest, EarlierManifestsAndGenerationsMustBeWholeWhileTheyAreThere) {
  TempDir dir;
  ASSERT_OK(MakeStore(posix, dir / "s"));
  {
    const auto store = Store::Open(posix, dir / "s", Store::Mode::kWrite);
    ASSERT_OK(store);
    const auto writer = GenerationWriter::Create(**store);
    ASSERT_OK(writer);
    ASSERT_OK((*writer)->Commit(testing::SmallInfo()));
  }
  const Path earlier = dir / "s/generations/000001";
  EXPECT_TRUE(VerifyFiles(posix, dir / "s", JobControl())->ok());
  for (const char* name : {"MANIFEST-000001", "arrays/feat/c.0.0"}) {
    const std::string good = ReadAllOfVerify(earlier / name);
    WriteAll(earlier / name, good.substr(1));
    EXPECT_TRUE(Names(dir / "s", std::string("generations/000001/") + name));
    WriteAll(earlier / name, good);
  }
  // A removal deletes the manifests first, so a generation without them was being removed.
  std::filesystem::remove(earlier / "arrays/feat/c.0.0");
  EXPECT_TRUE(Names(dir / "s", "generations/000001/arrays/feat/c.0.0"));
  std::filesystem::remove(earlier / "MANIFEST-000001");
  std::filesystem::remove(earlier / "PIN");
  const auto report = VerifyFiles(posix, dir / "s", JobControl());
  ASSERT_OK(report);
  EXPECT_TRUE(report->ok());
  EXPECT_EQ(report->orphans, std::vector<std::string>{"generations/000001"});
}

TEST(VerifyTest, LostFormatOrCatalogueIsDamage) {
  TempDir dir;
  ASSERT_OK(MakeStore(posix, dir / "s"));
  std::filesystem::remove(dir / "s/catalog/CURRENT");
  WriteAll(dir / "s/generations/000001/topology/part-0000.adj", "x");
  EXPECT_TRUE(Names(dir / "s", "catalog"));
  EXPECT_TRUE(Names(dir / "s", "generations/000001/topology/part-0000.adj"));
  std::filesystem::remove(dir / "s/FORMAT");
  EXPECT_TRUE(Names(dir / "s", "FORMAT"));
}

TEST(VerifyTest, NoStoreAndCancellationAreErrors) {
  TempDir dir;
  EXPECT_STATUS(VerifyFiles(posix, dir / "none", JobControl()), kNotFound);
  EXPECT_STATUS(VerifyFiles(posix, dir.path(), JobControl()), kNotFound);
  { EXPECT_OK(Store::Create(posix, dir / "half", testing::FixedStoreId())); }
  EXPECT_STATUS(VerifyFiles(posix, dir / "half", JobControl()), kNotFound);
  ASSERT_OK(MakeStore(posix, dir / "s"));
  JobControl cancelled;
  cancelled.Cancel();
  EXPECT_STATUS(VerifyFiles(posix, dir / "s", cancelled), kInterrupted);
}

}  // namespace
}  // namespace rhizome
