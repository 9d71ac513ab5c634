// A handle keeps referring to the store's folder as of opening, even if the process changes its
// working directory or another folder takes the store's place.

#include <filesystem>
#include <functional>
#include <string>

#include "rhizome/array_change.h"
#include "rhizome/backup.h"
#include "rhizome/store.h"
#include "rhizome/verify.h"
#include "storage/array_fixture.h"
#include "storage/catalog/catalog.h"
#include "storage/io/files.h"
#include "storage/io/posix_place.h"
#include "storage/maintenance/repair_store.h"
#include "storage/maintenance/verify_files.h"

namespace rhizome {
namespace {

using testing::FixedStoreId;
using testing::MakeStore;
using testing::TempDir;

FileSystem& place_disk = FileSystem::Posix();

/// Returns to the initial working directory at the end of each test.
class StorePlaceTest : public ::testing::Test {
 protected:
  StorePlaceTest() {
    for (const char* folder : {"a", "b"}) {
      std::filesystem::create_directory(dir_ / folder);
      EXPECT_OK(MakeStore(place_disk, dir_ / folder / "s"));
    }
    EXPECT_OK(Write(dir_ / "a/s"));
    Go("a");
  }
  ~StorePlaceTest() override { std::filesystem::current_path(start_); }

  void Go(const std::string& folder) const { std::filesystem::current_path(dir_ / folder); }

  /// Appends a commit to the delta.
  static Status Write(Store& store) {
    const std::string record = "record";
    return store.CommitDelta(true, [&](std::uint64_t first, const HistoryState&) {
      return std::vector<DeltaCommit>{{first, std::as_bytes(std::span(record)), {}}};
    });
  }
  static Status Write(const Path& path) {
    RHIZOME_ASSIGN_OR_RETURN(const auto store, Store::Open(place_disk, path, Store::Mode::kWrite));
    return Write(*store);
  }
  static std::uint64_t Commits(const Store& store) {
    std::uint64_t count = 0;
    EXPECT_OK(store.ScanDelta(store.base_sequence(), [&](std::uint64_t, auto) {
      ++count;
      return Status::Ok();
    }));
    return count;
  }
  std::uint64_t CommitsIn(const std::string& path) const {
    const auto store = Store::Open(place_disk, dir_ / path, Store::Mode::kRead);
    EXPECT_OK(store);
    return store ? Commits(**store) : 0;
  }
  static Status ReadFeat(const Store& store) {
    RHIZOME_ASSIGN_OR_RETURN(const auto array, store.OpenArray("feat"));
    std::vector<std::byte> rows(std::size_t{300} * 12);
    return array->ReadRows(0, 300, rows);
  }
  static Status AddArray(const Path& path, const Path& root, const std::string& name,
                         const std::function<void()>& between = {}) {
    std::filesystem::create_directories(root);
    RHIZOME_ASSIGN_OR_RETURN(
        const auto made, testing::WriteByFormula(place_disk, root,
                                                 testing::MakeEntry(name, 300, 2, DataType::kInt32,
                                                                    ArrayLayout::kRow)));
    return ArrayChange::Run(place_disk, path, {.generation = 1},
                            [&](ArrayChange& change) -> Status {
                              if (between) between();
                              RHIZOME_RETURN_IF_ERROR(change.Add({made.arrays, root, made.files}));
                              return Status::Ok();
                            });
  }
  void ExpectSound(const std::string& path) const {
    const auto report = VerifyFiles(place_disk, dir_ / path, JobControl());
    ASSERT_OK(report);
    EXPECT_OK(report->verdict());
  }

  TempDir dir_;
  const Path start_ = std::filesystem::current_path();
};

TEST_F(StorePlaceTest, AnotherWorkingDirectoryChangesNothing) {
  const auto untouched = testing::GenerationBytes(dir_ / "b/s");
  auto reader = Store::Open(place_disk, "s", Store::Mode::kRead);
  auto writer = Store::Open(place_disk, "./s/", Store::Mode::kWrite);
  ASSERT_OK(reader);
  ASSERT_OK(writer);
  Go("b");
  ASSERT_OK(ReadFeat(**reader));
  ASSERT_OK(Write(**writer));
  ASSERT_OK((*reader)->Refresh());
  EXPECT_EQ(Commits(**reader), 2U);
  ASSERT_OK((*writer)->Keep({.generations = 1, .bytes = 1}));
  ASSERT_OK((*writer)->CollectGarbage());
  ASSERT_OK((*reader)->Refresh());
  EXPECT_EQ((*reader)->manifest().version, 2U);
  writer->reset();
  reader->reset();
  EXPECT_EQ(CommitsIn("a/s"), 2U);
  EXPECT_EQ(CommitsIn("b/s"), 0U);
  EXPECT_EQ(testing::GenerationBytes(dir_ / "b/s"), untouched);
  ExpectSound("a/s");
  ExpectSound("b/s");
}

TEST_F(StorePlaceTest, ScratchFoldersStayWhereTheyWere) {
  auto store = Store::Open(place_disk, "s", Store::Mode::kRead, {.scratch = "../scratch"});
  ASSERT_OK(store);
  Go("b/s");
  EXPECT_EQ((*store)->scratch(), dir_ / "scratch" / FixedStoreId().ToString());
  EXPECT_EQ((*store)->path(), dir_ / "a/s");
}

TEST_F(StorePlaceTest, JobsEndWhereTheyBegan) {
  int reports = 0;
  const JobControl control(
      [&](const JobControl::Progress&) { Go(++reports % 2 == 1 ? "b" : "a"); });
  const auto from_a = [&](const std::function<Status()>& work) {
    Go("a");
    reports = 0;
    EXPECT_OK(work());
  };
  from_a(
      [&] { return testing::AsStatus(BackupStore(place_disk, "s", "../backups", {}, control)); });
  EXPECT_GT(reports, 0);
  from_a([&] { return testing::AsStatus(VerifyBackups(place_disk, "../backups", control)); });
  from_a(
      [&] { return testing::AsStatus(RestoreStore(place_disk, "../backups", "r", {}, control)); });
  from_a([&] { return testing::AsStatus(VerifyFiles(place_disk, "s", control)); });
  from_a([&] { return testing::AsStatus(RepairStore(place_disk, "s", {}, control)); });
  from_a([&] { return AddArray("s", dir_ / "made", "emb", [&] { Go("b"); }); });
  EXPECT_EQ(CommitsIn("a/r"), 1U);
  EXPECT_FALSE(std::filesystem::exists(dir_ / "b/r"));
  const auto store = Store::Open(place_disk, dir_ / "a/s", Store::Mode::kRead);
  ASSERT_OK(store);
  EXPECT_OK((*store)->OpenArray("emb"));
  ExpectSound("a/s");
  ExpectSound("b/s");
}

TEST_F(StorePlaceTest, AnOutputIsPutWhereItWasBegun) {
  auto output = OutputFile::Create("out");
  ASSERT_OK(output);
  Go("b");
  ASSERT_OK(output->Append({}));
  ASSERT_OK(output->Commit());
  EXPECT_TRUE(std::filesystem::exists(dir_ / "a/out"));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "b/out"));
}

