#include "cache/policy/schedule_history.h"

#include <cmath>

#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Weight of a key that every step requests, if chances are given.
constexpr double kCertain = 1U << 30;

}  // namespace

ScheduleHistory::ScheduleHistory(std::span<const double> chances)
    : weights_(chances.size()), counts_(false), chance_of_one_(static_cast<float>(1 / kCertain)) {
  for (std::size_t key = 0; key < chances.size(); ++key) {
    RHIZOME_DCHECK(chances[key] >= 0 && chances[key] <= 1);
    // A small nonzero chance must not become zero.
    weights_[key] = static_cast<std::uint32_t>(std::ceil(chances[key] * kCertain));
  }
}

void ScheduleHistory::Count(const Trace& superbatch) {
  if (!counts_) return;
  for (const CacheKey key : superbatch.keys) ++weights_[static_cast<std::size_t>(key)];
  steps_ += superbatch.steps();
  if (steps_ > 0) chance_of_one_ = 1 / static_cast<float>(steps_);
}

}  // namespace internal
}  // namespace rhizome
