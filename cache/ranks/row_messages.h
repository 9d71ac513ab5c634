#pragma once

#include <algorithm>
#include <cstdint>

#include "cache/ranks/rank_plan.h"

namespace rhizome {
inline namespace internal {

// Requests for rows of the job's array, and the replies. A request contains ascending row numbers,
// 8 bytes each. The reply contains the rows in that order, then the checksum (RowCrc) of each, 4
// bytes. The transport adds a header to each message.

/// Max rows per request and bytes per reply. Requests are limited so that many requests of a sweep
/// are in flight at once: an owner reads for one while the reply to another is transferred and a
/// third is verified. Short messages also limit the delay of messages that other callers wait for.
inline constexpr std::uint64_t kMaxRequestRows = 32768;
inline constexpr std::uint64_t kMaxReplyBytes = std::uint64_t{1} << 20;

/// Returns the max rows per request for rows of `row_bytes` bytes; at least 1.
constexpr std::uint64_t RequestRows(std::uint64_t row_bytes) {
  return std::clamp<std::uint64_t>(kMaxReplyBytes / (row_bytes + kReplyChecksumBytes), 1,
                                   kMaxRequestRows);
}

}  // namespace internal
}  // namespace rhizome
