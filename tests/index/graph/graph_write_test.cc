#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <future>
#include <list>
#include <random>
#include <set>
#include <thread>

#include "index/delta/delta.h"
#include "index/generation/graph_builder.h"
#include "index/graph/graph_writer.h"
#include "rhizome/graph.h"
#include "rhizome/write_batch.h"
#include "testing/test_store.h"
#include "testing/update_model.h"

namespace rhizome {
namespace {

using testing::BuildStore;
using testing::RandomGraph;
using testing::TempDir;
using testing::UpdateModel;

/// A store of 20 vertices with the ids 0..19, weights, and the array "feat" of 3 floats.
class GraphWriteTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::mt19937_64 rng(7);
    GraphInput input = RandomGraph(rng, {.weighted = true});
    UpdateModel::AddRows(input);
    BuildOptions options;
    options.partition.partitions = 2;
    ASSERT_OK(BuildStore(path_, std::move(input), options));
    Open(Store::Mode::kWrite);
  }
  void Open(Store::Mode mode) {
    graph_ = nullptr;
    store_ = nullptr;
    auto store = Store::Open(FileSystem::Posix(), path_, mode);
    ASSERT_OK(store);
    store_ = *std::move(store);
    auto graph = Graph::Open(*store_);
    ASSERT_OK(graph);
    graph_ = *std::move(graph);
  }

  // Returns a batch whose completeness is easy to check: `edges` edges from one new vertex.
  static WriteBatch Star(std::int64_t center, std::int64_t edges) {
    WriteBatch batch;
    for (std::int64_t i = 0; i < edges; ++i) batch.PutEdge(center, i % 20);
    return batch;
  }
  static std::uint64_t OutDegree(const Graph& graph, std::int64_t id) {
    const auto vertex = graph.Find(id);
    if (!vertex) return 0;
    const auto list = graph.Neighbors(*vertex, Direction::kOut);
    EXPECT_OK(list);
    return list ? list->size() : 0;
  }

  TempDir dir_;
  Path path_ = dir_ / "g.rz";
  std::unique_ptr<Store> store_;
  std::unique_ptr<Graph> graph_;
};

