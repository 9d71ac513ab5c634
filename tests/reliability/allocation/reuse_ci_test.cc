// Tests that handles can be used again after a shortage of memory or threads: they continue or
// report that they are read-only, and their answers are right.

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "index/generation/graph_builder.h"
#include "reliability/harness/allocation_hook.h"
#include "reliability/harness/counts.h"
#include "reliability/harness/thread_hook.h"
#include "rhizome/array_add.h"
#include "rhizome/ingest.h"
#include "rhizome/maintenance.h"
#include "rhizome/sampler.h"
#include "rhizome/write_batch.h"
#include "storage/array/row_reader.h"
#include "testing/graph_model.h"
#include "testing/test_store.h"
#include "testing/update_model.h"

namespace rhizome::testing {
namespace {

constexpr std::int64_t kFirstReusedId = 1000;
constexpr std::uint64_t kEdgesOfReuse = 5;

WriteBatch BatchOfReuse(std::int64_t number) {
  WriteBatch batch;
  for (std::uint64_t i = 0; i < kEdgesOfReuse; ++i)
    batch.PutEdge(kFirstReusedId + number, static_cast<std::int64_t>(i));
  const std::vector<float> row(UpdateModel::kDim, static_cast<float>(number));
  batch.PutRow(kFirstReusedId + number, "feat", std::span<const float>(row));
  return batch;
}

void ExpectOkOrShort(const Status& status) {
  EXPECT_TRUE(status.ok() || status.code() == StatusCode::kOutOfMemory) << status.ToString();
}

/// A store on a real disk with one writing handle, and its expected contents.
class ReuseTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::alarm(300 * Patience());  // a hang would be the failure to detect
    std::mt19937_64 rng(7);
    GraphInput input = RandomGraph(rng, {.vertices = 40, .edges = 200});
    UpdateModel::AddRows(input);
    BuildOptions options;
    options.partition.partitions = 2;
    ASSERT_OK(BuildStore(path_, std::move(input), options));
    Open();
  }
  void TearDown() override { ::alarm(0); }

  void Open() {
    graph_ = nullptr;
    store_ = nullptr;
    auto store = Store::Open(FileSystem::Posix(), path_, Store::Mode::kWrite);
    ASSERT_OK(store);
    store_ = *std::move(store);
    auto graph = Graph::Open(*store_);
    ASSERT_OK(graph);
    graph_ = *std::move(graph);
  }

  Status Write(std::int64_t number) {
    return AsStatus(graph_->Write(BatchOfReuse(number), {.sync = false}));
  }
  bool Holds(std::int64_t number) const {
    const auto vertex = graph_->Find(kFirstReusedId + number);
    if (!vertex) return false;
    const auto list = graph_->Neighbors(*vertex, Direction::kOut);
    EXPECT_OK(list);
    EXPECT_EQ(list ? list->size() : 0, kEdgesOfReuse);
    return true;
  }

  /// Expects that acknowledged batches exist and refused ones do not.
  void ExpectAll(std::int64_t end) const {
    for (std::int64_t k = 0; k < end; ++k) {
      EXPECT_EQ(Holds(k), written_.at(static_cast<std::size_t>(k)))
          << "batch " << k << " of " << end;
    }
  }

  /// Writes the next batch while an allocation fails, and another one without a failure. Returns
  /// whether an allocation failed.
  bool WriteShort(std::uint64_t fail_at, bool sticky) {
    const WriteBatch batch = BatchOfReuse(static_cast<std::int64_t>(written_.size()));
    bool hit = false;
    Status status;
    {
      const AllocationFaults faults(fail_at, sticky, AllocationFaults::Of::kAllThreads);
      auto written = graph_->Write(batch, {.sync = false});
      hit = faults.failed() > 0;
      status = written ? Status::Ok() : std::move(written).error();
    }
    ExpectOkOrShort(status);
    EXPECT_TRUE(hit || status.ok());
    refused_ += status.ok() ? 0 : 1;
    written_.push_back(status.ok());
    const Status again = Write(static_cast<std::int64_t>(written_.size()));
    EXPECT_TRUE(again.ok()) << again.ToString() << " behind allocation " << fail_at
                            << (sticky ? " and all others" : "");
    written_.push_back(again.ok());
    return hit;
  }

  TempDir dir_;
  Path path_ = dir_ / "g.rz";
  std::unique_ptr<Store> store_;
  std::unique_ptr<Graph> graph_;
  std::vector<bool> written_;
  std::uint64_t refused_ = 0;
};

