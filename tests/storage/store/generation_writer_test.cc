#include "rhizome/file_system.h"
#include "rhizome/manifest.h"
#include "storage/store_crash.h"

namespace rhizome {
namespace {

using testing::CrashMode;
using testing::ExpectGeneration;
using testing::FakeFileSystem;
using testing::MakeStore;
using testing::NextGeneration;
using testing::Stops;
using testing::StoreFileSystem;
using testing::TempDir;

/// Returns a subset of the operations that depends on the seed. The ci tier stops at every
/// operation.
Stops SomeOf(std::uint64_t seed, std::uint64_t stride) { return {seed % stride, stride}; }

TEST(GenerationWriterTest, IngestionThatStopsIsAllOrNothing) {
  const std::uint64_t seed = testing::TestSeed();
  testing::CheckIngestion(SomeOf(seed, 23), CrashMode::kRandom, seed);
}

TEST(GenerationWriterTest, GenerationThatStopsIsAllOrNothing) {
  const std::uint64_t seed = testing::TestSeed();
  testing::CheckNextGeneration(SomeOf(seed, 23), CrashMode::kRandom, seed);
}

TEST(GenerationWriterTest, CleaningUpMayStop) {
  const std::uint64_t seed = testing::TestSeed();
  testing::CheckCleaningUp(SomeOf(seed, 11), CrashMode::kRandom, seed);
}

TEST(GenerationWriterTest, PublishingThatStopsIsAllOrNothing) {
  const std::uint64_t seed = testing::TestSeed();
  testing::CheckPublishing(SomeOf(seed, 11), CrashMode::kRandom, seed, /*links=*/true);
}

TEST(GenerationWriterTest, OneFailureRefusesTheCommitAndEveryLaterOne) {
  TempDir dir;
  StoreFileSystem fs(dir / "s");
  ASSERT_OK(MakeStore(fs, dir / "s"));
  {
    const auto store = Store::Open(fs, dir / "s", Store::Mode::kWrite);
    ASSERT_OK(store);
    const auto writer = GenerationWriter::Create(**store);
    ASSERT_OK(writer);
    fs.FailWhen(
        [](FakeFileSystem::Operation operation, const Path& path) {
          return operation == FakeFileSystem::Operation::kSync &&
                 path.filename() == "MANIFEST-000001";
        },
        EIO);
    EXPECT_STATUS((*writer)->Commit(testing::SmallInfo()), kIoError);
    fs.ClearFailures();
    EXPECT_STATUS((*writer)->Commit(testing::SmallInfo()), kIoError);
    EXPECT_STATUS(GenerationWriter::Create(**store), kIoError);
  }
  ExpectGeneration(fs, dir / "s", 1, 300);
  ASSERT_OK(NextGeneration(fs, dir / "s", 200));
  ExpectGeneration(fs, dir / "s", 2, 200);
}

TEST(GenerationWriterTest, WhatMustNotBeCommittedIsRefused) {
  TempDir dir;
  FileSystem& fs = FileSystem::Posix();
  ASSERT_OK(MakeStore(fs, dir / "s"));
  const auto store = Store::Open(fs, dir / "s", Store::Mode::kWrite);
  ASSERT_OK(store);
  const auto writer = GenerationWriter::Create(**store);
  ASSERT_OK(writer);
  for (const char* path : {"../x", "/x", "PIN", "MANIFEST-000009", ""})
    EXPECT_STATUS((*writer)->CreateFile(path), kInvalidArgument);
  const FileEntry missing{"arrays/x/c.0.0", 3, {}, 0};
  EXPECT_STATUS((*writer)->AddArray({}, std::span(&missing, 1)), kNotFound);
  GenerationInfo info = testing::SmallInfo();
  info.vertex_types.clear();
  EXPECT_STATUS((*writer)->Commit(info), kInvalidArgument);
  const auto file = (*writer)->CreateFile("a");
  ASSERT_OK(file);
  EXPECT_STATUS((*writer)->CreateFile("a"), kAlreadyExists);
  ASSERT_OK((*file)->Close());
  EXPECT_OK((*writer)->Commit(testing::SmallInfo()));
}

}  // namespace
}  // namespace rhizome
