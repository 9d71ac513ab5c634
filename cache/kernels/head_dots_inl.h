#pragma once

#include <cstddef>

#include "cache/kernels/attention_parts_inl.h"

// Dot products of the heads and their gradient, over the vector type V of aggregate_kernels_inl.h.

namespace rhizome {
inline namespace internal {
namespace {

template <typename V, typename T>
void HeadDotsOf(const HeadDotsArgs& args, std::size_t begin, std::size_t end) {
  WithWidth(args.width, [&]<std::size_t kColumns>() {
    for (std::size_t r = begin; r < end; ++r) {
      const T* const row = static_cast<const T*>(args.x) + r * args.x_stride;
      DotHeads<V, kColumns>(args.vectors, row, args.heads, args.width, args.out + r * args.heads);
    }
  });
}

template <typename V>
void HeadDots(const HeadDotsArgs& args, std::size_t begin, std::size_t end) {
  WithElement(args.type, [&]<typename T>() { HeadDotsOf<V, T>(args, begin, end); });
}

template <typename V>
void HeadDotsGradient(const HeadDotsGradientArgs& args, std::size_t begin, std::size_t end) {
  for (std::size_t r = begin; r < end; ++r) {
    for (std::size_t h = 0; h < args.heads; ++h) {
      const typename V::Reg gradient = V::Set(args.gradient[r * args.heads + h]);
      const std::size_t first = h * args.width;
      const std::size_t row = r * args.heads * args.width + first;
      for (std::size_t c = 0; c < args.width; c += V::kWidth) {
        const std::size_t left = args.width - c;
        float* const sum = args.vector_gradient + first + c;
        const typename V::Reg x = LoadSome<V>(args.x + row + c, left);
        StoreSome<V>(sum, V::Add(LoadSome<V>(sum, left), V::Mul(gradient, x)), left);
        if (args.x_gradient == nullptr) continue;
        const typename V::Reg vector = LoadSome<V>(args.vectors + first + c, left);
        typename V::Reg value = V::Mul(gradient, vector);
        float* const of_row = args.x_gradient + row + c;
        if (args.keep) value = V::Add(LoadSome<V>(of_row, left), value);
        StoreSome<V>(of_row, value, left);
      }
    }
  }
}

}  // namespace
}  // namespace internal
}  // namespace rhizome
