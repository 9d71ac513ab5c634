#pragma once

#include <cstdint>

namespace rhizome {

/// What reads cost on a disk with a full queue: a fixed time each, and bytes over bandwidth.
struct ReadCost {
  double seconds_per_read = 4.8e-6;
  double bytes_per_second = 4.4e9;

  double SecondsFor(std::uint64_t bytes) const {
    return static_cast<double>(bytes) / bytes_per_second;
  }

  /// Two ranges at most this far apart are better read as one.
  std::uint64_t gap_bytes() const {
    return static_cast<std::uint64_t>(seconds_per_read * bytes_per_second);
  }
};

}  // namespace rhizome
