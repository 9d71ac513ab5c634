#pragma once

#include "cuda/kernel_args.h"
#include "cuda/launch.h"

// Conversion of row elements to float32, exactly as in the CPU kernels
// (cache/kernels/aggregate_portable.cc).

namespace rhizome::cuda {

struct Half {
  std::uint16_t bits;
};
struct Bfloat {
  std::uint16_t bits;
};

RZ_DEVICE float Widened(float value) { return value; }
RZ_DEVICE float Widened(Bfloat value) { return FloatOfBits(std::uint32_t{value.bits} << 16); }
/// Subnormal numbers are converted exactly; a NaN becomes quiet.
RZ_DEVICE float Widened(Half value) {
  const std::uint32_t sign = (value.bits & 0x8000U) << 16;
  const std::uint32_t magnitude = (value.bits & 0x7FFFU) << 13;
  if ((value.bits & 0x7C00U) == 0x7C00U) {
    const std::uint32_t quiet = (value.bits & 0x3FFU) != 0 ? 0x400000U : 0;
    return FloatOfBits(sign | magnitude | 0x7F800000U | quiet);
  }
  const float scaled = Product(FloatOfBits(magnitude), 5.192296858534828e33F);  // 2^112
  return (sign != 0) ? -scaled : scaled;
}

}  // namespace rhizome::cuda
