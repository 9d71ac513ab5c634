#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "cache/feed/feed_pipeline.h"
#include "cache/feed/feed_profile.h"
#include "cache/feed/labels.h"
#include "cache/pool/prefill_piece.h"
#include "cache/ranks/fake_ranks.h"
#include "cache/ranks/home_epochs.h"
#include "cache/ranks/rank_plan.h"
#include "cache/ranks/rank_pool.h"
#include "cache/ranks/remote_cache_policies.h"
#include "cache/ranks/remote_rows.h"
#include "cache/ranks/row_costs.h"
#include "cache/ranks/row_homes.h"
#include "cache/ranks/row_messages.h"
#include "cache/ranks/row_service.h"
#include "index/generation/graph_builder.h"
#include "rhizome/graph_types.h"
#include "rhizome/ingest.h"
#include "rhizome/write_batch.h"
#include "storage/base/pause.h"
#include "testing/planted_graph.h"
#include "testing/test_store.h"

// Tests of a feed pipeline over ranks: the rows and requests of each rank equal the plan and a
// replay, for random pools, superbatches and numbers of ranks, also with a delta; a lost rank ends
// the feed with an error.

namespace rhizome {
namespace {

using testing::FakeRanks;
using testing::TempDir;

/// Rows are large, so that a prefill of a few hundred rows is read in several pieces.
constexpr std::uint64_t kWideDim = 8192;
constexpr std::uint64_t kWideBytes = kWideDim * sizeof(float);

/// Writes a row whose first two numbers are its vertex and its version.
void WriteRow(std::uint64_t vertex, float version, float* row) {
  std::fill(row, row + kWideDim, static_cast<float>(vertex) + 0.25F);
  row[0] = static_cast<float>(vertex);
  row[1] = version;
}

/// Counts of one rank's feed.
struct RankFed {
  Status status;  ///< how it ended
  std::uint64_t minibatches = 0;
  std::vector<Trace> superbatches;
  RemoteRowsStats remote;
  RowServiceStats served;
  RowReads reads;
  std::uint64_t disk_rows = 0;  ///< rows that the disk reader delivered
};

class RankFeedTest : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kHomes = 8;

  void Build(std::uint64_t vertices, std::uint64_t seed) {
    vertices_ = vertices;
    const testing::PlantedGraph planted =
        testing::MakePlanted({.vertices = vertices, .dim = 1, .degree = 4, .seed = seed});
    GraphInput input;
    input.vertex_count = vertices;
    input.edges = planted.edges;
    input.undirected = true;
    input.vertex_type_names = {"vertex"};
    input.edge_type_names = {"edge"};
    ArrayInput features;
    features.name = "feat";
    features.dim = kWideDim;
    features.read_rows = [](std::span<const VertexId> wanted, std::span<std::byte> out) {
      std::vector<float> row(kWideDim);
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        WriteRow(static_cast<std::uint64_t>(wanted[i]), 0, row.data());
        std::memcpy(&out[i * kWideBytes], row.data(), kWideBytes);
      }
      return Status::Ok();
    };
    input.arrays.push_back(std::move(features));
    input.arrays.push_back(testing::MakeArray("split", 1, DataType::kUint8, planted.split));
    BuildOptions build;
    build.partition.partitions = kHomes;
    build.homes = HomeRule::kEdgeCut;
    path_ = folder_ / ("g" + std::to_string(++stores_));
    ASSERT_OK(testing::BuildStore(path_, std::move(input), build));
  }

  /// Writes new rows for some vertices, and adds vertices that are linked to old ones.
  void Update(std::mt19937_64& random) {
    auto store = Store::Open(FileSystem::Posix(), path_, Store::Mode::kWrite);
    ASSERT_OK(store);
    auto graph = Graph::Open(**store);
    ASSERT_OK(graph);
    WriteBatch batch;
    std::vector<float> row(kWideDim);
    const auto put = [&](std::uint64_t vertex) {
      WriteRow(vertex, 1, row.data());
      batch.PutRow(static_cast<std::int64_t>(vertex), "feat", std::as_bytes(std::span(row)));
    };
    for (int i = 0; i < 40; ++i) put(random() % vertices_);
    for (std::uint64_t added = vertices_; added < vertices_ + 20; ++added) {
      batch.PutVertex(static_cast<std::int64_t>(added));
      for (int e = 0; e < 5; ++e)
        batch.PutEdge(static_cast<std::int64_t>(random() % vertices_),
                      static_cast<std::int64_t>(added));
      if (added % 2 == 0) put(added);
    }
    ASSERT_OK((*graph)->Write(batch, {}));
  }

