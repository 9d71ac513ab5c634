#pragma once

#include <cstdint>

#include "rhizome/gnn/train.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/transport.h"

namespace rhizome::inline internal {

/// Measures the kept weights over all ranks, each of which computes a part of every layer; all
/// report the same, to the bit, as one rank does. A rank that is asked to stop, or fails, ends the
/// others at once. Errors: those of MeasureKept; another rank is lost or has failed, with its code.
Status MeasureOverRanks(const OneTraining& one, std::uint64_t cache_bytes, Transport& transport);

}  // namespace rhizome::inline internal
