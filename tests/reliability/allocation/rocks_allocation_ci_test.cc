// Allocations fail inside RocksDB, which is not written for exceptions: its locks stay held, and
// its queue of writers names one that is gone. All the same every call ends, closing included, and
// the catalogue can be opened again in the same process and holds what was acknowledged.

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "reliability/harness/allocation_hook.h"
#include "reliability/harness/counts.h"
#include "rhizome/storage/catalog.h"
#include "storage/array_fixture.h"
#include "testing/testing.h"

namespace rhizome::testing {
namespace {

/// With a write buffer of 512 KiB, the second commit of this size begins another one.
constexpr std::size_t kRocksRecordBytes = std::size_t{300} << 10;
constexpr std::uint64_t kCommitsOfRocksRun = 6;

class RocksAllocationTest : public ::testing::Test {
 protected:
  // A hang is what this is about.
  void SetUp() override { ::alarm(600); }
  void TearDown() override { ::alarm(0); }

  Result<std::unique_ptr<Catalog>> Open(Catalog::Mode mode) const {
    return Catalog::Open(FileSystem::Posix(), dir_ / "c", mode, FixedStoreId(),
                         {.write_bytes = std::size_t{1} << 20});
  }

  static Status Append(Catalog& catalog, std::uint64_t sequence) {
    const std::vector<std::byte> record(kRocksRecordBytes, static_cast<std::byte>(sequence));
    const DeltaCommit commit{.sequence = sequence, .record = record, .rows = {}};
    return catalog.AppendDelta(std::span(&commit, 1), /*sync=*/true);
  }

  /// Opens the catalogue, uses it in every way, and closes it. Counts the commits that were
  /// acknowledged.
  Status Use(Catalog::Mode mode, std::uint64_t& done) const {
    RHIZOME_ASSIGN_OR_RETURN(const auto catalog, Open(mode));
    for (std::uint64_t i = 1; i <= kCommitsOfRocksRun; ++i) {
      RHIZOME_RETURN_IF_ERROR(Append(*catalog, i));
      done = i;
    }
    CommitRecord record;
    record.generation = 1;
    record.sequence = kCommitsOfRocksRun;
    RHIZOME_RETURN_IF_ERROR(catalog->Commit(record));
    RHIZOME_ASSIGN_OR_RETURN(const CommitRecord current, catalog->Current());
    EXPECT_EQ(current.sequence, kCommitsOfRocksRun);
    RHIZOME_RETURN_IF_ERROR(
        catalog->ScanDelta(0, [](std::uint64_t, auto) { return Status::Ok(); }));
    RHIZOME_RETURN_IF_ERROR(catalog->DropDelta(1));
    RHIZOME_RETURN_IF_ERROR(catalog->VerifyChecksums());
    return catalog->Close();
  }

  /// Lets the allocation `at` fail, and all later ones if `sticky`; then looks. Returns whether one
  /// failed.
  bool Check(std::uint64_t at, bool sticky) const {
    SCOPED_TRACE(::testing::Message()
                 << "allocation " << at << (sticky ? " and all later ones" : ""));
    std::filesystem::remove_all(dir_ / "c");
    std::filesystem::copy(dir_ / "begin", dir_ / "c", std::filesystem::copy_options::recursive);
    std::uint64_t done = 0;
    Status status;
    bool hit = false;
    {
      const AllocationFaults faults(at, sticky, AllocationFaults::Of::kRocksDb);
      try {
        status = Use(Catalog::Mode::kWrite, done);
      } catch (const std::exception& error) {
        status = Status::OutOfMemory(error.what());  // Store's functions translate it
      }
      hit = faults.failed() > 0;
    }
    EXPECT_TRUE(status.ok() || status.code() == StatusCode::kOutOfMemory) << status.ToString();
    const auto again = Open(Catalog::Mode::kWrite);
    EXPECT_OK(again);
    if (!again) return hit;
    const auto last = (*again)->LastDelta();
    EXPECT_OK(last);
    EXPECT_GE(last.value_or(0), done);
    EXPECT_LE(last.value_or(0), std::min(done + 1, kCommitsOfRocksRun));
    EXPECT_OK((*again)->VerifyChecksums());
    EXPECT_OK(Append(**again, 100));
    EXPECT_OK((*again)->Close());
    return hit;
  }

  TempDir dir_;
};

TEST_F(RocksAllocationTest, EveryCallEndsAndTheCatalogueOpensAgain) {
  ASSERT_OK(Open(Catalog::Mode::kCreate));
  std::filesystem::copy(dir_ / "c", dir_ / "begin", std::filesystem::copy_options::recursive);
  std::uint64_t asked = 0;
  {
    std::uint64_t done = 0;
    const AllocationFaults none(~std::uint64_t{0}, false, AllocationFaults::Of::kRocksDb);
    ASSERT_OK(Use(Catalog::Mode::kWrite, done));
    asked = none.asked();
  }
  ASSERT_GT(asked, 100U);
  constexpr std::uint64_t kPoints = 40;
  const std::uint64_t stride = std::max<std::uint64_t>(asked / kPoints, 1);
  std::uint64_t hits = 0;
  for (std::uint64_t at = TestSeed() % stride; at < asked && !HasFailure(); at += stride)
    for (const bool sticky : {false, true}) hits += Check(at, sticky) ? 1 : 0;
  PrintCount("rocksdb-allocations", asked);
  PrintCount("rocksdb-allocation-failures", hits);
}

}  // namespace
}  // namespace rhizome::testing
