#pragma once

#include "cuda/activate.cuh"
#include "cuda/aggregate.cuh"
#include "cuda/gatv2_args.h"

// Attention with additive scores (GAT) and its gradient. One pass over a list computes the softmax
// over its edges, head by head, and the weighted sum of its rows. No array has edges x columns
// elements. The recurrence, its slack and its exp are those in cache/kernels/attention_kernels.h,
// which names the sources, and the results are bit-identical.

namespace rhizome::cuda {

/// Same as Exp in cache/kernels/attention_parts_inl.h.
RZ_DEVICE float Exp(float x) {
  x = -88.0F > x ? -88.0F : x;
  constexpr float kRounder = 12582912.0F;  // 1.5 * 2^23
  const float shifted = Sum(Product(x, 1.44269504088896341F), kRounder);
  const float n = Sum(shifted, -kRounder);
  const float r = Sum(Sum(x, -Product(n, 0.693359375F)), Product(n, 2.12194440e-4F));
  float p = Sum(Product(1.9875691500e-4F, r), 1.3981999507e-3F);
  p = Sum(Product(p, r), 8.3334519073e-3F);
  p = Sum(Product(p, r), 4.1665795894e-2F);
  p = Sum(Product(p, r), 1.6666665459e-1F);
  p = Sum(Product(p, r), 5.0000001201e-1F);
  p = Sum(Sum(Product(p, Product(r, r)), r), 1.0F);
  return Product(p, FloatOfBits((BitsOfFloat(shifted) + 127) << 23));
}

RZ_DEVICE float Leaky(float x, float slope) {
  const float lesser = Product(x, slope);
  return lesser > x ? lesser : x;
}

constexpr float kMaximumSlack = 8;

/// Running softmax of one target and head, with the sums of kVector of its columns.
template <int kVector>
struct AttendState {
  bool fresh = true;
  float largest = -FloatOfBits(0x7F800000U);
  float sum = 0;
  float columns[kVector] = {};

