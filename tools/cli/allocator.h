#pragma once

#include <cstddef>

namespace rhizome {

/// For a process that works under a bound on memory: from now on the allocator gives blocks of at
/// least `bytes` back to the system when they are freed. It would else raise that threshold as
/// buffers are freed, and keep what lies below it, in an arena for each thread.
void ReturnFreedMemory(std::size_t bytes);

}  // namespace rhizome
