#pragma once

#include <cstddef>
#include <cstdint>

#include "cache/kernels/aggregate_kernels.h"

// Kernels as templates over a vector type V that the including file defines. V provides:
//   Reg, kWidth; Zero(), Set(f), Add, Mul, Store(p, r), StoreTail(p, r, n);
//   Load(const T*), LoadTail(const T*, n) for T = float, Half, Bfloat (zeros beyond n);
//   Int, IntSet(u), IntStore, IntStoreTail, IntLoad, IntLoadTail;
//   Larger(x, best) -> Mask: x is larger, or the first NaN; Pick(mask, a, b) for both types;
//   Equal(Int, Int) -> Mask; AddWhere(mask, acc, x);
//   Relu(x); Positive(x) -> Mask; AtLeast(Int, Int) -> Mask, unsigned; Keep(mask, x): x or zero;
//   Columns(first): first, first + 1, ...; IntMul, IntAdd, IntXor, IntShift<n> (right),
//   IntShiftLeft; Sub, Max(a, b): b unless a is larger; Bits(x) -> Int and OfBits(Int): casts
//   of the bits; Any(mask); Permute(x, Int): the elements of x at these indexes; Fold(parts):
//   the sum of kParts numbers in registers, added by halves; FoldFour(parts, out): four such
//   sums.
// Everything has internal linkage in the including file, which is compiled for its own instruction
// set.

