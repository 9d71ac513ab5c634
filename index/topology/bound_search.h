#pragma once

#include <cstddef>

namespace rhizome {
inline namespace internal {

/// Returns the first position in [begin, end) for which `before` is false, by binary search.
/// `before` must be true for a prefix of the range and false after it.
template <typename Before>
std::size_t FirstNot(std::size_t begin, std::size_t end, Before before) {
  while (begin < end) {
    const std::size_t middle = begin + (end - begin) / 2;
    if (before(middle)) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

}  // namespace internal
}  // namespace rhizome
