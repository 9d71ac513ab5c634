#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// One of several arrays whose caches share memory.
struct DividedArray {
  std::uint64_t most_bytes = 0;       ///< more cache memory is useless: all rows fit
  std::uint64_t requested_bytes = 0;  ///< bytes of rows that the profile requests

  /// Returns the bytes that the profile reads with a cache of this size.
  std::function<Result<std::uint64_t>(std::uint64_t cache_bytes)> bytes_read = {};
};

/// Divides cache memory among arrays in steps of a sixteenth. Each step goes to the array where it
/// saves the most bytes. If no array saves any, which is the case once the rows that a short
/// profile requests repeatedly fit, the step goes to the array with the most requested bytes per
/// byte of memory. Returns the bytes of each array; their sum is at most cache_bytes.
/// Errors: any error of bytes_read.
Result<std::vector<std::uint64_t>> DivideCache(std::uint64_t cache_bytes,
                                               std::span<const DividedArray> arrays);

}  // namespace internal
}  // namespace rhizome
