#pragma once

#include <array>
#include <cstdint>

#include "rhizome/link_scores.h"

namespace rhizome {
inline namespace internal {

/// The numbers of candidates with a better score than the true end, and with an equal one.
struct LinkCounts {
  std::uint64_t better = 0;
  std::uint64_t equal = 0;
};

/// Sums over ranks, added in the order of the test edges.
class RankSums {
 public:
  void Add(const LinkCounts& counts);
  LinkRanks Figures() const;

 private:
  struct Sums {
    double reciprocal = 0;
    double rank = 0;
    std::array<std::uint64_t, 3> hits{};  // among the first 1, 3 and 10
    void Add(double rank_of_truth);
    LinkFigures Figures(std::uint64_t ranks) const;
  };
  std::uint64_t ranks_ = 0;
  Sums realistic_;
  Sums optimistic_;
  Sums pessimistic_;
};

}  // namespace internal
}  // namespace rhizome
