#pragma once

#include <cstddef>

namespace rhizome {

/// Configures the allocator to return blocks of at least `bytes` to the system as soon as they are
/// freed. For processes with a memory limit: by default, glibc raises that threshold as buffers are
/// freed and keeps smaller blocks in one arena per thread.
void ReturnFreedMemory(std::size_t bytes);

}  // namespace rhizome
