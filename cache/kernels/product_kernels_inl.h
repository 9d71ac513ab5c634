#pragma once

#include <cstddef>
#include <cstdint>

#include "cache/kernels/attention_parts_inl.h"
#include "cache/kernels/product_kernels.h"

// Product kernels, over the vector type V of aggregate_kernels_inl.h. V also provides:
//   MulAdd(a, b, c): a * b + c, rounded once; kRows: rows per block; kPanels: panels per block,
//   such that the sums of kRows * kPanels panels, and one more panel, fit in registers.

namespace rhizome {
inline namespace internal {
namespace {

/// Number of floats in a cache line.
constexpr std::size_t kLineFloats = kLineBytes / sizeof(float);

/// R rows that are multiplied at once, and the R rows after them.
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

  /// Prefetches one cache line of each of the next rows, starting at `column`.
  [[gnu::always_inline]] void FetchNext(std::size_t column) const {
    for (int r = 0; r < R; ++r) __builtin_prefetch(next[r] + column, 0, 2);
  }

 private:
  static const float* RowAt(const ProductRows& all, std::size_t i) {
    return all.x + (all.place == nullptr ? i : all.place[i]) * all.stride;
  }
};

/// Columns [begin, end) of all rows.
struct ColumnRun {
  std::size_t begin = 0;
  std::size_t end = 0;

  std::size_t LineEnd(std::size_t line) const {
    return line + kLineFloats < end ? line + kLineFloats : end;
  }
};

/// Calls work(run) for runs of columns, in order; once if there are no columns. A run is short
/// enough that its weights in `at_once` panels are still in the L1 cache for the next rows.
template <typename Work>
[[gnu::always_inline]] inline void ForColumnRuns(std::size_t columns, std::size_t at_once,
                                                 const Work& work) {
  constexpr std::size_t kBytes = std::size_t{16} << 10;
  const std::size_t most = kBytes / (at_once * kPanel * sizeof(float));
  ColumnRun run;
  do {
    run.end = columns - run.begin < most ? columns : run.begin + most;
    work(run);
    run.begin = run.end;
  } while (run.end < columns);
}

/// Offset of register `i` of column `k` in the panels.
template <typename V>
[[gnu::always_inline]] inline std::size_t InPanels(std::size_t i, std::size_t k,
                                                   std::size_t columns) {
  constexpr std::size_t kOfPanel = kPanel / V::kWidth;
  return (i / kOfPanel * columns + k) * kPanel + i % kOfPanel * V::kWidth;
}

/// Returns how many of `all` numbers remain after the first `before`.
inline std::size_t LeftAfter(std::size_t all, std::size_t before) {
  return all > before ? all - before : 0;
}

/// Multiplies columns of R rows by the weights of P panels, starting at `panel`, and adds the
/// products to the sums of earlier columns.
template <typename V, int R, int P>
inline void MultiplyBlock(const ProductArgs& args, const ColumnRun& run, const RowBlock<R>& block,
                          std::size_t first, std::size_t panel) {
  constexpr int N = P * kPanel / V::kWidth;
  const std::size_t columns = args.rows.columns;
  const float* const weights = args.panels + panel * columns * kPanel;
  const float* rows[R];
  for (int r = 0; r < R; ++r) rows[r] = block.rows[r];
  float* const out = args.out + first * args.out_stride + panel * kPanel;
  typename V::Reg acc[R][N];
  for (int r = 0; r < R; ++r)
    for (int i = 0; i < N; ++i) acc[r][i] = V::Zero();
  if (run.begin > 0) {
#pragma GCC unroll 16
    for (int i = 0; i < N; ++i) {
      const std::size_t left = LeftAfter(args.outputs, panel * kPanel + i * V::kWidth);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r)
        acc[r][i] = LoadSome<V>(out + r * args.out_stride + i * V::kWidth, left);
    }
  }
  for (std::size_t line = run.begin; line < run.end; line += kLineFloats) {
    if (panel == 0) block.FetchNext(line);
    const std::size_t end = run.LineEnd(line);
    for (std::size_t k = line; k < end; ++k) {
      typename V::Reg weight[N];
      for (int i = 0; i < N; ++i) weight[i] = V::Load(weights + InPanels<V>(i, k, columns));
      for (int r = 0; r < R; ++r) {
        const typename V::Reg x = V::Set(rows[r][k]);
        for (int i = 0; i < N; ++i) acc[r][i] = V::MulAdd(x, weight[i], acc[r][i]);
      }
    }
  }
  const bool biased = args.bias != nullptr && run.end == columns;
  // Unrolled, because sums are held in registers only if the register indexes are known at compile
  // time.
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i) {
    const std::size_t at = panel * kPanel + i * V::kWidth;
    const std::size_t left = LeftAfter(args.outputs, at);
    const typename V::Reg bias = biased ? LoadSome<V>(args.bias + at, left) : V::Zero();
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const typename V::Reg sum = biased ? V::Add(acc[r][i], bias) : acc[r][i];
      StoreSome<V>(out + r * args.out_stride + i * V::kWidth, sum, left);
    }
  }
}

