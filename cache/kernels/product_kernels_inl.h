#pragma once

#include <cstddef>
#include <cstdint>

#include "rhizome/cache/aggregate_kernels_inl.h"
#include "rhizome/cache/product_kernels.h"

// The kernels of products, over the vector type V of aggregate_kernels_inl.h and, of V:
//   MulAdd(a, b, c): a * b + c, rounded once; kRows: rows at once; kPanels: panels at once, so many
//   that kRows * kPanels panels of sums, and one more, have registers.

namespace rhizome::inline internal {
namespace {

/// Numbers of a line of memory.
constexpr std::size_t kLineFloats = kLineBytes / sizeof(float);

/// R rows that are multiplied at once, and the rows after them.
template <int R>
struct RowBlock {
  const float* rows[R];
  const float* next[R];

  RowBlock(const ProductRows& all, std::size_t first, std::size_t end) {
    for (int r = 0; r < R; ++r) {
      rows[r] = RowAt(all, first + r);
      const std::size_t after = first + R + r;
      next[r] = RowAt(all, after < end ? after : end - 1);
    }
  }

  /// Prefetches the next rows' numbers from column `column` on, one line of each.
  [[gnu::always_inline]] void FetchNext(std::size_t column) const {
    for (int r = 0; r < R; ++r) __builtin_prefetch(next[r] + column, 0, 2);
  }

 private:
  static const float* RowAt(const ProductRows& all, std::size_t i) {
    return all.x + (all.place == nullptr ? i : all.place[i]) * all.stride;
  }
};

inline std::size_t LineEnd(std::size_t line, std::size_t columns) {
  return line + kLineFloats < columns ? line + kLineFloats : columns;
}

/// The place of register `i` of column `k` in panels.
template <typename V>
[[gnu::always_inline]] inline std::size_t InPanels(std::size_t i, std::size_t k,
                                                   std::size_t columns) {
  constexpr std::size_t kOfPanel = kPanel / V::kWidth;
  return (i / kOfPanel * columns + k) * kPanel + i % kOfPanel * V::kWidth;
}

/// Loads a register of numbers, zeros beyond `left`.
template <typename V>
[[gnu::always_inline]] inline typename V::Reg LoadLeft(const float* p, std::size_t left) {
  if (left >= V::kWidth) return V::Load(p);
  return left == 0 ? V::Zero() : V::LoadTail(p, left);
}

/// Stores the first `left` numbers of a register.
template <typename V>
[[gnu::always_inline]] inline void StoreLeft(float* p, typename V::Reg r, std::size_t left) {
  if (left >= V::kWidth) {
    V::Store(p, r);
  } else if (left > 0) {
    V::StoreTail(p, r, left);
  }
}

/// Numbers that are left of `all` after the first `before`.
inline std::size_t LeftAfter(std::size_t all, std::size_t before) {
  return all > before ? all - before : 0;
}

/// Multiplies R rows by the weights of P panels from panel `panel` on.
template <typename V, int R, int P>
inline void MultiplyBlock(const ProductArgs& args, const RowBlock<R>& block, std::size_t first,
                          std::size_t panel) {
  constexpr int N = P * kPanel / V::kWidth;
  const std::size_t columns = args.rows.columns;
  const float* const weights = args.panels + panel * columns * kPanel;
  const float* rows[R];
  for (int r = 0; r < R; ++r) rows[r] = block.rows[r];
  typename V::Reg acc[R][N];
  for (int r = 0; r < R; ++r)
    for (int i = 0; i < N; ++i) acc[r][i] = V::Zero();
  for (std::size_t line = 0; line < columns; line += kLineFloats) {
    if (panel == 0) block.FetchNext(line);
    const std::size_t end = LineEnd(line, columns);
    for (std::size_t k = line; k < end; ++k) {
      typename V::Reg weight[N];
      for (int i = 0; i < N; ++i) weight[i] = V::Load(weights + InPanels<V>(i, k, columns));
      for (int r = 0; r < R; ++r) {
        const typename V::Reg x = V::Set(rows[r][k]);
        for (int i = 0; i < N; ++i) acc[r][i] = V::MulAdd(x, weight[i], acc[r][i]);
      }
    }
  }
  const std::size_t column = panel * kPanel;
  // Sums stay in registers if all that takes one is known when this is compiled.
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i) {
    const std::size_t at = column + i * V::kWidth;
    const std::size_t left = LeftAfter(args.outputs, at);
    const typename V::Reg bias =
        args.bias == nullptr ? V::Zero() : LoadLeft<V>(args.bias + at, left);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const typename V::Reg sum = args.bias == nullptr ? acc[r][i] : V::Add(acc[r][i], bias);
      StoreLeft<V>(args.out + (first + r) * args.out_stride + at, sum, left);
    }
  }
}