TEST_F(StorePlaceTest, ErrorsNameThePathAsItWasGiven) {
  for (const auto& status :
       {testing::AsStatus(Store::Open(place_disk, "none", Store::Mode::kRead)),
        testing::AsStatus(Store::Create(place_disk, "s", FixedStoreId(2))),
        testing::AsStatus(VerifyFiles(place_disk, "none", JobControl())),
        testing::AsStatus(RepairStore(place_disk, "none", {}, JobControl())),
        testing::AsStatus(BackupStore(place_disk, "none", "../backups", {}, JobControl()))}) {
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(status.message().find(dir_.path().string()), std::string::npos) << status.ToString();
  }
}

TEST_F(StorePlaceTest, AFolderThatTakesThePlaceOfAStoreIsNeitherReadNorWritten) {
  const Path store = dir_ / "a/s";
  auto reader = Store::Open(place_disk, store, Store::Mode::kRead);
  auto writer = Store::Open(place_disk, store, Store::Mode::kWrite);
  ASSERT_OK(reader);
  ASSERT_OK(writer);
  const auto expect_noticed = [](const Status& status) {
    EXPECT_EQ(status.code(), StatusCode::kIoError) << status.ToString();
    EXPECT_NE(status.message().find("moved, removed or replaced"), std::string::npos)
        << status.ToString();
  };
  const auto expect_all_noticed = [&] {
    expect_noticed(ReadFeat(**reader));
    expect_noticed((*reader)->Refresh());
    expect_noticed(Write(**writer));
    expect_noticed((*writer)->Keep({.generations = 2, .bytes = 2}));
    expect_noticed((*writer)->CollectGarbage());
  };
  std::filesystem::rename(store, dir_ / "a/moved");
  expect_all_noticed();
  std::filesystem::rename(dir_ / "b/s", store);  // another store with the same id
  const auto untouched = testing::GenerationBytes(store);
  expect_all_noticed();
  // The old handles do not accept the new store, even if it has been opened through other handles.
  {
    const auto other = Store::Open(place_disk, store, Store::Mode::kRead);
    ASSERT_OK(other);
    ASSERT_OK(ReadFeat(**other));
    expect_noticed((*reader)->Refresh());
    expect_noticed(Write(**writer));
    expect_noticed((*writer)->CollectGarbage());
  }
  EXPECT_EQ(testing::GenerationBytes(store), untouched);
  EXPECT_EQ(CommitsIn("a/s"), 0U);
  std::filesystem::rename(store, dir_ / "b/s");
  std::filesystem::rename(dir_ / "a/moved", store);
  ASSERT_OK(Write(**writer));
  ASSERT_OK((*reader)->Refresh());
  ASSERT_OK(ReadFeat(**reader));
  EXPECT_EQ(Commits(**reader), 2U);
}

// The inode number of a removed folder may be reused at once, so the handle keeps the folder open.
TEST_F(StorePlaceTest, AStoreMadeAnewInTheSamePlaceIsAnotherOne) {
  const Path store = dir_ / "a/s";
  auto writer = Store::Open(place_disk, store, Store::Mode::kWrite);
  ASSERT_OK(writer);
  std::filesystem::remove_all(store);
  EXPECT_STATUS(Write(**writer), kIoError);
  std::filesystem::copy(dir_ / "b/s", store, std::filesystem::copy_options::recursive);
  EXPECT_STATUS(Write(**writer), kIoError);
  writer->reset();
  EXPECT_EQ(CommitsIn("a/s"), 0U);
  ExpectSound("a/s");
}

TEST(AbsolutePathTest, LeadingDotsAreResolvedAndAllElseStays) {
  const Path here = std::filesystem::current_path();
  EXPECT_EQ(AbsolutePath(place_disk, ""), "");
  EXPECT_EQ(AbsolutePath(place_disk, "/a/../b"), "/a/../b");
  EXPECT_EQ(AbsolutePath(place_disk, "."), here);
  EXPECT_EQ(AbsolutePath(place_disk, "a/../b"), here / "a/../b");
  EXPECT_EQ(AbsolutePath(place_disk, "./../x"), here.parent_path() / "x");
  EXPECT_EQ(AbsolutePath(place_disk, "../../../../../../../../../../../../x"), "/x");
}

}  // namespace
}  // namespace rhizome