TEST_F(ReuseTest, AWriterGoesOnAfterAnyAllocationThatFails) {
  std::uint64_t points = 0;
  for (const bool sticky : {false, true}) {
    Open();
    // The first write through a handle makes the handle the store's writer.
    for (std::uint64_t at = 0; WriteShort(at, sticky); ++at) ++points;
    if (HasFatalFailure()) return;
  }
  ExpectAll(static_cast<std::int64_t>(written_.size()));
  Open();
  ExpectAll(static_cast<std::int64_t>(written_.size()));
  EXPECT_GT(points, 30U);
  PrintCount("writes-short-of-memory", points);
  PrintCount("writes-short-of-memory-refused", refused_);
}

// The handle cannot become the writer; the next call tries again.
TEST_F(ReuseTest, AHandleThatCouldNotBecomeTheWriterTriesAgain) {
  for (std::uint64_t at = 0;; ++at) {
    Open();
    if (!WriteShort(at, true)) break;
    ASSERT_FALSE(HasFailure());
  }
}

/// Runs `work`. An exception is a failure, because the library's functions return a Status.
Status TryOfReuse(const std::function<Status()>& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "the library throws: " << error.what();
    return Status::IoError("thrown");
  }
}

/// Runs `work` repeatedly, with faults at `points` of its allocations on any thread, or at its
/// thread starts.
class Shortage {
 public:
  Shortage(std::uint64_t points, std::function<Status()> work)
      : points_(points), work_(std::move(work)), random_(TestSeed()) {}

  /// Calls `look` with the result of each run.
  void Run(const std::function<void(const Status&)>& look) {
    std::uint64_t asked = 0;
    {
      const AllocationFaults none(~std::uint64_t{0}, false, AllocationFaults::Of::kAllThreads);
      look(TryOfReuse(work_));
      asked = none.asked();
    }
    for (std::uint64_t point = 0; point < points_ && !::testing::Test::HasFailure(); ++point) {
      const std::uint64_t at = random_() % std::max<std::uint64_t>(asked, 1);
      for (const bool sticky : {false, true}) {
        SCOPED_TRACE(::testing::Message()
                     << "allocation " << at << (sticky ? " and all behind" : ""));
        Status status;
        {
          const AllocationFaults faults(at, sticky, AllocationFaults::Of::kAllThreads);
          status = TryOfReuse(work_);
          failed_ += faults.failed() > 0 ? 1 : 0;
        }
        ExpectOkOrShort(status);
        refused_ += status.ok() ? 0 : 1;
        look(status);
      }
    }
  }

  /// As Run, but all thread starts fail from the first, second, ... on.
  void RunThreads(const std::function<void(const Status&)>& look) {
    for (std::uint64_t at = 0; at < 64 && !::testing::Test::HasFailure(); ++at) {
      SCOPED_TRACE(::testing::Message() << "from thread " << at << " on");
      Status status;
      bool hit = false;
      {
        const ThreadFaults faults(at);
        status = TryOfReuse(work_);
        hit = faults.failed() > 0;
      }
      ExpectOkOrShort(status);
      threads_failed_ += hit ? 1 : 0;
      look(status);
      if (!hit) break;
    }
  }

  std::uint64_t failed() const { return failed_; }
  std::uint64_t refused() const { return refused_; }
  std::uint64_t threads_failed() const { return threads_failed_; }

 private:
  const std::uint64_t points_;
  const std::function<Status()> work_;
  std::mt19937_64 random_;
  std::uint64_t failed_ = 0;
  std::uint64_t refused_ = 0;
  std::uint64_t threads_failed_ = 0;
};

TEST_F(ReuseTest, CompactionsEndWithAnErrorAndTheHandleGoesOn) {
  std::int64_t next = 0;
  const JobControl control;
  const auto another = [&] {
    const Status status = Write(next);
    ASSERT_OK(status);
    written_.push_back(true);
    ++next;
  };
  another();
  Shortage shortage(
      12, [&] { return AsStatus(graph_->Compact({.threads = 2, .memory_bytes = 0}, control)); });
  const auto look = [&](const Status&) {
    another();
    ExpectAll(next);
  };
  shortage.Run(look);
  shortage.RunThreads(look);
  ASSERT_OK(graph_->Compact({}, control));
  Open();
  ExpectAll(next);
  EXPECT_GT(shortage.refused(), 0U);
  EXPECT_GT(shortage.threads_failed(), 1U);
  PrintCount("compactions-short-of-memory", shortage.failed());
  PrintCount("compactions-short-of-memory-refused", shortage.refused());
  PrintCount("compactions-short-of-threads", shortage.threads_failed());
}

