// Forks children while the parent reads, samples and writes. In a child, objects in memory remain
// usable. Objects with threads, a ring or a catalogue return an error. The parent is not affected.
// (A typical program that does this is a trainer whose data loader forks its workers.)

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "index/generation/graph_builder.h"
#include "rhizome/graph_lookup.h"
#include "rhizome/ingest.h"
#include "rhizome/sampler.h"
#include "rhizome/write_batch.h"
#include "storage/array/row_reader.h"
#include "testing/child_process.h"
#include "testing/sanitizer.h"
#include "testing/test_store.h"
#include "testing/update_model.h"

namespace rhizome {
namespace {

using testing::BuildStore;
using testing::kSanitized;
using testing::RandomGraph;
using testing::TempDir;
using testing::UpdateModel;

constexpr int kForks = 500;
constexpr std::uint64_t kVerticesOfForks = 300;

/// The exit code of a child: the first failure.
enum class WrongInFork : std::uint8_t {
  kNothing = 0,
  kNeighbors,
  kLiveGraph,
  kSample,
  kRowInMemory,
  kReaderReads,
  kReaderSaysNotWhy,
  kReaderFailsOnceOnly,
  kGraphWrites,
  kGraphRefreshes,
  kStoreRefreshes,
  kGraphCompacts,
  kStoreCollects,
  kNewSampler,
};

// Gives the forks a chance to run between the operations of the other threads.
void LeaveTimeToForks() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

class ForkTest : public ::testing::TestWithParam<IoMaker> {
 protected:
  void SetUp() override {
    std::mt19937_64 rng(7);
    GraphInput input = RandomGraph(rng, {.vertices = kVerticesOfForks, .edges = 3000});
    UpdateModel::AddRows(input);
    BuildOptions options;
    options.partition.partitions = 2;
    ASSERT_OK(BuildStore(path_, std::move(input), options));
    auto store = Store::Open(FileSystem::Posix(), path_, Store::Mode::kWrite);
    ASSERT_OK(store);
    store_ = *std::move(store);
    auto graph = Graph::Open(*store_);
    ASSERT_OK(graph);
    live_ = *std::move(graph);
    fixed_ = live_->Snapshot();
    auto sampler = Sampler::Create(*fixed_, {.fanouts = {5, 5}, .threads = 2});
    ASSERT_OK(sampler);
    sampler_ = *std::move(sampler);
    auto rows = RowLookup::Open(*live_, "feat", {.memory_bytes = 1 << 20});
    ASSERT_OK(rows);
    rows_ = *std::move(rows);
    MakeReader(reader_);
    for (std::uint64_t v = 0; v < kVerticesOfForks; ++v) seeds_.push_back(static_cast<VertexId>(v));
    for (const VertexId v : seeds_) {
      const auto list = fixed_->Neighbors(v, Direction::kBoth);
      ASSERT_OK(list);
      neighbors_.push_back(*list);
    }
    const auto sample = sampler_->Sample(seeds_, 0);
    ASSERT_OK(sample);
    sampled_ = sample->rows;
    ASSERT_OK(Read(*reader_, all_));
    std::vector<std::byte> warm(all_.size());
    ASSERT_OK(rows_->Read(seeds_, warm));
  }

  void MakeReader(std::unique_ptr<RowReader>& out) const {
    const auto array = store_->OpenArray("feat");
    const auto sums = store_->OpenArray("feat.crc32c");
    ASSERT_OK(array);
    ASSERT_OK(sums);
    RowReaderOptions options;
    options.io.maker = GetParam();
    options.staging_bytes = 1 << 20;  // each fork copies pinned pages
    auto reader = RowReader::Open(**array, **sums, options);
    if (!reader && reader.error().code() == StatusCode::kUnsupported)
      GTEST_SKIP() << "io_uring is forbidden here";
    ASSERT_OK(reader);
    out = *std::move(reader);
  }

  static Status Read(RowReader& reader, std::vector<std::byte>& out) {
    const std::uint64_t row_bytes = reader.row_bytes();
    out.assign(reader.row_count() * row_bytes, std::byte{0});
    std::vector<RowTarget> targets;
    for (std::uint64_t r = 0; r < reader.row_count(); ++r)
      targets.push_back({static_cast<std::int64_t>(r), out.data() + r * row_bytes});
    return reader.Read(targets);
  }

  static bool IsRefused(const Status& status) {
    return status.code() == StatusCode::kInvalidArgument;
  }