  void Open() {
    auto open = testing::OpenStoreGraph(path_);
    ASSERT_OK(open);
    open_ = *std::move(open);
    homes_ = *RowHomesOf(graph());
    const auto split = *ReadLabels(graph(), "", "split");
    train_ = *homes_.Divide(graph(), split.Members(graph(), Split::kTrain));
    valid_ = *homes_.Divide(graph(), split.Members(graph(), Split::kValid));
    entry_ = (*open_.store->OpenArray("feat"))->entry();
  }
  const GraphSnapshot& graph() const { return *open_.graph; }

  HomeEpochs Epochs() const {
    return {train_,
            valid_,
            {.batch_size = plan_.minibatch.batch_size, .seed = plan_.seed, .epochs = plan_.epochs}};
  }

  /// Feeds a rank and takes its minibatches with random pauses, so that the time for reading ahead
  /// varies.
  void Feed(Transport& transport, std::span<const std::uint16_t> rank_of, std::uint64_t seed,
            RankFed& fed) {
    const std::uint32_t rank = transport.rank();
    const RowRanks ranks{.rank_of = rank_of, .rank = rank};
    RemoteRows remote(transport, entry_, ranks);
    const RowFetcher* fetcher = nullptr;
    FeedPipelineOptions options;
    options.sampler.sampler = {.fanouts = plan_.minibatch.fanouts, .seed = plan_.seed};
    options.features = "feat";
    options.prior = plan_.minibatch.feed.prior;
    options.cache_bytes = *plan_.minibatch.feed.cache_bytes;
    options.held_rows = 0;
    // A superbatch that spans an epoch may have any length.
    const std::uint64_t steps =
        SuperbatchSteps(plan_.minibatch.ranks->prefetch, plan_.minibatch.feed.superbatch);
    options.superbatch = steps == 0 ? 1 << 20 : plan_.minibatch.feed.superbatch * kHomes;
    options.overlap = plan_.minibatch.feed.overlap.value_or(Overlap::kAll);
    options.read_cost = plan_.disk;
    options.over_ranks =
        WithCosts(ranks, plan_.disk, plan_.minibatch.ranks->link, entry_.row_bytes());
    options.over_ranks->keeper = Keeper(ranks, transport.ranks());
    options.scratch = folder_ / ("rank" + std::to_string(rank));
    std::filesystem::create_directories(options.scratch);
    options.on_superbatch = [&fed](const Trace& trace) {
      fed.superbatches.push_back(trace);
      return Status::Ok();
    };
    options.fetcher = [&](std::unique_ptr<RowReader> local,
                          const ArrayEntry& array) -> Result<std::unique_ptr<RowFetcher>> {
      RHIZOME_ASSIGN_OR_RETURN(auto own, local->Another());
      RHIZOME_ASSIGN_OR_RETURN(services_[rank],
                               RowService::Start(transport, std::move(own), array, ranks));
      auto made = std::make_unique<RowsByHome>(std::move(local), remote, ranks);
      fetcher = made.get();
      return made;
    };
    const HomeRange own = HomesOfRank(rank, kHomes, transport.ranks());
    const auto seeds = std::make_shared<HomeSeeds>(Epochs(), own.first, own.count, steps);
    const JobControl control;
    auto pipeline = FeedPipeline::Open(
        graph(), options, [seeds] { return seeds->Next(); }, control);
    ASSERT_OK(pipeline);
    std::mt19937_64 random(seed + rank);
    while (true) {
      auto minibatch = (*pipeline)->Next();
      if (!minibatch) fed.status = minibatch.error();
      if (!minibatch || !*minibatch) break;
      if (++fed.minibatches == after_minibatches_) lose_();
      ExpectRows(**minibatch);
      fed.reads += (*minibatch)->costs;
      if (random() % 3 == 0)
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 4000));
    }
    fed.disk_rows = fetcher->stats().rows;
    fed.remote = remote.stats();
  }

  RemoteCachePolicyFactory Keeper(const RowRanks& view, std::uint32_t ranks) const {
    const JobControl control;
    const auto outlook = PrefetchLookahead::Create(plan_.minibatch.ranks->prefetch, graph(),
                                                   {.fanouts = plan_.minibatch.fanouts}, control);
    EXPECT_OK(outlook);
    auto keeper =
        outlook->RemotePolicyFactoryOfRank(view, HomesOfRank(view.rank, kHomes, ranks), Epochs(),
                                           plan_.minibatch.feed.superbatch, kWideBytes);
    EXPECT_OK(keeper);
    return *std::move(keeper);
  }

  void ExpectRows(const Minibatch& minibatch) const {
    for (std::size_t i = 0; i < minibatch.rows.size(); ++i) {
      const float* row = reinterpret_cast<const float*>(
          &minibatch.features.table()[minibatch.features.place()[i] * kWideBytes]);
      const auto vertex = static_cast<std::size_t>(*graph().VertexAt(minibatch.rows[i]));
      ASSERT_EQ(row[0], expected_[vertex].first);
      ASSERT_EQ(row[1], expected_[vertex].second);
    }
  }

  /// Runs all ranks, and expects that each fetches the rows of its replay and of the plan.
  void ExpectAsPlanned(std::uint32_t ranks, std::uint64_t seed) {
    const auto rank_of = homes_.RanksOfRows(graph(), entry_, ranks);
    FakeRanks fake(ranks);
    services_ = std::vector<std::unique_ptr<RowService>>(ranks);
    std::vector<RankFed> fed(ranks);
    testing::OnEachRank(ranks,
                        [&](std::uint32_t rank) { Feed(fake[rank], rank_of, seed, fed[rank]); });
    for (std::uint32_t r = 0; r < ranks; ++r) fed[r].served = services_[r]->stats();
    services_.clear();
    plan_.ranks = {ranks};
    const JobControl control;
    const auto report = PlanRanks(graph(), plan_, control);
    ASSERT_OK(report);
    for (std::uint32_t r = 0; r < ranks; ++r) {
      SCOPED_TRACE(::testing::Message() << "rank " << r << " of " << ranks);
      ASSERT_OK(fed[r].status);
      ExpectAsReplayed(r, rank_of, fed[r]);
      const RankShare& share = report->plans[0].shares[r];
      EXPECT_EQ(fed[r].reads.rows_requested, share.rows_requested);
      EXPECT_EQ(fed[r].reads.rows_read, share.disk_rows + share.remote_rows);
      EXPECT_EQ(fed[r].remote.rows, share.remote_rows);
      EXPECT_EQ(fed[r].remote.requests, share.requests);
      EXPECT_EQ(fed[r].served.rows, share.served_rows);
      EXPECT_EQ(fed[r].served.requests, share.served_requests);
      EXPECT_EQ(fed[r].remote.bytes_in + fed[r].served.bytes_in, share.bytes_in);
      EXPECT_EQ(fed[r].remote.bytes_out + fed[r].served.bytes_out, share.bytes_out);
      EXPECT_LE(fed[r].disk_rows, share.disk_rows);
      EXPECT_TRUE(updated_ || fed[r].disk_rows == share.disk_rows);
    }
  }

  void ExpectAsReplayed(std::uint32_t rank, std::span<const std::uint16_t> rank_of,
                        const RankFed& fed) const {
    const auto ranks = static_cast<std::uint32_t>(fed.remote.rows_of.size());
    const std::uint64_t frames =
        std::min<std::uint64_t>(*plan_.minibatch.feed.cache_bytes / kWideBytes, rank_of.size());
    const RowsOverRanks costs = WithCosts({}, plan_.disk, plan_.minibatch.ranks->link, kWideBytes);
    RankPool pool({.rank = rank,
                   .ranks = ranks,
                   .frame_count = static_cast<std::uint32_t>(frames),
                   .prior = plan_.minibatch.feed.prior,
                   .local_cost = costs.local_cost,
                   .remote_cost = costs.remote_cost,
                   .keeper = Keeper({.rank_of = rank_of, .rank = rank}, ranks),
                   .piece_rows = PrefillPiece(kWideBytes),
                   .request_rows = RequestRows(kWideBytes)},
                  rank_of);
    RankFetches fetches(ranks);
    for (const Trace& trace : fed.superbatches) fetches += *pool.Play(trace);
    const std::uint64_t local = std::exchange(fetches.rows_of[rank], 0);
    EXPECT_EQ(fed.remote.rows_of, fetches.rows_of);
    EXPECT_EQ(fed.remote.requests_to, fetches.requests_to);
    EXPECT_EQ(fed.reads.rows_read - fed.remote.rows, local);
  }

  /// Draws a plan with random pools and superbatches.
  void Draw(std::mt19937_64& random) {
    plan_ = {.minibatch = {.ranks = RankOptions{}}};
    plan_.minibatch.fanouts = {1 + static_cast<std::int64_t>(random() % 3), 2};
    plan_.minibatch.batch_size = 2 + random() % 5;
    plan_.epochs = 1 + static_cast<std::uint32_t>(random() % 2);
    plan_.minibatch.feed.superbatch = 1 + static_cast<std::uint32_t>(random() % 5);
    plan_.minibatch.feed.prior = random() % 3 == 0 ? Prior::kNone : Prior::kUses;
    plan_.seed = random();
    plan_.minibatch.ranks->link.bits_per_second = random() % 2 == 0 ? 1e8 : 1e11;
    const std::uint64_t pools[] = {0, 1 + random() % 8, 20 + random() % 60, 80 + random() % 200,
                                   vertices_ + 50};
    plan_.minibatch.feed.cache_bytes = pools[random() % 5] * kWideBytes;
    if (random() % 4 == 0) plan_.minibatch.feed.overlap = Overlap::kNone;
  }

  void ExpectAll(int version) {
    expected_.clear();
    for (std::uint64_t v = 0; v < graph().vertex_count(); ++v)
      expected_.emplace_back(static_cast<float>(v), static_cast<float>(version));
  }

  TempDir folder_;
  int stores_ = 0;
  std::uint64_t vertices_ = 0;
  bool updated_ = false;
  Path path_;
  testing::OpenGraph open_;
  RowHomes homes_;
  ArrayEntry entry_;
  std::vector<std::vector<VertexId>> train_, valid_;
  std::vector<std::pair<float, float>> expected_;  // by vertex: the first two numbers of its row
  std::vector<std::unique_ptr<RowService>> services_;
  RankPlanOptions plan_{.minibatch = {.ranks = RankOptions{}}};
  std::uint64_t after_minibatches_ = 0;  // lose_ is called when a rank has taken this many
  std::function<void()> lose_;
};

