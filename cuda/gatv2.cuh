#pragma once

#include "cuda/attention.cuh"
#include "cuda/gatv2_args.h"

// GATv2 attention and its gradient. A group of kGroup lanes computes one head of a target or of a
// source. Lane `part` has kSegments columns: part, part + kGroup, ... kSegments = 0 means any
// number of columns, which are then not held in registers. Scores are summed as in EdgeDotArgs;
// everything else is as in attention.cuh.

namespace rhizome::cuda {

/// Calls visit(segment, column) for the columns of the calling lane.
template <unsigned kGroup, int kSegments, typename Visit>
RZ_DEVICE void ForColumns(std::size_t width, const Visit& visit) {
  const unsigned part = ThreadIndex() % kGroup;
  if constexpr (kSegments > 0) {
    RZ_UNROLL
    for (int s = 0; s < kSegments; ++s) {
      if (part + s * kGroup < width) visit(s, std::size_t{part} + s * kGroup);
    }
  } else {
    for (std::size_t c = part; c < width; c += kGroup) visit(0, c);
  }
}

/// Sums by column, held in registers, or in the output row if the head is too wide for registers.
template <int kSegments>
struct ColumnSums {
  Mem<float> row;
  float held[kSegments > 0 ? kSegments : 1] = {};

  RZ_DEVICE float Get(int segment, std::size_t column) const {
    if constexpr (kSegments > 0) return held[segment];
    return row[column];
  }
  RZ_DEVICE void Set(int segment, std::size_t column, float value) {
    if constexpr (kSegments > 0) {
      held[segment] = value;
    } else {
      row[column] = value;
    }
  }
};

/// Running softmax of one target and head, as in AttendState.
struct RunningSoftmax {
  bool fresh = true;
  float largest = -FloatOfBits(0x7F800000U);
  float sum = 0;

