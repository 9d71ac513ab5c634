#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

// Device arrays and random values for the checks in tools/device.

namespace rhizome {

using Random = std::mt19937_64;

inline void Must(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

/// An array in device memory.
template <typename T>
class OnDevice {
 public:
  explicit OnDevice(const std::vector<T>& values) : count_(values.size()) {
    Must(cudaMalloc(&data_, std::max<std::size_t>(count_, 1) * sizeof(T)), "cudaMalloc");
    if (count_ == 0) return;
    Must(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice), "upload");
  }
  ~OnDevice() { cudaFree(data_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  T* get() const { return static_cast<T*>(data_); }
  std::vector<T> Read() const {
    std::vector<T> values(count_);
    if (count_ > 0) {
      Must(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost),
           "download");
    }
    return values;
  }

 private:
  void* data_ = nullptr;
  std::size_t count_;
};

inline std::vector<float> RandomFloats(Random& random, std::size_t count) {
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random() % 20001) / 10000.0F - 1.0F;
  return values;
}
inline std::vector<unsigned char> RandomBytes(Random& random, std::size_t count) {
  std::vector<unsigned char> bytes(count);
  for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random());
  return bytes;
}
inline bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y) || (x != x && y != y);
  });
}

bool SumInPiecesIsNear(Random& random);
bool AttentionEquals(Random& random);
bool AttentionV2Equals(Random& random);
bool ActivationEquals(Random& random);

}  // namespace rhizome