  /// Adds an edge's score, rescales the sums if the maximum rises, and returns the edge's weight.
  RZ_DEVICE float Weigh(float score) {
    if (fresh) largest = score;
    fresh = false;
    if (Sum(score, -Sum(largest, kMaximumSlack)) > 0 &&
        !RZ_MUTANT("attention: the maximum never rises")) {
      const float rescale = Exp(Sum(largest, -score));
      largest = score;
      if (!RZ_MUTANT("attention: denominators are not rescaled")) sum = Product(sum, rescale);
      for (int c = 0; c < kVector; ++c) columns[c] = Product(columns[c], rescale);
    }
    const float weight = Exp(Sum(score, -largest));
    sum = Sum(sum, weight);
    return weight;
  }
};

/// Returns the weight of the edge at `place` of a list after dropout. Place 0 is the self-loop.
RZ_DEVICE float Kept(const Dropout& dropout, std::uint64_t key, std::size_t place,
                     std::size_t heads, std::size_t head, float weight) {
  if (dropout.dropped == 0) return weight;
  if (RZ_MUTANT("attention: edges are dropped together")) place = 0;
  return Dropped(dropout, key, static_cast<std::uint32_t>(place * heads + head), weight);
}

/// Each lane computes kVector adjacent columns of one head of a target, and all edge weights
/// itself.
template <typename T, int kLanes, int kVector>
RZ_KERNEL AttendRows(AttendArgsOf<Mem> args) {
  using Columns = Pack<T, kVector>;
  constexpr std::size_t kColumns = std::size_t{kLanes} * kVector;
  const std::size_t dim = args.heads * args.width;
  const std::size_t tiles = (dim + kColumns - 1) / kColumns;
  for (std::size_t work = GridThread() / kLanes; work < args.targets * tiles;
       work += GridThreads() / kLanes) {
    const std::size_t t = work / tiles;
    const std::size_t column = work % tiles * kColumns + ThreadIndex() % kLanes * kVector;
    if (column >= dim) continue;
    const std::size_t head = column / args.width;
    const float query = args.query[t * args.heads + head];
    const std::uint64_t key = args.dropout.dropped == 0 ? 0 : DrawKey(args.dropout, t);
    AttendState<kVector> state;
    const auto score = [&](std::size_t j) {
      return Leaky(Sum(args.source[j * args.heads + head], query), args.slope);
    };
    const auto row = [&](std::size_t j) -> Columns {
      return Cast<const Columns>(Cast<const T>(args.x) + (j * args.x_stride + column))[0];
    };
    if (args.own && !RZ_MUTANT("attention: the own edge is left out")) {
      const Columns own = row(t);
      const float weight = Kept(args.dropout, key, 0, args.heads, head, state.Weigh(score(t)));
      for (int c = 0; c < kVector; ++c) state.columns[c] = Product(weight, Widened(own.part[c]));
    }
    const std::size_t begin = args.offsets[t];
    const std::size_t end = args.offsets[t + 1];
    for (std::size_t edge = begin; edge < end; edge += kEdgesAhead) {
      Columns columns[kEdgesAhead];
      float scores[kEdgesAhead];
      RZ_UNROLL
      for (unsigned k = 0; k < kEdgesAhead; ++k) {
        if (edge + k >= end) break;
        const std::size_t j = args.index[edge + k];
        scores[k] = score(j);
        columns[k] = row(j);
      }
      RZ_UNROLL
      for (unsigned k = 0; k < kEdgesAhead; ++k) {
        if (edge + k >= end) break;
        const float weight =
            Kept(args.dropout, key, edge + k - begin + 1, args.heads, head, state.Weigh(scores[k]));
        for (int c = 0; c < kVector; ++c) {
          state.columns[c] = Sum(state.columns[c], Product(weight, Widened(columns[k].part[c])));
        }
      }
    }
    const float inverse = state.sum == 0 ? 0.0F : 1.0F / state.sum;
    Pack<float, kVector> out;
    for (int c = 0; c < kVector; ++c) out.part[c] = Product(state.columns[c], inverse);
    Cast<Pack<float, kVector>>(args.out + (t * dim + column))[0] = out;
    if (column % args.width != 0) continue;
    args.maximum[t * args.heads + head] = state.largest;
    args.denominator[t * args.heads + head] = state.sum;
  }
}

/// Adds one number per lane over kGroup adjacent lanes, with the reduction tree of EdgeDotArgs. A
/// group of fewer than 16 lanes returns the same bits as 16 lanes whose other numbers are zero.
template <unsigned kGroup>
RZ_DEVICE float SumOfGroup(float part) {
  const unsigned lanes = Lane() / kGroup * kGroup;
  const unsigned mask = ((1U << kGroup) - 1) << lanes;
  for (unsigned step = kGroup / 2; step > 0; step /= 2) {
    part = Sum(part, Shuffle(mask, part, Lane() ^ step));
  }
  return part;
}

/// Returns the query's term in the scores of a target and head; 0 for GATv2, whose query is a
/// vector.
RZ_DEVICE float QueryNumber(const AttendGradientArgsOf<Mem>& args, std::size_t i) {
  return args.query[i];
}
RZ_DEVICE float QueryNumber(const AttendV2GradientArgsOf<Mem>&, std::size_t) { return 0; }

/// Writes the values that the backward pass needs per target and head next to each other
/// (args.stats). A group of kGroup lanes computes one target and head.
template <unsigned kGroup, typename Args>
RZ_KERNEL AttendStats(Args args) {
  const unsigned part = ThreadIndex() % kGroup;
  for (std::size_t i = GridThread() / kGroup; i < args.targets * args.heads;
       i += GridThreads() / kGroup) {
    float dot = 0;
    for (std::size_t c = part; c < args.width; c += kGroup) {
      const float gradient = args.gradient[i * args.width + c];
      const float out = args.out[i * args.width + c];
      dot = Sum(dot, Product(gradient, out));
    }
    dot = SumOfGroup<kGroup>(dot);
    if (part != 0) continue;
    const float denominator = args.denominator[i];
    Pack<float, 4> stats;
    stats.part[0] = args.maximum[i];
    stats.part[1] = denominator == 0 ? 0.0F : 1.0F / denominator;
    stats.part[2] = RZ_MUTANT("attention: gradients forget that weights add up to 1") ? 0 : dot;
    stats.part[3] = QueryNumber(args, i);
    Cast<Pack<float, 4>>(args.stats + 4 * i)[0] = stats;
  }
}

/// An edge of a source's list.
struct SourceEdge {
  std::uint32_t target = 0;
  std::uint32_t edge = 0;
  bool own = false;
};
/// Returns edge n of source j. The self-loop, if there is one, is edge 0.
template <typename Args>
RZ_DEVICE SourceEdge EdgeOf(const Args& args, std::size_t j, std::uint32_t n) {
  SourceEdge edge;
  const bool own = j < args.own;
  edge.own = own && n == 0;
  edge.target = static_cast<std::uint32_t>(j);
  if (edge.own) return edge;
  const std::uint32_t k = args.transposed_offsets[j] + n - (own ? 1 : 0);
  edge.target = args.target[k];
  edge.edge = args.edge[k];
  return edge;
}

/// Gradient of the score of an edge, and the weight of its target's gradient row.
struct EdgeGradient {
  float of_score;
  float weight;
};
RZ_DEVICE EdgeGradient GradientOfEdge(const AttendGradientArgsOf<Mem>& args, float source,
                                      const Pack<float, 4>& stats, const SourceEdge& edge,
                                      std::size_t head, float dot) {
  const float sum = Sum(source, stats.part[3]);
  const float share = Product(Exp(Sum(Leaky(sum, args.slope), -stats.part[0])), stats.part[1]);
  float kept = share;
  if (args.dropout.dropped != 0) {
    const std::uint64_t key = DrawKey(args.dropout, edge.target);
    const std::uint32_t place = edge.own ? 0 : edge.edge - args.offsets[edge.target] + 1;
    kept = Kept(args.dropout, key, place, args.heads, head, share);
    dot = Kept(args.dropout, key, place, args.heads, head, dot);
  }
  float of_score = Product(share, Sum(dot, -stats.part[2]));
  if (!RZ_MUTANT("attention: LeakyReLU has slope 1 in gradients"))
    of_score = Product(of_score, sum > 0 ? 1.0F : args.slope);
  return {of_score, kept};
}

template <typename Args>
RZ_DEVICE void KeepGradient(const Args& args, const SourceEdge& edge, std::size_t i,
                            std::size_t head, float of_score) {
  if (edge.own) {
    args.own_gradient[i] = of_score;
  } else {
    args.edge_gradient[std::size_t{edge.edge} * args.heads + head] = of_score;
  }
}

/// A group of kGroup lanes computes one source and head. Each lane has kSegments columns: part,
/// part + kGroup, ...
template <unsigned kGroup, int kSegments>
RZ_KERNEL AttendSourceGradient(AttendGradientArgsOf<Mem> args) {
  constexpr unsigned kAhead = kSegments > 2 ? 1 : kEdgesAhead;  // rows are held in registers
  const std::size_t dim = args.heads * args.width;
  const unsigned part = ThreadIndex() % kGroup;
  for (std::size_t i = GridThread() / kGroup; i < args.sources * args.heads;
       i += GridThreads() / kGroup) {
    const std::size_t j = i / args.heads;
    const std::size_t head = i % args.heads;
    const std::size_t first = head * args.width + part;
    const float source = args.source[i];
    float x[kSegments] = {};
    float sums[kSegments] = {};
    for (int s = 0; s < kSegments; ++s) {
      if (part + s * kGroup < args.width) x[s] = args.x[j * dim + first + s * kGroup];
    }
    float total = 0;
    const std::uint32_t edges =
        args.transposed_offsets[j + 1] - args.transposed_offsets[j] + (j < args.own ? 1 : 0);
    for (std::uint32_t n = 0; n < edges; n += kAhead) {
      SourceEdge edge[kAhead];
      float rows[kAhead][kSegments] = {};
      Pack<float, 4> stats[kAhead];
      RZ_UNROLL
      for (unsigned k = 0; k < kAhead; ++k) {
        if (n + k >= edges) break;
        edge[k] = EdgeOf(args, j, n + k);
        const std::size_t target = edge[k].target;
        for (int s = 0; s < kSegments; ++s) {
          if (part + s * kGroup < args.width)
            rows[k][s] = args.gradient[target * dim + first + s * kGroup];
        }
        stats[k] = Cast<const Pack<float, 4>>(args.stats + 4 * (target * args.heads + head))[0];
      }
      RZ_UNROLL
      for (unsigned k = 0; k < kAhead; ++k) {
        if (n + k >= edges) break;
        float dot = 0;
        for (int s = 0; s < kSegments; ++s) dot = Sum(dot, Product(x[s], rows[k][s]));
        dot = SumOfGroup<kGroup>(dot);
        const EdgeGradient of = GradientOfEdge(args, source, stats[k], edge[k], head, dot);
        total = Sum(total, of.of_score);
        for (int s = 0; s < kSegments; ++s) sums[s] = Sum(sums[s], Product(of.weight, rows[k][s]));
        if (part == 0) KeepGradient(args, edge[k], i, head, of.of_score);
      }
    }
    for (int s = 0; s < kSegments; ++s) {
      if (part + s * kGroup < args.width) args.x_gradient[j * dim + first + s * kGroup] = sums[s];
    }
    if (part == 0) args.source_gradient[i] = total;
  }
}

/// As above for heads of any width, whose columns do not fit in registers: 16 lanes per source and
/// head.
RZ_KERNEL AttendWideSourceGradient(AttendGradientArgsOf<Mem> args) {
  constexpr unsigned kGroup = 16;
  const std::size_t dim = args.heads * args.width;
  const unsigned part = ThreadIndex() % kGroup;
  for (std::size_t i = GridThread() / kGroup; i < args.sources * args.heads;
       i += GridThreads() / kGroup) {
    const std::size_t j = i / args.heads;
    const std::size_t head = i % args.heads;
    const Mem<const float> x = args.x + (j * dim + head * args.width);
    const Mem<float> sums = args.x_gradient + (j * dim + head * args.width);
    for (std::size_t c = part; c < args.width; c += kGroup) sums[c] = 0;
    const float source = args.source[i];
    float total = 0;
    const std::uint32_t edges =
        args.transposed_offsets[j + 1] - args.transposed_offsets[j] + (j < args.own ? 1 : 0);
    for (std::uint32_t n = 0; n < edges; ++n) {
      const SourceEdge edge = EdgeOf(args, j, n);
      const Mem<const float> row = args.gradient + (edge.target * dim + head * args.width);
      float dot = 0;
      for (std::size_t c = part; c < args.width; c += kGroup) dot = Sum(dot, Product(x[c], row[c]));
      dot = SumOfGroup<kGroup>(dot);
      const Pack<float, 4> stats = Cast<const Pack<float, 4>>(
          args.stats + 4 * (std::size_t{edge.target} * args.heads + head))[0];
      const EdgeGradient of = GradientOfEdge(args, source, stats, edge, head, dot);
      total = Sum(total, of.of_score);
      for (std::size_t c = part; c < args.width; c += kGroup)
        sums[c] = Sum(sums[c], Product(of.weight, row[c]));
      if (part == 0) KeepGradient(args, edge, i, head, of.of_score);
    }
    if (part == 0) args.source_gradient[i] = total;
  }
}

/// Sums the gradients of a target's scores, one thread per head.
RZ_KERNEL AttendQueryGradient(AttendGradientArgsOf<Mem> args) {
  for (std::size_t i = GridThread(); i < args.targets * args.heads; i += GridThreads()) {
    const std::size_t t = i / args.heads;
    float sum = 0;
    if (t < args.own && !RZ_MUTANT("attention: queries forget the own edge"))
      sum = args.own_gradient[i];
    for (std::size_t e = args.offsets[t]; e < args.offsets[t + 1]; ++e) {
      sum = Sum(sum, args.edge_gradient[e * args.heads + i % args.heads]);
    }
    args.query_gradient[i] = sum;
  }
}

/// `address`: bitwise OR of the addresses of x and out.
inline void LaunchAttend(Stream stream, const AttendArgsOf<Mem>& args, std::uint64_t address,
                         const Geometry& geometry = {}) {
  const std::size_t dim = args.heads * args.width;
  if (args.targets == 0 || dim == 0) return;
  // The adjacent columns of a lane must belong to one head.
  const bool adjacent = AreAdjacent(args.width | args.x_stride, address);
  WithElement(args.type, [&](auto element) {
    using T = decltype(element);
    WithLanes(dim, adjacent, [&](auto lanes, auto vector) {
      constexpr int kLanes = decltype(lanes)::value;
      constexpr int kVector = decltype(vector)::value;
      constexpr std::size_t kColumns = std::size_t{kLanes} * kVector;
      const std::size_t tiles = (dim + kColumns - 1) / kColumns;
      const std::size_t blocks = geometry.BlocksFor(args.targets * tiles * kLanes);
      const auto kernel = AttendRows<T, kLanes, kVector>;
      RZ_LAUNCH(kernel, blocks, geometry.block, stream, args);
    });
  });
}

/// Maximum width of a head whose columns are held in registers.
constexpr std::size_t kWidestHeld = 64;

/// Calls visit(group, segments) with the number of lanes per head and of columns per lane.
template <typename Visit>
void WithGroup(std::size_t width, const Visit& visit) {
  using One = std::integral_constant<int, 1>;
  using Half = std::integral_constant<unsigned, 16>;
  if (width <= 4) return visit(std::integral_constant<unsigned, 4>(), One());
  if (width <= 8) return visit(std::integral_constant<unsigned, 8>(), One());
  if (width <= 16) return visit(Half(), One());
  if (width <= 32) return visit(Half(), std::integral_constant<int, 2>());
  visit(Half(), std::integral_constant<int, 4>());
}

inline void LaunchAttendGradient(Stream stream, const AttendGradientArgsOf<Mem>& args,
                                 const Geometry& geometry = {}) {
  if (args.heads == 0 || args.width == 0) return;
  WithGroup(args.width, [&](auto group, auto segments) {
    constexpr unsigned kGroup = decltype(group)::value;
    const std::size_t of_targets = args.targets * args.heads;
    const std::size_t of_sources = args.sources * args.heads;
    const auto stats = AttendStats<kGroup, AttendGradientArgsOf<Mem>>;
    const auto rows = args.width > kWidestHeld
                          ? AttendWideSourceGradient
                          : AttendSourceGradient<kGroup, decltype(segments)::value>;
    if (of_targets > 0) {
      RZ_LAUNCH(stats, geometry.BlocksFor(of_targets * kGroup), geometry.block, stream, args);
    }
    if (of_sources > 0) {
      RZ_LAUNCH(rows, geometry.BlocksFor(of_sources * kGroup), geometry.block, stream, args);
    }
    if (of_targets > 0) {
      RZ_LAUNCH(AttendQueryGradient, geometry.BlocksFor(of_targets), geometry.block, stream, args);
    }
  });
}

}  // namespace rhizome::cuda
