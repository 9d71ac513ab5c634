#pragma once

#include <cstddef>

namespace rhizome {

/// Makes the allocator return blocks of at least `bytes` to the system as soon as they are freed,
/// for a process that has a memory limit. By default glibc raises that threshold as buffers are
/// freed, and keeps smaller blocks in an arena for each thread.
void ReturnFreedMemory(std::size_t bytes);

}  // namespace rhizome
