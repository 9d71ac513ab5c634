#pragma once

#include <cstddef>
#include <cstdint>

#include "cache/kernels/attention_parts_inl.h"

// Gradient of additive-v2 (GATv2) scores, over the vector type V of aggregate_kernels_inl.h.

namespace rhizome {
inline namespace internal {
namespace {

/// Rows at one end of edges that share a row at the other end, for the gradient of LeakyReLU(fixed
/// + row).
struct LeakyRows {
  const float* fixed = nullptr;  // [heads * width]
  const float* x = nullptr;      // rows of heads * width
  const std::uint32_t* index = nullptr;
  std::size_t count = 0;
  std::size_t numbers = 1;        // distance from the weights of an edge to the weights of the next
  const float* weight = nullptr;  // [count, numbers], the gradients of the scores
  const Ahead* ahead = nullptr;   // rows to prefetch; null: none
  std::size_t edge = 0;           // number of the first row in the index of `ahead`
  std::size_t limit = 0;
  float* out = nullptr;  // added to: attention * the sum of weight * LeakyReLU'
};

/// Adds R registers of columns of head `head`, starting at `column`, or with kTail `left` columns.
/// Let P be the sum of the weights with fixed + row > 0, and G the sum of all weights. Then the sum
/// of weight * LeakyReLU' is slope * G + (1 - slope) * P. Since LeakyReLU(x) = x * LeakyReLU'(x),
/// `fixed` times this sum is the part of the attention vectors' gradient that comes from this end
/// of the edges.
template <typename V, int R, bool kTail>
[[gnu::noinline]] void AddLeakyColumns(const AttendGradientArgs& args, const LeakyRows& rows,
                                       std::size_t head, std::size_t column, std::size_t left) {
  const auto load = [&](const float* p) {
    if constexpr (kTail) {
      return V::LoadTail(p, left);
    } else {
      return V::Load(p);
    }
  };
  const auto store = [&](float* p, typename V::Reg value) {
    if constexpr (kTail) {
      V::StoreTail(p, value, left);
    } else {
      V::Store(p, value);
    }
  };
  const std::size_t stride = args.heads * args.width;
  const std::size_t first = head * args.width + column;
  typename V::Reg positive[R], fixed[R];
  for (int r = 0; r < R; ++r) {
    positive[r] = V::Zero();
    fixed[r] = load(rows.fixed + first + r * V::kWidth);
  }
  float all = 0;
  const bool fetches = rows.ahead != nullptr && first == 0;
  for (std::size_t e = 0; e < rows.count; ++e) {
    if (fetches) rows.ahead->Fetch(rows.edge + e, rows.limit);
    const float* const row = rows.x + rows.index[e] * stride + first;
    const float gradient = rows.weight[e * rows.numbers + head];
    all += gradient;
    const typename V::Reg weight = V::Set(gradient);
    for (int r = 0; r < R; ++r) {
      const typename V::Reg x = V::Add(load(row + r * V::kWidth), fixed[r]);
      positive[r] = V::AddWhere(V::Positive(x), positive[r], weight);
    }
  }
  const typename V::Reg lesser = V::Set(all * args.slope);
  const typename V::Reg rest = V::Set(1 - args.slope);
  for (int r = 0; r < R; ++r) {
    const std::size_t at = first + r * V::kWidth;
    const typename V::Reg sum = V::Add(lesser, V::Mul(rest, positive[r]));
    float* const out = rows.out + at;
    store(out, V::Add(load(out), V::Mul(load(args.attention + at), sum)));
    float* const of_attention = args.attention_gradient + at;
    store(of_attention, V::Add(load(of_attention), V::Mul(fixed[r], sum)));
  }
}

template <typename V>
inline void AddLeakyRows(const AttendGradientArgs& args, const LeakyRows& rows) {
  constexpr int kRegs = V::kTile / 2;  // each of them needs two registers
  for (std::size_t h = 0; h < args.heads; ++h) {
    std::size_t c = 0;
    for (; c + kRegs * V::kWidth <= args.width; c += kRegs * V::kWidth) {
      AddLeakyColumns<V, kRegs, false>(args, rows, h, c, 0);
    }
    for (; c + kRegs / 2 * V::kWidth <= args.width; c += kRegs / 2 * V::kWidth) {
      AddLeakyColumns<V, kRegs / 2, false>(args, rows, h, c, 0);
    }
    for (; c + V::kWidth <= args.width; c += V::kWidth) {
      AddLeakyColumns<V, 1, false>(args, rows, h, c, 0);
    }
    if (c < args.width) AddLeakyColumns<V, 1, true>(args, rows, h, c, args.width - c);
  }
}

}  // namespace
}  // namespace internal
}  // namespace rhizome
