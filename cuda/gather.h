#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "rhizome/storage/result.h"

// No product code calls these yet: tests compare the kernel with its reference.

namespace rhizome::inline internal {

/// Returns whether there is a device that the kernels of this build can run on.
bool CudaAvailable();

/// Copies out[i] = table[rows[i]] for rows of `row_bytes` bytes on the CPU; the reference for the
/// kernel. `table` has shape [rows, row_bytes], `out` [rows.size(), row_bytes].
/// Errors: kInvalidArgument, a row out of range or sizes that do not fit.
/// Threads: any.
Status GatherRowsCpu(std::span<const std::byte> table, std::size_t row_bytes,
                     std::span<const std::int64_t> rows, std::span<std::byte> out);

/// Does the same on the current CUDA device: copies the table and the row numbers to it, gathers,
/// and copies the result back.
/// Errors: as above; kUnsupported, built without nvcc or no device; kOutOfMemory; kIoError, the
/// CUDA runtime failed.
Status GatherRowsCuda(std::span<const std::byte> table, std::size_t row_bytes,
                      std::span<const std::int64_t> rows, std::span<std::byte> out);

}  // namespace rhizome::inline internal
