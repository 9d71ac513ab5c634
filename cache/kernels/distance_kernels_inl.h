#pragma once

#include "cache/kernels/distance_kernels.h"
#include "cache/kernels/product_kernels_inl.h"

// Distance kernels, over the vector type V of aggregate_kernels_inl.h. V also provides Sqrt(x).

namespace rhizome {
inline namespace internal {
namespace {

/// Adds the term of columns k of a row and a query to a sum.
template <typename V, RowDistance kBy>
[[gnu::always_inline]] inline typename V::Reg AddTerm(typename V::Reg sum, typename V::Reg d,
                                                      typename V::Reg imaginary) {
  if constexpr (kBy == RowDistance::kL1) return V::Add(sum, V::Max(d, V::Sub(V::Zero(), d)));
  if constexpr (kBy == RowDistance::kL2) return V::MulAdd(d, d, sum);
  return V::Add(sum, V::Sqrt(V::MulAdd(imaginary, imaginary, V::Mul(d, d))));
}

/// Computes the distances of R rows, starting at `first`, from the queries of one panel.
template <typename V, RowDistance kBy, int R>
inline void DistanceBlock(const DistanceArgs& args, const RowBlock<R>& block, std::size_t first,
                          std::size_t panel) {
  constexpr int N = kPanel / V::kWidth;
  constexpr bool kComplex = kBy == RowDistance::kModulus;
  const std::size_t columns = args.rows.columns;
  const std::size_t end = kComplex ? columns / 2 : columns;
  const float* const queries = args.panels + panel * columns * kPanel;
  typename V::Reg sums[R][N];
  for (int r = 0; r < R; ++r)
    for (int i = 0; i < N; ++i) sums[r][i] = V::Zero();
  for (std::size_t k = 0; k < end; ++k) {
    typename V::Reg query[N];
    typename V::Reg imaginary[N];
    for (int i = 0; i < N; ++i) {
      query[i] = V::Load(queries + InPanels<V>(i, k, columns));
      imaginary[i] = kComplex ? V::Load(queries + InPanels<V>(i, end + k, columns)) : V::Zero();
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const typename V::Reg x = V::Set(block.rows[r][k]);
      const typename V::Reg y = kComplex ? V::Set(block.rows[r][end + k]) : V::Zero();
#pragma GCC unroll 16
      for (int i = 0; i < N; ++i)
        sums[r][i] = AddTerm<V, kBy>(sums[r][i], V::Sub(x, query[i]), V::Sub(y, imaginary[i]));
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    float* const out = args.out + (first + r) * args.out_stride + panel * kPanel;
#pragma GCC unroll 16
    for (int i = 0; i < N; ++i) {
      const std::size_t left = LeftAfter(args.outputs, panel * kPanel + i * V::kWidth);
      const typename V::Reg sum = kBy == RowDistance::kL2 ? V::Sqrt(sums[r][i]) : sums[r][i];
      StoreSome<V>(out + i * V::kWidth, V::Sub(V::Zero(), sum), left);
    }
  }
}

template <typename V, RowDistance kBy>
void NegativeDistances(const DistanceArgs& args, std::size_t begin, std::size_t end) {
  for (std::size_t panel = 0; panel < PanelsOf(args.outputs); ++panel) {
    ForRowBlocks<V::kRows>(begin, end, [&]<int R>(std::size_t first) {
      DistanceBlock<V, kBy, R>(args, RowBlock<R>(args.rows, first, end), first, panel);
    });
  }
}

template <typename V>
void NegativeDistance(const DistanceArgs& args, std::size_t begin, std::size_t end) {
  switch (args.by) {
    case RowDistance::kL1:
      return NegativeDistances<V, RowDistance::kL1>(args, begin, end);
    case RowDistance::kL2:
      return NegativeDistances<V, RowDistance::kL2>(args, begin, end);
    case RowDistance::kModulus:
      return NegativeDistances<V, RowDistance::kModulus>(args, begin, end);
  }
}

}  // namespace
}  // namespace internal
}  // namespace rhizome