/// Adds the products of R rows and their gradients to P panels from panel `panel` on.
template <typename V, int R, int P>
inline void GradientBlock(const ProductGradientArgs& args, const RowBlock<R>& block,
                          std::size_t first, std::size_t panel, bool keep) {
  constexpr int N = P * kPanel / V::kWidth;
  const std::size_t columns = args.rows.columns;
  float* const sums = args.sum + panel * columns * kPanel;
  const float* rows[R];
  for (int r = 0; r < R; ++r) rows[r] = block.rows[r];
  typename V::Reg gradient[R][N];
  for (int r = 0; r < R; ++r) {
    for (int i = 0; i < N; ++i) {
      const std::size_t at = panel * kPanel + i * V::kWidth;
      gradient[r][i] =
          LoadLeft<V>(args.gradient + (first + r) * args.outputs + at, LeftAfter(args.outputs, at));
    }
  }
  for (std::size_t line = 0; line < columns; line += kLineFloats) {
    if (panel == 0) block.FetchNext(line);
    const std::size_t end = LineEnd(line, columns);
    for (std::size_t k = line; k < end; ++k) {
      typename V::Reg sum[N];
      for (int i = 0; i < N; ++i)
        sum[i] = keep ? V::Load(sums + InPanels<V>(i, k, columns)) : V::Zero();
      for (int r = 0; r < R; ++r) {
        const typename V::Reg x = V::Set(rows[r][k]);
        for (int i = 0; i < N; ++i) sum[i] = V::MulAdd(x, gradient[r][i], sum[i]);
      }
      for (int i = 0; i < N; ++i) V::Store(sums + InPanels<V>(i, k, columns), sum[i]);
    }
  }
}

/// Calls work.template operator()<P>(panel) for runs of P panels from `panel` on, then of fewer.
template <int P, typename Work>
[[gnu::always_inline]] inline void ForPanels(std::size_t panels, std::size_t panel,
                                             const Work& work) {
  for (; panel + P <= panels; panel += P) work.template operator()<P>(panel);
  if constexpr (P > 1) {
    if (panel < panels) ForPanels<P / 2>(panels, panel, work);
  }
}

/// Calls work.template operator()<R>(first) for blocks of R rows from `begin` on, then for one row
/// at a time.
template <int R, typename Work>
[[gnu::always_inline]] inline void ForRowBlocks(std::size_t begin, std::size_t end,
                                                const Work& work) {
  for (; begin + R <= end; begin += R) work.template operator()<R>(begin);
  if constexpr (R > 1) ForRowBlocks<1>(begin, end, work);
}

template <typename V>
void Multiply(const ProductArgs& args, std::size_t begin, std::size_t end) {
  ForRowBlocks<V::kRows>(begin, end, [&]<int R>(std::size_t first) {
    const RowBlock<R> block(args.rows, first, end);
    ForPanels<V::kPanels>(PanelsOf(args.outputs), 0, [&]<int P>(std::size_t panel) {
      MultiplyBlock<V, R, P>(args, block, first, panel);
    });
  });
}

template <typename V>
void ProductGradient(const ProductGradientArgs& args, std::size_t begin, std::size_t end) {
  ForRowBlocks<V::kRows>(begin, end, [&]<int R>(std::size_t first) {
    const RowBlock<R> block(args.rows, first, end);
    const bool keep = args.keep || first > begin;
    ForPanels<V::kPanels>(PanelsOf(args.outputs), 0, [&]<int P>(std::size_t panel) {
      GradientBlock<V, R, P>(args, block, first, panel, keep);
    });
  });
}

}  // namespace
}  // namespace rhizome::inline internal
