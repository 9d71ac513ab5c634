#pragma once

#include <cstdint>
#include <optional>

#include "rhizome/export.h"
#include "rhizome/io_queue.h"
#include "rhizome/result.h"

namespace RHIZOME_API rhizome {

class ChunkArray;

/// The cost of reads on a disk with a full queue: a fixed time per read, plus bytes divided by
/// bandwidth. The defaults are from one NVMe drive.
struct ReadCost {
  double seconds_per_read = 4.8e-6;
  double bytes_per_second = 4.4e9;
  std::optional<std::uint64_t> fixed_gap_bytes = {};  ///< replaces the computed gap_bytes()

  double SecondsFor(std::uint64_t bytes) const {
    return static_cast<double>(bytes) / bytes_per_second;
  }

  /// Two ranges at most this far apart, in bytes, are read as one. It is a third of the gap beyond
  /// which one read takes longer than two: between these two gaps the time is about the same, but
  /// more bytes are read.
  std::uint64_t gap_bytes() const {
    if (fixed_gap_bytes) return *fixed_gap_bytes;
    return static_cast<std::uint64_t>(seconds_per_read * bytes_per_second / 3);
  }
};

/// Measures the disk that contains an array's chunks, by reading small, then large pieces at random
/// positions for a few hundredths of a second. Returns the defaults for an array below
/// kMinMeasuredBytes, which is too small to measure. Errors: kIoError; kCorruption, a chunk's
/// file is missing.
Result<ReadCost> MeasureReadCost(const ChunkArray& array, const IoQueueOptions& io);

/// Measures how many small reads must be in flight on the disk that contains an array's chunks.
/// Tries depths from 16 to 128 for some hundredths of a second each, and returns the smallest that
/// is within 5 % of the fastest. Returns `io.depth` for an array below kMinMeasuredBytes. Errors:
/// as for MeasureReadCost.
Result<std::uint32_t> MeasureDepth(const ChunkArray& array, const IoQueueOptions& io);

/// Min size of an array, in bytes of its rows, on which a disk is measured.
inline constexpr std::uint64_t kMinMeasuredBytes = std::uint64_t{256} << 20;

}  // namespace rhizome
