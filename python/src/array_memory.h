#pragma once

#include <cstddef>
#include <memory>

namespace rhizome::python {

/// Memory for NumPy arrays that is filled without the GIL, and not cleared before. What large
/// arrays give back is kept for the next ones (32 MiB at most, in the process), for a loop makes
/// and drops arrays of about the same size with each minibatch, and pages that the kernel has to
/// clear and map again cost more than filling them. Threads: any. None waits for another, so that a
/// lock which a thread had when the process was forked stops nobody in the child: memory is only
/// not kept there.
struct ArrayMemory {
  /// Returns memory for so many bytes, aligned for any number. Throws std::bad_alloc.
  static void* Take(std::size_t bytes);
  /// Gives back what Take returned.
  static void GiveBack(void* memory) noexcept;
};

struct GivesBackArrayMemory {
  void operator()(void* memory) const noexcept { ArrayMemory::GiveBack(memory); }
};
template <typename T>
using ArrayOf = std::unique_ptr<T[], GivesBackArrayMemory>;

}  // namespace rhizome::python
