#include <algorithm>
#include <cstring>

#include "cache/feed/lists_on_disk.h"
#include "cache/feed/row_degrees.h"
#include "cache/lists/direct_neighbors.h"
#include "cache/policy/basic_policies.h"
#include "index/delta/delta_view.h"
#include "rhizome/feature_cache.h"
#include "rhizome/sampler.h"
#include "testing/update_history.h"

// Tests of caches over a store with a delta: sampling from neighbour lists on disk, weighted
// degrees, and rows of features, compared with lists in memory and with a model of the graph.

namespace rhizome {
namespace {

using testing::UpdateModel;

/// A store with a delta of random updates, possibly empty.
class DeltaCacheTest : public ::testing::Test {
 protected:
  void Make(std::mt19937_64& rng, int batches) {
    testing::RandomBase base = testing::DrawBase(rng);
    if (positive_) {
      for (float& weight : base.input.edges.weight) weight = std::abs(weight);
    }
    model_ = std::make_unique<UpdateModel>(base.input);
    string_ids_ = base.string_ids();
    const Path path = folder_ / ("g" + std::to_string(++stores_));
    ASSERT_OK(testing::BuildStore(path, std::move(base.input), base.options));
    graph_ = nullptr;
    direct_ = nullptr;
    auto writer = testing::OpenStore(path, Store::Mode::kWrite);
    ASSERT_OK(writer);
    auto live = Graph::Open(**writer);
    ASSERT_OK(live);
    for (int i = 0; i < batches; ++i) {
      const WriteBatch batch = model_->DrawBatch(rng, string_ids_, 1 + rng() % 20);
      model_->Apply(batch);
      ASSERT_OK((*live)->Write(batch, {.sync = false, .create_types = true}));
    }
    *live = nullptr;
    *writer = nullptr;
    auto store = testing::OpenStore(path, Store::Mode::kRead);
    ASSERT_OK(store);
    store_ = *std::move(store);
    const Store& fixed = *store_;
    auto graph = Graph::Open(fixed);
    ASSERT_OK(graph);
    graph_ = *std::move(graph);
    auto direct = Graph::Open(fixed, {.topology = TopologyPlace::kDirect});
    ASSERT_OK(direct);
    direct_ = *std::move(direct);
  }