  /// Adds an edge's score and returns its weight. If it sets `rescales`, the caller must multiply
  /// the sums of earlier edges by `rescale`.
  RZ_DEVICE float Weigh(float score, float& rescale, bool& rescales) {
    if (fresh) largest = score;
    fresh = false;
    rescales = Sum(score, -Sum(largest, kMaximumSlack)) > 0;
    if (rescales) {
      rescale = Exp(Sum(largest, -score));
      largest = score;
      sum = Product(sum, rescale);
    }
    const float weight = Exp(Sum(score, -largest));
    sum = Sum(sum, weight);
    return weight;
  }
};

RZ_DEVICE float ScorePart(float attention, float x, float query, float slope) {
  const float sum = RZ_MUTANT("attention v2: LeakyReLU comes before the sum")
                        ? Sum(Leaky(x, slope), query)
                        : Leaky(Sum(x, query), slope);
  return Product(attention, sum);
}

template <unsigned kGroup, int kSegments>
RZ_KERNEL AttendV2Rows(AttendV2ArgsOf<Mem> args) {
  const std::size_t dim = args.heads * args.width;
  for (std::size_t i = GridThread() / kGroup; i < args.targets * args.heads;
       i += GridThreads() / kGroup) {
    const std::size_t t = i / args.heads;
    const std::size_t head = i % args.heads;
    const std::size_t first = head * args.width;
    const Mem<const float> query = args.query + (t * dim + first);
    const Mem<const float> attention = args.attention + first;
    const std::uint64_t key = args.dropout.dropped == 0 ? 0 : DrawKey(args.dropout, t);
    ColumnSums<kSegments> sums{args.out + (t * dim + first)};
    ForColumns<kGroup, kSegments>(args.width, [&](int s, std::size_t c) { sums.Set(s, c, 0); });
    RunningSoftmax softmax;
    const std::uint32_t own = args.own ? 1 : 0;
    const std::uint32_t begin = args.offsets[t];
    const std::uint32_t edges = args.offsets[t + 1] - begin + own;
    for (std::uint32_t n = 0; n < edges; ++n) {
      const bool is_own = n < own;
      const std::size_t j = is_own ? t : args.index[begin + n - own];
      const Mem<const float> row = args.x + (j * dim + first);
      float score = 0;
      ForColumns<kGroup, kSegments>(args.width, [&](int, std::size_t c) {
        score = Sum(score, ScorePart(attention[c], row[c], query[c], args.slope));
      });
      score = SumOfGroup<kGroup>(score);
      float rescale = 1;
      bool rescales = false;
      const float weight = softmax.Weigh(score, rescale, rescales);
      if (RZ_MUTANT("attention v2: sums are not rescaled")) rescales = false;
      const float kept = Kept(args.dropout, key, n + 1 - own, args.heads, head, weight);
      ForColumns<kGroup, kSegments>(args.width, [&](int s, std::size_t c) {
        const float product = Product(kept, row[c]);
        float sum = sums.Get(s, c);
        if (rescales) sum = Product(sum, rescale);
        sums.Set(s, c, is_own ? product : Sum(sum, product));
      });
    }
    const float inverse = softmax.sum == 0 ? 0.0F : 1.0F / softmax.sum;
    ForColumns<kGroup, kSegments>(
        args.width, [&](int s, std::size_t c) { sums.row[c] = Product(sums.Get(s, c), inverse); });
    if (ThreadIndex() % kGroup != 0) continue;
    args.maximum[i] = softmax.largest;
    args.denominator[i] = softmax.sum;
  }
}

/// Returns the sum over edges of the gradient of the score times the derivative of LeakyReLU (1 or
/// `slope`). `all` is the sum of the gradients over all edges, `positive` over edges with
/// derivative 1.
RZ_DEVICE float SumOfSlopes(float all, float positive, float slope) {
  return Sum(Product(all, slope), Product(1.0F - slope, positive));
}

template <unsigned kGroup, int kSegments>
RZ_KERNEL AttendV2SourceGradient(AttendV2GradientArgsOf<Mem> args) {
  const std::size_t dim = args.heads * args.width;
  for (std::size_t i = GridThread() / kGroup; i < args.sources * args.heads;
       i += GridThreads() / kGroup) {
    const std::size_t j = i / args.heads;
    const std::size_t head = i % args.heads;
    const std::size_t first = head * args.width;
    const Mem<const float> x = args.x + (j * dim + first);
    const Mem<const float> attention = args.attention + first;
    ColumnSums<kSegments> weighted{args.x_gradient + (j * dim + first)};
    ColumnSums<kSegments> positive{args.x_slopes + (j * dim + first)};
    ForColumns<kGroup, kSegments>(args.width, [&](int s, std::size_t c) {
      weighted.Set(s, c, 0);
      positive.Set(s, c, 0);
    });
    float all = 0;
    const std::uint32_t edges =
        args.transposed_offsets[j + 1] - args.transposed_offsets[j] + (j < args.own ? 1 : 0);
    for (std::uint32_t n = 0; n < edges; ++n) {
      const SourceEdge edge = EdgeOf(args, j, n);
      const Mem<const float> gradient = args.gradient + (edge.target * dim + first);
      const Mem<const float> query = args.query + (edge.target * dim + first);
      float dot = 0;
      float score = 0;
      ForColumns<kGroup, kSegments>(args.width, [&](int, std::size_t c) {
        dot = Sum(dot, Product(x[c], gradient[c]));
        score = Sum(score, ScorePart(attention[c], x[c], query[c], args.slope));
      });
      dot = SumOfGroup<kGroup>(dot);
      score = SumOfGroup<kGroup>(score);
      const Pack<float, 4> stats = Cast<const Pack<float, 4>>(
          args.stats + 4 * (std::size_t{edge.target} * args.heads + head))[0];
      const float share = Product(Exp(Sum(score, -stats.part[0])), stats.part[1]);
      float kept = share;
      if (args.dropout.dropped != 0) {
        const std::uint64_t key = DrawKey(args.dropout, edge.target);
        const std::uint32_t place = edge.own ? 0 : edge.edge - args.offsets[edge.target] + 1;
        kept = Kept(args.dropout, key, place, args.heads, head, share);
        dot = Kept(args.dropout, key, place, args.heads, head, dot);
      }
      const float of_score = Product(share, Sum(dot, -stats.part[2]));
      all = Sum(all, of_score);
      ForColumns<kGroup, kSegments>(args.width, [&](int s, std::size_t c) {
        weighted.Set(s, c, Sum(weighted.Get(s, c), Product(kept, gradient[c])));
        if (Sum(x[c], query[c]) > 0 || RZ_MUTANT("attention v2: all sums are positive"))
          positive.Set(s, c, Sum(positive.Get(s, c), of_score));
      });
      if (ThreadIndex() % kGroup == 0) KeepGradient(args, edge, i, head, of_score);
    }
    ForColumns<kGroup, kSegments>(args.width, [&](int s, std::size_t c) {
      const float slopes = SumOfSlopes(all, positive.Get(s, c), args.slope);
      weighted.row[c] = Sum(weighted.Get(s, c), Product(attention[c], slopes));
      positive.row[c] = slopes;
    });
  }
}

template <unsigned kGroup, int kSegments>
RZ_KERNEL AttendV2QueryGradient(AttendV2GradientArgsOf<Mem> args) {
  const std::size_t dim = args.heads * args.width;
  for (std::size_t i = GridThread() / kGroup; i < args.targets * args.heads;
       i += GridThreads() / kGroup) {
    const std::size_t t = i / args.heads;
    const std::size_t head = i % args.heads;
    const std::size_t first = head * args.width;
    const Mem<const float> query = args.query + (t * dim + first);
    ColumnSums<kSegments> positive{args.query_slopes + (t * dim + first)};
    ForColumns<kGroup, kSegments>(args.width, [&](int s, std::size_t c) { positive.Set(s, c, 0); });
    float all = 0;
    const std::uint32_t own =
        t < args.own && !RZ_MUTANT("attention v2: queries forget the own edge") ? 1 : 0;
    const std::uint32_t begin = args.offsets[t];
    const std::uint32_t edges = args.offsets[t + 1] - begin + own;
    for (std::uint32_t n = 0; n < edges; ++n) {
      const bool is_own = n < own;
      const std::size_t e = begin + n - own;
      const std::size_t j = is_own ? t : args.index[e];
      const float of_score =
          is_own ? args.own_gradient[i] : args.edge_gradient[e * args.heads + head];
      const Mem<const float> x = args.x + (j * dim + first);
      all = Sum(all, of_score);
      ForColumns<kGroup, kSegments>(args.width, [&](int s, std::size_t c) {
        if (Sum(x[c], query[c]) > 0) positive.Set(s, c, Sum(positive.Get(s, c), of_score));
      });
    }
    ForColumns<kGroup, kSegments>(args.width, [&](int s, std::size_t c) {
      const float slopes = SumOfSlopes(all, positive.Get(s, c), args.slope);
      args.query_gradient[t * dim + first + c] = Product(args.attention[first + c], slopes);
      positive.row[c] = slopes;
    });
  }
}

/// As WithGroup, but with 0 segments for heads that are too wide for registers.
template <typename Visit>
void WithHeadGroup(std::size_t width, const Visit& visit) {
  using Any = std::integral_constant<int, 0>;
  if (width > kWidestHeld) return visit(std::integral_constant<unsigned, 16>(), Any());
  WithGroup(width, visit);
}

inline void LaunchAttendV2(Stream stream, const AttendV2ArgsOf<Mem>& args,
                           const Geometry& geometry = {}) {
  if (args.targets == 0 || args.heads == 0 || args.width == 0) return;
  WithHeadGroup(args.width, [&](auto group, auto segments) {
    constexpr unsigned kGroup = decltype(group)::value;
    const auto kernel = AttendV2Rows<kGroup, decltype(segments)::value>;
    const std::size_t blocks = geometry.BlocksFor(args.targets * args.heads * kGroup);
    RZ_LAUNCH(kernel, blocks, geometry.block, stream, args);
  });
}

inline void LaunchAttendV2Gradient(Stream stream, const AttendV2GradientArgsOf<Mem>& args,
                                   const Geometry& geometry = {}) {
  if (args.heads == 0 || args.width == 0) return;
  WithHeadGroup(args.width, [&](auto group, auto segments) {
    constexpr unsigned kGroup = decltype(group)::value;
    constexpr int kSegments = decltype(segments)::value;
    const std::size_t of_targets = args.targets * args.heads;
    const std::size_t of_sources = args.sources * args.heads;
    const auto stats = AttendStats<kGroup, AttendV2GradientArgsOf<Mem>>;
    const auto sources = AttendV2SourceGradient<kGroup, kSegments>;
    const auto queries = AttendV2QueryGradient<kGroup, kSegments>;
    if (of_targets > 0) {
      RZ_LAUNCH(stats, geometry.BlocksFor(of_targets * kGroup), geometry.block, stream, args);
    }
    if (of_sources > 0) {
      RZ_LAUNCH(sources, geometry.BlocksFor(of_sources * kGroup), geometry.block, stream, args);
    }
    if (of_targets > 0) {
      RZ_LAUNCH(queries, geometry.BlocksFor(of_targets * kGroup), geometry.block, stream, args);
    }
  });
}

}  // namespace rhizome::cuda
