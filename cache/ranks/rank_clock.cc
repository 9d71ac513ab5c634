#include "cache/ranks/rank_clock.h"

#include <algorithm>
#include <utility>

#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {
namespace {

// Factor by which work takes longer if a rank's threads outnumber its processors: they find less of
// their data in processor caches, context switches take time, and sometimes all threads of a rank
// wait for another rank. In the training runs of tools/links_model.sh, ranks used 1.3 to 1.6 times
// the processor time of their parts in isolation, and were idle for a tenth of the time.
constexpr double kTakingTurns = 1.52;

}  // namespace

void RankClock::Add(std::vector<SuperbatchTimes> superbatch) {
  RHIZOME_CHECK(superbatch.size() == states_.size());
  if (!begun_) {
    for (std::size_t r = 0; r < states_.size(); ++r) {
      states_[r].prepared = superbatch[r].preparing;
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

/// Starts a superbatch once it is prepared. The preparation of the next superbatch starts then.
void RankClock::Begin(const SuperbatchTimes& current, const SuperbatchTimes& next,
                      State& state) const {
  state.reader = std::max(state.reader, state.prepared);
  if (overlap_ == Overlap::kNone) state.reader = std::max(state.reader, state.computing);
  state.prepared = state.reader + next.preparing;
  state.reader += state.prefill_left;
  const double ahead = overlap_ == Overlap::kNone ? 0 : next.prefill_work;
  state.work_beside = (next.preparing + ahead) /
                      static_cast<double>(std::max<std::size_t>(current.minibatches.size(), 1));
}

/// Returns the seconds that a rank computes on a minibatch while its other threads work.
double RankClock::Busy(const MinibatchTimes& minibatch, const State& state) const {
  if (processors_ == 0) return minibatch.compute;
  // Without overlap, rows are transferred while all ranks wait for them.
  const double rows = overlap_ == Overlap::kNone ? 0 : minibatch.work;
  const double all = minibatch.compute + rows + state.work_beside;
  const bool room = all <= minibatch.compute * processors_;
  return room ? minibatch.compute : kTakingTurns * all / processors_;
}

/// Transfers the rows of a minibatch and computes on it.
void RankClock::Take(const MinibatchTimes& minibatch, double& prefill_ahead, State& state) const {
  if (overlap_ == Overlap::kNone) {
    state.reader = std::max(state.reader, state.computing);
  } else if (state.reader < state.taken[0]) {  // no space
    const double ahead = std::min(prefill_ahead, state.taken[0] - state.reader);
    prefill_ahead -= ahead;
    state.reader = state.taken[0];
  }
  state.reader += minibatch.moving;
  const double begin = std::max(state.reader, state.computing);
  state.taken = {state.taken[1], begin};
  state.computing = begin + Busy(minibatch, state);
}

/// Plays the superbatch that was added last. `next` is the superbatch after it.
void RankClock::Play(const std::vector<SuperbatchTimes>& next) {
  std::vector<double> ahead;
  std::vector<std::size_t> at(states_.size(), 0);
  std::uint64_t steps = 0;
  for (std::size_t r = 0; r < states_.size(); ++r) {
    Begin(current_[r], next[r], states_[r]);
    ahead.push_back(next[r].prefill);
    if (!current_[r].minibatches.empty())
      steps = std::max(steps, current_[r].minibatches.back().step + 1);
  }
  for (std::uint64_t step = 0; step < steps; ++step) {
    double end = 0, exchange = 0;
    for (std::size_t r = 0; r < states_.size(); ++r) {
      const std::vector<MinibatchTimes>& minibatches = current_[r].minibatches;
      for (; at[r] < minibatches.size() && minibatches[at[r]].step == step; ++at[r]) {
        Take(minibatches[at[r]], ahead[r], states_[r]);
        exchange = std::max(exchange, minibatches[at[r]].exchange);
      }
      end = std::max(end, states_[r].computing);
    }
    for (State& state : states_) state.computing = end + exchange;
  }
  for (std::size_t r = 0; r < states_.size(); ++r) states_[r].prefill_left = ahead[r];
}

}  // namespace internal
}  // namespace rhizome
