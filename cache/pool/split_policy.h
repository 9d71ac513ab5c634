#pragma once

#include <cstdint>
#include <memory>

#include "cache/pool/row_ranks.h"
#include "rhizome/policy.h"

namespace rhizome {
inline namespace internal {

/// Combines two policies in one pool: `own` manages rows of the local rank in the first
/// `own_frames` frames, `remote` manages rows of other ranks in the frames after them. Both must
/// list the prefill keys that they read. Each receives its share of every step. After an error the
/// policy must not be used any more. Ownership: the table of ranks must outlive it.
std::unique_ptr<Policy> MakeSplitPolicy(const RowRanks& ranks, std::uint32_t own_frames,
                                        std::unique_ptr<Policy> own,
                                        std::unique_ptr<Policy> remote);

/// Two traces with the same number of steps: requests for rows of the local rank, and for rows of
/// other ranks.
struct SplitTrace {
  Trace own, remote;
};
SplitTrace Split(const Trace& trace, const RowRanks& ranks);

}  // namespace internal
}  // namespace rhizome
