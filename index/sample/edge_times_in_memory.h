#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "rhizome/sampler.h"
#include "rhizome/types.h"

namespace rhizome {

/// Time stamps in memory: one vector for each partition.
class EdgeTimesInMemory final : public EdgeTimes {
 public:
  /// `delta_out` and `delta_in` are the times of the delta's edges by direction; a symmetric graph
  /// has only `delta_out`.
  explicit EdgeTimesInMemory(std::vector<std::vector<std::int64_t>> times,
                             std::vector<std::int64_t> delta_out = {},
                             std::vector<std::int64_t> delta_in = {}, bool symmetric = false)
      : times_(std::move(times)),
        delta_out_(std::move(delta_out)),
        delta_in_(std::move(delta_in)),
        symmetric_(symmetric) {}
  std::span<const std::int64_t> OfDelta(Direction direction) const override {
    return direction == Direction::kOut || symmetric_ ? delta_out_ : delta_in_;
  }
  std::span<const std::int64_t> OfPartition(std::uint32_t p) const override {
    return p < times_.size() ? std::span<const std::int64_t>(times_[p])
                             : std::span<const std::int64_t>();
  }

 private:
  std::vector<std::vector<std::int64_t>> times_;
  std::vector<std::int64_t> delta_out_;
  std::vector<std::int64_t> delta_in_;
  bool symmetric_ = false;
};

}  // namespace rhizome
