#pragma once

#include <new>

namespace rhizome {

/// For destructors, which must not throw: does `work`. Without memory for it the rest of the work
/// is left to the next opening, as after a crash. Private.
template <typename Work>
void Quietly(const Work& work) noexcept {
  try {
    work();
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch)
  }
}

}  // namespace rhizome
