#include "gnn/tables/sampled_ranks.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "index/base/parallel.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::size_t kQueryTile = 64;  // queries

/// Returns 1 / rank of a score among the scores of candidates, `stride` apart; the candidate that
/// is the truth itself does not count.
double ReciprocalRank(float truth, std::uint32_t place, std::span<const std::uint32_t> candidates,
                      const float* scores, std::size_t stride) {
  double rank = 1;
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    const float score = scores[c * stride];
    if (candidates[c] == place) continue;
    rank += score > truth ? 1 : (score == truth ? .5 : 0);
  }
  return 1 / rank;
}

}  // namespace

std::uint64_t SampledRanks::Bytes(std::size_t candidates, std::size_t dim, std::uint32_t threads) {
  return (candidates + 2 * kQueryTile + 2 * dim) * kQueryTile * sizeof(float) *
         std::max<std::uint32_t>(threads, 1);
}

double SampledRanks::ReciprocalSum(std::span<const MinibatchPair> edges, EdgeEnd open,
                                   std::span<const std::uint32_t> candidates) const {
  std::vector<double> sums((edges.size() + kQueryTile - 1) / kQueryTile);
  ParallelFor(sums.size(), [&](std::size_t tile) {
    const std::size_t first = tile * kQueryTile;
    sums[tile] =
        TileSum(edges.subspan(first, std::min(kQueryTile, edges.size() - first)), open, candidates);
  });
  double sum = 0;
  for (const double one : sums) sum += one;
  return sum;
}

double SampledRanks::TileSum(std::span<const MinibatchPair> edges, EdgeEnd open,
                             std::span<const std::uint32_t> candidates) const {
  const bool inverse = step.reciprocal && open == EdgeEnd::kSrc;
  std::vector<QueryRows> queries;
  std::vector<std::uint32_t> truths;
  for (const MinibatchPair& edge : edges) {
    const std::size_t relation = edge.type + (inverse ? step.relations : 0);
    const std::uint32_t given = open == EdgeEnd::kDst ? edge.src : edge.dst;
    queries.push_back({.given = rows + given * dim,
                       .relation = step.relation_width == 0
                                       ? nullptr
                                       : relations + relation * step.relation_stride,
                       .open = inverse ? EdgeEnd::kDst : open});
    truths.push_back(open == EdgeEnd::kDst ? edge.dst : edge.src);
  }
  const std::unique_ptr<QueryGroup> group = decoder.Group(queries);
  const std::size_t count = queries.size();
  const auto score = [&](std::span<const std::uint32_t> places) {
    std::vector<float> scores(places.size() * count);
    group->Score({.x = rows, .stride = dim, .columns = dim, .place = places.data()}, places.size(),
                 scores.data(), count);
    return scores;
  };
  const std::vector<float> of_truths = score(truths), of_candidates = score(candidates);
  double sum = 0;
  for (std::size_t q = 0; q < count; ++q)
    sum += ReciprocalRank(of_truths[q * count + q], truths[q], candidates, of_candidates.data() + q,
                          count);
  return sum;
}

}  // namespace internal
}  // namespace rhizome