namespace rhizome {
inline namespace internal {
namespace {

struct Half {
  std::uint16_t bits;
};
struct Bfloat {
  std::uint16_t bits;
};

/// Bytes of rows to prefetch ahead of the row being added: enough to hide memory latency, and a
/// small part of the L1 cache.
constexpr std::size_t kAheadBytes = 8192;
constexpr std::size_t kMaxAhead = 32;
constexpr std::size_t kLineBytes = 64;

inline std::size_t RowsAhead(std::size_t row_bytes) {
  const std::size_t rows = kAheadBytes / (row_bytes + 1);
  if (rows < 2) return 2;
  return rows < kMaxAhead ? rows : kMaxAhead;
}

/// Must be inlined, like every function that only prefetches: GCC treats such a function as free of
/// side effects and drops calls of it.
[[gnu::always_inline]] inline void PrefetchRow(const char* row, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += kLineBytes) __builtin_prefetch(row + at);
}

/// Prefetches the source row of the edge `distance` positions after edge e, if it is below the
/// limit.
struct Ahead {
  const char* x;
  std::size_t row_bytes;  // bytes of a row that are read
  std::size_t stride_bytes;
  const std::uint32_t* index;
  std::size_t distance;

  [[gnu::always_inline]] void Fetch(std::size_t e, std::size_t limit) const {
    if (e + distance >= limit) return;
    PrefetchRow(x + index[e + distance] * stride_bytes, row_bytes);
  }
};

/// Sums columns [column, column + N * width) of target t; with kTail, the last `tail` < width
/// columns.
template <typename V, typename T, int N, bool kScaled, bool kTail>
inline void SumColumns(const SumArgs& args, const Ahead& ahead, std::size_t t, std::size_t column,
                       std::size_t tail) {
  typename V::Reg acc[N];
  float* const out = args.out + t * args.out_stride + column;
  for (int i = 0; i < N; ++i) {
    if (!args.keep) {
      acc[i] = V::Zero();
    } else if constexpr (kTail) {
      acc[i] = V::LoadTail(out, tail);
    } else {
      acc[i] = V::Load(out + i * V::kWidth);
    }
  }
  const std::size_t end = args.ends[t];
  const std::size_t limit = args.index_end > end ? args.index_end : end;
  const T* const x = static_cast<const T*>(args.x) + column;
  for (std::size_t e = args.begins[t]; e < end; ++e) {
    if (column == 0) ahead.Fetch(e, limit);
    const std::size_t j = args.index[e];
    const T* const row = x + j * args.x_stride;
    typename V::Reg factor = V::Zero();
    if constexpr (kScaled) {
      const float source = args.source_scale == nullptr ? 1.0F : args.source_scale[j];
      const float weight = args.edge_weight == nullptr ? 1.0F : args.edge_weight[e];
      factor = V::Set(source * weight);
    }
    for (int i = 0; i < N; ++i) {
      typename V::Reg value;
      if constexpr (kTail) {
        value = V::LoadTail(row, tail);
      } else {
        value = V::Load(row + i * V::kWidth);
      }
      if constexpr (kScaled) value = V::Mul(factor, value);
      acc[i] = V::Add(acc[i], value);
    }
  }
  if (args.target_scale != nullptr) {
    const typename V::Reg factor = V::Set(args.target_scale[t]);
    for (int i = 0; i < N; ++i) acc[i] = V::Mul(acc[i], factor);
  }
  if (t < args.initial_rows) {
    const float* const initial = args.initial + t * args.initial_stride + column;
    const float scale = args.initial_scale == nullptr ? 1.0F : args.initial_scale[t];
    const typename V::Reg factor = V::Set(scale);
    for (int i = 0; i < N; ++i) {
      typename V::Reg value;
      if constexpr (kTail) {
        value = V::LoadTail(initial, tail);
      } else {
        value = V::Load(initial + i * V::kWidth);
      }
      acc[i] = V::Add(V::Mul(factor, value), acc[i]);
    }
  }
  for (int i = 0; i < N; ++i) {
    if constexpr (kTail) {
      V::StoreTail(out, acc[i], tail);
    } else {
      V::Store(out + i * V::kWidth, acc[i]);
    }
  }
}

/// Sums one target: as many columns at once as fit in registers, then fewer.
template <typename V, typename T, bool kScaled, int N>
inline void SumFrom(const SumArgs& args, const Ahead& ahead, std::size_t t, std::size_t column) {
  while (column + N * V::kWidth <= args.dim) {
    SumColumns<V, T, N, kScaled, false>(args, ahead, t, column, 0);
    column += N * V::kWidth;
  }
  if constexpr (N > 1) {
    SumFrom<V, T, kScaled, N / 2>(args, ahead, t, column);
  } else if (column < args.dim) {
    SumColumns<V, T, 1, kScaled, true>(args, ahead, t, column, args.dim - column);
  }
}

template <typename T>
inline Ahead MakeAhead(const void* x, std::size_t dim, std::size_t stride,
                       const std::uint32_t* index) {
  return {static_cast<const char*>(x), dim * sizeof(T), stride * sizeof(T), index,
          RowsAhead(dim * sizeof(T))};
}

template <typename V, typename T>
void SumRows(const SumArgs& args, std::size_t begin, std::size_t end) {
  const Ahead ahead = MakeAhead<T>(args.x, args.dim, args.x_stride, args.index);
  // A target without edges is unchanged if sums are only added to `out`.
  const bool only_adds = args.keep && args.target_scale == nullptr && args.initial_rows <= begin;
  const bool scaled = args.source_scale != nullptr || args.edge_weight != nullptr;
  for (std::size_t t = begin; t < end; ++t) {
    if (only_adds && args.begins[t] == args.ends[t]) continue;
    if (scaled) {
      SumFrom<V, T, true, V::kTile>(args, ahead, t, 0);
    } else {
      SumFrom<V, T, false, V::kTile>(args, ahead, t, 0);
    }
  }
}

/// Calls visit with the C++ type of the rows' elements.
template <typename Visit>
void WithElement(RowType type, const Visit& visit) {
  switch (type) {
    case RowType::kFloat32:
      return visit.template operator()<float>();
    case RowType::kFloat16:
      return visit.template operator()<Half>();
    case RowType::kBfloat16:
      return visit.template operator()<Bfloat>();
  }
}

template <typename V>
void Sum(const SumArgs& args, std::size_t begin, std::size_t end) {
  WithElement(args.type, [&]<typename T>() { SumRows<V, T>(args, begin, end); });
}

/// Like SumColumns, for the maxima and their edges, which need two registers per vector of columns.
template <typename V, typename T, int N, bool kTail>
inline void MaxColumns(const MaxArgs& args, const Ahead& ahead, std::size_t t, std::size_t column,
                       std::size_t tail) {
  typename V::Reg best[N];
  typename V::Int won[N];
  const std::size_t begin = args.begins[t];
  const std::size_t end = args.ends[t];
  const std::size_t limit = args.index_end > end ? args.index_end : end;
  float* const out = args.out + t * args.out_stride + column;
  for (int i = 0; i < N; ++i) {
    if (!args.keep) {
      best[i] = V::Zero();
    } else if constexpr (kTail) {
      best[i] = V::LoadTail(out, tail);
    } else {
      best[i] = V::Load(out + i * V::kWidth);
    }
    won[i] = V::IntSet(begin == end ? kNoEdge : static_cast<std::uint32_t>(begin));
  }
  const T* const x = static_cast<const T*>(args.x) + column;
  for (std::size_t e = begin; e < end; ++e) {
    if (column == 0) ahead.Fetch(e, limit);
    const T* const row = x + args.index[e] * args.x_stride;
    const typename V::Int number = V::IntSet(static_cast<std::uint32_t>(e));
    for (int i = 0; i < N; ++i) {
      typename V::Reg value;
      if constexpr (kTail) {
        value = V::LoadTail(row, tail);
      } else {
        value = V::Load(row + i * V::kWidth);
      }
      if (e == begin && !args.keep) {
        best[i] = value;
      } else {
        const typename V::Mask larger = V::Larger(value, best[i]);
        best[i] = V::Pick(larger, value, best[i]);
        won[i] = V::IntPick(larger, number, won[i]);
      }
    }
  }
  for (int i = 0; i < N; ++i) {
    if constexpr (kTail) {
      V::StoreTail(out, best[i], tail);
    } else {
      V::Store(out + i * V::kWidth, best[i]);
    }
    if (args.edge == nullptr) continue;
    std::uint32_t* const edge = args.edge + t * args.dim + column + i * V::kWidth;
    if constexpr (kTail) {
      V::IntStoreTail(edge, won[i], tail);
    } else {
      V::IntStore(edge, won[i]);
    }
  }
}

template <typename V, typename T, int N>
inline void MaxFrom(const MaxArgs& args, const Ahead& ahead, std::size_t t, std::size_t column) {
  while (column + N * V::kWidth <= args.dim) {
    MaxColumns<V, T, N, false>(args, ahead, t, column, 0);
    column += N * V::kWidth;
  }
  if constexpr (N > 1) {
    MaxFrom<V, T, N / 2>(args, ahead, t, column);
  } else if (column < args.dim) {
    MaxColumns<V, T, 1, true>(args, ahead, t, column, args.dim - column);
  }
}

template <typename V, typename T>
void MaxRows(const MaxArgs& args, std::size_t begin, std::size_t end) {
  const Ahead ahead = MakeAhead<T>(args.x, args.dim, args.x_stride, args.index);
  for (std::size_t t = begin; t < end; ++t) MaxFrom<V, T, V::kTile / 2>(args, ahead, t, 0);
}

template <typename V>
void Max(const MaxArgs& args, std::size_t begin, std::size_t end) {
  WithElement(args.type, [&]<typename T>() { MaxRows<V, T>(args, begin, end); });
}

template <typename V>
void MaxGradient(const MaxGradientArgs& args, std::size_t begin, std::size_t end) {
  for (std::size_t j = begin; j < end; ++j) {
    float* const out = args.out + j * args.dim;
    for (std::size_t column = 0; column < args.dim; column += V::kWidth) {
      const std::size_t left = args.dim - column;
      typename V::Reg acc = V::Zero();
      for (std::size_t k = args.begins[j]; k < args.ends[j]; ++k) {
        const std::size_t at = args.target[k] * args.dim + column;
        const typename V::Int edge = V::IntSet(args.edge[k]);
        if (left >= V::kWidth) {
          acc = V::AddWhere(V::Equal(V::IntLoad(args.winner + at), edge), acc,
                            V::Load(args.gradient + at));
        } else {
          acc = V::AddWhere(V::Equal(V::IntLoadTail(args.winner + at, left), edge), acc,
                            V::LoadTail(args.gradient + at, left));
        }
      }
      if (left >= V::kWidth) {
        V::Store(out + column, acc);
      } else {
        V::StoreTail(out + column, acc, left);
      }
    }
  }
}

/// Partial sums of a dot product.
constexpr std::size_t kParts = 16;

/// Partial sums of a dot product, held in kParts / width registers, so that every vector width adds
/// in the same order. A nonzero kColumns is `dim` as a compile-time constant.
template <typename V, typename T, std::size_t kColumns>
[[gnu::always_inline]] inline void DotParts(const float* a, const T* b, std::size_t dim,
                                            typename V::Reg* acc) {
  if constexpr (kColumns != 0) dim = kColumns;
  constexpr std::size_t kRegs = kParts / V::kWidth;
  for (std::size_t i = 0; i < kRegs; ++i) acc[i] = V::Zero();
  for (std::size_t column = 0; column < dim; column += kParts) {
    for (std::size_t i = 0; i < kRegs; ++i) {
      const std::size_t at = column + i * V::kWidth;
      if (at + V::kWidth <= dim) {
        acc[i] = V::Add(acc[i], V::Mul(V::Load(a + at), V::Load(b + at)));
      } else if (at < dim) {
        acc[i] =
            V::Add(acc[i], V::Mul(V::LoadTail(a + at, dim - at), V::LoadTail(b + at, dim - at)));
      }
    }
  }
}

template <typename V, typename T>
[[gnu::always_inline]] inline float Dot(const float* a, const T* b, std::size_t dim) {
  typename V::Reg acc[kParts / V::kWidth];
  DotParts<V, T, 0>(a, b, dim, acc);
  return V::Fold(acc);
}

template <typename V, typename T>
void DotRows(const EdgeDotArgs& args, std::size_t begin, std::size_t end) {
  const T* const x = static_cast<const T*>(args.x);
  for (std::size_t t = begin; t < end; ++t) {
    for (std::size_t e = args.begins[t]; e < args.ends[t]; ++e) {
      args.out[e] =
          Dot<V, T>(args.gradient + t * args.dim, x + args.index[e] * args.x_stride, args.dim);
    }
  }
}

template <typename V>
void EdgeDot(const EdgeDotArgs& args, std::size_t begin, std::size_t end) {
  WithElement(args.type, [&]<typename T>() { DotRows<V, T>(args, begin, end); });
}

template <typename V>
inline typename V::Int Mixed(typename V::Int x) {
  x = V::IntXor(x, V::template IntShift<16>(x));
  x = V::IntMul(x, V::IntSet(kMixA));
  x = V::IntXor(x, V::template IntShift<15>(x));
  x = V::IntMul(x, V::IntSet(kMixB));
  return V::IntXor(x, V::template IntShift<16>(x));
}

/// Returns the dropout draws of columns `first`, `first` + 1, ...
template <typename V>
inline typename V::Int Draws(std::uint64_t key, std::size_t first) {
  const auto low = static_cast<std::uint32_t>(key);
  const auto high = static_cast<std::uint32_t>(key >> 32);
  const typename V::Int column = V::Columns(static_cast<std::uint32_t>(first));
  const typename V::Int x = V::IntAdd(V::IntMul(column, V::IntSet(kColumnStep)), V::IntSet(low));
  return Mixed<V>(V::IntAdd(Mixed<V>(x), V::IntSet(high)));
}

template <typename V>
void Activate(const ActivateArgs& args, std::size_t begin, std::size_t end) {
  const typename V::Reg scale = V::Set(args.scale);
  const typename V::Int dropped = V::IntSet(args.dropped);
  for (std::size_t r = begin; r < end; ++r) {
    const float* const in = args.in + r * args.in_stride;
    float* const out = args.out + r * args.out_stride;
    const std::uint64_t key = args.dropped == 0 ? 0 : SplitMix64(args.seed, args.first_row + r);
    for (std::size_t column = 0; column < args.dim; column += V::kWidth) {
      const std::size_t left = args.dim - column;
      typename V::Reg value =
          left >= V::kWidth ? V::Load(in + column) : V::LoadTail(in + column, left);
      if (args.relu) value = V::Relu(value);
      if (args.dropped != 0) {
        value = V::Keep(V::AtLeast(Draws<V>(key, column), dropped), V::Mul(value, scale));
      }
      if (left >= V::kWidth) {
        V::Store(out + column, value);
      } else {
        V::StoreTail(out + column, value, left);
      }
    }
  }
}

template <typename V>
void ActivateGradient(const ActivateGradientArgs& args, std::size_t begin, std::size_t end) {
  const typename V::Reg scale = V::Set(args.scale);
  const std::size_t last = end * args.dim;
  for (std::size_t i = begin * args.dim; i < last; i += V::kWidth) {
    const std::size_t left = last - i;
    if (left >= V::kWidth) {
      const typename V::Reg value = V::Mul(V::Load(args.gradient + i), scale);
      V::Store(args.out + i, V::Keep(V::Positive(V::Load(args.result + i)), value));
    } else {
      const typename V::Reg value = V::Mul(V::LoadTail(args.gradient + i, left), scale);
      V::StoreTail(args.out + i, V::Keep(V::Positive(V::LoadTail(args.result + i, left)), value),
                   left);
    }
  }
}

template <typename V, typename T>
void WidenAll(const void* in, std::size_t count, float* out) {
  const T* const from = static_cast<const T*>(in);
  std::size_t i = 0;
  for (; i + V::kWidth <= count; i += V::kWidth) V::Store(out + i, V::Load(from + i));
  if (i < count) V::StoreTail(out + i, V::LoadTail(from + i, count - i), count - i);
}

template <typename V>
void Widen(RowType type, const void* in, std::size_t count, float* out) {
  WithElement(type, [&]<typename T>() { WidenAll<V, T>(in, count, out); });
}

}  // namespace
}  // namespace internal
}  // namespace rhizome
