#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "rhizome/cache/overlap.h"

namespace rhizome::inline internal {

/// Seconds of a minibatch of a rank.
struct MinibatchTimes {
  std::uint64_t step = 0;  ///< of the superbatch, from 0; ascending
  double moving = 0;       ///< in which its rows are brought
  double compute = 0;      ///< in which the rank computes on it, with a processor of its own
  double work = 0;         ///< of processor, for the rows that come or go meanwhile
  double exchange = 0;     ///< in which the sums of its step go to all ranks, when it is done
};

/// Seconds of a superbatch of a rank.
struct SuperbatchTimes {
  double preparing = 0;     ///< of processor, until it is sampled and its schedule is there
  double prefill = 0;       ///< in which the rows are brought that are read before its minibatches
  double prefill_work = 0;  ///< of processor, for those rows
  std::vector<MinibatchTimes> minibatches;
};

/// Models the time of a training over ranks, as a FeedPipeline on each of them works: a minibatch's
/// rows are brought while the two before it wait or are computed on; while there is no room, the
/// next superbatch's prefill is; that superbatch is prepared meanwhile; ranks wait for each other
/// after every step. With Overlap::kNone nothing is brought before it is asked for. A rank's
/// threads share its processors, and take longer where these are too few; 0: it has enough that
/// nothing delays computing. Threads: one at a time.
class RankClock {
 public:
  RankClock(std::uint32_t ranks, Overlap overlap, double processors)
      : overlap_(overlap), processors_(processors), states_(ranks) {}

  /// Adds the next superbatch, by rank.
  void Add(std::vector<SuperbatchTimes> superbatch);

  /// Returns the seconds of all that was added.
  double Finish();

 private:
  /// A rank's threads: until when each is at work, and when the last two minibatches were taken.
  struct State {
    double reader = 0, computing = 0;
    double prepared = 0;            // the superbatch that is played
    std::array<double, 2> taken{};  // the older first
    double prefill_left = 0;        // of the superbatch that is played
    double work_beside = 0;         // of processor, for the next superbatch: by minibatch
  };

  void Play(const std::vector<SuperbatchTimes>& next);
  void Begin(const SuperbatchTimes& current, const SuperbatchTimes& next, State& state) const;
  void Take(const MinibatchTimes& minibatch, double& prefill_ahead, State& state) const;
  double Busy(const MinibatchTimes& minibatch, const State& state) const;

  const Overlap overlap_;
  const double processors_;
  std::vector<State> states_;
  std::vector<SuperbatchTimes>
      current_;  // added, and not played: what the next one takes is needed
  bool begun_ = false;
};

}  // namespace rhizome::inline internal
