#pragma once

#include <cstddef>
#include <cstdint>

// The interface between C++20 and CUDA: plain pointers and numbers, because nvcc compiles C++17
// here.

namespace rhizome::cuda {

/// How a device call ended. `message` is the runtime's own text, static storage.
struct KernelOutcome {
  enum class Kind : std::uint8_t { kOk, kNoDevice, kOutOfMemory, kFailed };
  Kind kind = Kind::kOk;
  const char* message = "";
};

/// Returns whether a device answers.
bool DeviceAvailable();

/// Computes out[i] = table[rows[i]] on the device; the caller has checked the arguments. `table`
/// has table_bytes bytes, `out` row_count * row_bytes.
KernelOutcome GatherRows(const std::byte* table, std::size_t table_bytes, std::size_t row_bytes,
                         const std::int64_t* rows, std::size_t row_count, std::byte* out);

}  // namespace rhizome::cuda
