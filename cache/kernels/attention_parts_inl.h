#pragma once

#include <cstddef>
#include <cstdint>

#include "cache/kernels/aggregate_kernels_inl.h"
#include "cache/kernels/attention_kernels.h"

// Steps shared by the forward and backward kernels of attention, over the vector type V of
// aggregate_kernels_inl.h. Lists are processed in chunks of edges: the scores of a chunk are on the
// stack, and its rows are still in the L1 cache when they are read for the second time.

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::size_t kChunkEdges = 64;
constexpr std::size_t kChunkScores = 1024;
constexpr std::size_t kChunkBytes = 16384;  // bytes of rows
static_assert(kChunkScores / kMaxHeads >= 2);

/// Per-edge numbers of a chunk, in the order of HeadLayout.
struct ChunkNumbers {
  float at[kChunkScores] = {};
};

/// Factors that rescale the sums accumulated before an edge of a chunk, for edges that raise a
/// maximum.
struct ChunkRescales {
  ChunkNumbers numbers;
  bool of[kChunkEdges] = {};  // whether edge i has factors
  bool any = false;

  /// Starts a chunk of `edges` edges without factors.
  void Begin(std::size_t edges) {
    any = false;
    for (std::size_t i = 0; i < edges; ++i) of[i] = false;
  }

  /// Gives edge i factors. They are ones until others are stored at i * stride + head.
  void Need(std::size_t i, std::size_t heads, std::size_t stride) {
    if (of[i]) return;
    of[i] = true;
    any = true;
    for (std::size_t h = 0; h < heads; ++h) numbers.at[i * stride + h] = 1;
  }
};

template <typename V>
constexpr std::size_t Padded(std::size_t heads) {
  return (heads + V::kWidth - 1) / V::kWidth * V::kWidth;
}

/// Copies `count` numbers, where `count` is small.
[[gnu::always_inline]] inline void CopyNumbers(const float* from, std::size_t count, float* to) {
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4) __builtin_memcpy(to + i, from + i, 4 * sizeof(float));
  for (; i < count; ++i) to[i] = from[i];
}

/// Returns the number of edges of a chunk such that its rows, of `row_bytes` each, fit in the L1
/// cache and its scores fit in their arrays.
template <typename V>
inline std::size_t ChunkOf(std::size_t heads, std::size_t row_bytes) {
  const std::size_t most = kChunkScores / Padded<V>(heads);
  std::size_t edges = kChunkBytes / (row_bytes + 1);
  if (edges < 8) edges = 8;
  if (edges > kChunkEdges) edges = kChunkEdges;
  return edges < most ? edges : most;
}

template <typename V, typename T>
inline typename V::Reg LoadSome(const T* p, std::size_t left) {
  return left >= V::kWidth ? V::Load(p) : V::LoadTail(p, left);
}

template <typename V>
inline void StoreSome(float* p, typename V::Reg r, std::size_t left) {
  if (left >= V::kWidth) {
    V::Store(p, r);
  } else {
    V::StoreTail(p, r, left);
  }
}

/// Index of a number of edge i and head h: i * numbers + h. If the number of heads divides the
/// register width, a register holds `edges` edges side by side; else each edge starts a new
/// register.
template <typename V>
struct HeadLayout {
  explicit HeadLayout(std::size_t heads)
      : edges(V::kWidth % heads == 0 ? V::kWidth / heads : 1),
        numbers(edges > 1 ? heads : Padded<V>(heads)) {
    std::uint32_t first[V::kWidth], second[V::kWidth];
    for (std::uint32_t i = 0; i < V::kWidth; ++i) {
      first[i] = edges > 1 ? i % static_cast<std::uint32_t>(heads) : i;
      second[i] = (i + static_cast<std::uint32_t>(heads)) % V::kWidth;
    }
    of_first = V::IntLoad(first);
    of_next = V::IntLoad(second);
  }

  /// Loads the numbers at p. If a register holds a single edge, at most `left` numbers are loaded.
  typename V::Reg Load(const float* p, std::size_t left) const {
    return edges > 1 ? V::Load(p) : LoadSome<V>(p, left);
  }

  /// Returns the numbers of the register's edge k, repeated for each of its edges.
  typename V::Reg Of(typename V::Reg x, std::size_t k) const {
    const auto before = static_cast<std::uint32_t>(k * numbers);
    return edges > 1 ? V::Permute(x, V::IntAdd(of_first, V::IntSet(before))) : x;
  }

  /// Rotates x so that its second edge becomes the first.
  typename V::Reg Next(typename V::Reg x) const { return V::Permute(x, of_next); }

  const std::size_t edges;
  const std::size_t numbers;
  typename V::Int of_first, of_next;
};

