#pragma once

#include <cstddef>
#include <cstdint>

#include "cache/kernels/aggregate_kernels_inl.h"
#include "cache/kernels/gather_kernels.h"
#include "storage/base/mutant.h"

// Full-graph maximum kernels (gather_kernels.h), over the vector type V of aggregate_kernels_inl.h.
// Winners are integers stored in the bits of floats: they are copied, and never used in float
// arithmetic.

namespace rhizome {
inline namespace internal {
namespace {

inline Ahead GatherAhead(const GatherRows& rows, std::size_t columns) {
  return MakeAhead<float>(rows.x, columns, rows.stride, rows.index);
}

inline std::size_t GatherLimit(const GatherRows& rows, std::size_t end) {
  return rows.index_end > end ? rows.index_end : end;
}

/// Loads and stores of columns in registers: whole registers, or with kTail the first `tail`
/// elements of one.
template <typename V, bool kTail>
struct GatherColumns {
  std::size_t tail = 0;

  [[gnu::always_inline]] typename V::Reg Load(const float* p) const {
    if constexpr (kTail) {
      return V::LoadTail(p, tail);
    } else {
      return V::Load(p);
    }
  }
  [[gnu::always_inline]] void Store(float* p, typename V::Reg r) const {
    if constexpr (kTail) {
      V::StoreTail(p, r, tail);
    } else {
      V::Store(p, r);
    }
  }
};

/// Calls work.template operator()<N, kTail>(column, tail) for runs of columns, starting at
/// `column`: runs of N registers while they fit, then of fewer; the last run has the remaining
/// `tail` columns.
template <typename V, int N, typename Work>
[[gnu::always_inline]] inline void ForColumns(std::size_t dim, std::size_t column,
                                              const Work& work) {
  for (; column + N * V::kWidth <= dim; column += N * V::kWidth)
    work.template operator()<N, false>(column, 0);
  if constexpr (N > 1) {
    ForColumns<V, N / 2>(dim, column, work);
  } else if (column < dim) {
    work.template operator()<1, true>(column, dim - column);
  }
}

/// Takes maxima of columns [column, column + N * width) of target t, which must have edges.
template <typename V, int N, bool kTail>
inline void GatherMaxColumns(const GatherMaxArgs& args, const Ahead& ahead, std::size_t t,
                             std::size_t column, std::size_t tail) {
  const GatherColumns<V, kTail> columns{tail};
  const GatherRows& rows = args.rows;
  const std::size_t end = rows.ends[t];
  const std::size_t limit = GatherLimit(rows, end);
  float* const most = args.state + t * 2 * args.dim + column;
  float* const winner = most + args.dim;
  typename V::Reg best[N], won[N];
  for (int i = 0; i < N; ++i) {
    best[i] = columns.Load(most + i * V::kWidth);
    won[i] = columns.Load(winner + i * V::kWidth);
  }
  std::uint32_t first_winner = 0;
  __builtin_memcpy(&first_winner, winner, sizeof(first_winner));
  const std::size_t begin = rows.begins[t];
  for (std::size_t e = begin; e < end; ++e) {
    if (column == 0) ahead.Fetch(e, limit);
    const std::size_t row = rows.index[e];
    const float* const x = rows.x + row * rows.stride + column;
    const typename V::Reg number = V::OfBits(V::IntSet(args.number[row]));
    // no column has a winner yet: rows are processed whole
    if (e == begin && first_winner == kNoWinner) {
      for (int i = 0; i < N; ++i) {
        best[i] = columns.Load(x + i * V::kWidth);
        won[i] = number;
      }
      continue;
    }
    for (int i = 0; i < N; ++i) {
      const typename V::Reg value = columns.Load(x + i * V::kWidth);
      const typename V::Mask larger = V::Larger(value, best[i]);
      best[i] = V::Pick(larger, value, best[i]);
      won[i] = V::Pick(larger, number, won[i]);
    }
  }
  for (int i = 0; i < N; ++i) {
    columns.Store(most + i * V::kWidth, best[i]);
    columns.Store(winner + i * V::kWidth, won[i]);
  }
}

template <typename V>
void GatherMax(const GatherMaxArgs& args, std::size_t begin, std::size_t end) {
  const Ahead ahead = GatherAhead(args.rows, args.dim);
  for (std::size_t t = begin; t < end; ++t) {
    if (args.rows.begins[t] == args.rows.ends[t]) continue;
    // Each vector of columns needs two registers.
    ForColumns<V, V::kTile / 2>(args.dim, 0,
                                [&]<int N, bool kTail>(std::size_t column, std::size_t tail) {
                                  GatherMaxColumns<V, N, kTail>(args, ahead, t, column, tail);
                                });
  }
}

/// Adds gradients to columns [column, column + N * width) of target t.
template <typename V, int N, bool kTail>
inline void GatherMaxGradientColumns(const GatherMaxGradientArgs& args, const Ahead& ahead,
                                     std::size_t t, std::size_t column, std::size_t tail) {
  const GatherColumns<V, kTail> columns{tail};
  const GatherRows& rows = args.rows;
  const std::size_t begin = rows.begins[t];
  const std::size_t end = rows.ends[t];
  const std::size_t limit = GatherLimit(rows, end);
  const typename V::Int target = V::IntSet(args.first_target + static_cast<std::uint32_t>(t));
  float* const out = args.out + t * args.dim + column;
  typename V::Reg acc[N];
  for (int i = 0; i < N; ++i) acc[i] = columns.Load(out + i * V::kWidth);
  for (std::size_t e = begin; e < end; ++e) {
    if (column == 0) ahead.Fetch(e, limit);
    const bool again = e > begin && rows.index[e - 1] == rows.index[e];
    if (again && !RHIZOME_MUTANT("a maximum's gradient follows every parallel edge")) continue;
    const float* const gradient = rows.x + rows.index[e] * rows.stride + column;
    const float* const winner = gradient + args.dim;
    for (int i = 0; i < N; ++i) {
      const typename V::Int of = V::Bits(columns.Load(winner + i * V::kWidth));
      acc[i] = V::AddWhere(V::Equal(of, target), acc[i], columns.Load(gradient + i * V::kWidth));
    }
  }
  for (int i = 0; i < N; ++i) columns.Store(out + i * V::kWidth, acc[i]);
}

template <typename V>
void GatherMaxGradient(const GatherMaxGradientArgs& args, std::size_t begin, std::size_t end) {
  const Ahead ahead = GatherAhead(args.rows, 2 * args.dim);
  for (std::size_t t = begin; t < end; ++t) {
    if (args.rows.begins[t] == args.rows.ends[t]) continue;
    ForColumns<V, V::kTile / 2>(
        args.dim, 0, [&]<int N, bool kTail>(std::size_t column, std::size_t tail) {
          GatherMaxGradientColumns<V, N, kTail>(args, ahead, t, column, tail);
        });
  }
}

}  // namespace
}  // namespace internal
}  // namespace rhizome
