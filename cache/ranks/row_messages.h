#pragma once

#include <algorithm>
#include <cstdint>

#include "rhizome/cache/rank_plan.h"

namespace rhizome::inline internal {

// Requests for rows of the job's array, and the replies. A request has the numbers of rows, 8 bytes
// each, which ascend. The reply has the rows in that order, then the checksum (RowCrc) of each, 4
// bytes. A message has a header besides, which is the transport's.

/// Rows of a request at most, and bytes of its reply: many requests of a sweep are on their way at
/// once, so that an owner reads for one while the reply to another is carried and a third is
/// checked; and a message that is waited for is not long behind them.
inline constexpr std::uint64_t kMostRequestRows = 32768;
inline constexpr std::uint64_t kMostReplyBytes = std::uint64_t{1} << 20;

/// Returns the rows of a request at most, of rows of so many bytes: one at least.
constexpr std::uint64_t RequestRows(std::uint64_t row_bytes) {
  return std::clamp<std::uint64_t>(kMostReplyBytes / (row_bytes + kReplyChecksumBytes), 1,
                                   kMostRequestRows);
}

}  // namespace rhizome::inline internal