/// Computes exp(x) for x <= 88, within 2 units in the last place; exactly 1 at 0, and 0 below
/// -87.7.
///
/// x is split into n ln 2 + r with |r| <= ln 2 / 2; the larger part of ln 2 has few enough bits for
/// exact products. exp(r) is the polynomial of Cephes' expf (Moshier), and 2^n is built from its
/// bits: zero for n = -127. Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits.
template <typename V>
[[gnu::always_inline]] inline typename V::Reg Exp(typename V::Reg x) {
  x = V::Max(V::Set(-88.0F), x);  // a NaN is kept
  const typename V::Reg rounder = V::Set(0x1.8p23F);
  const typename V::Reg shifted = V::Add(V::Mul(x, V::Set(1.44269504088896341F)), rounder);
  const typename V::Reg n = V::Sub(shifted, rounder);
  const typename V::Reg r =
      V::Add(V::Sub(x, V::Mul(n, V::Set(0.693359375F))), V::Mul(n, V::Set(2.12194440e-4F)));
  constexpr float kTerms[] = {1.3981999507e-3F, 8.3334519073e-3F, 4.1665795894e-2F,
                              1.6666665459e-1F, 5.0000001201e-1F};
  typename V::Reg p = V::Set(1.9875691500e-4F);
  for (const float term : kTerms) p = V::Add(V::Mul(p, r), V::Set(term));
  p = V::Add(V::Add(V::Mul(p, V::Mul(r, r)), r), V::Set(1.0F));
  const typename V::Int power =
      V::template IntShiftLeft<23>(V::IntAdd(V::Bits(shifted), V::IntSet(127)));
  return V::Mul(p, V::OfBits(power));
}

/// LeakyReLU for a slope in [0, 1].
template <typename V>
inline typename V::Reg Leaky(typename V::Reg x, typename V::Reg slope) {
  return V::Max(V::Mul(x, slope), x);
}

/// Calls visit with the head width as a template argument if it is a common one, so that the loops
/// are unrolled; else with zero.
template <typename Visit>
void WithWidth(std::size_t width, const Visit& visit) {
  switch (width) {
    case 8:
      return visit.template operator()<8>();
    case 16:
      return visit.template operator()<16>();
    case 32:
      return visit.template operator()<32>();
    case 64:
      return visit.template operator()<64>();
    case 128:
      return visit.template operator()<128>();
    default:
      return visit.template operator()<0>();
  }
}

/// Calls parts(h, sums) for each head and writes the totals of the partial sums.
template <typename V, typename Parts>
[[gnu::always_inline]] inline void FoldHeads(std::size_t heads, float* out, const Parts& parts) {
  constexpr std::size_t kRegs = kParts / V::kWidth;
  typename V::Reg acc[4 * kRegs];
  std::size_t h = 0;
  for (; h + 4 <= heads; h += 4) {
    for (std::size_t i = 0; i < 4; ++i) parts(h + i, acc + i * kRegs);
    V::FoldFour(acc, out + h);
  }
  for (; h < heads; ++h) {
    parts(h, acc);
    out[h] = V::Fold(acc);
  }
}

/// Dot products of the heads: out[h] = a[h, :] . b[h, :].
template <typename V, std::size_t kColumns, typename T>
[[gnu::always_inline]] inline void DotHeads(const float* a, const T* b, std::size_t heads,
                                            std::size_t width, float* out) {
  if constexpr (kColumns != 0) width = kColumns;
  FoldHeads<V>(heads, out, [&](std::size_t h, typename V::Reg* sums) {
    DotParts<V, T, kColumns>(a + h * width, b + h * width, width, sums);
  });
}

/// Additive-v2 (GATv2) scores of one edge, with the partial sums of dot products.
template <typename V, std::size_t kColumns, typename T>
[[gnu::always_inline]] inline void ScoreHeads(const T* row, const float* query,
                                              const float* attention, std::size_t heads,
                                              std::size_t width, typename V::Reg slope,
                                              float* out) {
  if constexpr (kColumns != 0) width = kColumns;
  constexpr std::size_t kRegs = kParts / V::kWidth;
  FoldHeads<V>(heads, out, [&](std::size_t h, typename V::Reg* sums) {
    const std::size_t first = h * width;
    for (std::size_t i = 0; i < kRegs; ++i) sums[i] = V::Zero();
    for (std::size_t column = 0; column < width; column += kParts) {
      for (std::size_t i = 0; i < kRegs; ++i) {
        const std::size_t c = column + i * V::kWidth;
        if (c >= width) break;
        const std::size_t at = first + c, left = width - c;
        const typename V::Reg sum =
            V::Add(LoadSome<V>(row + at, left), LoadSome<V>(query + at, left));
        sums[i] = V::Add(sums[i], V::Mul(LoadSome<V>(attention + at, left), Leaky<V>(sum, slope)));
      }
    }
  });
}

