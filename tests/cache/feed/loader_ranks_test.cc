#include <algorithm>
#include <map>
#include <set>

#include "index/base/edge_list.h"
#include "index/generation/graph_builder.h"
#include "rhizome/ingest.h"
#include "rhizome/loader.h"
#include "rhizome/sampler.h"
#include "testing/planted_graph.h"
#include "testing/test_store.h"

// Tests of loaders that divide their seeds over ranks, and of temporal sampling with the times of
// seeds.

namespace rhizome {
namespace {

using testing::TempDir;

constexpr std::uint64_t kRankedVertices = 400;
constexpr std::uint64_t kRankedEdges = 3000;
constexpr std::uint64_t kRankedDim = 4;

/// A minibatch without its number.
struct Drawn {
  std::uint64_t tag;
  std::vector<VertexId> seeds, vertices;
  std::vector<std::uint32_t> neighbors;
  std::vector<float> features;
  friend bool operator==(const Drawn&, const Drawn&) = default;
};

/// A graph with self-loops, parallel edges and edge times. Each vertex has a time as a seed and a
/// feature row that identifies it.
class LoaderRanksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::mt19937_64 random(seed_);
    GraphInput input;
    input.vertex_count = kRankedVertices;
    input.vertex_type_names = {"vertex"};
    input.edge_type_names = {"edge"};
    input.edges.attributes = {EdgeAttribute("time")};
    for (std::uint64_t e = 0; e < kRankedEdges; ++e) {
      input.edges.src.push_back(static_cast<VertexId>(random() % kRankedVertices));
      input.edges.dst.push_back(static_cast<VertexId>(random() % (kRankedVertices / 4)));
      edge_times_.push_back(static_cast<std::int64_t>(random() % 50));
      input.edges.attributes[0].Add(edge_times_.back());
    }
    edges_ = input.edges;
    for (std::uint64_t v = 0; v < kRankedVertices; ++v) {
      born_.push_back(static_cast<std::int64_t>(random() % 50));
      features_.insert(features_.end(), kRankedDim, static_cast<float>(v));
    }
    input.arrays.push_back(testing::MakeArray("feat", kRankedDim, DataType::kFloat32, features_));
    input.arrays.push_back(testing::MakeArray("born", 1, DataType::kInt64, born_));
    BuildOptions build;
    build.partition.partitions = 2;
    ASSERT_OK(testing::BuildStore(folder_ / "g.rz", std::move(input), build));
    auto open = testing::OpenStoreGraph(folder_ / "g.rz");
    ASSERT_OK(open);
    open_ = *std::move(open);
    options_.sampler.fanouts = {3, 2};
    options_.features = "feat";
    options_.batch_size = 8;
    for (std::uint64_t v = 0; v < kRankedVertices; ++v)
      options_.seeds.push_back(static_cast<VertexId>(v));
  }

  const GraphSnapshot& graph() const { return *open_.graph; }

  /// Returns all minibatches, by epoch.
  std::vector<std::vector<Drawn>> Run(const LoaderOptions& options) {
    std::vector<std::vector<Drawn>> epochs(1);
    const JobControl control;
    const auto loader = Loader::Open(graph(), options, control);
    EXPECT_OK(loader);
    while (loader) {
      const auto minibatch = (*loader)->Next();
      EXPECT_OK(minibatch);
      if (!minibatch) break;
      if (!*minibatch) {
        if (epochs.size() == options.epochs) break;
        epochs.emplace_back();
        continue;
      }
      const Minibatch& m = **minibatch;
      EXPECT_EQ(m.epoch, epochs.size() - 1);
      EXPECT_EQ(m.number, epochs.back().size() + (m.epoch == 0 ? options.first : 0));
      std::vector<float> features(m.features.rows() * kRankedDim);
      EXPECT_OK(m.features.CopyTo(features));
      epochs.back().push_back({m.tag, SeedsOf(m), m.vertices, m.neighbors, std::move(features)});
      EXPECT_LE((*loader)->minibatches_of_epoch(), kRankedVertices);
    }
    return epochs;
  }

  Status OpenStatus(const LoaderOptions& options) {
    const JobControl control;
    return testing::AsStatus(Loader::Open(graph(), options, control));
  }

