#include "cache/ranks/remote_traces.h"

#include <algorithm>
#include <set>
#include <vector>

#include "cache/feed/labels.h"
#include "cache/ranks/home_epochs.h"
#include "rhizome/sampler.h"
#include "testing/planted_graph.h"
#include "testing/test_store.h"

namespace rhizome {
namespace {

using testing::TempDir;

class RemoteTracesTest : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kHomes = 4;

  void SetUp() override {
    ASSERT_OK(testing::WriteStore(folder_ / "s", {.vertices = 800, .partitions = kHomes}));
    auto open = testing::OpenStoreGraph(folder_ / "s");
    ASSERT_OK(open);
    open_ = *std::move(open);
    homes_ = *RowHomesOf(*open_.graph);
  }

  const TempDir folder_;
  testing::OpenGraph open_;
  RowHomes homes_;
};

/// Each step of a trace has exactly the remote rows that a sampler draws for the seeds of its
/// minibatch.
TEST_F(RemoteTracesTest, AreWhatASamplerDraws) {
  const std::uint64_t seed = testing::TestSeed();
  const GraphSnapshot& graph = *open_.graph;
  const auto labels = *ReadLabels(graph, "", "split");
  const auto train = *homes_.Divide(graph, labels.Members(graph, Split::kTrain));
  const auto sampler = *Sampler::Create(graph, {.fanouts = {4, 3}, .seed = seed});
  for (const std::uint32_t ranks : {1U, 2U, 3U, 4U}) {
    SCOPED_TRACE(::testing::Message() << ranks << " ranks");
    const RemoteTraceOptions options{
        .ranks = ranks, .fanouts = {4, 3}, .batch_size = 15, .epochs = 2, .seed = seed};
    const JobControl control;
    const auto traces = DrawRemoteTraces(graph, homes_, options, control);
    ASSERT_OK(traces);
    ASSERT_EQ(traces->size(), ranks);
    const auto rank_of = homes_.RanksOfRows(ranks);
    HomeEpochs epochs(train, std::vector<std::vector<VertexId>>(kHomes),
                      {.batch_size = 15, .seed = seed, .epochs = 2});
    std::vector<std::size_t> next(ranks, 0);
    std::vector<std::uint64_t> requested(ranks, 0);
    for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
      for (std::uint32_t r = 0; r < ranks; ++r) EXPECT_EQ((*traces)[r].epochs[epoch], next[r]);
      epochs.Begin(epoch, 0, kHomes);
      for (std::uint64_t step = 0; step < epochs.counts().train; ++step) {
        for (std::uint32_t home = 0; home < kHomes; ++home) {
          const SeedBatch seeds = epochs.Take(home, false, step);
          if (seeds.vertices.empty()) continue;
          const SampledSubgraph drawn = *sampler->Sample(seeds.vertices, {}, seeds.key);
          const std::uint32_t rank = homes_.RankOf(home, ranks);
          const std::set<Row> rows(drawn.rows.begin(), drawn.rows.end());
          requested[rank] += rows.size();
          std::set<Row> remote;
          for (const Row row : rows)
            if (rank_of[static_cast<std::size_t>(row)] != rank) remote.insert(row);
          ASSERT_LT(next[rank], (*traces)[rank].rows.steps());
          const auto its = (*traces)[rank].rows.step(next[rank]++);
          EXPECT_EQ(std::set<Row>(its.begin(), its.end()), remote);
          EXPECT_EQ(its.size(), remote.size());
        }
      }
    }
    for (std::uint32_t r = 0; r < ranks; ++r) {
      const RemoteTrace& trace = (*traces)[r];
      EXPECT_EQ(trace.rows.steps(), next[r]);
      EXPECT_EQ(trace.epochs.back(), next[r]);
      EXPECT_EQ(trace.epoch_steps, trace.epochs[1]);
      EXPECT_EQ(trace.rows_requested, requested[r]);
      for (const Row row : trace.training_rows)
        EXPECT_EQ(rank_of[static_cast<std::size_t>(row)], r);
    }
  }
}

TEST_F(RemoteTracesTest, RefusesWhatCannotBe) {
  const JobControl control;
  const auto refused = [&](const RemoteTraceOptions& options) {
    return testing::AsStatus(DrawRemoteTraces(*open_.graph, homes_, options, control));
  };
  EXPECT_STATUS(refused({.ranks = 0}), kInvalidArgument);
  EXPECT_STATUS(refused({.ranks = kHomes + 1}), kInvalidArgument);
  EXPECT_STATUS(refused({.batch_size = 0}), kInvalidArgument);
  EXPECT_STATUS(refused({.epochs = 0}), kInvalidArgument);
  EXPECT_STATUS(refused({.split = "none"}), kNotFound);
}

}  // namespace
}  // namespace rhizome
