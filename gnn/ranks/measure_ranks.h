#pragma once

#include <cstdint>

#include "gnn/train/train.h"
#include "rhizome/status.h"
#include "rhizome/transport.h"

namespace rhizome {
inline namespace internal {

/// Evaluates the kept weights over all ranks. Each rank computes a part of every layer; all ranks
/// report the same results, with the same bits as a single rank. A rank that is asked to stop, or
/// fails, ends the others at once. Errors: errors of EvaluateBestWeights; another rank is lost or
/// has failed, with its code.
Status EvaluateOverRanks(const OneTraining& one, std::uint64_t cache_bytes, Transport& transport);

}  // namespace internal
}  // namespace rhizome