TEST_F(RankFeedTest, WhatIsFetchedIsWhatIsPlannedForAnyPoolAndAnyNumberOfRanks) {
  std::mt19937_64 random(testing::TestSeed());
  ASSERT_NO_FATAL_FAILURE(Build(300 + random() % 100, random()));
  Open();
  ExpectAll(0);
  for (const std::uint32_t ranks : {1, 2, 3, 4, 8, 2, 3}) {
    Draw(random);
    SCOPED_TRACE(::testing::Message() << "pool " << *plan_.minibatch.feed.cache_bytes / kWideBytes
                                      << ", superbatch " << plan_.minibatch.feed.superbatch
                                      << ", prior " << PriorName(plan_.minibatch.feed.prior));
    ExpectAsPlanned(ranks, random());
    if (HasFailure()) break;
  }
}

TEST_F(RankFeedTest, OtherPoliciesFetchWhatIsPlannedToo) {
  std::mt19937_64 random(testing::TestSeed());
  ASSERT_NO_FATAL_FAILURE(Build(300 + random() % 100, random()));
  Open();
  ExpectAll(0);
  for (const Prefetch policy : AllPrefetches()) {
    Draw(random);
    plan_.minibatch.ranks->prefetch.policy = policy;
    plan_.minibatch.ranks->prefetch.gamma = random() % 2 == 0 ? .5 : .95;
    if (policy != Prefetch::kBelady && policy != Prefetch::kNone && random() % 2 == 0)
      plan_.minibatch.ranks->prefetch.remote_bytes = random() % 60 * kWideBytes;
    SCOPED_TRACE(::testing::Message() << PrefetchName(policy) << ", pool "
                                      << *plan_.minibatch.feed.cache_bytes / kWideBytes
                                      << ", superbatch " << plan_.minibatch.feed.superbatch
                                      << ", prior " << PriorName(plan_.minibatch.feed.prior));
    ExpectAsPlanned(2 + random() % 3, random());
    if (HasFailure()) break;
  }
}

