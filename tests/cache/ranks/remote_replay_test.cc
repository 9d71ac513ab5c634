#include "cache/ranks/remote_replay.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "cache/policy/trace_testing.h"
#include "cache/ranks/row_halo.h"

// Tests of replays of remote cache policies: MassiveGNN's scored buffer against its algorithms as
// printed, the optimum against an exhaustive search, inclusion probabilities against sampling, and
// the halo of a rank.

namespace rhizome {
namespace {

using testing::OptimalReads;
using testing::RandomTrace;

/// Returns rows of a halo in a random order of degrees.
std::vector<Row> RandomHalo(std::mt19937_64& random, std::uint64_t keys) {
  std::vector<Row> halo;
  for (std::uint64_t key = 0; key < keys; ++key)
    if (random() % 4 != 0) halo.push_back(static_cast<Row>(key));
  std::shuffle(halo.begin(), halo.end(), random);
  return halo;
}

RemoteTrace RandomRemoteTrace(std::mt19937_64& random, std::size_t steps, std::uint64_t keys,
                              std::uint64_t most) {
  RemoteTrace trace;
  trace.rows = RandomTrace(random, steps, keys, most);
  trace.epochs = {0, steps / 3, steps / 2, steps};
  return trace;
}

/// Algorithms 1 and 2 of MassiveGNN with the rules that ScoredBuffer adds; scores are multiplied
/// step by step. Returns the number of rows fetched. `close` is set if a row enters whose score
/// differs from another score by less than rounding errors. Which of the two rows enters then
/// depends on how powers of gamma are computed. Scores that are plain counts are exact.
std::uint64_t LiteralMassiveGnn(const Trace& trace, const std::vector<Row>& halo,
                                std::size_t frames, double gamma, std::uint64_t delta,
                                std::uint64_t& halo_hits, bool& close) {
  std::map<Row, double> s_e, s_a;  // of rows in the buffer; of other rows of the halo
  for (const Row row : halo) {
    if (s_e.size() < frames) {
      s_e[row] = 1;
    } else {
      s_a[row] = 0;
    }
  }
  std::uint64_t fetched = s_e.size();
  const double alpha = std::pow(gamma, static_cast<double>(delta)) * (1 + 1e-9);
  for (std::size_t s = 0; s < trace.steps(); ++s) {
    const std::set<Row> sampled(trace.step(s).begin(), trace.step(s).end());
    std::vector<Row> misses;
    for (const Row row : sampled) {
      halo_hits += s_e.count(row);
      if (s_e.count(row) == 0) misses.push_back(row);
    }
    fetched += misses.size();
    for (auto& [row, score] : s_e)
      if (sampled.count(row) == 0) score *= gamma;
    if ((s + 1) % delta != 0) {
      for (const Row row : misses)
        if (s_a.count(row) != 0) s_a[row] += 1;
      continue;
    }
    const std::map<Row, double> before = s_e;
    std::map<Row, double> evicted;
    for (const auto& [row, score] : before) {
      if (score > alpha) continue;
      Row best = -1;
      for (const Row other : halo)  // by degree: the first of equal scores wins
        if (s_a.count(other) != 0 && s_a[other] > (best < 0 ? 0 : s_a[best])) best = other;
      if (best < 0) break;
      for (const auto& [other, its] : s_a)
        close |= other != best && std::abs(its - s_a[best]) < 1e-9 && its != std::floor(its);
      s_e.erase(row);
      s_e[best] = s_a[best];
      s_a.erase(best);
      evicted[row] = score;
      ++fetched;
    }
    s_a.insert(evicted.begin(), evicted.end());
  }
  return fetched;
}

TEST(ScoredBufferTest, IsAlgorithms1And2) {
  std::mt19937_64 random(testing::TestSeed());
  std::uint64_t replaced = 0, inexact = 0;
  for (int round = 0; round < 600; ++round) {
    const std::uint64_t keys = 5 + random() % 60;
    const RemoteTrace trace = RandomRemoteTrace(random, 1 + random() % 80, keys, 1 + random() % 12);
    const std::vector<Row> halo = RandomHalo(random, keys);
    const std::size_t frames = random() % (halo.size() + 3);
    // Powers of the first two values are exact in any order of multiplication, so equal scores
    // compare equal.
    const double gamma = std::vector{.5, .25, .95, .98}[random() % 4];
    const std::uint64_t delta = 1 + random() % 9;
    const RemoteReplay replay(trace, halo, frames, keys);
    const RemoteCounts counts = replay.Scored({.gamma = gamma, .delta = delta});
    std::uint64_t hits = 0;
    bool close = false;
    const std::uint64_t fetched =
        LiteralMassiveGnn(trace.rows, halo, frames, gamma, delta, hits, close);
    if (gamma > .5 && close) continue;
    inexact += gamma > .5 && counts.replaced > 0;
    EXPECT_EQ(counts.fetched(), fetched) << "round " << round << ", gamma " << gamma;
    EXPECT_EQ(counts.halo_requests - counts.halo_misses, hits);
    EXPECT_EQ(counts.requests, trace.rows.keys.size());
    replaced += counts.replaced;
  }
  EXPECT_GT(replaced, 1000u);
  EXPECT_GT(inexact, 50u);
}

/// With alpha rounded to 0, as in the published program, no row is evicted; without rounding, rows
/// are.
TEST(ScoredBufferTest, TheProgramsRoundingEndsEviction) {
  std::mt19937_64 random(testing::TestSeed());
  const RemoteTrace trace = RandomRemoteTrace(random, 700, 50, 3);
  const std::vector<Row> halo = RandomHalo(random, 50);
  const RemoteReplay replay(trace, halo, halo.size() / 2, 50);
  const ScoredOptions printed{.gamma = .5, .delta = 12};
  ScoredOptions coded = printed;
  coded.as_coded = true;
  EXPECT_GT(replay.Scored(printed).replaced, 0u);
  EXPECT_EQ(replay.Scored(coded).replaced, 0u);
  EXPECT_EQ(replay.Scored(coded).fetched(), replay.Static(halo)->fetched());
  coded.delta = 3;  // .125 is not rounded to 0
  EXPECT_GT(replay.Scored(coded).replaced, 0u);
}

TEST(RemoteReplayTest, TheOptimumIsTheFewestPossibleAndNoPolicyFetchesFewer) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 60; ++round) {
    const std::uint64_t keys = 3 + random() % 5;
    const auto frames = static_cast<std::uint32_t>(1 + random() % 4);
    const RemoteTrace trace = RandomRemoteTrace(random, 6 + random() % 8, keys, 4);
    const std::vector<Row> halo = RandomHalo(random, keys);
    const RemoteReplay replay(trace, halo, frames, keys);
    const std::uint64_t fewest = OptimalReads(trace.rows, frames, static_cast<std::uint32_t>(keys));
    EXPECT_EQ(replay.Optimum()->fetched(), fewest) << "round " << round;
    std::vector<double> chances(keys);
    for (double& chance : chances) chance = static_cast<double>(random() % 100) / 100;
    std::vector<Row> ranking(keys);
    std::iota(ranking.begin(), ranking.end(), Row{0});
    std::vector<RemoteCounts> all = {replay.None(),
                                     *replay.Lru(),
                                     *replay.Static(halo),
                                     *replay.Static(ranking),
                                     *replay.EpochHotSet(),
                                     replay.Scored({.gamma = .5, .delta = 2}),
                                     replay.Scored({.gamma = .9, .delta = 3, .as_coded = true})};
    for (const std::size_t superbatch : {1, 3, 100}) {
      all.push_back(*replay.Belady(superbatch, {}));
      all.push_back(*replay.Belady(superbatch, {.uses = true}));
      all.push_back(*replay.Belady(superbatch, {.chances = chances}));
    }
    for (const RemoteCounts& counts : all) {
      EXPECT_GE(counts.fetched(), fewest);
      EXPECT_EQ(counts.requests, trace.rows.keys.size());
    }
    EXPECT_EQ(replay.None().fetched(), trace.rows.keys.size());
    EXPECT_EQ(replay.Belady(100, {})->fetched(), fewest);
  }
}