// A shortage must not count as damage.
TEST_F(ReuseTest, VerifyIsRightOrSaysWhatIsShort) {
  ASSERT_OK(Write(0));
  graph_ = nullptr;
  store_ = nullptr;
  const JobControl control;
  Shortage shortage(15, [&]() -> Status {
    RHIZOME_ASSIGN_OR_RETURN(const auto report, VerifyStore(FileSystem::Posix(), path_, control));
    for (const Damage& damage : report.damaged) ADD_FAILURE() << damage.file << ": " << damage.what;
    // A file that could not be read does not count as damage, but then the report is not ok.
    EXPECT_EQ(report.ok(), report.unread.empty());
    return report.unread.empty() ? Status::Ok() : Status::OutOfMemory("files that were not read");
  });
  shortage.Run([](const Status&) {});
  shortage.RunThreads([](const Status&) {});
  EXPECT_GT(shortage.refused(), 0U);
  PrintCount("verifications-short-of-memory", shortage.failed());
  PrintCount("verifications-short-of-threads", shortage.threads_failed());
}

// A shortage does not count as damage for a repair either, so the repair has nothing to do.
TEST_F(ReuseTest, RepairIsRightOrSaysWhatIsShort) {
  graph_ = nullptr;
  store_ = nullptr;
  const JobControl control;
  Shortage shortage(8, [&]() -> Status {
    RHIZOME_ASSIGN_OR_RETURN(const auto report,
                             RepairGraph(FileSystem::Posix(), path_, {}, control));
    EXPECT_TRUE(report.found.empty() && report.lost.empty() && report.quarantine.empty());
    return Status::Ok();
  });
  shortage.Run([](const Status&) {});
  shortage.RunThreads([](const Status&) {});
  EXPECT_GT(shortage.refused(), 0U);
  PrintCount("repairs-short-of-memory", shortage.failed());
  PrintCount("repairs-short-of-threads", shortage.threads_failed());
}

class SameRowsOfReuse final : public RowSource {
 public:
  SameRowsOfReuse() {
    rows = 40;
    dim = 8;
    dtype = DataType::kFloat32;
  }
  Status Read(std::span<std::byte> out) override {
    std::fill(out.begin(), out.end(), std::byte{0});
    return Status::Ok();
  }
};

TEST_F(ReuseTest, ArraysAreAddedOrNot) {
  graph_ = nullptr;
  store_ = nullptr;
  AddArrayOptions options;
  options.file = {.name = "x", .path = "x"};
  options.file.open = [](FileSystem&) -> Result<std::unique_ptr<RowSource>> {
    return std::make_unique<SameRowsOfReuse>();
  };
  options.new_version = true;
  options.keep = 1;
  const JobControl control;
  Shortage shortage(
      12, [&] { return AsStatus(AddArray(FileSystem::Posix(), path_, options, control)); });
  shortage.Run([](const Status&) {});
  shortage.RunThreads([](const Status&) {});
  EXPECT_GT(shortage.refused(), 0U);
  EXPECT_GT(shortage.threads_failed(), 0U);
  const auto report = VerifyStore(FileSystem::Posix(), path_, control);
  ASSERT_OK(report);
  EXPECT_TRUE(report->ok());
  PrintCount("arrays-short-of-memory", shortage.failed());
  PrintCount("arrays-short-of-threads", shortage.threads_failed());
}

TEST_F(ReuseTest, ReadersGoOn) {
  const auto array = store_->OpenArray("feat");
  const auto sums = store_->OpenArray("feat.crc32c");
  ASSERT_OK(array);
  ASSERT_OK(sums);
  for (const IoMaker maker : {IoMaker::kAuto, IoMaker::kPread}) {
    RowReaderOptions options;
    options.io.maker = maker;
    auto reader = RowReader::Open(**array, **sums, options);
    ASSERT_OK(reader);
    const std::uint64_t row_bytes = (*reader)->row_bytes();
    const auto read = [&](std::vector<std::byte>& out) {
      out.assign((*reader)->row_count() * row_bytes, std::byte{0});
      std::vector<RowTarget> targets;
      for (std::uint64_t r = 0; r < (*reader)->row_count(); ++r)
        targets.push_back({static_cast<std::int64_t>(r), out.data() + r * row_bytes});
      return (*reader)->Read(targets);
    };
    std::vector<std::byte> expected;
    ASSERT_OK(read(expected));
    std::vector<std::byte> seen;
    Shortage shortage(40, [&] { return read(seen); });
    shortage.Run([&](const Status& status) {
      if (status.ok()) {
        EXPECT_EQ(seen, expected);
      }
      ASSERT_OK(read(seen));
      EXPECT_EQ(seen, expected);
    });
  }
}

}  // namespace
}  // namespace rhizome::testing