/// Adds the products of columns of R rows and their gradients to P panels, starting at `panel`.
template <typename V, int R, int P>
inline void GradientBlock(const ProductGradientArgs& args, const ColumnRun& run,
                          const RowBlock<R>& block, std::size_t first, std::size_t panel,
                          bool keep) {
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
          LoadSome<V>(args.gradient + (first + r) * args.outputs + at, LeftAfter(args.outputs, at));
    }
  }
  for (std::size_t line = run.begin; line < run.end; line += kLineFloats) {
    if (panel == 0) block.FetchNext(line);
    const std::size_t end = run.LineEnd(line);
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

/// Calls work.template operator()<P>(panel) for runs of P panels, starting at `panel`, then for
/// shorter runs.
template <int P, typename Work>
[[gnu::always_inline]] inline void ForPanels(std::size_t panels, std::size_t panel,
                                             const Work& work) {
  for (; panel + P <= panels; panel += P) work.template operator()<P>(panel);
  if constexpr (P > 1) {
    if (panel < panels) ForPanels<P / 2>(panels, panel, work);
  }
}

/// Calls work.template operator()<R>(first) for blocks of R rows, starting at `begin`, then for one
/// row at a time.
template <int R, typename Work>
[[gnu::always_inline]] inline void ForRowBlocks(std::size_t begin, std::size_t end,
                                                const Work& work) {
  for (; begin + R <= end; begin += R) work.template operator()<R>(begin);
  if constexpr (R > 1) ForRowBlocks<1>(begin, end, work);
}

/// Calls work.template operator()<R, P>(run, first, panel) for all rows, columns and outputs: for
/// each run of columns and each group of panels, all rows one after another. There are few enough
/// rows to remain in the L2 cache from one group of panels to the next.
template <typename V, typename Work>
[[gnu::always_inline]] inline void ForBlocks(std::size_t columns, std::size_t outputs,
                                             std::size_t begin, std::size_t end, const Work& work) {
  const std::size_t panels = PanelsOf(outputs);
  const std::size_t at_once = panels < V::kPanels ? panels : V::kPanels;
  ForColumnRuns(columns, at_once == 0 ? 1 : at_once, [&](const ColumnRun& run) {
    ForPanels<V::kPanels>(panels, 0, [&]<int P>(std::size_t panel) {
      ForRowBlocks<V::kRows>(begin, end, [&]<int R>(std::size_t first) {
        work.template operator()<R, P>(run, first, panel);
      });
    });
  });
}

template <typename V>
void Multiply(const ProductArgs& args, std::size_t begin, std::size_t end) {
  ForBlocks<V>(args.rows.columns, args.outputs, begin, end,
               [&]<int R, int P>(const ColumnRun& run, std::size_t first, std::size_t panel) {
                 const RowBlock<R> block(args.rows, first, end);
                 MultiplyBlock<V, R, P>(args, run, block, first, panel);
               });
}

template <typename V>
void ProductGradient(const ProductGradientArgs& args, std::size_t begin, std::size_t end) {
  ForBlocks<V>(args.rows.columns, args.outputs, begin, end,
               [&]<int R, int P>(const ColumnRun& run, std::size_t first, std::size_t panel) {
                 const RowBlock<R> block(args.rows, first, end);
                 GradientBlock<V, R, P>(args, run, block, first, panel, args.keep || first > begin);
               });
}

}  // namespace
}  // namespace internal
}  // namespace rhizome
