#include "cache/ranks/row_halo.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {

Result<PassLists> AllLists(const GraphSnapshot& graph, Direction direction,
                           const JobControl& control) {
  std::vector<Row> all(graph.vertex_count());
  std::iota(all.begin(), all.end(), Row{0});
  PassDrawOptions draw;
  draw.direction = direction;
  return DrawPassLists(graph, all, draw, control);
}

std::vector<Row> HaloOf(const PassLists& lists, const RowRanks& ranks) {
  const std::size_t rows = lists.targets.size();
  RHIZOME_DCHECK(rows == ranks.rank_of.size());
  std::vector<bool> is_halo(rows, false);
  for (std::size_t row = 0; row < rows; ++row) {
    if (ranks.rank_of[row] != ranks.rank) continue;
    for (const LocalRow neighbor : lists.ReadsOf(row))
      is_halo[neighbor] = !ranks.IsOwn(static_cast<Row>(neighbor));
  }
  std::vector<Row> halo;
  for (std::size_t row = 0; row < rows; ++row)
    if (is_halo[row]) halo.push_back(static_cast<Row>(row));
  const auto degree = [&](Row row) { return lists.degrees[static_cast<std::size_t>(row)]; };
  std::stable_sort(halo.begin(), halo.end(), [&](Row a, Row b) { return degree(a) > degree(b); });
  return halo;
}

std::vector<double> InclusionChances(const PassLists& lists, std::span<const Row> seeds,
                                     double seed_chance, std::span<const std::int64_t> fanouts) {
  const std::size_t rows = lists.targets.size();
  std::vector<double> found(rows, 0);   // probability that the last hop found the vertex
  std::vector<double> log_no(rows, 0);  // log of the probability that no vertex of this hop finds
                                        // it
  std::vector<double> missed(rows, 1);  // probability that no hop found it
  for (const Row seed : seeds) {
    found[static_cast<std::size_t>(seed)] = seed_chance;
    missed[static_cast<std::size_t>(seed)] = 1 - seed_chance;
  }
  for (const std::int64_t fanout : fanouts) {
    std::fill(log_no.begin(), log_no.end(), 0);
    for (std::size_t v = 0; v < rows; ++v) {
      const auto neighbors = lists.ReadsOf(v);
      if (found[v] == 0 || neighbors.empty()) continue;
      const double share =
          fanout == kAllNeighbors
              ? 1
              : std::min(1.0, static_cast<double>(fanout) / static_cast<double>(neighbors.size()));
      const double passed = std::log1p(-share * found[v]);
      for (const LocalRow u : neighbors) log_no[u] += passed;
    }
    for (std::size_t v = 0; v < rows; ++v) {
      found[v] = -std::expm1(log_no[v]);
      missed[v] *= 1 - found[v];
    }
  }
  for (double& chance : missed) chance = 1 - chance;
  return missed;
}

std::vector<Row> RankByChance(std::span<const double> chances, const RowRanks& ranks) {
  std::vector<Row> ranking;
  for (std::size_t row = 0; row < chances.size(); ++row)
    if (chances[row] > 0 && !ranks.IsOwn(static_cast<Row>(row)))
      ranking.push_back(static_cast<Row>(row));
  const auto chance = [&](Row row) { return chances[static_cast<std::size_t>(row)]; };
  std::stable_sort(ranking.begin(), ranking.end(),
                   [&](Row a, Row b) { return chance(a) > chance(b); });
  return ranking;
}

}  // namespace internal
}  // namespace rhizome
