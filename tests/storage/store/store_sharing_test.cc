// Threads of one process share one handle: leftovers are removed while arrays and generations are
// created, and manifests are read while they are replaced.

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <thread>

#include "rhizome/array_change.h"
#include "rhizome/store.h"
#include "rhizome/verify.h"
#include "storage/array_fixture.h"
#include "storage/io/forwarding_file_system.h"
#include "storage/store/generation_writer.h"
#include "storage/store_crash.h"

namespace rhizome {
namespace {

using testing::ExpectRows;
using testing::ExpectSound;
using testing::TempDir;

/// Calls `hook` once, when the generations are listed, which happens in the middle of the removal
/// of leftovers.
class InterruptedFileSystem : public ForwardingFileSystem {
 public:
  InterruptedFileSystem() : ForwardingFileSystem(FileSystem::Posix()) {}
  Result<std::vector<DirectoryEntry>> List(const Path& path) override {
    auto entries = base().List(path);
    if (path.filename() == "generations" && hook) std::exchange(hook, nullptr)();
    return entries;
  }
  std::function<void()> hook;
};

class StoreSharingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(testing::MakeStore(fs_, path_));
    auto store = Store::Open(fs_, path_, Store::Mode::kWrite);
    ASSERT_OK(store);
    store_ = *std::move(store);
    auto made = testing::WriteScratch(fs_, path_ / "scratch/job");
    ASSERT_OK(made);
    made_ = *std::move(made);
  }
  ArraySource source() const { return {made_.arrays, path_ / "scratch/job", made_.files}; }

  Status AddArray() {
    RHIZOME_ASSIGN_OR_RETURN(auto change, ArrayChange::Begin(*store_));
    RHIZOME_RETURN_IF_ERROR(change.Add(source()));
    return change.Commit();
  }
  Status MakeGeneration() {
    RHIZOME_ASSIGN_OR_RETURN(const auto writer, GenerationWriter::Create(*store_));
    RHIZOME_ASSIGN_OR_RETURN(
        const auto written,
        testing::WriteByFormula(
            fs_, writer->root(),
            testing::MakeEntry("emb", 300, 4, DataType::kFloat32, ArrayLayout::kRow)));
    RHIZOME_RETURN_IF_ERROR(writer->AddArray(written.arrays, written.files));
    return writer->Commit(testing::SmallInfo(300));
  }

  /// Starts `work` on another thread in the middle of a removal of leftovers. The removal continues
  /// when the work is done, or after 100 ms if the work waits for the removal.
  void ExpectNothingLost(const std::function<Status()>& work) {
    std::future<Status> working;
    fs_.hook = [&] {
      working = std::async(std::launch::async, work);
      working.wait_for(std::chrono::milliseconds(100));
    };
    EXPECT_OK(store_->CollectGarbage());
    ASSERT_OK(working.get());
    ExpectRows(*store_, "emb", 300);
    store_ = nullptr;
    ExpectSound(fs_, path_);
  }

  TempDir dir_;
  const Path path_ = dir_ / "s";
  InterruptedFileSystem fs_;
  std::unique_ptr<Store> store_;
  testing::WrittenArray made_;
};

TEST_F(StoreSharingTest, RubbishGoesBesideAnArrayThatIsAdded) {
  ExpectNothingLost([this] { return AddArray(); });
}

TEST_F(StoreSharingTest, RubbishGoesBesideAGenerationThatIsMade) {
  ExpectNothingLost([this] { return MakeGeneration(); });
}

TEST_F(StoreSharingTest, AGenerationThatIsBeingWrittenIsNoRubbish) {
  const auto writer = GenerationWriter::Create(*store_);
  ASSERT_OK(writer);
  ASSERT_OK(store_->CollectGarbage());
  const auto written = testing::WriteByFormula(
      fs_, (*writer)->root(),
      testing::MakeEntry("emb", 300, 4, DataType::kFloat32, ArrayLayout::kRow));
  ASSERT_OK(written);
  ASSERT_OK(store_->CollectGarbage());
  ASSERT_OK((*writer)->AddArray(written->arrays, written->files));
  EXPECT_STATUS(GenerationWriter::Create(*store_), kBusy);
  ASSERT_OK((*writer)->Commit(testing::SmallInfo(300)));
  ExpectRows(*store_, "emb", 300);
}

// If it were accepted, the previous generation would become current again.
TEST_F(StoreSharingTest, AChangeThatACompactionOvertookIsRefused) {
  auto change = ArrayChange::Begin(*store_);
  ASSERT_OK(change);
  ASSERT_OK(change->Add(source()));
  ASSERT_OK(MakeGeneration());
  EXPECT_STATUS(change->Commit(), kInvalidArgument);
  EXPECT_EQ(store_->manifest().generation, 2U);
  store_ = nullptr;
  ExpectSound(fs_, path_);
}

TEST_F(StoreSharingTest, AChangeWaitsForTheEndOfACompaction) {
  {
    const auto writer = GenerationWriter::Create(*store_);
    ASSERT_OK(writer);
    EXPECT_STATUS(AddArray(), kBusy);
  }
  EXPECT_OK(AddArray());
  ExpectRows(*store_, "emb", 300);
}

TEST_F(StoreSharingTest, AManifestCanBeLookedAtWhileOthersTakeItsPlace) {
  const Manifest& first = store_->manifest();
  const std::string before = first.files.front().path;
  std::atomic<bool> done = false;
  std::thread looking([&] {
    while (!done) {
      const Manifest& now = store_->manifest();
      EXPECT_GE(now.generation, 1U);
      EXPECT_FALSE(now.files.empty());
      EXPECT_FALSE(store_->GenerationFolder().empty());
      EXPECT_LE(store_->base_sequence(), 1U);
    }
  });
  for (int i = 0; i < 5; ++i) EXPECT_OK(MakeGeneration());
  done = true;
  looking.join();
  EXPECT_EQ(first.generation, 1U);
  EXPECT_EQ(first.files.front().path, before);
  EXPECT_EQ(store_->manifest().generation, 6U);
}

}  // namespace
}  // namespace rhizome
