#include "gnn/links/rank_figures.h"

#include "storage/base/mutant.h"

namespace rhizome {
inline namespace internal {

void RankSums::Sums::Add(double rank_of_truth) {
  reciprocal += 1 / rank_of_truth;
  rank += rank_of_truth;
  constexpr std::array<double, 3> kFirst = {1, 3, 10};
  for (std::size_t i = 0; i < kFirst.size(); ++i)
    if (rank_of_truth <= kFirst[i]) ++hits[i];
}

LinkFigures RankSums::Sums::Figures(std::uint64_t ranks) const {
  if (ranks == 0) return {};
  const auto count = static_cast<double>(ranks);
  const auto share = [&](std::size_t i) { return static_cast<double>(hits[i]) / count; };
  return {.mrr = reciprocal / count,
          .mean_rank = rank / count,
          .hits_at_1 = share(0),
          .hits_at_3 = share(1),
          .hits_at_10 = share(2)};
}

void RankSums::Add(const LinkCounts& counts) {
  ++ranks_;
  const auto first = static_cast<double>(counts.better) + 1;
  const auto equal = static_cast<double>(counts.equal);
  realistic_.Add(RHIZOME_MUTANT("equal scores rank first") ? first : first + equal / 2);
  optimistic_.Add(first);
  pessimistic_.Add(first + equal);
}

LinkRanks RankSums::Figures() const {
  return {.ranks = ranks_,
          .realistic = realistic_.Figures(ranks_),
          .optimistic = optimistic_.Figures(ranks_),
          .pessimistic = pessimistic_.Figures(ranks_)};
}

}  // namespace internal
}  // namespace rhizome
