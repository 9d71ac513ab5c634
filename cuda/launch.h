#pragma once

// The vocabulary in which kernels are written. Each kernel has one source, in a .cuh file. nvcc
// compiles it as C++17 with the definitions below. The tests compile it as C++20 with the
// definitions of tests/cuda/simulator.h, which runs it under a seeded schedule and checks every
// access.
//
//   RZ_KERNEL, RZ_DEVICE        prefix of a kernel, and of a function that kernels call
//   RZ_LAUNCH(kernel, grid, block, stream, ...)
//   Mem<T>                      pointer to device memory; Cast<U>(mem) for wider accesses
//   RZ_SHARED(T, name, count)   shared memory of the block, not initialised
//   ThreadIndex() ...           position in the grid, which has one dimension
//   SyncBlock(), SyncWarp(mask), Shuffle, Ballot, CountBits
//   AtomicLoad/Cas/Min/Add/Or   device-wide atomics, relaxed
//   AtomicLoadPair              two words in one access of 16 bytes, each of them atomic
//   Product(a, b), Sum(a, b)    rounded separately, never fused
//   RZ_UNROLL                   prefix of a loop with a constant trip count
//   RZ_MUTANT("name")           false, except where the simulator injects that mistake

#if defined(__CUDACC__)

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "cuda/kernel_args.h"

#define RZ_KERNEL __global__ void
#define RZ_DEVICE __device__ __forceinline__
#define RZ_SHARED(T, name, count) __shared__ T name[count]
#define RZ_LAUNCH(kernel, grid, block, stream, ...) \
  kernel<<<static_cast<unsigned>(grid), block, 0, stream>>>(__VA_ARGS__)
#define RZ_UNROLL _Pragma("unroll")
#define RZ_MUTANT(name) false

namespace rhizome::cuda {

using Stream = cudaStream_t;

using plain::Mem;
template <typename To, typename From>
RZ_DEVICE To* Cast(From* mem) {
  return reinterpret_cast<To*>(mem);
}

RZ_DEVICE unsigned ThreadIndex() { return threadIdx.x; }
RZ_DEVICE unsigned BlockSize() { return blockDim.x; }
RZ_DEVICE unsigned BlockIndex() { return blockIdx.x; }
RZ_DEVICE unsigned BlockCount() { return gridDim.x; }

RZ_DEVICE void SyncBlock() { __syncthreads(); }
RZ_DEVICE void SyncWarp(unsigned mask) { __syncwarp(mask); }
template <typename T>
RZ_DEVICE T Shuffle(unsigned mask, T value, unsigned lane) {
  return __shfl_sync(mask, value, static_cast<int>(lane));
}
RZ_DEVICE unsigned Ballot(unsigned mask, bool flag) { return __ballot_sync(mask, flag); }
RZ_DEVICE unsigned CountBits(unsigned bits) { return static_cast<unsigned>(__popc(bits)); }

template <typename T>
RZ_DEVICE T AtomicLoad(const T* at) {
  return *const_cast<const volatile T*>(at);
}
struct WordPair {
  std::int64_t first;
  std::int64_t second;
};
RZ_DEVICE WordPair AtomicLoadPair(const std::int64_t* at) {
  WordPair pair;
  asm volatile("ld.volatile.global.v2.s64 {%0, %1}, [%2];"
               : "=l"(pair.first), "=l"(pair.second)
               : "l"(at)
               : "memory");
  return pair;
}
RZ_DEVICE std::int64_t AtomicCas(std::int64_t* at, std::int64_t expected, std::int64_t desired) {
  return static_cast<std::int64_t>(atomicCAS(reinterpret_cast<unsigned long long*>(at),
                                             static_cast<unsigned long long>(expected),
                                             static_cast<unsigned long long>(desired)));
}
RZ_DEVICE std::uint32_t AtomicMin(std::uint32_t* at, std::uint32_t value) {
  return atomicMin(at, value);
}
RZ_DEVICE std::uint32_t AtomicAdd(std::uint32_t* at, std::uint32_t value) {
  return atomicAdd(at, value);
}
RZ_DEVICE std::uint32_t AtomicOr(std::uint32_t* at, std::uint32_t value) {
  return atomicOr(at, value);
}

RZ_DEVICE float Product(float a, float b) { return __fmul_rn(a, b); }
RZ_DEVICE float Sum(float a, float b) { return __fadd_rn(a, b); }
RZ_DEVICE float FloatOfBits(std::uint32_t bits) { return __uint_as_float(bits); }
RZ_DEVICE std::uint32_t BitsOfFloat(float value) { return __float_as_uint(value); }

}  // namespace rhizome::cuda

#elif !defined(RZ_KERNEL)
#error "Kernels are compiled by nvcc, or after tests/cuda/simulator.h."
#endif

namespace rhizome::cuda {

constexpr unsigned kWarp = 32;
constexpr unsigned kAllLanes = 0xFFFFFFFFU;

/// Word of the widest access of a thread.
struct alignas(16) Word16 {
  std::uint32_t part[4];
};

RZ_DEVICE unsigned Lane() { return ThreadIndex() % kWarp; }
RZ_DEVICE std::size_t GridThread() {
  return std::size_t{BlockIndex()} * BlockSize() + ThreadIndex();
}
RZ_DEVICE std::size_t GridThreads() { return std::size_t{BlockCount()} * BlockSize(); }
RZ_DEVICE std::size_t GridWarp() { return GridThread() / kWarp; }
RZ_DEVICE std::size_t GridWarps() { return GridThreads() / kWarp; }

/// Same as Mix64 in storage/base/mix.h.
RZ_DEVICE std::uint64_t Mix64(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

/// Shape of a launch. Kernels loop over the work that exceeds `max_blocks` blocks.
struct Geometry {
  unsigned block = 256;
  std::size_t max_blocks = std::size_t{1} << 16;

  constexpr std::size_t BlocksFor(std::size_t threads) const {
    const std::size_t blocks = (threads + block - 1) / block;
    return blocks == 0 ? 1 : blocks < max_blocks ? blocks : max_blocks;
  }
};

/// Shape of a launch that reads host memory: 512 warps request 512 bytes or more each, twice what
/// is in flight on a bus of 64 GB/s with a latency of 2 us. More warps would only displace kernels
/// that compute concurrently.
constexpr Geometry kOverTheBus{256, 64};

}  // namespace rhizome::cuda
