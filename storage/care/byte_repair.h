#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace rhizome::inline internal {

/// Finds the one byte of `bytes` that was changed since they had the CRC-32C `crc32c`: the sum is
/// linear, so for each place at most one change explains the difference, and mostly none does.
/// Tries those that do (about one wrong one in 16 million bytes) until `accept` is true; then
/// `bytes` are as they were. False: more than a byte differs, and `bytes` are unchanged. Time:
/// about a nanosecond a byte, and `accept`.
bool CorrectByte(std::span<std::byte> bytes, std::uint32_t crc32c,
                 const std::function<bool()>& accept);

}  // namespace rhizome::inline internal
