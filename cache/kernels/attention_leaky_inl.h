#pragma once

#include <cstddef>
#include <cstdint>

#include "rhizome/cache/attention_parts_inl.h"

// The gradient of additive-v2 scores, over the vector type V of aggregate_kernels_inl.h.

namespace rhizome::inline internal {
namespace {

/// The rows of one end of edges whose other end is one row, for the gradient of
/// LeakyReLU(fixed + row).
struct LeakyRows {
  const float* fixed = nullptr;  // [heads * width]
  const float* x = nullptr;      // rows of heads * width
  const std::uint32_t* index = nullptr;
  std::size_t count = 0;
  std::size_t numbers = 1;        // from the weights of an edge to those of the next
  const float* weight = nullptr;  // [count, numbers], the gradients of the scores
  const Ahead* ahead = nullptr;   // rows to prefetch; null: none
  std::size_t edge = 0;           // number of the first row in the index of `ahead`
  std::size_t limit = 0;
  float* out = nullptr;                 // added to: attention * the sum of weight * LeakyReLU'
  float* attention_gradient = nullptr;  // added to: weight * LeakyReLU; null: not needed
};

/// Adds R registers of columns of head `head` from `column` on, or with kTail `left` columns.
template <typename V, int R, bool kTail, bool kAttention>
[[gnu::noinline]] void AddLeakyColumns(const AttendGradientArgs& args, const LeakyRows& rows,
                                       std::size_t head, std::size_t column, std::size_t left) {
  const auto load = [&](const float* p) {
    if constexpr (kTail) {
      return V::LoadTail(p, left);
    } else {
      return V::Load(p);
    }
  };
  const std::size_t stride = args.heads * args.width;
  const std::size_t first = head * args.width + column;
  typename V::Reg sum[R], of_attention[R], fixed[R];
  for (int r = 0; r < R; ++r) {
    const std::size_t at = first + r * V::kWidth;
    sum[r] = V::Zero();
    fixed[r] = load(rows.fixed + at);
    if constexpr (kAttention) of_attention[r] = load(rows.attention_gradient + at);
  }
  const bool fetches = rows.ahead != nullptr && first == 0;
  for (std::size_t e = 0; e < rows.count; ++e) {
    if (fetches) rows.ahead->Fetch(rows.edge + e, rows.limit);
    const float* const row = rows.x + rows.index[e] * stride + first;
    const float gradient = rows.weight[e * rows.numbers + head];
    const typename V::Reg weight = V::Set(gradient);
    const typename V::Reg lesser = V::Set(gradient * args.slope);
    for (int r = 0; r < R; ++r) {
      const typename V::Reg x = V::Add(load(row + r * V::kWidth), fixed[r]);
      const typename V::Reg step = V::Pick(V::Positive(x), weight, lesser);
      sum[r] = V::Add(sum[r], step);
      if constexpr (kAttention) of_attention[r] = V::Add(of_attention[r], V::Mul(step, x));
    }
  }
  const auto store = [&](float* p, typename V::Reg value) {
    if constexpr (kTail) {
      V::StoreTail(p, value, left);
    } else {
      V::Store(p, value);
    }
  };
  for (int r = 0; r < R; ++r) {
    float* const out = rows.out + first + r * V::kWidth;
    const typename V::Reg attention = load(args.attention + first + r * V::kWidth);
    store(out, V::Add(load(out), V::Mul(attention, sum[r])));
    if constexpr (kAttention) {
      store(rows.attention_gradient + first + r * V::kWidth, of_attention[r]);
    }
  }
}

template <typename V, bool kAttention>
inline void AddLeakyRows(const AttendGradientArgs& args, const LeakyRows& rows) {
  constexpr int kRegs = V::kTile / 4;  // four of each are held
  for (std::size_t h = 0; h < args.heads; ++h) {
    std::size_t c = 0;
    for (; c + kRegs * V::kWidth <= args.width; c += kRegs * V::kWidth) {
      AddLeakyColumns<V, kRegs, false, kAttention>(args, rows, h, c, 0);
    }
    for (; c + V::kWidth <= args.width; c += V::kWidth) {
      AddLeakyColumns<V, 1, false, kAttention>(args, rows, h, c, 0);
    }
    if (c < args.width) {
      AddLeakyColumns<V, 1, true, kAttention>(args, rows, h, c, args.width - c);
    }
  }
}

}  // namespace
}  // namespace rhizome::inline internal
