// Tests allocation failures inside RocksDB, which is not written for exceptions: its locks remain
// held, and its queue of writers refers to a writer that is gone. Still, every call must return,
// closing included, and the catalogue can be opened again in the same process and holds what was
// acknowledged. If one of RocksDB's destructors cannot allocate, the process ends, and the next
// process must find the same.

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "reliability/harness/allocation_hook.h"
#include "reliability/harness/counts.h"
#include "storage/array_fixture.h"
#include "storage/catalog/catalog.h"
#include "testing/child_process.h"
#include "testing/testing.h"

namespace rhizome::testing {
namespace {

/// With a write buffer of 512 KiB, the second commit of this size starts another buffer.
constexpr std::size_t kRocksRecordBytes = std::size_t{300} << 10;
constexpr std::uint64_t kCommitsOfRocksRun = 6;

class RocksAllocationTest : public ::testing::Test {
 protected:
  Result<std::unique_ptr<Catalog>> Open(Catalog::Mode mode) const {
    return Catalog::Open(FileSystem::Posix(), dir_ / "c", mode, FixedStoreId(),
                         {.write_bytes = std::size_t{1} << 20});
  }

  static Status Append(Catalog& catalog, std::uint64_t sequence) {
    const std::vector<std::byte> record(kRocksRecordBytes, static_cast<std::byte>(sequence));
    const DeltaCommit commit{.sequence = sequence, .record = record, .rows = {}};
    return catalog.AppendDelta(std::span(&commit, 1), /*sync=*/true);
  }

  /// Opens the catalogue, calls all of its functions, and closes it. `done` receives the number of
  /// acknowledged commits.
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

  /// The report of a child process, in shared memory, so that it survives the process.
  struct Outcome {
    std::uint64_t asked = 0, done = 0;
    bool hit = false;
  };

  /// Runs `body` in a child process, since RocksDB ends the process if one of its destructors
  /// cannot allocate. Returns the wait status of waitpid.
  static int Alone(const std::function<void()>& body) {
    return RunForked([&] {
      body();
      return HasFailure() ? 1 : 0;
    });
  }

  /// Uses the catalogue while allocation `at` fails, and all later ones if `sticky`.
  void UseWithFaults(std::uint64_t at, bool sticky) const {
    Status status;
    {
      const AllocationFaults faults(at, sticky, AllocationFaults::Of::kRocksDb);
      outcome_->hit = at != kNone;  // remains true if the process ends below
      try {
        status = Use(Catalog::Mode::kWrite, outcome_->done);
      } catch (const std::exception& error) {
        status = Status::OutOfMemory(error.what());  // Store's functions would translate it
      }
      outcome_->hit = faults.failed() > 0;
      outcome_->asked = faults.asked();
    }
    EXPECT_TRUE(status.ok() || status.code() == StatusCode::kOutOfMemory) << status.ToString();
  }

  /// Expects that the catalogue opens, holds what was acknowledged, and accepts more.
  void CheckAgain() const {
    const auto again = Open(Catalog::Mode::kWrite);
    ASSERT_OK(again);
    const auto last = (*again)->LastDelta();
    EXPECT_OK(last);
    EXPECT_GE(last.value_or(0), outcome_->done);
    EXPECT_LE(last.value_or(0), std::min(outcome_->done + 1, kCommitsOfRocksRun));
    EXPECT_OK((*again)->VerifyChecksums());
    EXPECT_OK(Append(**again, 100));
    EXPECT_OK((*again)->Close());
  }

  /// Returns whether an allocation failed. Counts the processes that RocksDB ended.
  bool Check(std::uint64_t at, bool sticky, std::uint64_t& ended) const {
    SCOPED_TRACE(::testing::Message()
                 << "allocation " << at << (sticky ? " and all later ones" : ""));
    std::filesystem::remove_all(dir_ / "c");
    std::filesystem::copy(dir_ / "begin", dir_ / "c", std::filesystem::copy_options::recursive);
    *outcome_ = {};
    int end = Alone([&] {
      UseWithFaults(at, sticky);
      CheckAgain();
    });
    if (WIFSIGNALED(end) && WTERMSIG(end) == SIGABRT) {
      ++ended;
      end = Alone([&] { CheckAgain(); });
    }
    EXPECT_EQ(end, 0);
    return outcome_->hit;
  }

  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  Outcome* const outcome_ = new (::mmap(nullptr, sizeof(Outcome), PROT_READ | PROT_WRITE,
                                        MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Outcome;
  TempDir dir_;
};

TEST_F(RocksAllocationTest, EveryCallEndsAndTheCatalogueOpensAgain) {
  ASSERT_EQ(Alone([&] { EXPECT_OK(Open(Catalog::Mode::kCreate)); }), 0);
  std::filesystem::copy(dir_ / "c", dir_ / "begin", std::filesystem::copy_options::recursive);
  ASSERT_EQ(Alone([&] { UseWithFaults(kNone, false); }), 0);
  const std::uint64_t asked = outcome_->asked;
  ASSERT_GT(asked, 100U);
  constexpr std::uint64_t kPoints = 40;
  const std::uint64_t stride = std::max<std::uint64_t>(asked / kPoints, 1);
  std::uint64_t hits = 0, ended = 0;
  for (std::uint64_t at = TestSeed() % stride; at < asked && !HasFailure(); at += stride)
    for (const bool sticky : {false, true}) hits += Check(at, sticky, ended) ? 1 : 0;
  std::printf("%llu of %llu processes were ended by RocksDB\n",
              static_cast<unsigned long long>(ended), static_cast<unsigned long long>(hits));
  PrintCount("rocksdb-allocations", asked);
  PrintCount("rocksdb-allocation-failures", hits);
}

}  // namespace
}  // namespace rhizome::testing
