#pragma once

#include <cstdint>
#include <memory>

#include "rhizome/cache/policy.h"
#include "rhizome/cache/row_ranks.h"

namespace rhizome::inline internal {

/// Two policies in one pool: `own` decides about rows of this rank, in the first `own_frames`
/// frames, `remote` about rows of other ranks, in the frames after them. Both must say what of
/// their prefill is read. Each is given its rows of every step. After an error the policy is of no
/// use any more. Ownership: the table of ranks must outlive it.
std::unique_ptr<Policy> MakeSplitPolicy(const RowRanks& ranks, std::uint32_t own_frames,
                                        std::unique_ptr<Policy> own,
                                        std::unique_ptr<Policy> remote);

/// Divides a trace by who has its rows; both parts have all its steps.
struct SplitTrace {
  Trace own, remote;
};
SplitTrace Split(const Trace& trace, const RowRanks& ranks);

}  // namespace rhizome::inline internal
