#include "index/homes/initial_homes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <queue>
#include <utility>

#include "index/base/counter_random.h"
#include "index/homes/home_refinement.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr int kTries = 24;

std::uint64_t ShareOf(std::uint64_t total, double share, double slack, std::uint64_t largest) {
  const double mean = static_cast<double>(total) * share;
  const double most = std::max(std::floor(mean * slack), std::ceil(mean));
  // With single vertices the bound is exact; clusters need slack for the largest one.
  const double room = largest > 1 ? std::ceil(mean) + static_cast<double>(largest) : 0;
  return static_cast<std::uint64_t>(std::max(most, room));
}

HomeLoad CapOf(const HomeLoad& total, const HomeLoad& largest, double share, double slack) {
  return {ShareOf(total.rows, share, slack, largest.rows),
          ShareOf(total.seeds, share, slack, largest.seeds)};
}

/// Grows part 0 of two from a random vertex until it has `share` of the rows or of the seeds, and
/// nearly that share of the other.
std::vector<PartitionId> Grow(const HomeGraph& graph, const HomeLoad& total, double share,
                              CounterRandom& random) {
  const std::uint32_t count = graph.vertex_count();
  std::vector<PartitionId> part_of(count, 1);
  std::vector<std::int64_t> gain(count);
  for (std::uint32_t v = 0; v < count; ++v)
    graph.ForEachNeighbor(v, [&](std::uint32_t, std::uint32_t w) { gain[v] -= w; });
  using Entry = std::pair<std::int64_t, std::uint32_t>;
  std::priority_queue<Entry> frontier;
  HomeLoad load;
  const auto filled = [&] {
    const double rows = static_cast<double>(load.rows) / static_cast<double>(total.rows);
    const double seeds = total.seeds == 0
                             ? rows
                             : static_cast<double>(load.seeds) / static_cast<double>(total.seeds);
    return rows + seeds >= 2 * share;
  };
  std::uint32_t start = static_cast<std::uint32_t>(random.Below(count));
  while (!filled()) {
    std::uint32_t v = start;
    if (!frontier.empty()) {
      const Entry top = frontier.top();
      frontier.pop();
      v = top.second;
      if (part_of[v] == 0 || gain[v] != top.first) continue;
    } else {
      while (part_of[v] == 0) v = (v + 1) % count;
      start = v;
    }
    part_of[v] = 0;
    load += graph.load(v);
    graph.ForEachNeighbor(v, [&](std::uint32_t u, std::uint32_t weight) {
      if (part_of[u] == 0) return;
      gain[u] += 2 * static_cast<std::int64_t>(weight);
      frontier.emplace(gain[u], u);
    });
  }
  return part_of;
}

class Bisection {
 public:
  Bisection(const HomeGraph& graph, double slack, std::uint64_t seed)
      : graph_(graph), slack_(slack), seed_(seed), part_of_(graph.vertex_count()) {}

  std::vector<PartitionId> Divide(std::uint32_t parts) {
    std::vector<std::uint32_t> all(graph_.vertex_count());
    std::iota(all.begin(), all.end(), 0);
    // The slack of all levels of bisection multiplies to the slack of the whole.
    const double levels = std::max(1.0, std::ceil(std::log2(parts)));
    level_slack_ = std::pow(slack_, 1 / levels);
    Divide(all, 0, parts);
    return std::move(part_of_);
  }

 private:
  void Divide(std::span<const std::uint32_t> vertices, std::uint32_t first, std::uint32_t parts) {
    if (parts == 1 || vertices.empty()) {
      for (const std::uint32_t v : vertices) part_of_[v] = static_cast<PartitionId>(first);
      return;
    }
    const HomeGraph part = graph_.Induce(vertices);
    const std::vector<PartitionId> side = Bisect(part, parts);
    std::vector<std::uint32_t> left;
    std::vector<std::uint32_t> right;
    for (std::size_t i = 0; i < vertices.size(); ++i)
      (side[i] == 0 ? left : right).push_back(vertices[i]);
    Divide(left, first, parts / 2);
    Divide(right, first + parts / 2, parts - parts / 2);
  }

  std::vector<PartitionId> Bisect(const HomeGraph& graph, std::uint32_t parts) {
    const double share = static_cast<double>(parts / 2) / parts;
    const HomeLoad total = graph.total();
    const HomeLoad largest = graph.largest();
    const std::vector<HomeLoad> caps = {CapOf(total, largest, share, level_slack_),
                                        CapOf(total, largest, 1 - share, level_slack_)};
    CounterRandom random({.seed = seed_, .batch = calls_++, .stream = 3});
    std::vector<PartitionId> best;
    std::pair<bool, std::uint64_t> least = {true, std::numeric_limits<std::uint64_t>::max()};
    for (int i = 0; i < kTries; ++i) {
      std::vector<PartitionId> tried = Grow(graph, total, share, random);
      HomeRefinement refinement(graph, caps, tried, random.Next64());
      refinement.Run();
      const std::pair<bool, std::uint64_t> found = {!refinement.balanced(), refinement.CutOf()};
      if (!best.empty() && found >= least) continue;
      least = found;
      best = std::move(tried);
    }
    return best;
  }

  const HomeGraph& graph_;
  const double slack_;
  const std::uint64_t seed_;
  double level_slack_ = 1;
  std::uint64_t calls_ = 0;
  std::vector<PartitionId> part_of_;
};

}  // namespace

std::vector<PartitionId> DivideSmallGraph(const HomeGraph& graph, std::uint32_t parts, double slack,
                                          std::uint64_t seed) {
  return Bisection(graph, slack, seed).Divide(parts);
}

std::vector<HomeLoad> EqualCaps(const HomeGraph& graph, std::uint32_t parts, double slack) {
  return std::vector<HomeLoad>(parts, CapOf(graph.total(), graph.largest(), 1.0 / parts, slack));
}

}  // namespace internal
}  // namespace rhizome
