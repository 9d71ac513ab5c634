#include "rhizome/cache/rank_clock.h"

#include <algorithm>
#include <utility>

#include "rhizome/storage/check.h"

namespace rhizome::inline internal {

void RankClock::Add(std::vector<SuperbatchTimes> superbatch) {
  RHIZOME_CHECK(superbatch.size() == states_.size());
  if (!begun_) {
    for (std::size_t r = 0; r < states_.size(); ++r) {
      states_[r].reader = superbatch[r].sampling;
      states_[r].prefill_left = superbatch[r].prefill;
    }
  } else {
    Play(superbatch);
  }
  begun_ = true;
  current_ = std::move(superbatch);
}

double RankClock::Finish() {
  if (begun_) Play(std::vector<SuperbatchTimes>(states_.size()));
  begun_ = false;
  double last = 0;
  for (const State& state : states_) last = std::max(last, state.computing);
  return last;
}

/// Brings a minibatch's rows and computes on it.
void RankClock::Take(const MinibatchTimes& minibatch, double& prefill_ahead, State& state) const {
  if (overlap_ == Overlap::kNone) {
    state.reader = std::max(state.reader, state.computing);
  } else if (state.reader < state.taken[0]) {  // no room
    const double ahead = std::min(prefill_ahead, state.taken[0] - state.reader);
    prefill_ahead -= ahead;
    state.reader = state.taken[0];
  }
  state.reader += minibatch.moving;
  const double begin = std::max(state.reader, state.computing);
  state.taken = {state.taken[1], begin};
  state.computing = begin + minibatch.busy;
}

/// Plays the superbatch that was added last. `next`: the one after it.
void RankClock::Play(const std::vector<SuperbatchTimes>& next) {
  std::vector<double> ahead;
  std::vector<std::size_t> at(states_.size(), 0);
  for (std::size_t r = 0; r < states_.size(); ++r) {
    State& state = states_[r];
    if (overlap_ == Overlap::kNone) state.reader = std::max(state.reader, state.computing);
    state.reader += state.prefill_left;
    ahead.push_back(next[r].prefill);
  }
  std::uint64_t steps = 0;
  for (const SuperbatchTimes& of_rank : current_)
    if (!of_rank.minibatches.empty()) steps = std::max(steps, of_rank.minibatches.back().step + 1);
  for (std::uint64_t step = 0; step < steps; ++step) {
    double end = 0;
    for (std::size_t r = 0; r < states_.size(); ++r) {
      const std::vector<MinibatchTimes>& minibatches = current_[r].minibatches;
      for (; at[r] < minibatches.size() && minibatches[at[r]].step == step; ++at[r])
        Take(minibatches[at[r]], ahead[r], states_[r]);
      end = std::max(end, states_[r].computing);
    }
    for (State& state : states_) state.computing = end + exchange_seconds_;
  }
  for (std::size_t r = 0; r < states_.size(); ++r) states_[r].prefill_left = ahead[r];
}

}  // namespace rhizome::inline internal
