#include "rhizome/array_change.h"

#include <gmock/gmock.h>

#include "storage/array/array_versions.h"
#include "storage/array/row_reader.h"
#include "storage/array_change_fixture.h"
#include "storage/store/generation_writer.h"

namespace rhizome {
namespace {

using testing::ArrayChangeTest;
using ::testing::ElementsAre;
using testing::ExpectRows;
using testing::ExpectSound;
using ::testing::HasSubstr;
using testing::StoreFileSystem;
using testing::TempDir;

TEST_F(ArrayChangeTest, VersionsAreNumberedAndTheNewestIsMeant) {
  ASSERT_OK(AddVersions(3));
  EXPECT_THAT(Arrays(), ElementsAre("emb.v1", "emb.v2", "emb.v3", "feat", "feat.crc32c"));
  EXPECT_EQ(Meant("emb"), "emb.v3");
  EXPECT_EQ(Meant("emb@2"), "emb.v2");
  for (const char* name : {"emb", "emb@1", "emb@latest", "emb.v2"}) ExpectRows(*Open(), name, 300);
  ExpectSound(fs_, path_);
}

TEST_F(ArrayChangeTest, AnArrayWithoutVersionsBecomesTheFirst) {
  const ArraySource row = Source("x", ArrayLayout::kRow);
  ASSERT_OK(Change([&](ArrayChange& c) { return c.Add(row); }));
  ASSERT_OK(Change([&](ArrayChange& c) { return c.AddVersion(Source("x"), "x"); }));
  EXPECT_THAT(Arrays(), ElementsAre("feat", "feat.crc32c", "x.v1", "x.v1.crc32c", "x.v2"));
  ExpectSound(fs_, path_);
  // The row checksums still match, because they identify the array by number, not by name.
  const auto store = Open();
  const auto rows = store->OpenArray("x@1");
  const auto sums = store->OpenArray("x@1.crc32c");
  ASSERT_OK(rows);
  ASSERT_OK(sums);
  EXPECT_EQ((*sums)->entry().name, "x.v1.crc32c");
  const auto reader = RowReader::Open(**rows, **sums, {});
  ASSERT_OK(reader);
}

TEST_F(ArrayChangeTest, AliasesSwapAndRollBack) {
  ASSERT_OK(AddVersions(3));
  ASSERT_OK(Change([](ArrayChange& c) { return c.SetAlias("emb", "live", 1); }));
  EXPECT_EQ(Meant("emb"), "emb.v1");
  ASSERT_OK(Change([](ArrayChange& c) { return c.SetAlias("emb", "live", 3); }));
  EXPECT_EQ(Meant("emb@live"), "emb.v3");
  std::uint64_t version = 0;
  ASSERT_OK(Change([&](ArrayChange& c) {
    auto back = c.RollBack("emb", "live");
    version = back.value_or(0);
    return back;
  }));
  EXPECT_EQ(version, 1U);
  EXPECT_EQ(Meant("emb"), "emb.v1");
  EXPECT_STATUS(Change([](ArrayChange& c) { return c.RollBack("emb", "live"); }), kInvalidArgument);
  EXPECT_STATUS(Change([](ArrayChange& c) { return c.RollBack("emb", "best"); }), kNotFound);
  EXPECT_STATUS(Change([](ArrayChange& c) { return c.SetAlias("emb", "live", 4); }), kNotFound);
  EXPECT_STATUS(Change([](ArrayChange& c) { return c.SetAlias("feat", "live", 1); }), kNotFound);
  EXPECT_STATUS(Change([](ArrayChange& c) { return c.SetAlias("emb", "7", 1); }), kInvalidArgument);
  ASSERT_OK(Change([](ArrayChange& c) { return c.DropAlias("emb", "live"); }));
  EXPECT_EQ(Meant("emb"), "emb.v3");
}

TEST_F(ArrayChangeTest, AnAliasRemembersOnlyItsLastVersions) {
  ASSERT_OK(AddVersions(2));
  ASSERT_OK(Change([](ArrayChange& c) -> Status {
    for (int i = 0; i < 40; ++i)
      RHIZOME_RETURN_IF_ERROR(c.SetAlias("emb", "live", static_cast<std::uint64_t>(i % 2 + 1)));
    return Status::Ok();
  }));
  EXPECT_EQ(Open()->manifest().series[0].aliases[0].history.size(), kMaxAliasHistory);
}

TEST_F(ArrayChangeTest, RetentionKeepsTheNewestAndTheAliased) {
  ASSERT_OK(AddVersions(5));
  ASSERT_OK(Change([](ArrayChange& c) -> Status {
    RHIZOME_RETURN_IF_ERROR(c.SetAlias("emb", "live", 1));
    return c.SetAlias("emb", "live", 2);
  }));
  std::vector<std::uint64_t> dropped;
  ASSERT_OK(Change([&](ArrayChange& c) {
    auto old = c.KeepNewest("emb", 2);
    dropped = old.value_or(dropped);
    return old;
  }));
  EXPECT_THAT(dropped, ElementsAre(1, 3));
  EXPECT_THAT(Arrays(), ElementsAre("emb.v2", "emb.v4", "emb.v5", "feat", "feat.crc32c"));
  EXPECT_THAT(Open()->manifest().series[0].aliases[0].history, ElementsAre(2));
  EXPECT_STATUS(Change([](ArrayChange& c) { return c.KeepNewest("emb", 0); }), kInvalidArgument);
  EXPECT_STATUS(Change([](ArrayChange& c) { return c.KeepNewest("nope", 1); }), kNotFound);
}

TEST_F(ArrayChangeTest, NumbersAreNeverGivenTwice) {
  ASSERT_OK(AddVersions(2));
  ASSERT_OK(Change([](ArrayChange& c) { return c.Drop("emb@2"); }));
  ASSERT_OK(AddVersions(1));
  EXPECT_EQ(Meant("emb"), "emb.v3");
  ASSERT_OK(Change([](ArrayChange& c) { return c.Drop("emb", /*all_versions=*/true); }));
  EXPECT_EQ(Meant("emb"), "");
  ASSERT_OK(AddVersions(1));
  EXPECT_EQ(Meant("emb"), "emb.v4");
}

TEST_F(ArrayChangeTest, DroppingRefusesWhatIsInUseOrMeansNothing) {
  ASSERT_OK(AddVersions(2));
  ASSERT_OK(Change([](ArrayChange& c) { return c.SetAlias("emb", "live", 1); }));
  const Status aliased = Change([](ArrayChange& c) { return c.Drop("emb@1"); });
  EXPECT_STATUS(aliased, kInvalidArgument);
  EXPECT_THAT(aliased.message(), HasSubstr("emb@live"));
  EXPECT_STATUS(Change([](ArrayChange& c) { return c.Drop("emb.v1"); }), kInvalidArgument);
  EXPECT_STATUS(Change([](ArrayChange& c) { return c.Drop("emb"); }), kInvalidArgument);
  EXPECT_STATUS(Change([](ArrayChange& c) { return c.Drop("feat.crc32c"); }), kInvalidArgument);
  EXPECT_STATUS(Change([](ArrayChange& c) { return c.Drop("nope"); }), kNotFound);
  EXPECT_STATUS(Change([](ArrayChange& c) { return c.Drop("emb@9"); }), kNotFound);
  EXPECT_STATUS(Change([](ArrayChange& c) { return c.Drop("a/b"); }), kInvalidArgument);
  EXPECT_EQ(Arrays().size(), 4U);
}

TEST_F(ArrayChangeTest, DroppedFilesGoWhenNobodyReadsThem) {
  {
    const auto reader = Open();
    ASSERT_OK(Change([](ArrayChange& c) { return c.Drop("feat"); }));
    ASSERT_OK(Store::Open(fs_, path_, Store::Mode::kWrite));
    EXPECT_TRUE(OnDisk("feat"));
    ExpectRows(*reader, "feat", 300);
    // The name is free but its folder still exists, so the new array is stored as a version.
    ASSERT_OK(Change([&](ArrayChange& c) { return c.Add(Source("feat")); }));
    EXPECT_EQ(Meant("feat"), "feat.v1");
    ExpectRows(*reader, "feat", 300);
    ExpectRows(*Open(), "feat", 300);
    ExpectSound(fs_, path_);
  }
  ASSERT_OK(Store::Open(fs_, path_, Store::Mode::kWrite));
  EXPECT_FALSE(OnDisk("feat"));
  EXPECT_TRUE(OnDisk("feat.v1"));
  ExpectSound(fs_, path_);
}

// A process that keeps reading may be a service that runs without end.
TEST_F(ArrayChangeTest, DroppedFilesGoThoughSomebodyReadsTheRest) {
  ASSERT_OK(Change([&](ArrayChange& c) { return c.Add(Source("kept")); }));
  const auto reader = Open();
  auto snapshot = reader->Snapshot();
  const auto of_graph = reader->SnapshotOfGraph();
  ASSERT_OK(Change([](ArrayChange& c) { return c.Drop("feat"); }));
  ASSERT_OK(reader->Refresh());
  ASSERT_OK(Store::Open(fs_, path_, Store::Mode::kWrite));
  EXPECT_TRUE(OnDisk("feat"));
  ExpectRows(*snapshot, "feat", 300);
  snapshot.reset();
  {
    const auto writer = Store::Open(fs_, path_, Store::Mode::kWrite);
    ASSERT_OK(writer);
    EXPECT_FALSE(OnDisk("feat"));
    // A writing handle does not keep the files either, if it drops them itself.
    auto change = ArrayChange::Begin(**writer);
    ASSERT_OK(change);
    ASSERT_OK(change->Drop("kept"));
    ASSERT_OK(change->Commit());
    ASSERT_OK((*writer)->CollectGarbage());
    EXPECT_TRUE(OnDisk("kept"));
    ExpectRows(*reader, "kept", 300);
    ASSERT_OK(reader->Refresh());
    ASSERT_OK((*writer)->CollectGarbage());
    EXPECT_FALSE(OnDisk("kept"));
  }
  EXPECT_STATUS(of_graph->OpenArray("feat"), kCorruption);
  ExpectSound(fs_, path_);
}

TEST_F(ArrayChangeTest, ReplacingMovesAliases) {
  ASSERT_OK(AddVersions(2));
  ASSERT_OK(Change([](ArrayChange& c) { return c.SetAlias("emb", "live", 1); }));
  ASSERT_OK(Change([&](ArrayChange& c) { return c.Replace("emb@live", Source("emb")); }));
  EXPECT_THAT(Arrays(), ElementsAre("emb.v2", "emb.v3", "feat", "feat.crc32c"));
  EXPECT_EQ(Meant("emb"), "emb.v3");
  ASSERT_OK(Change([&](ArrayChange& c) { return c.Replace("feat", Source("any")); }));
  EXPECT_EQ(Meant("feat"), "feat.v1");
  EXPECT_STATUS(Change([&](ArrayChange& c) { return c.Replace("nope", Source("x")); }), kNotFound);
  ExpectSound(fs_, path_);
}

TEST_F(ArrayChangeTest, RenamingTakesVersionsAndAliasesAlong) {
  ASSERT_OK(AddVersions(2));
  ASSERT_OK(Change([](ArrayChange& c) { return c.SetAlias("emb", "live", 1); }));
  ASSERT_OK(Change([](ArrayChange& c) { return c.Rename("emb", "vec"); }));
  ASSERT_OK(Change([](ArrayChange& c) { return c.Rename("feat", "x"); }));
  EXPECT_THAT(Arrays(), ElementsAre("vec.v1", "vec.v2", "x", "x.crc32c"));
  EXPECT_EQ(Meant("vec"), "vec.v1");
  ExpectRows(*Open(), "vec@live", 300);
  ExpectRows(*Open(), "x", 300);
  ExpectSound(fs_, path_);
  EXPECT_STATUS(Change([](ArrayChange& c) { return c.Rename("x", "vec"); }), kAlreadyExists);
  EXPECT_STATUS(Change([](ArrayChange& c) { return c.Rename("nope", "y"); }), kNotFound);
  EXPECT_STATUS(Change([](ArrayChange& c) { return c.Rename("x", "y.v1"); }), kInvalidArgument);
  EXPECT_STATUS(Change([](ArrayChange& c) { return c.Rename("x", "y.crc32c"); }), kInvalidArgument);
}

TEST_F(ArrayChangeTest, AttributesOfEdgesAreDroppedWhole) {
  for (const char* part : {"p0000", "p0001"}) {
    const ArraySource source = Source(std::string("time.") + part);
    std::vector<ArrayEntry> arrays(source.arrays.begin(), source.arrays.end());
    arrays[0].attributes = {{"dimension", std::string("edge_") + part}};
    ASSERT_OK(Change([&](ArrayChange& c) { return c.Add({arrays, source.root, source.files}); }));
  }
  EXPECT_STATUS(Change([](ArrayChange& c) { return c.Drop("time.p0000"); }), kInvalidArgument);
  ASSERT_OK(Change([](ArrayChange& c) { return c.Drop("time"); }));
  EXPECT_THAT(Arrays(), ElementsAre("feat", "feat.crc32c"));
}

// Edge attributes have no versions, and no other array may replace one of their parts.
TEST_F(ArrayChangeTest, AttributesOfEdgesAreNotTakenForArrays) {
  const ArraySource source = Source("time.p0000");
  std::vector<ArrayEntry> arrays(source.arrays.begin(), source.arrays.end());
  arrays[0].attributes = {{"dimension", "edge_p0000"}};
  ASSERT_OK(Change([&](ArrayChange& c) { return c.Add({arrays, source.root, source.files}); }));
  const std::vector<std::string> before = Arrays();
  const ArraySource other = Source("emb");
  for (const Status& refused :
       {Change([&](ArrayChange& c) { return c.AddVersion(other, "time.p0000"); }),
        Change([&](ArrayChange& c) { return c.Replace("time.p0000", other); }),
        Change([](ArrayChange& c) { return c.Rename("time.p0000", "when"); })}) {
    EXPECT_STATUS(refused, kInvalidArgument);
  }
  EXPECT_EQ(Arrays(), before);
}

TEST_F(ArrayChangeTest, NamesThatMeanSomethingElseAreRefused) {
  ASSERT_OK(AddVersions(2));
  const std::vector<std::string> before = Arrays();
  const ArraySource source = Source("emb");
  for (const Status& refused :
       {Change([&](ArrayChange& c) { return c.AddVersion(source, "emb.v1"); }),
        Change([&](ArrayChange& c) { return c.AddVersion(source, "a/b"); }),
        Change([&](ArrayChange& c) { return c.Replace("feat.crc32c", source); }),
        Change([](ArrayChange& c) { return c.Rename("emb", "a/b"); }),
        Change([](ArrayChange& c) { return c.SetAlias("a/b", "live", 1); }),
        Change([](ArrayChange& c) { return c.KeepNewest("a/b", 1); }),
        Change([](ArrayChange& c) { return c.KeepNewest("emb", 0); })}) {
    EXPECT_STATUS(refused, kInvalidArgument);
  }
  EXPECT_STATUS(Change([&](ArrayChange& c) { return c.Add(Source("emb")); }), kAlreadyExists);
  EXPECT_STATUS(Change([](ArrayChange& c) { return c.KeepNewest("nope", 1); }), kNotFound);
  EXPECT_STATUS(Change([](ArrayChange& c) { return c.SetAlias("feat", "live", 1); }), kNotFound);
  EXPECT_STATUS(Change([](ArrayChange& c) { return c.DropAlias("emb", "nope"); }), kNotFound);
  EXPECT_STATUS(Change([](ArrayChange& c) { return c.RollBack("emb", "nope"); }), kNotFound);
  EXPECT_EQ(Arrays(), before);
  ASSERT_OK(Change([](ArrayChange& c) { return c.KeepNewest("feat", 1); }));  // it has no versions
  EXPECT_EQ(Arrays(), before);
}

// A dropped name is not reused while files of the old array are on disk.
TEST_F(ArrayChangeTest, ANameWhoseFilesAreStillReadIsNotGivenAnew) {
  ASSERT_OK(AddVersions(1));
  const auto reader = Open();
  ASSERT_OK(Change([](ArrayChange& c) { return c.Rename("emb", "vec"); }));
  ASSERT_OK(AddVersions(1));
  const std::vector<std::string> before = Arrays();
  const Status back = Change([](ArrayChange& c) -> Status {
    RHIZOME_RETURN_IF_ERROR(c.Drop("emb", /*all_versions=*/true));
    return c.Rename("vec", "emb");
  });
  EXPECT_STATUS(back, kAlreadyExists);
  EXPECT_EQ(Arrays(), before);
  ExpectRows(*reader, "emb", 300);
}

TEST_F(ArrayChangeTest, NextGenerationCarriesWhatItHolds) {
  ASSERT_OK(AddVersions(2));
  ASSERT_OK(Change([](ArrayChange& c) -> Status {
    RHIZOME_RETURN_IF_ERROR(c.SetAlias("emb", "best", 1));
    return c.SetAlias("emb", "live", 2);
  }));
  {
    const auto store = Store::Open(fs_, path_, Store::Mode::kWrite);
    ASSERT_OK(store);
    const auto writer = GenerationWriter::Create(**store);
    ASSERT_OK(writer);
    const auto written = testing::WriteByFormula(
        fs_, (*writer)->root(),
        testing::MakeEntry("emb.v2", 300, 4, DataType::kFloat32, ArrayLayout::kRow));
    ASSERT_OK(written);
    ASSERT_OK((*writer)->AddArray(written->arrays, written->files));
    ASSERT_OK((*writer)->Commit(testing::SmallInfo(300)));
  }
  EXPECT_EQ(Meant("emb@live"), "emb.v2");
  EXPECT_EQ(Meant("emb@best"), "");
  EXPECT_EQ(Open()->manifest().series[0].last_version, 2U);
}

TEST(ArrayChangeCrashTest, AFailedChangeCanBeTriedAgainOnTheSameHandle) {
  TempDir dir;
  const Path path = dir / "s";
  StoreFileSystem fs(path);
  ASSERT_OK(testing::MakeStore(fs, path));
  const auto written = testing::WriteScratch(fs, path / "scratch/job");
  ASSERT_OK(written);
  const auto store = Store::Open(fs, path, Store::Mode::kWrite);
  ASSERT_OK(store);
  const ArraySource source{written->arrays, path / "scratch/job", written->files};
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (attempt == 0) {
      fs.FailWhen(
          [](StoreFileSystem::Operation operation, const Path& file) {
            return operation == StoreFileSystem::Operation::kSyncDirectory &&
                   file.filename() == "emb";
          },
          ENOSPC);
    }
    auto change = ArrayChange::Begin(**store);
    ASSERT_OK(change);
    ASSERT_OK(change->Add(source));
    if (attempt == 0) {
      EXPECT_STATUS(change->Commit(), kOutOfSpace);
      EXPECT_EQ((*store)->manifest().FindArray("emb"), nullptr);
      fs.ClearFailures();
    } else {
      EXPECT_OK(change->Commit());
    }
  }
  ExpectRows(**store, "emb", 300);
  ExpectSound(fs, path);
}

}  // namespace
}  // namespace rhizome
