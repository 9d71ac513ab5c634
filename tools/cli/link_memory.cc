#include "tools/cli/link_memory.h"

#include <fmt/format.h>

#include "cache/job/process_memory.h"
#include "storage/base/bytes_left.h"

namespace rhizome {

LinkMemory LinkMemory::Of(std::uint64_t limit_bytes, std::uint64_t base_bytes) {
  // Stacks and heaps of threads, buffers of readers, and pages of libtorch that are used first.
  constexpr std::uint64_t kUncounted = std::uint64_t{12} << 20;
  return {.limit_bytes = limit_bytes, .held_bytes = HeldBytes(base_bytes) + kUncounted};
}

std::uint64_t LinkMemory::OfJob(std::uint64_t without_limit) const {
  return limit_bytes == 0 ? without_limit : BytesLeft(limit_bytes, held_bytes);
}

Status LinkMemory::Explain(const Status& status) const {
  if (limit_bytes == 0 || status.code() != StatusCode::kOutOfMemory) return status;
  return status.WithContext(fmt::format(
      "--memory is {} bytes; the graph and the process use {} of them", limit_bytes, held_bytes));
}

}  // namespace rhizome