TEST_F(RankFeedTest, APlannedFeedKeepsWhatIsGivenAndCountsReplies) {
  ASSERT_NO_FATAL_FAILURE(Build(200, testing::TestSeed()));
  Open();
  const auto rank_of = homes_.RanksOfRows(graph(), entry_, 2);
  const EpochPlan epochs(train_[0], {}, {.batch_size = 3});
  const JobControl control;
  FeedJob job{.graph = graph(), .pipeline = {}, .fixed = {}};
  job.pipeline.sampler.sampler.fanouts = {2, 2};
  job.pipeline.features = "feat";
  job.pipeline.policy = PolicyKind::kBelady;
  job.fixed = {.cache_bytes = 50 * kWideBytes, .superbatch = 12};
  const auto alone = PlanFeed(job, epochs, control);
  ASSERT_OK(alone);
  job.pipeline.over_ranks = RowsOverRanks{.ranks = {.rank_of = rank_of, .rank = 0}};
  job.pipeline.fetcher = [](std::unique_ptr<RowReader>,
                            const ArrayEntry&) -> Result<std::unique_ptr<RowFetcher>> {
    return nullptr;
  };
  const auto made = PlanFeed(job, epochs, control);
  ASSERT_OK(made);
  EXPECT_EQ(made->pipeline.superbatch, 12U);
  EXPECT_EQ(made->pipeline.cache_bytes, 50 * kWideBytes);
  EXPECT_EQ(made->pipeline.overlap, Overlap::kAll);
  EXPECT_EQ(made->pipeline.prior, Prior::kUses);
  EXPECT_TRUE(made->pipeline.over_ranks && made->pipeline.fetcher);
  EXPECT_GE(made->needs.working_bytes,
            alone->needs.working_bytes + PrefillPiece(kWideBytes) * (kWideBytes + 4));
}

