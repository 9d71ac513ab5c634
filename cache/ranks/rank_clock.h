#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "rhizome/minibatch_options.h"

namespace rhizome {
inline namespace internal {

/// Durations of one minibatch of a rank, in seconds.
struct MinibatchTimes {
  std::uint64_t step = 0;  ///< within the superbatch, from 0; ascending
  double moving = 0;       ///< time to transfer its rows
  double compute = 0;      ///< time to compute on it, with a processor to itself
  double work = 0;         ///< processor time for rows received and served concurrently
  double exchange = 0;     ///< time to exchange the gradient sums after its step
};

/// Durations of one superbatch of a rank, in seconds.
struct SuperbatchTimes {
  double preparing = 0;     ///< processor time for sampling and scheduling
  double prefill = 0;       ///< time to transfer the prefill
  double prefill_work = 0;  ///< processor time for the prefill
  std::vector<MinibatchTimes> minibatches;
};

/// Models the time of distributed training with a FeedPipeline on each rank. The rows of a
/// minibatch are transferred while the two before it wait or are computed on. While there is no
/// space for another minibatch, the prefill of the next superbatch is transferred; that superbatch
/// is prepared concurrently. All ranks wait for each other after every step. With Overlap::kNone no
/// row is transferred before it is requested. The threads of a rank share its processors and take
/// longer if there are too few; 0 processors: enough that computing is never delayed.
/// Threads: one at a time.
class RankClock {
 public:
  RankClock(std::uint32_t ranks, Overlap overlap, double processors)
      : overlap_(overlap), processors_(processors), states_(ranks) {}

  /// Adds the next superbatch, indexed by rank.
  void Add(std::vector<SuperbatchTimes> superbatch);

  /// Returns the seconds of all added superbatches.
  double Finish();

 private:
  /// Times at which the threads of a rank become idle, and at which the last two minibatches were
  /// taken.
  struct State {
    double reader = 0, computing = 0;
    double prepared = 0;            // time at which the superbatch that is played is prepared
    std::array<double, 2> taken{};  // the older one first
    double prefill_left = 0;        // prefill time of the superbatch that is played
    double work_beside = 0;         // processor time for the next superbatch, per minibatch
  };

  void Play(const std::vector<SuperbatchTimes>& next);
  void Begin(const SuperbatchTimes& current, const SuperbatchTimes& next, State& state) const;
  void Take(const MinibatchTimes& minibatch, double& prefill_ahead, State& state) const;
  double Busy(const MinibatchTimes& minibatch, const State& state) const;

  const Overlap overlap_;
  const double processors_;
  std::vector<State> states_;
  std::vector<SuperbatchTimes>
      current_;  // added but not played, as this requires the times of the next one
  bool begun_ = false;
};

}  // namespace internal
}  // namespace rhizome