/// Weighted rows of a chunk that are added to one output row.
template <typename T>
struct WeightedRows {
  const T* x = nullptr;
  std::size_t stride = 0;
  const std::uint32_t* index = nullptr;  // numbers of the rows in x
  std::size_t count = 0;
  std::size_t heads = 1;
  std::size_t width = 0;
  std::size_t numbers = 1;        // distance from the weights of an edge to the weights of the next
  const float* weight = nullptr;  // [count, numbers]
  const float* rescale = nullptr;  // [count, numbers]: factors of the sum before a row is added
  const bool* rescaled = nullptr;  // [count]: whether any factor is not one; null: all are ones
  const Ahead* ahead = nullptr;    // rows to prefetch; null: none
  std::size_t edge = 0;            // number of the first row in the index of `ahead`
  std::size_t limit = 0;
  const float* own = nullptr;         // a row that precedes the others; or null
  const float* own_weight = nullptr;  // [heads]
  bool keep = false;                  // start from `out` instead of zeros or the own row
  const float* factor = nullptr;      // [heads], applied to the result; or null
  float* out = nullptr;
};

/// Adds columns [column, column + R * register width) of heads [head, head + G), or with kTail the
/// first `tail` < width of them. Not inlined, so that its loop can use all registers.
template <typename V, typename T, int R, int G, bool kTail>
[[gnu::noinline]] void AddHeads(const WeightedRows<T>& rows, std::size_t head, std::size_t column,
                                std::size_t tail) {
  const auto load = [&](const auto* p) {
    if constexpr (kTail) {
      return V::LoadTail(p, tail);
    } else {
      return V::Load(p);
    }
  };
  const std::size_t first = head * rows.width + column;
  std::size_t at[G];  // first column of each head
  for (int g = 0; g < G; ++g) at[g] = first + g * rows.width;
  typename V::Reg acc[G * R];
  for (int i = 0; i < G * R; ++i) {
    const std::size_t from = at[i / R] + (i % R) * V::kWidth;
    acc[i] = V::Zero();
    if (rows.keep) acc[i] = load(rows.out + from);
    if (rows.own != nullptr) {
      acc[i] = V::Mul(V::Set(rows.own_weight[head + i / R]), load(rows.own + from));
    }
  }
  const bool fetches = rows.ahead != nullptr && first == 0;
  for (std::size_t e = 0; e < rows.count; ++e) {
    if (fetches) rows.ahead->Fetch(rows.edge + e, rows.limit);
    if (rows.rescaled != nullptr && rows.rescaled[e]) {
      for (int i = 0; i < G * R; ++i) {
        acc[i] = V::Mul(acc[i], V::Set(rows.rescale[e * rows.numbers + head + i / R]));
      }
    }
    const T* of_head = rows.x + rows.index[e] * rows.stride + first;
    const float* const weight = rows.weight + e * rows.numbers + head;
    for (int g = 0; g < G; ++g, of_head += rows.width) {
      const typename V::Reg factor = V::Set(weight[g]);
      for (int r = 0; r < R; ++r) {
        const typename V::Reg value = load(of_head + r * V::kWidth);
        acc[g * R + r] = V::Add(acc[g * R + r], V::Mul(factor, value));
      }
    }
  }
  for (int i = 0; i < G * R; ++i) {
    if (rows.factor != nullptr) acc[i] = V::Mul(acc[i], V::Set(rows.factor[head + i / R]));
    float* const out = rows.out + at[i / R] + (i % R) * V::kWidth;
    if constexpr (kTail) {
      V::StoreTail(out, acc[i], tail);
    } else {
      V::Store(out, acc[i]);
    }
  }
}

/// Adds these columns of all heads, four heads at once if registers suffice.
template <typename V, typename T, int R, bool kTail>
inline void AddColumns(const WeightedRows<T>& rows, std::size_t column, std::size_t tail) {
  std::size_t head = 0;
  if constexpr (4 * R <= V::kTile) {
    for (; head + 4 <= rows.heads; head += 4) AddHeads<V, T, R, 4, kTail>(rows, head, column, tail);
  }
  for (; head < rows.heads; ++head) AddHeads<V, T, R, 1, kTail>(rows, head, column, tail);
}

template <typename V, typename T, int R>
inline void AddRowsFrom(const WeightedRows<T>& rows, std::size_t column) {
  for (; column + R * V::kWidth <= rows.width; column += R * V::kWidth) {
    AddColumns<V, T, R, false>(rows, column, 0);
  }
  if constexpr (R > 1) {
    AddRowsFrom<V, T, R / 2>(rows, column);
  } else if (column < rows.width) {
    AddColumns<V, T, 1, true>(rows, column, rows.width - column);
  }
}

template <typename V, typename T>
inline void AddRows(const WeightedRows<T>& rows) {
  AddRowsFrom<V, T, V::kTile>(rows, 0);
}

/// Applies dropout to the weights of consecutive columns of a row of draws (see AttendDropout):
/// multiplies each by zero or by the scale.
template <typename V>
inline typename V::Reg Dropped(const AttendDropout& dropout, std::uint64_t key, std::size_t column,
                               typename V::Reg weight) {
  return V::Keep(V::AtLeast(Draws<V>(key, column), V::IntSet(dropout.dropped)),
                 V::Mul(weight, V::Set(dropout.scale)));
}

}  // namespace
}  // namespace internal
}  // namespace rhizome
