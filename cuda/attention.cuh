#pragma once

#include "rhizome/cuda/activate.cuh"
#include "rhizome/cuda/aggregate.cuh"

// Attention with additive scores: softmax over the edges of a list, head by head, and the weighted
// sum of its rows, in one pass over the list, and its gradient. Nothing has edges times columns.
// The recurrence, its slack and its exp are those of cache/attention_kernels.h, with the same bits;
// sources are named there.

namespace rhizome::cuda {

/// As Exp of cache/attention_parts_inl.h.
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

/// The state of one target and head, and kVector of its columns.
template <int kVector>
struct AttendState {
  bool fresh = true;
  float largest = -FloatOfBits(0x7F800000U);
  float sum = 0;
  float columns[kVector] = {};

  /// Makes room for an edge and returns its weight.
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

/// The weight of the edge at `place` of a list (0: the own edge) after dropout.
RZ_DEVICE float Kept(const Dropout& dropout, std::uint64_t key, std::size_t place,
                     std::size_t heads, std::size_t head, float weight) {
  if (dropout.dropped == 0) return weight;
  if (RZ_MUTANT("attention: edges are dropped together")) place = 0;
  return Dropped(dropout, key, static_cast<std::uint32_t>(place * heads + head), weight);
}

/// A lane has kVector adjacent columns of one head of a target, and weighs its edges itself.
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

constexpr unsigned kHalfWarp = 16;

/// Adds up one number of each lane of a half warp, as the tree of EdgeDotArgs.
RZ_DEVICE float SumOfHalf(float part) {
  for (unsigned step = kHalfWarp / 2; step > 0; step /= 2) {
    part = Sum(part, Shuffle(kAllLanes, part, Lane() ^ step));
  }
  return part;
}

/// Gathers what the backward pass needs of a target and head side by side: a half warp has one.
RZ_KERNEL AttendStats(AttendGradientArgsOf<Mem> args) {
  const std::size_t count = args.targets * args.heads;
  const unsigned part = Lane() % kHalfWarp;
  // Both halves of a warp go round together, because they meet in the sums.
  for (std::size_t pair = GridWarp(); 2 * pair < count; pair += GridWarps()) {
    const std::size_t i = 2 * pair + Lane() / kHalfWarp;
    float dot = 0;
    for (std::size_t c = part; i < count && c < args.width; c += kHalfWarp) {
      const float gradient = args.gradient[i * args.width + c];
      const float out = args.out[i * args.width + c];
      dot = Sum(dot, Product(gradient, out));
    }
    dot = SumOfHalf(dot);
    if (i >= count || part != 0) continue;
    const float denominator = args.denominator[i];
    Pack<float, 4> stats;
    stats.part[0] = args.maximum[i];
    stats.part[1] = denominator == 0 ? 0.0F : 1.0F / denominator;
    stats.part[2] = RZ_MUTANT("attention: gradients forget that weights add up to 1") ? 0 : dot;
    stats.part[3] = args.query[i];
    Cast<Pack<float, 4>>(args.stats + 4 * i)[0] = stats;
  }
}

/// The gradient of the score of an edge, and the weight of its target's gradient row.
struct EdgeGradient {
  float of_score;
  float weight;
};
RZ_DEVICE EdgeGradient GradientOfEdge(const AttendGradientArgsOf<Mem>& args, float source,
                                      const Pack<float, 4>& stats, std::size_t target,
                                      std::size_t place, std::size_t head, float dot) {
  const float sum = Sum(source, stats.part[3]);
  const float share = Product(Exp(Sum(Leaky(sum, args.slope), -stats.part[0])), stats.part[1]);
  float kept = share;
  if (args.dropout.dropped != 0) {
    const std::uint64_t key = DrawKey(args.dropout, target);
    kept = Kept(args.dropout, key, place, args.heads, head, share);
    dot = Kept(args.dropout, key, place, args.heads, head, dot);
  }
  float of_score = Product(share, Sum(dot, -stats.part[2]));
  if (!RZ_MUTANT("attention: LeakyReLU has slope 1 in gradients"))
    of_score = Product(of_score, sum > 0 ? 1.0F : args.slope);
  return {of_score, kept};
}

/// A half warp has a source and head: columns part, part + 16, ... a lane, kSegments of them in
/// registers, or with kSegments = 0 in the output.
template <int kSegments>
RZ_KERNEL AttendSourceGradient(AttendGradientArgsOf<Mem> args) {
  constexpr int kHeld = kSegments == 0 ? 1 : kSegments;
  const std::size_t count = args.sources * args.heads;
  const std::size_t dim = args.heads * args.width;
  const unsigned part = Lane() % kHalfWarp;
  const std::size_t segments =
      kSegments == 0 ? (args.width + kHalfWarp - 1) / kHalfWarp : std::size_t{kSegments};
  for (std::size_t pair = GridWarp(); 2 * pair < count; pair += GridWarps()) {
    const std::size_t i = 2 * pair + Lane() / kHalfWarp;
    const bool there = i < count;
    const std::size_t j = there ? i / args.heads : 0;
    const std::size_t head = there ? i % args.heads : 0;
    const std::size_t first = head * args.width;
    const float source = there ? float{args.source[i]} : 0.0F;
    float x[kHeld] = {};
    float sums[kHeld] = {};
    for (int s = 0; s < kSegments; ++s) {
      const std::size_t c = part + s * std::size_t{kHalfWarp};
      if (there && c < args.width) x[s] = args.x[j * dim + first + c];
    }
    if (kSegments == 0 && there) {
      for (std::size_t c = part; c < args.width; c += kHalfWarp)
        args.x_gradient[j * dim + first + c] = 0;
    }
    float total = 0;
    const bool own = there && j < args.own;
    const std::uint32_t begin = there ? std::uint32_t{args.turned_offsets[j]} : 0;
    const std::uint32_t edges = there ? args.turned_offsets[j + 1] - begin + (own ? 1 : 0) : 0;
    // Halves with shorter lists go on with nothing, because both meet in the sums.
    const std::uint32_t others = Shuffle(kAllLanes, edges, Lane() ^ kHalfWarp);
    const std::uint32_t rounds = edges > others ? edges : others;
    for (std::uint32_t n = 0; n < rounds; ++n) {
      const bool mine = n < edges;
      const bool is_own = own && n == 0;
      auto target = static_cast<std::uint32_t>(j);
      std::uint32_t edge = 0;
      if (mine && !is_own) {
        target = args.target[begin + n - (own ? 1 : 0)];
        edge = args.edge[begin + n - (own ? 1 : 0)];
      }
      const std::size_t at = target * dim + first;
      float g[kHeld] = {};
      float dot = 0;
      for (std::size_t s = 0; s < segments; ++s) {
        const std::size_t c = part + s * kHalfWarp;
        if (!mine || c >= args.width) continue;
        const float gradient = args.gradient[at + c];
        if constexpr (kSegments == 0) {
          dot = Sum(dot, Product(args.x[j * dim + first + c], gradient));
        } else {
          g[s] = gradient;
          dot = Sum(dot, Product(x[s], gradient));
        }
      }
      dot = SumOfHalf(dot);
      if (!mine) continue;
      const Pack<float, 4> stats =
          Cast<const Pack<float, 4>>(args.stats + 4 * (std::size_t{target} * args.heads + head))[0];
      const std::uint32_t place = is_own ? 0 : edge - args.offsets[target] + 1;
      const EdgeGradient of = GradientOfEdge(args, source, stats, target, place, head, dot);
      total = Sum(total, of.of_score);
      for (std::size_t s = 0; s < segments; ++s) {
        const std::size_t c = part + s * kHalfWarp;
        if (c >= args.width) continue;
        if constexpr (kSegments == 0) {
          const Mem<float> sum = args.x_gradient + (j * dim + first + c);
          sum[0] = Sum(sum[0], Product(of.weight, args.gradient[at + c]));
        } else {
          sums[s] = Sum(sums[s], Product(of.weight, g[s]));
        }
      }
      if (part != 0) continue;
      if (is_own) {
        args.own_gradient[j * args.heads + head] = of.of_score;
      } else {
        args.edge_gradient[std::size_t{edge} * args.heads + head] = of.of_score;
      }
    }
    if (!there) continue;
    for (int s = 0; s < kSegments; ++s) {
      const std::size_t c = part + s * std::size_t{kHalfWarp};
      if (c < args.width) args.x_gradient[j * dim + first + c] = sums[s];
    }
    if (part == 0) args.source_gradient[i] = total;
  }
}

/// Sums the gradients of a target's scores, a thread a head.
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

/// `address`: those of x and out, one or-ed into the other.
inline void LaunchAttend(Stream stream, const AttendArgsOf<Mem>& args, std::uint64_t address,
                         const Geometry& geometry = {}) {
  const std::size_t dim = args.heads * args.width;
  if (args.targets == 0 || dim == 0) return;
  WithElement(args.type, [&](auto element) {
    using T = decltype(element);
    const auto launch = [&](auto lanes, auto vector) {
      constexpr int kLanes = decltype(lanes)::value;
      constexpr int kVector = decltype(vector)::value;
      constexpr std::size_t kColumns = std::size_t{kLanes} * kVector;
      const std::size_t tiles = (dim + kColumns - 1) / kColumns;
      const std::size_t blocks = geometry.BlocksFor(args.targets * tiles * kLanes);
      const auto kernel = AttendRows<T, kLanes, kVector>;
      RZ_LAUNCH(kernel, blocks, geometry.block, stream, args);
    };
    const bool adjacent = (args.width | args.x_stride) % 4 == 0 && address % (4 * sizeof(T)) == 0;
    using Four = std::integral_constant<int, 4>;
    using Warp = std::integral_constant<int, kWarp>;
    if (!adjacent) return launch(Warp(), std::integral_constant<int, 1>());
    if (dim <= 32) return launch(std::integral_constant<int, 8>(), Four());
    if (dim <= 64) return launch(std::integral_constant<int, 16>(), Four());
    launch(Warp(), Four());
  });
}

inline void LaunchAttendGradient(Stream stream, const AttendGradientArgsOf<Mem>& args,
                                 const Geometry& geometry = {}) {
  if (args.heads == 0 || args.width == 0) return;
  const std::size_t halves = args.sources * args.heads;
  const std::size_t stats = args.targets * args.heads;
  if (stats > 0) {
    RZ_LAUNCH(AttendStats, geometry.BlocksFor(stats * kHalfWarp), geometry.block, stream, args);
  }
  const std::size_t blocks = geometry.BlocksFor(halves * kHalfWarp);
  const auto of_sources = args.width <= 16   ? AttendSourceGradient<1>
                          : args.width <= 32 ? AttendSourceGradient<2>
                          : args.width <= 64 ? AttendSourceGradient<4>
                                             : AttendSourceGradient<0>;
  if (halves > 0) RZ_LAUNCH(of_sources, blocks, geometry.block, stream, args);
  if (stats > 0) {
    RZ_LAUNCH(AttendQueryGradient, geometry.BlocksFor(stats), geometry.block, stream, args);
  }
}

}  // namespace rhizome::cuda
