#pragma once

#include <cstdint>
#include <optional>

#include "rhizome/storage/export.h"
#include "rhizome/storage/io_queue.h"
#include "rhizome/storage/result.h"

namespace RHIZOME_API rhizome {

class ChunkArray;

/// What reads cost on a disk with a full queue: a fixed time each, and bytes over bandwidth. The
/// defaults are those of one NVMe drive.
struct ReadCost {
  double seconds_per_read = 4.8e-6;
  double bytes_per_second = 4.4e9;
  std::optional<std::uint64_t> fixed_gap_bytes = {};  ///< in place of the gap that follows

  double SecondsFor(std::uint64_t bytes) const {
    return static_cast<double>(bytes) / bytes_per_second;
  }

  /// Two ranges at most this far apart are read as one: a third of where that begins to cost more
  /// time than two reads. Between the two the time is much the same, and the bytes are not.
  std::uint64_t gap_bytes() const {
    if (fixed_gap_bytes) return *fixed_gap_bytes;
    return static_cast<std::uint64_t>(seconds_per_read * bytes_per_second / 3);
  }
};

/// Measures the disk that an array's chunks lie on, by reading some of them for a few hundredths of
/// a second: small pieces at random places, then large ones. The defaults for an array that is too
/// small to tell (kLeastMeasuredBytes). Errors: kIoError.
Result<ReadCost> MeasureReadCost(const ChunkArray& array, const IoQueueOptions& io);

/// How many small reads in flight the disk that an array's chunks lie on wants: the fewest that
/// read about as much in a second as more would, of a few tried for a hundredth of a second each.
/// `io.depth` for an array that is too small to tell. Errors: kIoError.
Result<std::uint32_t> MeasureDepth(const ChunkArray& array, const IoQueueOptions& io);

inline constexpr std::uint64_t kLeastMeasuredBytes = std::uint64_t{256} << 20;

}  // namespace rhizome
