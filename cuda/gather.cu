#include <cuda_runtime.h>

#include <climits>

#include "rhizome/cuda/gather_kernel.h"

namespace rhizome::cuda {
namespace {

constexpr int kThreads = 256;

/// Each warp copies one row after another, 4 bytes a lane (1 byte where rows are not divisible by
/// 4): adjacent lanes access adjacent words, so that a row is read in whole memory transactions.
template <typename Word>
__global__ void GatherKernel(const Word* table, std::size_t row_words, const std::int64_t* rows,
                             std::size_t row_count, Word* out) {
  const std::size_t lane = threadIdx.x % 32;
  const std::size_t warps = std::size_t{gridDim.x} * (blockDim.x / 32);
  std::size_t i = (std::size_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32;
  for (; i < row_count; i += warps) {
    const Word* source = table + static_cast<std::size_t>(rows[i]) * row_words;
    Word* target = out + i * row_words;
    for (std::size_t word = lane; word < row_words; word += 32) target[word] = source[word];
  }
}

/// Device memory that frees itself.
struct DeviceMemory {
  void* data = nullptr;
  ~DeviceMemory() { cudaFree(data); }
  cudaError_t Allocate(std::size_t bytes) { return cudaMalloc(&data, bytes); }
};

KernelOutcome Outcome(cudaError_t error) {
  if (error == cudaSuccess) return {};
  const auto kind = error == cudaErrorMemoryAllocation ? KernelOutcome::Kind::kOutOfMemory
                                                       : KernelOutcome::Kind::kFailed;
  cudaGetLastError();  // so that the next call does not report this error again
  return {kind, cudaGetErrorString(error)};
}

template <typename Word>
void Launch(const DeviceMemory& table, std::size_t row_bytes, const DeviceMemory& rows,
            std::size_t row_count, const DeviceMemory& out) {
  const std::size_t blocks = (row_count * 32 + kThreads - 1) / kThreads;
  const int grid = static_cast<int>(blocks < 65535 ? blocks : 65535);
  GatherKernel<Word><<<grid, kThreads>>>(
      static_cast<const Word*>(table.data), row_bytes / sizeof(Word),
      static_cast<const std::int64_t*>(rows.data), row_count, static_cast<Word*>(out.data));
}

}  // namespace

bool DeviceAvailable() {
  int count = 0;
  const bool found = cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
  cudaGetLastError();
  return found;
}

KernelOutcome GatherRows(const std::byte* table, std::size_t table_bytes, std::size_t row_bytes,
                         const std::int64_t* rows, std::size_t row_count, std::byte* out) {
  if (!DeviceAvailable()) return {KernelOutcome::Kind::kNoDevice, "no CUDA device"};
  if (row_count == 0 || row_bytes == 0) return {};
  const std::size_t index_bytes = row_count * sizeof(std::int64_t);
  const std::size_t out_bytes = row_count * row_bytes;
  DeviceMemory device_table, device_rows, device_out;
  cudaError_t error = device_table.Allocate(table_bytes);
  if (error == cudaSuccess) error = device_rows.Allocate(index_bytes);
  if (error == cudaSuccess) error = device_out.Allocate(out_bytes);
  if (error == cudaSuccess) {
    error = cudaMemcpy(device_table.data, table, table_bytes, cudaMemcpyHostToDevice);
  }
  if (error == cudaSuccess) {
    error = cudaMemcpy(device_rows.data, rows, index_bytes, cudaMemcpyHostToDevice);
  }
  if (error != cudaSuccess) return Outcome(error);
  if (row_bytes % sizeof(std::uint32_t) == 0) {
    Launch<std::uint32_t>(device_table, row_bytes, device_rows, row_count, device_out);
  } else {
    Launch<unsigned char>(device_table, row_bytes, device_rows, row_count, device_out);
  }
  error = cudaGetLastError();
  if (error == cudaSuccess) {
    error = cudaMemcpy(out, device_out.data, out_bytes, cudaMemcpyDeviceToHost);
  }
  return Outcome(error);
}

}  // namespace rhizome::cuda
