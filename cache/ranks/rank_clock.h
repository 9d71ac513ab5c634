#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "rhizome/cache/overlap.h"

namespace rhizome::inline internal {

/// Seconds of a minibatch of a rank: in which its rows are brought, and in which the rank computes.
struct MinibatchTimes {
  std::uint64_t step = 0;  ///< of the superbatch, from 0; ascending
  double moving = 0;
  double busy = 0;
};

/// Seconds of a superbatch of a rank.
struct SuperbatchTimes {
  double sampling = 0;  ///< until its schedule is there; counts for the first superbatch alone
  double prefill = 0;   ///< in which the rows are brought that are read before its first minibatch
  std::vector<MinibatchTimes> minibatches;
};

/// Models the time of a training over ranks, as a FeedPipeline on each of them works: a minibatch's
/// rows are brought while the two before it wait or are computed on; while there is no room, the
/// next superbatch's prefill is; ranks wait for each other after every step. With Overlap::kNone
/// nothing is brought before it is asked for. Threads: one at a time.
class RankClock {
 public:
  RankClock(std::uint32_t ranks, Overlap overlap, double exchange_seconds)
      : overlap_(overlap), exchange_seconds_(exchange_seconds), states_(ranks) {}

  /// Adds the next superbatch, by rank.
  void Add(std::vector<SuperbatchTimes> superbatch);

  /// Returns the seconds of all that was added.
  double Finish();

 private:
  /// A rank's threads: until when each is at work, and when the last two minibatches were taken.
  struct State {
    double reader = 0, computing = 0;
    std::array<double, 2> taken{};  // the older first
    double prefill_left = 0;        // of the superbatch that is played
  };

  void Play(const std::vector<SuperbatchTimes>& next);
  void Take(const MinibatchTimes& minibatch, double& prefill_ahead, State& state) const;

  const Overlap overlap_;
  const double exchange_seconds_;
  std::vector<State> states_;
  std::vector<SuperbatchTimes> current_;  // added, and not played: the next one's prefill is needed
  bool begun_ = false;
};

}  // namespace rhizome::inline internal
