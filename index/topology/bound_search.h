#pragma once

#include <cstddef>

namespace rhizome::inline internal {

/// First position in [begin, end) of which `before` is false; it is true of those before it and
/// false of all after it. Binary search.
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

}  // namespace rhizome::inline internal
