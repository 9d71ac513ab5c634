#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "index/generation/graph_builder.h"
#include "rhizome/graph.h"
#include "rhizome/write_batch.h"
#include "testing/child_process.h"
#include "testing/test_store.h"
#include "testing/update_model.h"

namespace rhizome {
namespace {

using testing::BuildStore;
using testing::ChildProcess;
using testing::RandomGraph;
using testing::TempDir;
using testing::UpdateModel;

constexpr const char* kRole = "RHIZOME_TEST_STORE";  // path of the store; set in the child only
constexpr int kAckPipe = 9;
constexpr std::int64_t kFirstId = 1000;
constexpr std::int64_t kEdges = 40;

// Batch k has kEdges edges from one new vertex, and its row, so that a partial batch is noticed.
WriteBatch BatchOf(std::int64_t k) {
  WriteBatch batch;
  for (std::int64_t i = 0; i < kEdges; ++i) batch.PutEdge(kFirstId + k, i % 20);
  const std::vector<float> row(UpdateModel::kDim, static_cast<float>(k));
  batch.PutRow(kFirstId + k, "feat", std::span<const float>(row));
  return batch;
}

/// Returns whether batch k is in the graph. Fails if only a part of it is.
bool Holds(const Graph& graph, std::int64_t k) {
  const auto vertex = graph.Find(kFirstId + k);
  if (!vertex) return false;
  const auto list = graph.Neighbors(*vertex, Direction::kOut);
  EXPECT_OK(list);
  EXPECT_EQ(list ? list->size() : 0, static_cast<std::size_t>(kEdges)) << "batch " << k;
  std::vector<float> row(UpdateModel::kDim);
  EXPECT_OK(graph.ReadRows("feat", std::span(&*vertex, 1), std::as_writable_bytes(std::span(row))));
  EXPECT_EQ(row, std::vector<float>(UpdateModel::kDim, static_cast<float>(k)));
  return true;
}

/// Expects that the graph contains batches 0..n-1 and no later ones. Returns n.
std::int64_t CountPrefix(const Graph& graph, std::int64_t bound) {
  std::int64_t n = 0;
  while (n < bound && Holds(graph, n)) ++n;
  for (std::int64_t k = n; k < bound; ++k) EXPECT_FALSE(Holds(graph, k)) << "a hole at batch " << n;
  return n;
}

struct OpenedOfGraphWrite {
  std::unique_ptr<Store> store;
  std::unique_ptr<Graph> graph;
};
Result<OpenedOfGraphWrite> OpenAt(const Path& path, Store::Mode mode) {
  OpenedOfGraphWrite opened;
  RHIZOME_ASSIGN_OR_RETURN(opened.store, Store::Open(FileSystem::Posix(), path, mode));
  RHIZOME_ASSIGN_OR_RETURN(opened.graph, Graph::Open(*opened.store));
  return opened;
}

void Acknowledge(std::int64_t k) {
  EXPECT_EQ(::write(kAckPipe, &k, sizeof(k)), ssize_t{sizeof(k)});
}

/// Runs the current test again in a separate process, with the path of the store in kRole.
class Child {
 public:
  explicit Child(const Path& store) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    acks_ = ends[0];
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    process_ =
        ChildProcess::RunAgain({.arguments = ChildProcess::OnlyTest(
                                    std::string(test->test_suite_name()) + "." + test->name()),
                                .variables = {std::string(kRole) + "=" + store.string()},
                                .descriptors = {{ends[1], kAckPipe}}});
    EXPECT_GT(process_.id(), 0);
    ::close(ends[1]);
  }
  ~Child() { ::close(acks_); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Waits for the next acknowledgement. Returns nullopt when the child has ended.
  std::optional<std::int64_t> NextAck() const {
    std::int64_t k = 0;
    if (::read(acks_, &k, sizeof(k)) != ssize_t{sizeof(k)}) return std::nullopt;
    return k;
  }
  void Kill() { process_.Kill(); }
  int Wait() { return process_.Wait(); }

 private:
  ChildProcess process_;
  int acks_ = -1;
};

class GraphWriteProcessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const char* store = std::getenv(kRole)) {
      child_ = true;
      path_ = store;
      return;
    }
    std::mt19937_64 rng(7);
    GraphInput input = RandomGraph(rng, {});
    UpdateModel::AddRows(input);
    ASSERT_OK(BuildStore(path_, std::move(input), {}));
  }

  TempDir dir_;
  Path path_ = dir_ / "g.rz";
  bool child_ = false;
};

