#pragma once

#include <cstdint>

#include "rhizome/resource_options.h"
#include "rhizome/status.h"

namespace rhizome {

class ChunkArray;

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
