#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <utility>

#include "cache/feed/epoch_plan.h"
#include "cache/feed/minibatch_sampler.h"

namespace rhizome {
inline namespace internal {

/// Delivers the seeds of a plan, divided into superbatches (SeedBatch::begins_superbatch). The
/// first superbatches have 1, 2, 4, ... minibatches, up to `most` (0: no such ramp), so that the
/// first minibatch is ready soon, and few are sampled in vain if the caller stops early. If
/// `each_epoch`, every epoch begins so, and no superbatch continues into the next epoch, which the
/// caller may not ask for. The seeds and their order do not change. Threads: one at a time.
class RampedSeeds {
 public:
  RampedSeeds(EpochPlan plan, std::uint32_t most, bool each_epoch)
      : plan_(std::move(plan)), most_(most), each_epoch_(each_epoch) {}

  /// Returns the next seeds; nullopt after the last.
  std::optional<SeedBatch> operator()() {
    std::optional<SeedBatch> seeds = plan_.Next();
    if (!seeds) return seeds;
    const std::uint32_t epoch = EpochPlan::Decode(seeds->tag).epoch;
    if (each_epoch_ && epoch != std::exchange(epoch_, epoch)) taken_ = 0;
    // Before superbatch i > 0 of the ramp, 2^i - 1 minibatches were taken, the last 2^(i-1) of them
    // in the superbatch before. The ramp ends with the first one that has `most`.
    seeds->begins_superbatch =
        taken_ == 0 || ((taken_ + 1) / 2 < most_ && std::has_single_bit(taken_ + 1));
    ++taken_;
    return seeds;
  }

 private:
  EpochPlan plan_;
  const std::uint64_t most_;
  const bool each_epoch_;
  std::uint32_t epoch_ = 0;
  std::uint64_t taken_ = 0;  // since the ramp began
};

}  // namespace internal
}  // namespace rhizome