TEST_F(GraphWriteTest, BatchesOfManyThreadsAreWholeAndNumberedApart) {
  constexpr int kThreads = 6;
  constexpr int kBatches = 15;
  constexpr std::int64_t kEdges = 11;
  std::atomic<bool> done = false;
  std::atomic<int> torn = 0;
  std::thread reader([&] {
    while (!done.load()) {
      const auto snapshot = graph_->Snapshot();
      for (std::int64_t id = 1000; id < 1000 + kThreads * kBatches; id += 7) {
        const std::uint64_t degree = OutDegree(*graph_, id);
        const std::uint64_t fixed = OutDegree(*snapshot, id);
        if ((degree != 0 && degree != kEdges) || (fixed != 0 && fixed != kEdges)) ++torn;
        if (fixed > degree) ++torn;  // the live graph is never behind
      }
    }
  });
  std::vector<std::vector<std::uint64_t>> commits(kThreads);
  std::vector<std::thread> writers;
  for (int t = 0; t < kThreads; ++t) {
    writers.emplace_back([&, t] {
      for (int b = 0; b < kBatches; ++b) {
        const std::int64_t id = 1000 + t * kBatches + b;
        const auto written = graph_->Write(Star(id, kEdges), {.sync = b % 4 == 0});
        ASSERT_OK(written);
        commits[t].push_back(written->commit);
        EXPECT_EQ(written->vertices_added, 1U);
        EXPECT_EQ(OutDegree(*graph_, id), static_cast<std::uint64_t>(kEdges));
        EXPECT_GE(graph_->sequence(), written->commit);
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  done = true;
  reader.join();
  EXPECT_EQ(torn, 0);
  std::set<std::uint64_t> distinct;
  for (const auto& own : commits) {
    EXPECT_TRUE(std::is_sorted(own.begin(), own.end()));
    distinct.insert(own.begin(), own.end());
  }
  EXPECT_EQ(distinct.size(), std::size_t{kThreads} * kBatches);
  const auto edges = graph_->CountEdges();
  ASSERT_OK(edges);
  const std::uint64_t expected =
      graph_->Snapshot()->generation_edge_count() +
      std::uint64_t{kThreads} * kBatches * static_cast<std::uint64_t>(kEdges);
  EXPECT_EQ(*edges, expected);
  Open(Store::Mode::kWrite);
  for (std::int64_t id = 1000; id < 1000 + kThreads * kBatches; ++id)
    EXPECT_EQ(OutDegree(*graph_, id), static_cast<std::uint64_t>(kEdges));
}

// Batches that queue up during another commit are committed in a single write of the catalogue.
TEST_F(GraphWriteTest, WaitingBatchesShareOneCommit) {
  constexpr std::size_t kWriters = 8;
  ASSERT_OK(store_->ClaimDelta());
  std::atomic<int> published = 0;
  auto writer = std::make_unique<GraphWriter>(
      *store_,
      GraphWriter::Base{store_->Snapshot(), graph_->Snapshot()->parts(),
                        graph_->Snapshot()->delta()},
      [](const GraphWriter::Base&) { return nullptr; },
      [&](const std::shared_ptr<const GraphState>&) { ++published; });
  std::promise<void> release;
  std::thread blocker([&] {
    EXPECT_STATUS(writer->Rebase(
                      [&]() -> Result<GraphWriter::Base> {
                        release.get_future().wait();
                        return Fail(Status::Busy("nothing to publish"));
                      },
                      [] { return Status::Ok(); }),
                  kBusy);
  });
  while (writer->pending() < 1) std::this_thread::yield();
  std::vector<std::thread> writers;
  std::vector<std::uint64_t> commits(kWriters);
  for (std::size_t w = 0; w < kWriters; ++w) {
    writers.emplace_back([&, w] {
      WriteBatch batch = Star(static_cast<std::int64_t>(2000 + w), 3);
      if (w == 2) batch.PutRow(1, "nonsense", std::span<const float>());
      const auto written = writer->Write(batch, {});
      EXPECT_EQ(written.has_value(), w != 2);
      if (written) commits[w] = written->commit;
    });
  }
  while (writer->pending() < kWriters + 1) std::this_thread::yield();
  release.set_value();
  for (std::thread& thread : writers) thread.join();
  blocker.join();
  EXPECT_EQ(published, 1);
  std::sort(commits.begin(), commits.end());
  for (std::size_t w = 1; w < kWriters; ++w) EXPECT_EQ(commits[w], commits[1] + w - 1);
  store_->ReleaseDelta();
  writer = nullptr;  // its store snapshot holds LOCK
  Open(Store::Mode::kWrite);
  for (std::int64_t w = 0; w < static_cast<std::int64_t>(kWriters); ++w)
    EXPECT_EQ(OutDegree(*graph_, 2000 + w), w == 2 ? 0U : 3U);
}

// Numbers are not silently converted to another type.
TEST_F(GraphWriteTest, RowsHaveTheTypeOfTheirArray) {
  const auto message = [&](auto&& add) {
    WriteBatch batch;
    add(batch);
    const auto written = graph_->Write(batch);
    EXPECT_STATUS(written, kInvalidArgument);
    return written ? "" : written.error().message();
  };
  const auto expect = [&](const std::string& says, const char* given) {
    for (const char* part : {"'feat'", "float32", given})
      EXPECT_NE(says.find(part), says.npos) << says;
  };
  const std::vector<double> doubles = {1, 2, 3};
  const std::array<std::int64_t, 3> longs = {1, 2, 3};
  expect(message([&](auto& b) { b.PutRow(1, "feat", doubles); }), "float64");
  expect(message([&](auto& b) { b.PutRow(1, "feat", std::span(longs)); }), "int64");
  expect(message([&](auto& b) { b.PutRow(1, "feat", {1U, 2U, 3U}); }), "uint32");
  expect(message([&](auto& b) { b.PutRow(1, "feat", std::vector<bool>(3)); }), "bool");
  expect(message([&](auto& b) { b.PutRow(1, "feat", std::string_view("abcdefghijkl")); }), "int8");

  // All of these have the right type: vectors, arrays, spans, lists, non-contiguous ranges, and
  // bytes.
  const std::vector<float> row = {4, 5, 6};
  const float plain[] = {4, 5, 6};
  const std::list<float> scattered = {4, 5, 6};
  WriteBatch batch;
  batch.PutRow(1, "feat", row);
  batch.PutRow(2, "feat", std::span(row));
  batch.PutRow(3, "feat", plain);
  batch.PutRow(4, "feat", {4.0F, 5.0F, 6.0F});
  batch.PutRow(5, "feat", std::as_bytes(std::span(row)));
  batch.PutRow(6, "feat", scattered);
  ASSERT_OK(graph_->Write(batch));
  for (const std::int64_t id : {1, 2, 3, 4, 5, 6}) {
    const auto vertex = graph_->Find(id);
    ASSERT_OK(vertex);
    std::vector<float> found(3);
    ASSERT_OK(
        graph_->ReadRows("feat", std::span(&*vertex, 1), std::as_writable_bytes(std::span(found))));
    EXPECT_EQ(found, row) << id;
  }
}

TEST(EdgeValueTest, KeepsWhatItWasGiven) {
  EXPECT_EQ(EdgeValue(7).BitsAs(DataType::kInt64), 7);
  EXPECT_EQ(EdgeValue(0.5F).BitsAs(DataType::kFloat32), std::bit_cast<std::int64_t>(0.5));
  EXPECT_EQ(EdgeValue(7).BitsAs(DataType::kFloat32), std::bit_cast<std::int64_t>(7.0));
  EXPECT_EQ(EdgeValue(7.0).BitsAs(DataType::kInt64), std::nullopt);
  EXPECT_EQ(EdgeValue(~std::uint64_t{0}).BitsAs(DataType::kInt64), std::nullopt);
  const auto bits = std::bit_cast<std::int64_t>(1.25);
  EXPECT_EQ(EdgeValue::OfBits(DataType::kFloat32, bits).BitsAs(DataType::kFloat32), bits);
  EXPECT_EQ(EdgeValue::OfBits(DataType::kInt64, -3).BitsAs(DataType::kInt64), -3);
}

// As a change feed does for edges that came and went before the follower saw their type.
TEST_F(GraphWriteTest, DeletionsOfATypeThatDoesNotExistHaveNoEffect) {
  const auto types = graph_->Snapshot()->edge_types().size();
  WriteBatch batch = Star(500, 2);
  batch.DeleteEdge(1, 2, "fresh");
  ASSERT_OK(graph_->Write(batch, {.create_types = true}));
  EXPECT_EQ(OutDegree(*graph_, 500), 2U);
  EXPECT_EQ(graph_->Snapshot()->edge_types().size(), types);
}

TEST_F(GraphWriteTest, RefusedBatchesLeaveNothing) {
  const std::uint64_t before = graph_->sequence();
  const std::vector<float> row(3, 1);
  const auto refused = [&](const char* word, auto&& add, const WriteOptions& options = {}) {
    SCOPED_TRACE(word);
    WriteBatch batch = Star(500, 2);
    add(batch);
    batch.PutEdge(501, 502);
    const auto written = graph_->Write(batch, options);
    ASSERT_FALSE(written);
    EXPECT_TRUE(written.error().code() == StatusCode::kInvalidArgument ||
                written.error().code() == StatusCode::kNotFound);
    EXPECT_NE(written.error().message().find(word), std::string::npos) << written.error().message();
  };
  refused("feat", [&](WriteBatch& b) { b.PutRow(1, "nope", std::span<const float>(row)); });
  refused("12", [&](WriteBatch& b) { b.PutRow(1, "feat", std::span<const float>(row).first(2)); });
  refused("`create_types`", [](WriteBatch& b) { b.PutEdge(1, 2, {.type = "fresh"}); });
  refused("create_types", [](WriteBatch& b) { b.PutVertex(600, "fresh"); });
  refused("does not exist", [](WriteBatch& b) { b.DeleteEdge(1, 2, "fresh"); });
  refused("not an integer", [](WriteBatch& b) { b.PutEdge("x", 2); });
  refused("not an integer", [](WriteBatch& b) { b.DeleteVertex("007"); });
  refused("finite", [](WriteBatch& b) { b.PutEdge(1, 2, {.weight = INFINITY}); });
  refused("attributes", [](WriteBatch& b) { b.PutEdge(1, 2, {.attributes = {1, 2}}); });
  refused("\"500\"", [](WriteBatch&) {}, {.create_vertices = false});
  refused("edges.tsv:2", [](WriteBatch& b) { b.PutEdge("x", 2); },
          {.place = [](std::size_t i) { return "edges.tsv:" + std::to_string(i); }});
  EXPECT_EQ(graph_->sequence(), before);
  EXPECT_TRUE(graph_->Snapshot()->delta()->empty());
  EXPECT_STATUS(graph_->Find(500), kNotFound);
  Open(Store::Mode::kWrite);
  EXPECT_EQ(graph_->sequence(), before);
  ASSERT_OK(graph_->Write(Star(500, 2)));
  EXPECT_EQ(OutDegree(*graph_, 500), 2U);
}

TEST_F(GraphWriteTest, OnlyAGraphOfAStoreThatIsOpenForWritingIsWrittenTo) {
  const auto other = Store::Open(FileSystem::Posix(), path_, Store::Mode::kWrite);
  EXPECT_STATUS(other, kBusy);
  EXPECT_NE(other.error().message().find(std::to_string(getpid())), std::string::npos)
      << other.error().message();
  ASSERT_OK(graph_->Write(Star(500, 2)));
  EXPECT_FALSE(graph_->Snapshot()->store().writable());
  auto second = Graph::Open(*store_);
  ASSERT_OK(second);
  EXPECT_STATUS((*second)->Write(Star(501, 2)), kBusy);
  graph_ = nullptr;
  EXPECT_OK((*second)->Write(Star(501, 2)));
  *second = nullptr;  // must precede its store
  Open(Store::Mode::kRead);
  EXPECT_STATUS(graph_->Write(Star(502, 2)), kInvalidArgument);
  EXPECT_EQ(OutDegree(*graph_, 500), 2U);
  EXPECT_EQ(OutDegree(*graph_, 501), 2U);
}

TEST_F(GraphWriteTest, AnEmptyBatchCommitsNothing) {
  ASSERT_OK(graph_->Write(Star(500, 1)));
  const auto written = graph_->Write({});
  ASSERT_OK(written);
  EXPECT_EQ(written->commit, graph_->sequence());
  EXPECT_EQ(graph_->Snapshot()->delta()->runs(), 1U);
}

}  // namespace
}  // namespace rhizome
