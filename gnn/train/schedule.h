#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "rhizome/gnn/learning_options.h"

namespace rhizome::inline internal {

/// A metric of the epochs that are complete, in order; nothing where it was not measured.
using MetricHistory = std::span<const std::optional<double>>;

/// When one value of a metric is better than another: by more than `min_delta`.
struct Improvement {
  bool larger = true;
  double min_delta = 0;
  bool Is(double value, double over) const {
    return larger ? value > over + min_delta : value < over - min_delta;
  }
};

/// The learning rate of the epoch after those of `history`, of `epochs` in all. Depends on its
/// arguments alone, so that a resumed training goes on with it.
double LearningRate(const ScheduleOptions& schedule, double rate, std::uint32_t epochs,
                    MetricHistory history, const Improvement& better);

/// Whether `patience` epochs have passed since the last better one, and the last epoch was
/// measured. `patience` 0: never.
bool StopsEarly(std::uint32_t patience, MetricHistory history, const Improvement& better);

}  // namespace rhizome::inline internal