  testing::TempDir folder_;
  int stores_ = 0;
  bool string_ids_ = false;
  bool positive_ = false;  // no edge weight is negative
  std::unique_ptr<UpdateModel> model_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<GraphSnapshot> graph_;
  std::unique_ptr<GraphSnapshot> direct_;
};

// Both directions on disk, each with a cache for none, a part or all of its lists.
TEST_F(DeltaCacheTest, BothDirectionsOnDiskAreSampledAsInMemory) {
  std::mt19937_64 rng(testing::TestSeed());
  int sampled = 0;
  int dumps = 0;
  for (int round = 0; round < 60 && sampled < 2; ++round) {
    ASSERT_NO_FATAL_FAILURE(Make(rng, 3));
    if (graph_->info().symmetric || graph_->info().directions != Direction::kBoth) continue;
    ++sampled;
    SamplerOptions options{.fanouts = {3, 2}, .direction = Direction::kBoth, .seed = rng()};
    std::vector<VertexId> seeds(graph_->vertex_count());
    for (std::size_t v = 0; v < seeds.size(); ++v) seeds[v] = static_cast<VertexId>(v);
    const auto from_memory = Sampler::Create(*graph_, options);
    ASSERT_OK(from_memory);
    const auto expected = (*from_memory)->Sample(seeds, 1);
    ASSERT_OK(expected);
    const NeighborCache::Needs needs = ListsOnDisk::CacheNeeds(*direct_, Direction::kBoth);
    for (const std::uint64_t bytes :
         {std::uint64_t{0}, needs.table_bytes + (needs.full_bytes - needs.table_bytes) / 2,
          needs.full_bytes}) {
      for (const bool dumped : {false, true}) {
        const JobControl control;
        const Path dump = dumped ? folder_ / ("lists-" + std::to_string(++dumps)) : Path();
        auto lists =
            ListsOnDisk::Open(*direct_, Direction::kBoth, bytes, dump, IoMaker::kPread, control);
        ASSERT_OK(lists);
        ASSERT_OK((*lists)->Lend());
        const auto sampler = Sampler::Create(*direct_, options, (*lists)->source());
        ASSERT_OK(sampler);
        const auto drawn = (*sampler)->Sample(seeds, 1);
        ASSERT_OK(drawn);
        EXPECT_EQ(drawn->rows, expected->rows);
        EXPECT_EQ(drawn->neighbors, expected->neighbors);
        EXPECT_EQ(drawn->weights, expected->weights);
        const ListReadsReport report = (*lists)->report();
        EXPECT_LE(report.cache_bytes, bytes);
        EXPECT_TRUE(bytes != 0 || report.hits == 0);
        EXPECT_TRUE(bytes != needs.full_bytes || report.hits == report.lists);
        (*lists)->TakeBack();
      }
    }
  }
  EXPECT_GT(sampled, 0);
}

// Weighted degrees include the edges of the delta.
TEST_F(DeltaCacheTest, WeightedDegreesHaveTheDeltasEdges) {
  std::mt19937_64 rng(testing::TestSeed());
  positive_ = true;
  int summed = 0;
  for (int round = 0; round < 60 && summed < 2; ++round) {
    ASSERT_NO_FATAL_FAILURE(Make(rng, 4));
    if (!graph_->info().weighted) continue;
    ++summed;
    const Direction kept = graph_->info().directions;
    const auto degrees = WeightedDegrees(*direct_, kept);
    ASSERT_OK(degrees);
    ASSERT_EQ(degrees->size(), graph_->vertex_count());
    for (std::uint64_t row = 0; row < graph_->vertex_count(); ++row) {
      const auto list = graph_->Neighbors(*graph_->VertexAt(static_cast<Row>(row)), kept);
      ASSERT_OK(list);
      double sum = 0;
      for (const Neighbor& neighbor : *list) sum += static_cast<double>(neighbor.weight);
      EXPECT_NEAR((*degrees)[row], sum, 1e-6 * (1 + sum));
    }
  }
  EXPECT_GT(summed, 0);
}

// Lists on disk with a delta give the same samples as lists in memory, one hop at a time.
TEST_F(DeltaCacheTest, ListsOnDiskAreSampledWithTheDelta) {
  std::mt19937_64 rng(testing::TestSeed());
  for (int round = 0; round < 4; ++round) {
    ASSERT_NO_FATAL_FAILURE(Make(rng, 3));
    const Direction kept = graph_->info().directions;
    SamplerOptions options;
    options.direction = kept == Direction::kBoth ? Direction::kIn : kept;
    options.fanouts = {3, 2};
    options.seed = rng();
    std::vector<VertexId> seeds(graph_->vertex_count());
    for (std::size_t v = 0; v < seeds.size(); ++v) seeds[v] = static_cast<VertexId>(v);
    auto source = DirectNeighbors::Open(*direct_, options.direction, nullptr,
                                        {.io = {.maker = IoMaker::kPread}});
    ASSERT_OK(source);
    const auto from_memory = Sampler::Create(*graph_, options);
    ASSERT_OK(from_memory);
    const auto from_disk = Sampler::Create(*direct_, options, *source);
    ASSERT_OK(from_disk);
    const auto a = (*from_memory)->Sample(seeds, 0);
    ASSERT_OK(a);
    const auto b = (*from_disk)->Sample(seeds, 0);
    ASSERT_OK(b);
    EXPECT_EQ(a->rows, b->rows);
    EXPECT_EQ(a->neighbors, b->neighbors);
    EXPECT_EQ(a->types, b->types);
    EXPECT_EQ(a->weights, b->weights);
  }
}

// For every policy and pool size, rows that were put, rows of new vertices and all other rows are
// right.
TEST_F(DeltaCacheTest, GatheredRowsAreThoseOfTheModel) {
  std::mt19937_64 rng(testing::TestSeed());
  constexpr std::size_t kRowBytes = UpdateModel::kDim * sizeof(float);
  for (int round = 0; round < 6; ++round) {
    ASSERT_NO_FATAL_FAILURE(Make(rng, round % 5));
    FeatureCacheOptions options;
    options.capacity_bytes = (rng() % 20) * kRowBytes;
    const auto cache = FeatureCache::Open(*graph_, "feat", options);
    ASSERT_OK(cache);
    EXPECT_EQ((*cache)->row_count(), graph_->vertex_count());
    const auto frames = (*cache)->frame_count();
    if (frames > 0) ASSERT_OK((*cache)->Start(MakeLruPolicy(frames, (*cache)->row_count())));
    std::vector<Row> rows(graph_->vertex_count());
    for (std::size_t r = 0; r < rows.size(); ++r) rows[r] = static_cast<Row>(r);
    for (int step = 0; step < 6; ++step) {
      std::shuffle(rows.begin(), rows.end(), rng);
      const std::vector<Row> some(
          rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(
                                           1 + rng() % std::min<std::size_t>(rows.size(), 12)));
      std::vector<float> out(some.size() * UpdateModel::kDim);
      ASSERT_OK((*cache)->Gather(some, std::as_writable_bytes(std::span(out))));
      for (std::size_t i = 0; i < some.size(); ++i) {
        const VertexId vertex = *graph_->VertexAt(some[i]);
        if (graph_->IsDeleted(vertex)) continue;
        const auto expected = model_->vertices().at(ToString(*graph_->ExternalIdOf(vertex))).row;
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(),
                               out.begin() + static_cast<std::ptrdiff_t>(i * UpdateModel::kDim)))
            << "vertex " << vertex;
      }
    }
    std::vector<std::byte> one(kRowBytes);
    const Row beyond = static_cast<Row>(graph_->vertex_count());
    EXPECT_STATUS((*cache)->Gather(std::span(&beyond, 1), one), kInvalidArgument);
  }
}

}  // namespace
}  // namespace rhizome