  static std::vector<VertexId> SeedsOf(const Minibatch& m) {
    return {m.vertices.begin(), m.vertices.begin() + static_cast<std::ptrdiff_t>(m.seed_count)};
  }

  /// Expects that the minibatches of all ranks in one epoch divide the seeds evenly.
  void ExpectDivided(const std::vector<std::vector<Drawn>>& ranks, const std::vector<Drawn>& alone,
                     const LoaderOptions& options) {
    const std::uint64_t in_round = options.batch_size * options.ranks;
    const std::uint64_t seeds = options.seeds.size();
    const std::uint64_t rounds =
        options.drop_last ? seeds / in_round : (seeds + in_round - 1) / in_round;
    std::set<std::uint64_t> tags;
    std::vector<VertexId> given;
    std::size_t least = options.batch_size;
    for (std::uint32_t rank = 0; rank < options.ranks; ++rank) {
      ASSERT_EQ(ranks[rank].size(), rounds);
      for (std::uint64_t round = 0; round < rounds; ++round) {
        const Drawn& drawn = ranks[rank][round];
        EXPECT_TRUE(tags.insert(drawn.tag).second);
        EXPECT_GE(drawn.seeds.size(), 1u);
        EXPECT_LE(drawn.seeds.size(), options.batch_size);
        // Minibatches of whole rounds equal the minibatches of a single rank, except in a round
        // before one that has fewer seeds than ranks.
        const bool whole = (round + 1) * in_round + options.ranks <= seeds || seeds % in_round == 0;
        if (whole || options.drop_last) {
          EXPECT_EQ(drawn.seeds.size(), options.batch_size);
          EXPECT_TRUE(drawn == alone[round * options.ranks + rank]) << round << ", " << rank;
        }
        if (round + 1 == rounds) least = std::min(least, drawn.seeds.size());
        given.insert(given.end(), drawn.seeds.begin(), drawn.seeds.end());
      }
    }
    for (std::uint32_t rank = 0; rank < options.ranks; ++rank)
      EXPECT_LE(ranks[rank].back().seeds.size(), least + 1) << "evenly";
    std::sort(given.begin(), given.end());
    EXPECT_EQ(std::adjacent_find(given.begin(), given.end()), given.end());
    EXPECT_EQ(given.size(), options.drop_last ? rounds * in_round : seeds);
    std::vector<VertexId> sorted = options.seeds;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_TRUE(std::includes(sorted.begin(), sorted.end(), given.begin(), given.end()));
  }

