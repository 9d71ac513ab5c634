#include "cache/ranks/rank_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "cache/feed/feed_profile.h"
#include "cache/policy/basic_policies.h"
#include "cache/policy/belady_schedule.h"
#include "cache/policy/trace_testing.h"
#include "cache/ranks/home_epochs.h"
#include "cache/ranks/rank_pool.h"
#include "index/generation/graph_builder.h"
#include "rhizome/ingest.h"
#include "rhizome/sampler.h"
#include "rhizome/transport.h"
#include "testing/planted_graph.h"
#include "testing/test_store.h"

// Tests of plans of a training over ranks (RankPool, PlanRanks): the rows that each rank fetches
// from each owner, the estimated seconds, the memory of schedules, and what is refused.

namespace rhizome {
namespace {

using testing::RandomTrace;
using testing::TempDir;

/// With equal costs, the fetched rows are the reads of Belady's schedule, divided by owner. Each
/// owner receives at most one request for the fill and one for each step.
TEST(RankPoolTest, FetchesWhatBeladyReadsAndSaysFromWhom) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 200; ++round) {
    const std::uint64_t rows = 1 + random() % 60;
    const auto ranks = static_cast<std::uint32_t>(1 + random() % 4);
    const auto rank = static_cast<std::uint32_t>(random() % ranks);
    const auto frames = static_cast<std::uint32_t>(random() % 50);
    std::vector<std::uint16_t> rank_of;
    for (std::uint64_t row = 0; row < rows; ++row)
      rank_of.push_back(static_cast<std::uint16_t>(random() % ranks));
    const Trace trace = RandomTrace(random, 1 + random() % 15, rows, 1 + random() % 20);
    RankPool pool({.rank = rank, .ranks = ranks, .frame_count = frames, .prior = Prior::kNone},
                  rank_of);
    const RankFetches fetches = *pool.Play(trace);
    const auto belady = *MakeBeladySchedule(trace, frames, rows);
    std::uint64_t fetched = 0;
    for (std::uint32_t r = 0; r < ranks; ++r) {
      fetched += fetches.rows_of[r];
      EXPECT_LE(fetches.requests_to[r], std::min(fetches.rows_of[r], trace.steps() + 1));
      EXPECT_EQ(fetches.requests_to[r] == 0, r == rank || fetches.rows_of[r] == 0);
    }
    EXPECT_EQ(fetched, Replay(*belady, trace)->reads()) << "round " << round;
    if (frames > 0) continue;
    std::vector<std::uint64_t> wanted(ranks, 0), asked(ranks, 0);
    std::uint64_t asking = 0;
    for (std::size_t s = 0; s < trace.steps(); ++s) {
      std::set<std::uint16_t> owners;
      for (const CacheKey row : trace.step(s)) {
        ++wanted[rank_of[static_cast<std::size_t>(row)]];
        owners.insert(rank_of[static_cast<std::size_t>(row)]);
      }
      for (const std::uint16_t owner : owners) asked[owner] += owner != rank;
      asking += owners.size() > owners.count(static_cast<std::uint16_t>(rank));
    }
    EXPECT_EQ(fetches.asking_sweeps, asking);
    EXPECT_EQ(fetches.rows_of, wanted);
    EXPECT_EQ(fetches.requests_to, asked);
  }
}

TEST(RankPoolTest, DearRowsOfOtherRanksStayLonger) {
  std::mt19937_64 random(testing::TestSeed());
  std::uint64_t equal = 0, dear = 0;
  for (int round = 0; round < 30; ++round) {
    const std::vector<std::uint16_t> rank_of = [] {
      std::vector<std::uint16_t> half(200, 0);
      std::fill(half.begin() + 100, half.end(), std::uint16_t{1});
      return half;
    }();
    const Trace trace = RandomTrace(random, 40, 200, 50);
    const auto remote = [&](double cost) {
      RankPool pool({.rank = 0, .ranks = 2, .frame_count = 60, .remote_cost = cost}, rank_of);
      return pool.Play(trace)->rows_of[1];
    };
    equal += remote(1);
    dear += remote(20);
  }
  EXPECT_LT(dear, equal * 9 / 10);
}

class RankPlanTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kVertices = 1200;
  static constexpr std::uint32_t kHomes = 4;

  static void SetUpTestSuite() {
    folder_ = new TempDir;
    const testing::PlantedGraph planted = testing::MakePlanted({.vertices = kVertices});
    GraphInput input;
    input.vertex_count = kVertices;
    input.edges = planted.edges;
    input.undirected = true;
    input.vertex_type_names = {"vertex"};
    input.edge_type_names = {"edge"};
    input.arrays.push_back(testing::MakeArray("feat", 16, DataType::kFloat32, planted.features));
    input.arrays.push_back(testing::MakeArray("split", 1, DataType::kUint8, planted.split));
    BuildOptions build;
    build.partition.partitions = kHomes;
    build.homes = HomeRule::kEdgeCut;
    ASSERT_OK(testing::BuildStore(*folder_ / "g.rz", std::move(input), build));
  }
  static void TearDownTestSuite() { delete folder_; }

  void SetUp() override {
    auto open = testing::OpenStoreGraph(*folder_ / "g.rz");
    ASSERT_OK(open);
    open_ = *std::move(open);
    options_.ranks = {1, 2, 3, 4};
    options_.minibatch.fanouts = {4, 3};
    options_.minibatch.batch_size = 20;
    options_.epochs = 2;
    options_.minibatch.feed.superbatch = 3;
    options_.minibatch.feed.cache_bytes = 0;
  }

  RankPlanReport Plan() const {
    const JobControl control;
    auto report = PlanRanks(*open_.graph, options_, control);
    EXPECT_OK(report);
    return report ? *std::move(report) : RankPlanReport();
  }
  static std::uint64_t Sum(const RankPlan& plan, std::uint64_t RankShare::*figure) {
    std::uint64_t sum = 0;
    for (const RankShare& one : plan.shares) sum += one.*figure;
    return sum;
  }

  /// Returns the home of each row, read from the array directly.
  std::vector<std::int32_t> Homes() const {
    const auto array = *open_.graph->store().OpenArray("home");
    std::vector<std::int32_t> homes;
    for (std::uint64_t c = 0; c < array->entry().chunk_count(); ++c) {
      std::vector<std::int32_t> chunk(array->RowsInChunk(c));
      EXPECT_OK(array->ReadChunk(c, std::as_writable_bytes(std::span(chunk))));
      homes.insert(homes.end(), chunk.begin(), chunk.end());
    }
    return homes;
  }

  static inline TempDir* folder_ = nullptr;
  testing::OpenGraph open_;
  RankPlanOptions options_{.minibatch = {.ranks = RankOptions{}}};
};

