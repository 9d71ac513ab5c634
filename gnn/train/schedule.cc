#include "gnn/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "storage/base/mutant.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::uint32_t kPlateauEpochs = 10;

/// Calls stale(epoch, since) for each measured epoch that is not better than all earlier ones.
/// `since` is the epoch to count from; stale returns the epoch to count from afterwards.
template <typename Stale>
void ForEachStale(MetricHistory history, const Improvement& better, const Stale& stale) {
  std::optional<double> best;
  std::size_t since = 0;
  for (std::size_t epoch = 0; epoch < history.size(); ++epoch) {
    if (!history[epoch]) continue;
    if (!best || better.Is(*history[epoch], *best)) {
      best = history[epoch];
      since = epoch;
    } else {
      since = stale(epoch, since);
    }
  }
}

/// Returns how often a plateau has lowered the rate.
double PlateauCuts(std::uint32_t every, MetricHistory history, const Improvement& better) {
  double cuts = 0;
  ForEachStale(history, better, [&](std::size_t epoch, std::size_t since) {
    if (epoch - since < every) return since;
    ++cuts;
    return epoch;
  });
  return cuts;
}

}  // namespace

double LearningRate(const ScheduleOptions& schedule, double rate, std::uint32_t epochs,
                    MetricHistory history, const Improvement& better) {
  const auto epoch = static_cast<std::uint32_t>(history.size());
  if (epoch < schedule.warmup && !RHIZOME_MUTANT("there is no warm-up"))
    return rate * (epoch + 1) / (schedule.warmup + 1);
  const std::uint32_t t = epoch - schedule.warmup;
  const std::uint32_t all = epochs > schedule.warmup ? epochs - schedule.warmup : 1;
  const double done = std::min(static_cast<double>(t) / all, 1.0);
  switch (schedule.kind) {
    case ScheduleKind::kStep: {
      const std::uint32_t every = schedule.every > 0 ? schedule.every : std::max(epochs / 3, 1U);
      return rate * std::pow(schedule.factor, t / every);
    }
    case ScheduleKind::kCosine:
      return rate * (1 + std::cos(std::numbers::pi * done)) / 2;
    case ScheduleKind::kLinear:
      return rate * (1 - done);
    case ScheduleKind::kPlateau: {
      const std::uint32_t every = schedule.every > 0 ? schedule.every : kPlateauEpochs;
      return rate * std::pow(schedule.factor, PlateauCuts(every, history, better));
    }
    case ScheduleKind::kConstant:
      break;
  }
  return rate;
}

bool StopsEarly(std::uint32_t patience, MetricHistory history, const Improvement& better) {
  if (patience == 0 || history.empty()) return false;
  bool stops = false;
  ForEachStale(history, better, [&](std::size_t epoch, std::size_t since) {
    const std::size_t waits =
        RHIZOME_MUTANT("patience is one epoch short") ? patience - 1 : patience;
    stops = stops || epoch - since >= waits;
    return since;
  });
  return stops;
}

}  // namespace internal
}  // namespace rhizome