  /// Returns the edges within two hops of `seed`, following edges backwards, with times up to
  /// `time`.
  std::vector<std::pair<VertexId, VertexId>> EdgesAround(VertexId seed, std::int64_t time) const {
    std::vector<std::pair<VertexId, VertexId>> found;
    std::set<VertexId> known = {seed}, wave = {seed};
    for (int hop = 0; hop < 2; ++hop) {
      std::set<VertexId> next;
      for (std::size_t e = 0; e < kRankedEdges; ++e) {
        if (!wave.contains(edges_.dst[e]) || edge_times_[e] > time) continue;
        found.emplace_back(edges_.src[e], edges_.dst[e]);
        if (known.insert(edges_.src[e]).second) next.insert(edges_.src[e]);
      }
      wave = next;
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  const std::uint64_t seed_ = testing::TestSeed();
  TempDir folder_;
  EdgeList edges_;
  std::vector<std::int64_t> edge_times_, born_;
  std::vector<float> features_;
  testing::OpenGraph open_;
  LoaderOptions options_;
};

TEST_F(LoaderRanksTest, RanksDivideEachEpochAsOneAloneGoesOverIt) {
  std::mt19937_64 random(seed_);
  for (int round = 0; round < 12; ++round) {
    LoaderOptions options = options_;
    options.epochs = 2;
    options.sampler.seed = random();
    options.batch_size = 2 + random() % 30;
    options.shuffle = random() % 3 > 0;
    options.drop_last = random() % 3 == 0;
    const std::uint32_t ranks = 1 + static_cast<std::uint32_t>(random() % 4);
    // The number of seeds is often close to a whole number of rounds.
    const std::uint64_t in_round = options.batch_size * ranks;
    const std::uint64_t whole = in_round * (1 + random() % (kRankedVertices / in_round));
    std::shuffle(options.seeds.begin(), options.seeds.end(), random);
    options.seeds.resize(std::min(whole + random() % (2 * ranks), kRankedVertices));
    const auto alone = Run(options);
    options.ranks = ranks;
    std::vector<std::vector<std::vector<Drawn>>> of_rank;
    for (options.rank = 0; options.rank < ranks; ++options.rank) of_rank.push_back(Run(options));
    for (std::size_t epoch = 0; epoch < 2; ++epoch) {
      std::vector<std::vector<Drawn>> in_epoch;
      for (const auto& epochs : of_rank) {
        ASSERT_EQ(epochs.size(), 2u);
        in_epoch.push_back(epochs[epoch]);
      }
      ExpectDivided(in_epoch, alone[epoch], options);
    }
  }
}

TEST_F(LoaderRanksTest, ARankGoesOnWhereItWasStopped) {
  options_.epochs = 2;
  options_.seeds.resize(101);
  options_.ranks = 3;
  options_.rank = 1;
  const auto whole = Run(options_);
  const std::uint64_t an_epoch = whole[0].size();
  ASSERT_EQ(an_epoch, 5u);
  for (std::uint64_t first = 0; first < an_epoch; ++first) {
    options_.first = first;
    const auto rest = Run(options_);
    EXPECT_TRUE(std::equal(rest[0].begin(), rest[0].end(),
                           whole[0].begin() + static_cast<std::ptrdiff_t>(first), whole[0].end()));
    EXPECT_TRUE(rest[1] == whole[1]);
  }
}

TEST_F(LoaderRanksTest, WhatCannotBeDividedIsRefused) {
  const auto expect = [this](const std::string& words, auto change) {
    LoaderOptions options = options_;
    change(options);
    const Status status = OpenStatus(options);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.ToString();
    EXPECT_NE(status.ToString().find(words), std::string::npos) << status.ToString();
  };
  expect("rank 0 of 0", [](LoaderOptions& o) { o.ranks = 0; });
  expect("rank 3 of 3", [](LoaderOptions& o) { o.ranks = o.rank = 3; });
  expect("rank 0 of 4294967295", [](LoaderOptions& o) { o.ranks = ~0U; });
  expect("3 ranks", [](LoaderOptions& o) {
    o.seeds = {1, 2};
    o.ranks = 3;
  });
  expect("3 ranks", [](LoaderOptions& o) {
    o.seeds = {1, 2, 3, 4};
    o.ranks = 3;
    o.batch_size = 1;
  });
  expect("of all ranks", [](LoaderOptions& o) {
    o.seeds = {1, 2, 3, 4};
    o.ranks = 2;
    o.batch_size = 3;
    o.drop_last = true;
  });
}

using Edges = std::vector<std::pair<VertexId, VertexId>>;

TEST_F(LoaderRanksTest, TemporalSamplesHaveTheEdgesThatWereThereAtTheSeedsTime) {
  std::mt19937_64 random(seed_);
  const auto times = LoadEdgeTimes(graph(), "time");
  ASSERT_OK(times);
  options_.sampler.fanouts = {kAllNeighbors, kAllNeighbors};
  options_.sampler.times = *times;
  options_.sampler.disjoint = true;
  std::shuffle(options_.seeds.begin(), options_.seeds.end(), random);
  for (const bool by_array : {true, false}) {
    std::map<VertexId, std::int64_t> time_of;
    options_.seed_times.clear();
    for (const VertexId seed : options_.seeds) {
      const auto v = static_cast<std::size_t>(seed);
      time_of[seed] = by_array ? born_[v] : static_cast<std::int64_t>(random() % 50);
      if (!by_array) options_.seed_times.push_back(time_of[seed]);
    }
    options_.seed_time_array = by_array ? "born" : "";
    const JobControl control;
    const auto loader = Loader::Open(graph(), options_, control);
    ASSERT_OK(loader);
    std::size_t edges = 0;
    for (std::uint64_t i = 0; i < (*loader)->minibatches_of_epoch(); ++i) {
      const auto minibatch = (*loader)->Next();
      ASSERT_OK(minibatch);
      const Minibatch& m = **minibatch;
      const std::vector<VertexId> seeds = SeedsOf(m);
      ASSERT_EQ(m.seed_times.size(), seeds.size());
      std::vector<Edges> found(seeds.size());
      for (std::size_t v = 0; v + 1 < m.offsets.size(); ++v)
        for (const std::uint32_t u : m.NeighborsOf(v))
          found[m.seed_of[v]].emplace_back(m.vertices[u], m.vertices[v]);
      for (std::size_t s = 0; s < seeds.size(); ++s) {
        EXPECT_EQ(m.seed_times[s], time_of[seeds[s]]);
        std::sort(found[s].begin(), found[s].end());
        EXPECT_EQ(found[s], EdgesAround(seeds[s], time_of[seeds[s]])) << "seed " << seeds[s];
        edges += found[s].size();
      }
    }
    EXPECT_GT(edges, 0u);
  }
}

TEST_F(LoaderRanksTest, TemporalDrawsAreThoseOfASampler) {
  std::mt19937_64 random(seed_);
  const auto times = LoadEdgeTimes(graph(), "time");
  ASSERT_OK(times);
  for (const TemporalPick pick : {TemporalPick::kUniform, TemporalPick::kLast}) {
    LoaderOptions options = options_;
    options.sampler.times = *times;
    options.sampler.disjoint = true;
    options.sampler.temporal_pick = pick;
    options.sampler.seed = random();
    options.seed_time_array = "born";
    options.ranks = 2;
    options.rank = 1;
    const JobControl control;
    const auto loader = Loader::Open(graph(), options, control);
    const auto sampler = Sampler::Create(graph(), options.sampler);
    ASSERT_OK(loader);
    ASSERT_OK(sampler);
    for (std::uint64_t i = 0; i < (*loader)->minibatches_of_epoch(); ++i) {
      const auto minibatch = (*loader)->Next();
      ASSERT_OK(minibatch);
      const Minibatch& m = **minibatch;
      const auto sample = (*sampler)->Sample(SeedsOf(m), m.seed_times, m.tag);
      ASSERT_OK(sample);
      EXPECT_EQ(m.rows, sample->rows);
      EXPECT_TRUE(std::equal(m.neighbors.begin(), m.neighbors.end(), sample->neighbors.begin(),
                             sample->neighbors.end()));
    }
  }
}

TEST_F(LoaderRanksTest, TimesThatAreMissingOrTooManyAreRefused) {
  const auto times = LoadEdgeTimes(graph(), "time");
  ASSERT_OK(times);
  const auto expect = [this](StatusCode code, const std::string& words, auto change) {
    LoaderOptions options = options_;
    change(options);
    const Status status = OpenStatus(options);
    EXPECT_EQ(status.code(), code) << status.ToString();
    EXPECT_NE(status.ToString().find(words), std::string::npos) << status.ToString();
  };
  const auto bad = StatusCode::kInvalidArgument;
  const auto temporal = [&times](LoaderOptions& o) {
    o.sampler.times = *times;
    o.sampler.disjoint = true;
  };
  expect(bad, "time for each seed", temporal);
  expect(bad, "no times of edges", [](LoaderOptions& o) { o.seed_time_array = "born"; });
  expect(bad, "3 times were given for 400 seeds", [&](LoaderOptions& o) {
    temporal(o);
    o.seed_times = {1, 2, 3};
  });
  expect(bad, "give only one of them", [&](LoaderOptions& o) {
    temporal(o);
    o.seed_times.resize(kRankedVertices);
    o.seed_time_array = "born";
  });
  expect(bad, "times of seeds must be int64", [&](LoaderOptions& o) {
    temporal(o);
    o.seed_time_array = "feat";
  });
  expect(StatusCode::kNotFound, "nothing", [&](LoaderOptions& o) {
    temporal(o);
    o.seed_time_array = "nothing";
  });
  expect(bad, "disjoint", [&](LoaderOptions& o) {
    temporal(o);
    o.sampler.disjoint = false;
    o.seed_time_array = "born";
  });
}

}  // namespace
}  // namespace rhizome