/// Rows of an epoch that are in the buffer from the previous epoch are not fetched again.
TEST(RemoteReplayTest, AHotSetIsFetchedOnceWhereEpochsAreAlike) {
  RemoteTrace trace;
  trace.rows = testing::MakeTrace({{1, 2}, {1, 3}, {1, 2}, {1, 4}, {5, 6}, {5, 6}});
  trace.epochs = {0, 2, 4, 6};
  const RemoteReplay replay(trace, {}, 1, 7);
  const RemoteCounts counts = *replay.EpochHotSet();
  EXPECT_EQ(counts.prefill, 2u);  // row 1, then row 5
  EXPECT_EQ(counts.misses, 6u);   // 2, 3, 2, 4, 6, 6
  EXPECT_EQ(counts.halo_requests, 0u);
}

/// Returns lists by row, as AllLists creates them.
PassLists ListsOf(const std::vector<std::vector<LocalRow>>& neighbors) {
  PassLists lists;
  lists.offsets = {0};
  for (const std::vector<LocalRow>& of_row : neighbors) {
    lists.targets.push_back(static_cast<LocalRow>(lists.targets.size()));
    lists.neighbors.insert(lists.neighbors.end(), of_row.begin(), of_row.end());
    lists.offsets.push_back(lists.neighbors.size());
    lists.degrees.push_back(of_row.size());
  }
  return lists;
}