  WrongInFork LookAtMemory() const {
    for (std::size_t i = 0; i < seeds_.size(); i += 7) {
      const auto list = fixed_->Neighbors(seeds_[i], Direction::kBoth);
      if (!list || *list != neighbors_[i]) return WrongInFork::kNeighbors;
      const auto id = *live_->ExternalIdOf(seeds_[i]);
      if (live_->Find(id) != seeds_[i] || !live_->Degree(seeds_[i], Direction::kOut))
        return WrongInFork::kLiveGraph;
    }
    const auto sample = sampler_->Sample(seeds_, 0);
    if (!sample || sample->rows != sampled_) return WrongInFork::kSample;
    std::vector<std::byte> row(all_.size() / kVerticesOfForks);
    if (!rows_->Read(std::span(seeds_).first(1), row).ok()) return WrongInFork::kRowInMemory;
    const auto fresh = Sampler::Create(*fixed_, {.fanouts = {5, 5}, .threads = 2});
    if (!fresh || (*fresh)->Sample(seeds_, 0)->rows != sampled_) return WrongInFork::kNewSampler;
    return WrongInFork::kNothing;
  }

  WrongInFork LookAtTheRest() {
    std::vector<std::byte> out;
    const Status read = Read(*reader_, out);
    if (!IsRefused(read)) return WrongInFork::kReaderReads;
    if (read.message().find("fork") == std::string::npos) return WrongInFork::kReaderSaysNotWhy;
    if (!IsRefused(Read(*reader_, out))) return WrongInFork::kReaderFailsOnceOnly;
    WriteBatch batch;
    batch.PutEdge(1, 2);
    const auto written = live_->Write(batch);
    if (written || !IsRefused(written.error())) return WrongInFork::kGraphWrites;
    const JobControl control;
    const auto compacted = live_->Compact({}, control);
    if (compacted || !IsRefused(compacted.error())) return WrongInFork::kGraphCompacts;
    if (!IsRefused(live_->Refresh())) return WrongInFork::kGraphRefreshes;
    if (!IsRefused(store_->Refresh())) return WrongInFork::kStoreRefreshes;
    return WrongInFork::kNothing;
  }

  /// How a child ends.
  enum class End : std::uint8_t { kAtOnce, kTidilyAtOnce, kByExit, kTidilyByExit };

  /// The body of a child process. Does not return.
  [[noreturn]] void BeAChild(End end) {
    ::alarm(60 * testing::Patience());
    WrongInFork wrong = LookAtMemory();
    if (wrong == WrongInFork::kNothing) wrong = LookAtTheRest();
    if (end == End::kTidilyAtOnce || end == End::kTidilyByExit) {  // must be harmless
      reader_ = nullptr;
      rows_ = nullptr;
      sampler_ = nullptr;
      fixed_ = nullptr;
      live_ = nullptr;
      store_ = nullptr;
    }
    if (end == End::kByExit || end == End::kTidilyByExit) ::exit(static_cast<int>(wrong));
    ::_exit(static_cast<int>(wrong));
  }

