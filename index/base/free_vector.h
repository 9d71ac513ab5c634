#pragma once

#include <vector>

namespace rhizome {
inline namespace internal {

/// Empties a vector and frees its memory.
template <typename T>
void Free(std::vector<T>& values) {
  std::vector<T>().swap(values);
}

}  // namespace internal
}  // namespace rhizome