/// In this graph, paths meet only at hop 1, where they come from independently drawn seeds. The
/// inclusion probabilities are therefore exact, and sampling minibatches reproduces them.
TEST(InclusionChancesTest, AreWhatDrawingMinibatchesGives) {
  std::mt19937_64 random(testing::TestSeed());
  constexpr std::size_t kSeeds = 12, kMiddle = 20, kLeaves = 5;
  constexpr double kSeedChance = .3;
  std::vector<std::vector<LocalRow>> neighbors(kSeeds + kMiddle + kMiddle * kLeaves);
  std::vector<Row> seeds;
  for (std::size_t seed = 0; seed < kSeeds; ++seed) {
    seeds.push_back(static_cast<Row>(seed));
    for (std::size_t m = 0; m < kMiddle; ++m)
      if (random() % 3 == 0) neighbors[seed].push_back(static_cast<LocalRow>(kSeeds + m));
  }
  for (std::size_t m = 0; m < kMiddle; ++m)
    for (std::size_t leaf = 0; leaf < kLeaves; ++leaf)
      neighbors[kSeeds + m].push_back(static_cast<LocalRow>(kSeeds + kMiddle + m * kLeaves + leaf));
  const std::vector<std::int64_t> fanouts = {3, 2};
  const std::vector<double> chances =
      InclusionChances(ListsOf(neighbors), seeds, kSeedChance, fanouts);
  constexpr int kDraws = 20000;
  std::vector<int> found(neighbors.size(), 0);
  std::bernoulli_distribution is_seed(kSeedChance);
  for (int draw = 0; draw < kDraws; ++draw) {
    std::set<LocalRow> all, last;
    for (const Row seed : seeds)
      if (is_seed(random)) last.insert(static_cast<LocalRow>(seed));
    all = last;
    for (const std::int64_t fanout : fanouts) {
      std::set<LocalRow> next;
      for (const LocalRow v : last)
        std::sample(neighbors[v].begin(), neighbors[v].end(), std::inserter(next, next.end()),
                    fanout, random);
      all.insert(next.begin(), next.end());
      last = std::move(next);
    }
    for (const LocalRow v : all) ++found[v];
  }
  for (std::size_t v = 0; v < found.size(); ++v) {
    const double deviation = std::sqrt(chances[v] * (1 - chances[v]) / kDraws);
    EXPECT_NEAR(static_cast<double>(found[v]) / kDraws, chances[v], 6 * deviation + 1e-12)
        << "row " << v;
  }
}

TEST(RowHaloTest, IsWhatOwnRowsHaveAsNeighboursByDegree) {
  const PassLists lists = ListsOf({{1, 2, 3}, {0, 4}, {4, 5, 3}, {0, 0}, {1}, {2, 3, 4, 1}});
  const std::vector<std::uint16_t> rank_of = {0, 0, 1, 1, 2, 1};
  EXPECT_EQ(HaloOf(lists, {.rank_of = rank_of, .rank = 0}), (std::vector<Row>{2, 3, 4}));
  EXPECT_EQ(HaloOf(lists, {.rank_of = rank_of, .rank = 1}), (std::vector<Row>{0, 1, 4}));
  EXPECT_EQ(HaloOf(lists, {.rank_of = rank_of, .rank = 2}), (std::vector<Row>{1}));
}

}  // namespace
}  // namespace rhizome