/// Without a pool, every remote row that a sampler draws is fetched.
TEST_F(RankPlanTest, WithoutAPoolEveryRowThatASamplerDrawsIsFetched) {
  const RankPlanReport report = Plan();
  const std::vector<std::int32_t> homes = Homes();
  std::vector<std::vector<VertexId>> sets[3];
  for (auto& set : sets) set.resize(kHomes);
  for (VertexId v = 0; v < static_cast<VertexId>(kVertices); ++v) {
    const auto row = static_cast<std::size_t>(*open_.graph->RowOf(v));
    sets[v / 4 % 3][static_cast<std::size_t>(homes[row])].push_back(v);
  }
  HomeEpochs epochs(sets[0], sets[1],
                    {.batch_size = options_.minibatch.batch_size, .seed = options_.seed});
  const auto sampler = *Sampler::Create(
      *open_.graph, {.fanouts = options_.minibatch.fanouts, .seed = options_.seed});
  for (const RankPlan& plan : report.plans) {
    const auto ranks = static_cast<std::uint32_t>(plan.shares.size());
    const auto rank_of = [&](std::int32_t home) {
      return static_cast<std::uint32_t>(home) * ranks / kHomes;
    };
    std::vector<std::uint64_t> wanted(ranks, 0), remote(ranks, 0), edges(ranks, 0),
        served(ranks, 0);
    for (std::uint32_t epoch = 0; epoch < options_.epochs; ++epoch) {
      epochs.Begin(epoch, 0, kHomes);
      const std::uint64_t learning = epochs.counts().train;
      for (std::uint64_t s = 0; s < learning + epochs.counts().valid; ++s) {
        for (std::uint32_t home = 0; home < kHomes; ++home) {
          const SeedBatch seeds =
              s < learning ? epochs.Take(home, false, s) : epochs.Take(home, true, s - learning);
          if (seeds.vertices.empty()) continue;
          const SampledSubgraph drawn = *sampler->Sample(seeds.vertices, {}, seeds.key);
          const std::uint32_t rank = rank_of(static_cast<std::int32_t>(home));
          edges[rank] += drawn.neighbors.size();
          for (const Row row : std::set<Row>(drawn.rows.begin(), drawn.rows.end())) {
            const std::uint32_t owner = rank_of(homes[static_cast<std::size_t>(row)]);
            ++wanted[rank];
            remote[rank] += owner != rank;
            served[owner] += owner != rank;
          }
        }
      }
    }
    for (std::uint32_t r = 0; r < ranks; ++r) {
      SCOPED_TRACE(::testing::Message() << "rank " << r << " of " << ranks);
      const RankShare& one = plan.shares[r];
      EXPECT_EQ(one.edges, edges[r]);
      EXPECT_EQ(one.rows_requested, wanted[r]);
      EXPECT_EQ(one.remote_rows_requested, remote[r]);
      EXPECT_EQ(one.remote_rows, remote[r]);
      EXPECT_EQ(one.disk_rows, wanted[r] - remote[r]);
      EXPECT_EQ(one.served_rows, served[r]);
      EXPECT_EQ(one.bytes_in, (one.requests + one.served_requests) * kMessageHeaderBytes +
                                  remote[r] * (report.row_bytes + kReplyChecksumBytes) +
                                  served[r] * kRequestRowBytes);
    }
    EXPECT_EQ(Sum(plan, &RankShare::bytes_in), Sum(plan, &RankShare::bytes_out));
    EXPECT_EQ(Sum(plan, &RankShare::requests), Sum(plan, &RankShare::served_requests));
    EXPECT_EQ(Sum(plan, &RankShare::rows), kVertices);
    EXPECT_EQ(Sum(plan, &RankShare::training_vertices), report.training_vertices);
  }
}

TEST_F(RankPlanTest, APoolForAllRowsFetchesEachOnce) {
  options_.minibatch.feed.cache_bytes = kVertices * 64;
  for (const RankPlan& plan : Plan().plans) {
    for (const RankShare& one : plan.shares) {
      EXPECT_LE(one.disk_rows, one.rows);
      EXPECT_LE(one.remote_rows, kVertices - one.rows);
      EXPECT_LT(one.disk_rows + one.remote_rows, one.rows_requested);
    }
    if (plan.shares.size() == 1) {
      EXPECT_EQ(plan.shares[0].remote_rows_requested, 0U);
      EXPECT_EQ(plan.shares[0].requests, 0U);
    }
  }
}

TEST_F(RankPlanTest, WhatIsWantedDoesNotDependOnRanksNorPools) {
  const RankPlanReport none = Plan();
  options_.minibatch.feed.cache_bytes = kVertices * 16;
  options_.minibatch.feed.superbatch = 7;
  const RankPlanReport pool = Plan();
  const std::uint64_t wanted = Sum(none.plans[0], &RankShare::rows_requested);
  for (std::size_t i = 0; i < none.plans.size(); ++i) {
    EXPECT_EQ(Sum(none.plans[i], &RankShare::rows_requested), wanted);
    EXPECT_EQ(Sum(pool.plans[i], &RankShare::rows_requested), wanted);
    EXPECT_EQ(Sum(pool.plans[i], &RankShare::remote_rows_requested),
              Sum(none.plans[i], &RankShare::remote_rows_requested));
    EXPECT_LT(
        Sum(pool.plans[i], &RankShare::disk_rows) + Sum(pool.plans[i], &RankShare::remote_rows),
        wanted);
  }
}

