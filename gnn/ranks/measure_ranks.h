#pragma once

#include <cstdint>

#include "rhizome/gnn/train.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/transport.h"

namespace rhizome::inline internal {

/// Evaluates the kept weights over all ranks. Each rank computes a part of every layer; all ranks
/// report the same results, with the same bits as a single rank. A rank that is asked to stop, or
/// fails, ends the others at once. Errors: errors of MeasureKept; another rank is lost or has
/// failed, with its code.
Status MeasureOverRanks(const OneTraining& one, std::uint64_t cache_bytes, Transport& transport);

}  // namespace rhizome::inline internal
