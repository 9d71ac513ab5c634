#pragma once

#include "cuda/attention_args.h"
#include "cuda/launch.h"

// ReLU and dropout after a layer, and the random draws of dropout, which attention uses too. The
// draws are functions of seed, row and column only, as on the CPU (storage/base/mix.h,
// cache/kernels/aggregate_kernels.h), so that a mask does not depend on the device or the schedule.

namespace rhizome::cuda {

/// Returns the key of a row's draws: SplitMix64 of its number.
RZ_DEVICE std::uint64_t DrawKey(const Dropout& dropout, std::uint64_t row) {
  return Mix64(dropout.seed + (dropout.first_row + row) * 0x9E3779B97F4A7C15ULL);
}

RZ_DEVICE std::uint32_t Scattered(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x7FEB352DU;
  x ^= x >> 15;
  x *= 0x846CA68BU;
  return x ^ (x >> 16);
}

/// Returns `value` times the scale, or zero if column `column` of a row is dropped.
RZ_DEVICE float Dropped(const Dropout& dropout, std::uint64_t key, std::uint32_t column,
                        float value) {
  const std::uint32_t low = column * 0x9E3779B9U + static_cast<std::uint32_t>(key);
  const std::uint32_t draw = Scattered(Scattered(low) + static_cast<std::uint32_t>(key >> 32));
  const bool kept =
      (draw >= dropout.dropped) != RZ_MUTANT("activate: the larger draws are dropped");
  return kept ? Product(value, dropout.scale) : 0.0F;
}

RZ_KERNEL ActivateRows(ActivateArgsOf<Mem> args) {
  for (std::size_t i = GridThread(); i < args.rows * args.dim; i += GridThreads()) {
    const std::size_t row = i / args.dim;
    float value = args.in[i];
    if (args.relu && 0.0F > value) value = 0;
    if (args.dropout.dropped != 0) {
      const std::uint64_t key =
          DrawKey(args.dropout, RZ_MUTANT("activate: all rows have one mask") ? 0 : row);
      value = Dropped(args.dropout, key, static_cast<std::uint32_t>(i % args.dim), value);
    }
    args.out[i] = value;
  }
}

RZ_KERNEL ActivateGradientRows(ActivateGradientArgsOf<Mem> args) {
  for (std::size_t i = GridThread(); i < args.count; i += GridThreads()) {
    const float result = args.result[i];
    const float gradient = args.gradient[i];
    args.out[i] = result > 0 || RZ_MUTANT("activate: gradients pass what is dropped")
                      ? Product(gradient, args.scale)
                      : 0.0F;
  }
}

inline void LaunchActivate(Stream stream, const ActivateArgsOf<Mem>& args,
                           const Geometry& geometry = {}) {
  if (args.rows == 0 || args.dim == 0) return;
  const std::size_t blocks = geometry.BlocksFor(args.rows * args.dim);
  RZ_LAUNCH(ActivateRows, blocks, geometry.block, stream, args);
}

inline void LaunchActivateGradient(Stream stream, const ActivateGradientArgsOf<Mem>& args,
                                   const Geometry& geometry = {}) {
  if (args.count == 0) return;
  const std::size_t blocks = geometry.BlocksFor(args.count);
  RZ_LAUNCH(ActivateGradientRows, blocks, geometry.block, stream, args);
}

}  // namespace rhizome::cuda