TEST_F(RankPlanTest, SlowerLinksTakeLonger) {
  options_.ranks = {4};
  options_.minibatch.feed.cache_bytes = kVertices * 16;
  options_.minibatch.ranks->link = {.bits_per_second = 1e6, .latency_seconds = 0};
  const double slow = Plan().plans[0].seconds;
  options_.minibatch.ranks->link.bits_per_second = 1e10;
  const double fast = Plan().plans[0].seconds;
  EXPECT_GT(slow, 10 * fast);
  options_.compute_seconds = 1;
  const RankPlan computing = Plan().plans[0];
  EXPECT_NEAR(computing.seconds, static_cast<double>(computing.shares[0].minibatches), 0.1);
}

// With at least as many threads as stages, plan and training both count one more superbatch.
TEST_F(RankPlanTest, SchedulesTakeTheMemoryThatATrainingCounts) {
  options_.minibatch.feed.superbatch = 1000;  // all steps in one
  const std::vector<VertexId> seeds = {0, 1, 2, 3, 4, 5, 6, 7};
  const EpochPlan epochs(seeds, {}, {.batch_size = 4});
  FeedJob job{.graph = *open_.graph, .pipeline = {}, .fixed = {.cache_bytes = 0, .superbatch = 2}};
  job.pipeline.sampler.sampler.fanouts = {4, 3};
  job.pipeline.features = "feat";
  std::set<std::uint64_t> trained_rows;
  for (const auto& [threads, bytes] :
       std::map<std::uint32_t, std::uint64_t>{{1, 52}, {2, 52}, {4, 68}, {8, 68}}) {
    job.pipeline.sampler.sampler.threads = options_.threads = threads;
    const JobControl control;
    const auto feed = PlanFeed(job, epochs, control);
    ASSERT_OK(feed);
    EXPECT_EQ(feed->needs.schedule_bytes % bytes, 0U) << threads;
    trained_rows.insert(feed->needs.schedule_bytes / bytes);
    for (const RankPlan& plan : Plan().plans) {
      for (const RankShare& one : plan.shares)
        EXPECT_EQ(one.schedule_bytes, one.rows_requested * bytes) << threads;
    }
  }
  EXPECT_EQ(trained_rows.size(), 1U);  // of the same minibatch, for any number of threads
}

TEST_F(RankPlanTest, RanksAreCheckedAgainstHomesWithoutOpeningTheGraph) {
  EXPECT_OK(CheckRanksOf(*folder_ / "g.rz", kHomes));
  for (const std::uint32_t ranks : {0U, kHomes + 1, 999U})
    EXPECT_STATUS(CheckRanksOf(*folder_ / "g.rz", ranks), kInvalidArgument);
  EXPECT_STATUS(CheckRanksOf(*folder_ / "none.rz", 1), kNotFound);
}

TEST_F(RankPlanTest, RefusesWhatCannotBe) {
  const JobControl control;
  const auto refused = [&] {
    return testing::AsStatus(PlanRanks(*open_.graph, options_, control));
  };
  options_.ranks = {2, 5};
  EXPECT_STATUS(refused(), kInvalidArgument);
  options_.ranks = {0};
  EXPECT_STATUS(refused(), kInvalidArgument);
  options_.ranks = {};
  EXPECT_STATUS(refused(), kInvalidArgument);
  options_.ranks = {2};
  options_.minibatch.batch_size = 0;
  EXPECT_STATUS(refused(), kInvalidArgument);
  options_.minibatch.batch_size = 1;
  options_.data.split = "nothing";
  EXPECT_STATUS(refused(), kNotFound);
}

}  // namespace
}  // namespace rhizome
