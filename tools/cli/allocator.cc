#include "tools/cli/allocator.h"

#include <malloc.h>

namespace rhizome {

void ReturnFreedMemory(std::size_t bytes) {
  const auto threshold = static_cast<int>(bytes);
  mallopt(M_MMAP_THRESHOLD, threshold);
  mallopt(M_TRIM_THRESHOLD, threshold);
  mallopt(M_ARENA_MAX, 2);
}

}  // namespace rhizome