// The writer is killed at a random moment. With and without sync the store then contains a prefix
// of the batches, including all that were acknowledged. No batch is partial, and a concurrent
// reader sees only such prefixes.
TEST_F(GraphWriteProcessTest, AKilledWriterLeavesTheFirstBatchesWhole) {
  if (child_) {
    auto opened = OpenAt(path_, Store::Mode::kWrite);
    ASSERT_OK(opened);
    std::int64_t k = 0;
    while (Holds(*opened->graph, k)) ++k;
    for (; true; ++k) {
      ASSERT_OK(opened->graph->Write(BatchOf(k), {.sync = k % 5 == 4}));
      Acknowledge(k);
    }
  }
  std::mt19937_64 rng(testing::TestSeed());
  std::int64_t acknowledged = -1;
  const auto reader = OpenAt(path_, Store::Mode::kRead);
  ASSERT_OK(reader);
  std::int64_t seen = 0;
  for (int round = 0; round < 4; ++round) {
    Child writer(path_);
    for (std::uint64_t acks = 1 + rng() % 40; acks > 0; --acks) {
      const auto ack = writer.NextAck();
      ASSERT_TRUE(ack) << "the writer ended by itself";
      acknowledged = *ack;
      if (acks % 8 != 0) continue;
      ASSERT_OK(reader->graph->Refresh());
      const std::int64_t now = CountPrefix(*reader->graph, acknowledged + 3);
      EXPECT_GE(now, acknowledged + 1);
      EXPECT_GE(now, seen);
      seen = now;
    }
    writer.Kill();
    while (const auto ack = writer.NextAck()) acknowledged = *ack;
    const auto opened = OpenAt(path_, Store::Mode::kWrite);
    ASSERT_OK(opened);
    const std::int64_t there = CountPrefix(*opened->graph, acknowledged + 3);
    EXPECT_GE(there, acknowledged + 1);
    EXPECT_LE(there, acknowledged + 2);
    if (HasFailure()) return;
  }
}

// RLIMIT_FSIZE simulates a full disk: the write-ahead log cannot grow in the middle of a batch.
TEST_F(GraphWriteProcessTest, AFullDiskMakesTheHandleReadOnlyAndLosesNothing) {
  if (child_) {
    std::signal(SIGXFSZ, SIG_IGN);
    auto opened = OpenAt(path_, Store::Mode::kWrite);
    ASSERT_OK(opened);
    const rlimit limit{.rlim_cur = 300000, .rlim_max = 300000};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    std::int64_t k = 0;
    Result<WriteResult> written = opened->graph->Write(BatchOf(k));
    for (; written && k < 5000; written = opened->graph->Write(BatchOf(k))) Acknowledge(k++);
    EXPECT_STATUS(written, kOutOfSpace);
    const auto again = opened->graph->Write(BatchOf(k));
    EXPECT_FALSE(again);
    EXPECT_NE(again.error().message().find("open the store again"), std::string::npos)
        << again.error().message();
    EXPECT_EQ(CountPrefix(*opened->graph, k + 2), k);
    return;
  }
  Child writer(path_);
  std::int64_t acknowledged = -1;
  while (const auto ack = writer.NextAck()) acknowledged = *ack;
  EXPECT_EQ(writer.Wait(), 0);
  EXPECT_GT(acknowledged, 10);
  auto opened = OpenAt(path_, Store::Mode::kWrite);
  ASSERT_OK(opened);
  const std::int64_t there = CountPrefix(*opened->graph, acknowledged + 3);
  EXPECT_GE(there, acknowledged + 1);
  EXPECT_LE(there, acknowledged + 2);
  ASSERT_OK(opened->graph->Write(BatchOf(there)));
  EXPECT_TRUE(Holds(*opened->graph, there));
}

TEST_F(GraphWriteProcessTest, ASecondWriterIsToldWhoHoldsTheStore) {
  if (child_) {
    const auto opened = OpenAt(path_, Store::Mode::kWrite);
    EXPECT_STATUS(opened, kBusy);
    EXPECT_NE(opened.error().message().find(std::to_string(getppid())), std::string::npos)
        << opened.error().message();
    const auto reader = OpenAt(path_, Store::Mode::kRead);
    ASSERT_OK(reader);
    EXPECT_TRUE(Holds(*reader->graph, 0));
    return;
  }
  auto opened = OpenAt(path_, Store::Mode::kWrite);
  ASSERT_OK(opened);
  ASSERT_OK(opened->graph->Write(BatchOf(0)));
  Child second(path_);
  EXPECT_EQ(second.Wait(), 0);
  EXPECT_OK(opened->graph->Write(BatchOf(1)));
}

// A forked child can use what is in memory. Its exit does not affect the catalogue or the lock.
TEST_F(GraphWriteProcessTest, AForkReadsMemoryAndWritesNothing) {
  auto opened = OpenAt(path_, Store::Mode::kWrite);
  ASSERT_OK(opened);
  auto reader = OpenAt(path_, Store::Mode::kRead);
  ASSERT_OK(reader);
  ASSERT_OK(opened->graph->Write(BatchOf(0)));
  const VertexId vertex = *opened->graph->Find(kFirstId);
  const auto write_nothing = [&] {
    const auto list = opened->graph->Neighbors(vertex, Direction::kOut);
    const bool reads = list && list->size() == static_cast<std::size_t>(kEdges);
    const auto written = opened->graph->Write(BatchOf(1));
    const bool refused = !written && written.error().code() == StatusCode::kInvalidArgument;
    for (OpenedOfGraphWrite* handle : {&*reader, &*opened}) {
      handle->graph.reset();
      handle->store.reset();
    }
    return reads && refused ? 0 : 1;
  };
  EXPECT_EQ(testing::RunForked(write_nothing), 0);
  EXPECT_OK(opened->graph->Write(BatchOf(1)));
  EXPECT_STATUS(OpenAt(path_, Store::Mode::kWrite), kBusy);
  ASSERT_OK(reader->graph->Refresh());
  EXPECT_EQ(CountPrefix(*reader->graph, 3), 2);
}

}  // namespace
}  // namespace rhizome
