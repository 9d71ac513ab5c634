#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "rhizome/train_options.h"

namespace rhizome {
inline namespace internal {

/// A metric of the completed epochs, in order; nullopt where it was not measured.
using MetricHistory = std::span<const std::optional<double>>;

/// Decides whether a metric value is better than another: by more than `min_delta`.
struct Improvement {
  bool larger = true;
  double min_delta = 0;
  bool Is(double value, double over) const {
    return larger ? value > over + min_delta : value < over - min_delta;
  }
};

/// Returns the learning rate of the epoch after the epochs in `history`, of `epochs` in total.
/// Depends only on its arguments, so that a resumed training continues with the same rates.
double LearningRate(const ScheduleOptions& schedule, double rate, std::uint32_t epochs,
                    MetricHistory history, const Improvement& better);

/// Returns whether `patience` epochs have passed since the last improvement, and the last epoch was
/// measured. `patience` = 0: never.
bool StopsEarly(std::uint32_t patience, MetricHistory history, const Improvement& better);

}  // namespace internal
}  // namespace rhizome