TEST_F(RankFeedTest, APlannedFeedFromMappedFilesHasNoMemoryForReads) {
  ASSERT_NO_FATAL_FAILURE(Build(200, testing::TestSeed()));
  Open();
  const EpochPlan epochs(train_[0], {}, {.batch_size = 3});
  const JobControl control;
  FeedJob job{.graph = graph(), .pipeline = {}, .fixed = {}};
  job.pipeline.sampler.sampler.fanouts = {2, 2};
  job.pipeline.features = "feat";
  job.pipeline.staging_bytes = 3 << 20;
  job.fixed = {.cache_bytes = 50 * kWideBytes, .superbatch = 12};
  const auto read = PlanFeed(job, epochs, control);
  ASSERT_OK(read);
  job.pipeline.io = IoMaker::kMapped;
  const auto mapped = PlanFeed(job, epochs, control);
  ASSERT_OK(mapped);
  EXPECT_EQ(mapped->needs.working_bytes + (3 << 20), read->needs.working_bytes);
}

TEST_F(RankFeedTest, AFeedEndsWithTheNameOfARankThatIsLost) {
  std::mt19937_64 random(testing::TestSeed());
  ASSERT_NO_FATAL_FAILURE(Build(200, random()));
  Open();
  ExpectAll(0);
  Draw(random);
  plan_.minibatch.feed.cache_bytes = 0;  // so that remote rows are needed until the end
  plan_.minibatch.batch_size = 1;
  plan_.minibatch.fanouts = {3, 3};
  const auto rank_of = homes_.RanksOfRows(graph(), entry_, 3);
  FakeRanks fake(3);
  services_ = std::vector<std::unique_ptr<RowService>>(3);
  std::vector<RankFed> fed(3);
  after_minibatches_ = 3;
  lose_ = [&] { fake.Lose(2); };
  testing::OnEachRank(3, [&](std::uint32_t rank) { Feed(fake[rank], rank_of, 1, fed[rank]); });
  for (const std::uint32_t rank : {0, 1}) {
    EXPECT_STATUS(fed[rank].status, kIoError);
    EXPECT_NE(fed[rank].status.message().find("rank 2 (host2) is lost"), std::string::npos);
  }
  EXPECT_EQ(fake.pending(), 0U);
  services_.clear();
}

TEST_F(RankFeedTest, RowsOfTheDeltaAreAskedOfNobody) {
  std::mt19937_64 random(testing::TestSeed());
  ASSERT_NO_FATAL_FAILURE(Build(300, random()));
  ASSERT_NO_FATAL_FAILURE(Update(random));
  Open();
  updated_ = true;
  for (std::uint64_t v = 0; v < graph().vertex_count(); ++v) expected_.emplace_back(0, 0);
  std::vector<float> row(kWideDim);
  for (std::size_t v = 0; v < expected_.size(); ++v) {
    const auto vertex = static_cast<VertexId>(v);
    ASSERT_OK(graph().ReadRows("feat", {&vertex, 1}, std::as_writable_bytes(std::span(row))));
    expected_[v] = {row[0], row[1]};
  }
  for (const std::uint32_t ranks : {2, 4}) {
    Draw(random);
    SCOPED_TRACE(::testing::Message()
                 << "pool " << *plan_.minibatch.feed.cache_bytes / kWideBytes << ", superbatch "
                 << plan_.minibatch.feed.superbatch << ", prior "
                 << PriorName(plan_.minibatch.feed.prior) << ", overlap "
                 << OverlapName(plan_.minibatch.feed.overlap.value_or(Overlap::kAll)));
    ExpectAsPlanned(ranks, random());
    if (HasFailure()) break;
  }
}

}  // namespace
}  // namespace rhizome