  TempDir dir_;
  Path path_ = dir_ / "g.rz";
  std::unique_ptr<Store> store_;
  std::unique_ptr<Graph> live_;
  std::shared_ptr<const GraphSnapshot> fixed_;
  std::unique_ptr<Sampler> sampler_;
  std::unique_ptr<RowLookup> rows_;
  std::unique_ptr<RowReader> reader_;
  std::vector<VertexId> seeds_;
  std::vector<std::vector<Neighbor>> neighbors_;
  std::vector<Row> sampled_;
  std::vector<std::byte> all_;
};

TEST_P(ForkTest, ChildrenReadMemoryAndTheParentNoticesNothing) {
  if (kSanitized) GTEST_SKIP() << "children of a sanitized process with threads hang";
  std::atomic<bool> done = false;
  std::atomic<std::int64_t> batches = 0;
  std::thread writer([&] {
    for (std::int64_t id = 100000; !done; ++id) {
      WriteBatch batch;
      batch.PutEdge(id, 1);
      ASSERT_OK(live_->Write(batch, {.sync = false}));
      ++batches;
      LeaveTimeToForks();
    }
  });
  std::thread samples([&] {
    while (!done) {
      const auto sample = sampler_->Sample(seeds_, 0);
      ASSERT_OK(sample);
      ASSERT_EQ(sample->rows, sampled_);
      LeaveTimeToForks();
    }
  });
  std::unique_ptr<RowReader> another;
  MakeReader(another);
  std::thread reads([&] {
    std::vector<std::byte> out;
    while (!done) {
      ASSERT_OK(Read(*another, out));
      ASSERT_EQ(out, all_);
      LeaveTimeToForks();
    }
  });
  std::vector<std::byte> out;
  for (int i = 0; i < kForks && !HasFailure(); ++i) {
    auto child = testing::ChildProcess::Fork([&]() -> int { BeAChild(static_cast<End>(i % 4)); });
    ASSERT_GE(child.id(), 0);
    if (i % 8 == 0) {  // while the child runs
      EXPECT_OK(Read(*reader_, out));
      EXPECT_EQ(out, all_);
    }
    const int status = child.Wait();
    EXPECT_EQ(status, 0) << "fork " << i << ": signal " << (status & 0x7F) << ", or wrong was "
                         << (status >> 8);
  }
  done = true;
  writer.join();
  samples.join();
  reads.join();
  EXPECT_OK(Read(*reader_, out));
  EXPECT_EQ(out, all_);
  EXPECT_EQ(live_->vertex_count(), kVerticesOfForks + static_cast<std::uint64_t>(batches));
  const JobControl control;
  EXPECT_OK(live_->Compact({}, control));
}

// A child that calls exit() flushes its output and runs its handlers, although the timer thread of
// the RocksDB instance of the parent's writer does not exist in the child.
TEST_P(ForkTest, AChildThatExitsFlushesAndKeepsItsStatus) {
  if (kSanitized) GTEST_SKIP() << "children of a sanitized process with threads hang";
  std::FILE* const file = std::fopen((dir_ / "said").c_str(), "w");
  ASSERT_NE(file, nullptr);
  static std::FILE* said = nullptr;
  said = file;
  const auto exit = []() -> int {
    (void)std::atexit([] { (void)std::fputs(", registered", said); });
    (void)std::fputs("written", said);
    ::exit(7);
  };
  const int status = testing::RunForked(exit, 20);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << "signal " << (status & 0x7F);
  (void)std::fclose(file);
  std::string text;
  std::getline(std::ifstream(dir_ / "said"), text);
  EXPECT_EQ(text, "written, registered");
}

// If the parent has only readers or no open store, exit() runs completely.
TEST_P(ForkTest, AChildOfAReaderExits) {
  if (kSanitized) GTEST_SKIP() << "children of a sanitized process with threads hang";
  live_ = nullptr;
  fixed_ = nullptr;
  sampler_ = nullptr;
  rows_ = nullptr;
  store_ = nullptr;
  for (int i = 0; i < 8; ++i) {
    auto reader = Store::Open(FileSystem::Posix(), path_, Store::Mode::kRead);
    ASSERT_OK(reader);
    if (i % 2 == 0) *reader = nullptr;
    const auto exit = [&]() -> int {
      if (i >= 4) *reader = nullptr;
      ::exit(7);
    };
    const int status = testing::RunForked(exit, 20);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << "signal " << (status & 0x7F);
  }
}

// A child may open the store itself, but only for reading. Opening it for writing would wait for
// threads that the fork did not copy.
TEST_P(ForkTest, AChildOpensAStoreForReadingOnly) {
  if (testing::kThreadSanitized) GTEST_SKIP() << "the child's store would start threads";
  live_ = nullptr;
  fixed_ = nullptr;
  sampler_ = nullptr;
  rows_ = nullptr;
  store_ = nullptr;
  const auto open = [&]() -> int {
    {
      const auto store = Store::Open(FileSystem::Posix(), path_, Store::Mode::kRead);
      if (!store) return 1;
      const auto graph = Graph::Open(**store);
      if (!graph || *(*graph)->Neighbors(seeds_[0], Direction::kBoth) != neighbors_[0]) return 2;
      const auto writer = Store::Open(FileSystem::Posix(), path_, Store::Mode::kWrite);
      if (writer || !IsRefused(writer.error())) return writer ? 3 : 4;
    }
    ::exit(0);
  };
  EXPECT_EQ(testing::RunForked(open), 0);
  EXPECT_OK(Store::Open(FileSystem::Posix(), path_, Store::Mode::kWrite));
}

INSTANTIATE_TEST_SUITE_P(Makers, ForkTest, ::testing::Values(IoMaker::kUring, IoMaker::kPread),
                         [](const auto& info) { return std::string(IoMakerName(info.param)); });

}  // namespace
}  // namespace rhizome
