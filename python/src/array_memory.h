#pragma once

#include <cstddef>
#include <memory>

namespace rhizome::python {

/// Uninitialised memory for NumPy arrays that are filled without the GIL. Large pieces that are
/// freed are kept for reuse (at most 32 MiB in the process): a loop creates and drops arrays of
/// about the same size with each minibatch, and pages that the kernel must clear and map again cost
/// more than filling them.
/// Threads: any. Calls never wait for each other. If a thread held the lock when the process was
/// forked, calls in the child do not block; they only skip the reuse.
struct ArrayMemory {
  /// Returns memory of that size, aligned for any number. Throws std::bad_alloc.
  static void* Take(std::size_t bytes);
  /// Frees memory returned by Take.
  static void GiveBack(void* memory) noexcept;
};

struct GivesBackArrayMemory {
  void operator()(void* memory) const noexcept { ArrayMemory::GiveBack(memory); }
};
template <typename T>
using ArrayOf = std::unique_ptr<T[], GivesBackArrayMemory>;

}  // namespace rhizome::python
