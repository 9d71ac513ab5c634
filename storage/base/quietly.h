#pragma once

#include <new>

namespace rhizome {
inline namespace internal {

/// Runs `work` in a destructor, which must not throw. If memory runs out, the rest of the work is
/// left to the next opening of the store, as after a crash.
template <typename Work>
void Quietly(const Work& work) noexcept {
  try {
    work();
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch)
  }
}

}  // namespace internal
}  // namespace rhizome
