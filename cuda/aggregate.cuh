#pragma once

#include <type_traits>

#include "cuda/elements.cuh"

// Aggregation over neighbour lists, after the memory-aware computation of FastGL (ASPLOS 2024,
// section 4.2). FastGL keeps partial sums in shared memory; here they are in registers. One thread
// sums each column in list order, and products are rounded before they are added. Results are
// bit-identical to the CPU kernels, except for the payload of a NaN and for lists that are cut into
// several pieces (SumArgsOf::pieces). Gradients walk the transposed lists and need no atomics.

namespace rhizome::cuda {

/// A lane's share of a warp's output tile: columns first, first + 32, ... of row `row`.
struct Tile {
  std::size_t row;
  std::size_t first;
};
template <int kPerLane>
RZ_DEVICE std::size_t TilesOf(std::size_t dim) {
  return (dim + kPerLane * kWarp - 1) / (kPerLane * kWarp);
}
template <int kPerLane>
RZ_DEVICE Tile TileOf(std::size_t work, std::size_t tiles) {
  return {work / tiles, work % tiles * (kPerLane * kWarp) + Lane()};
}

/// The edge that a lane has staged. A warp stages 32 edges of a list, one per lane.
struct Staged {
  std::uint32_t source = 0;
  float factor = 1;
};
RZ_DEVICE float FactorOf(const SumArgsOf<Mem>& args, std::uint32_t source, std::size_t edge) {
  const float of_source = args.source_scale == nullptr ? 1.0F : float{args.source_scale[source]};
  const float weight = args.edge_weight == nullptr ? 1.0F : float{args.edge_weight[edge]};
  return Product(of_source, weight);
}
RZ_DEVICE Staged StageEdge(const SumArgsOf<Mem>& args, std::size_t edge, std::size_t end) {
  Staged staged;
  if (edge >= end) return staged;
  staged.source = args.index[edge];
  staged.factor = FactorOf(args, staged.source, edge);
  return staged;
}

/// Adjacent columns that are loaded or stored in one access.
template <typename T, int kVector>
struct alignas(kVector * sizeof(T)) Pack {
  T part[kVector];
};

/// Number of edges whose rows are loaded before the first of them is added.
constexpr unsigned kEdgesAhead = 2;

/// Edges [begin, end) of a target, summed by one group of lanes. `partial` is as in ListPiece.
struct ListPart {
  std::size_t target;
  std::size_t begin;
  std::size_t end;
  std::uint32_t partial;
};
/// Returns the edges of work item `item`: the pieces come first, then the whole list of each
/// target.
RZ_DEVICE ListPart PartOf(const SumArgsOf<Mem>& args, std::size_t item) {
  if (item < args.piece_count) {
    const ListPiece piece = args.pieces[item];
    return {piece.target, piece.begin, piece.end, piece.partial};
  }
  const std::size_t target = item - args.piece_count;
  return {target, args.offsets[target], args.offsets[target + 1], kWholeList};
}
/// Returns whether `item` is a whole list that is skipped because it is cut into pieces.
RZ_DEVICE bool IsLeftToPieces(const SumArgsOf<Mem>& args, std::size_t item, const ListPart& part) {
  if (RZ_MUTANT("sum: long lists are summed whole, too")) return false;
  return args.piece_count != 0 && item >= args.piece_count && part.end - part.begin > args.longest;
}

/// Adds the rows of a part's edges to `sums`, for the kVector columns from `column` on.
template <typename T, int kVector, bool kScaled>
RZ_DEVICE void AddEdges(const SumArgsOf<Mem>& args, const ListPart& part, std::size_t column,
                        float* sums) {
  using Columns = Pack<T, kVector>;
  const std::size_t end = part.end - (RZ_MUTANT("sum: last edge left out") ? 1 : 0);
  const std::size_t stride =
      RZ_MUTANT("sum: rows lie as far apart as they are wide") ? args.dim : args.x_stride;
  const bool beyond = RZ_MUTANT("sum: edges beyond the list are read");
  for (std::size_t edge = part.begin; edge < end; edge += kEdgesAhead) {
    Columns columns[kEdgesAhead];
    float factor[kEdgesAhead];
    RZ_UNROLL
    for (unsigned k = 0; k < kEdgesAhead; ++k) {
      if (edge + k >= end && !beyond) break;
      const std::uint32_t source = args.index[edge + k];
      factor[k] = kScaled ? FactorOf(args, source, edge + k) : 1.0F;
      columns[k] = Cast<const Columns>(Cast<const T>(args.x) + (source * stride + column))[0];
    }
    RZ_UNROLL
    for (unsigned k = 0; k < kEdgesAhead; ++k) {
      if (edge + k >= end) break;
      for (int c = 0; c < kVector; ++c) {
        const float value = Widened(columns[k].part[c]);
        sums[c] = Sum(sums[c], kScaled ? Product(factor[k], value) : value);
      }
    }
  }
}

/// Applies the target's factor and the initial row.
RZ_DEVICE float Finished(const SumArgsOf<Mem>& args, std::size_t t, std::size_t column, float sum) {
  if (!(args.target_scale == nullptr)) sum = Product(sum, args.target_scale[t]);
  if (t >= args.initial_rows) return sum;
  const float scale = args.initial_scale == nullptr ? 1.0F : float{args.initial_scale[t]};
  return Sum(Product(scale, args.initial[t * args.initial_stride + column]), sum);
}

/// A group of kLanes lanes sums kLanes * kVector columns of a row; each lane has kVector adjacent
/// ones.
template <typename T, int kLanes, int kVector, bool kScaled>
RZ_KERNEL SumRows(SumArgsOf<Mem> args) {
  using Columns = Pack<float, kVector>;
  constexpr std::size_t kColumns = std::size_t{kLanes} * kVector;
  const std::size_t tiles = (args.dim + kColumns - 1) / kColumns;
  // The column tile is the outermost index: the source rows that many lists share remain in the
  // cache while one tile of columns is summed for all lists.
  const std::size_t items = args.piece_count + args.targets;
  const std::size_t step = GridThreads() / (RZ_MUTANT("sum: groups step by threads") ? 1 : kLanes);
  for (std::size_t work = GridThread() / kLanes; work < items * tiles; work += step) {
    const std::size_t item = work % items;
    const std::size_t column = work / items * kColumns + ThreadIndex() % kLanes * kVector;
    if (column >= args.dim && !RZ_MUTANT("sum: columns beyond the width are read")) continue;
    const ListPart part = PartOf(args, item);
    if (IsLeftToPieces(args, item, part)) continue;
    float sums[kVector] = {};
    AddEdges<T, kVector, kScaled>(args, part, column, sums);
    const bool whole = part.partial == kWholeList;
    Columns out;
    for (int c = 0; c < kVector; ++c) {
      out.part[c] = whole ? Finished(args, part.target, column + c, sums[c]) : sums[c];
    }
    const Mem<float> to =
        whole ? args.out + part.target * args.out_stride : args.partials + part.partial * args.dim;
    Cast<Columns>(to + column)[0] = out;
  }
}

/// Adds the partial sums of each list that has several pieces, one thread per column.
RZ_KERNEL AddPartials(SumArgsOf<Mem> args) {
  for (std::size_t work = GridThread(); work < args.piece_count * args.dim; work += GridThreads()) {
    std::size_t item = work / args.dim;
    const std::size_t column = work % args.dim;
    ListPiece piece = args.pieces[item];
    if (piece.partial == kWholeList || piece.begin != args.offsets[piece.target]) continue;
    const std::uint32_t end = args.offsets[piece.target + 1];
    float sum = args.partials[piece.partial * args.dim + column];
    while (piece.end != end) {
      piece = args.pieces[++item];
      if (RZ_MUTANT("sum: a list has two pieces") && piece.end != end) continue;
      sum = Sum(sum, args.partials[piece.partial * args.dim + column]);
    }
    args.out[piece.target * args.out_stride + column] = Finished(args, piece.target, column, sum);
  }
}

/// FastGL's form (section 4.2), for comparison: partial sums and factors are in shared memory, and
/// here the source numbers too, 32 edges at a time. As in the paper, a block of kSharedThreads
/// threads computes 8 targets of 32 columns; each warp has one row and 32 columns.
constexpr unsigned kSharedThreads = 8 * kWarp;
template <typename T>
RZ_KERNEL SumRowsInSharedMemory(SumArgsOf<Mem> args) {
  RZ_SHARED(float, sums, kSharedThreads);
  RZ_SHARED(std::uint32_t, sources, kSharedThreads);
  RZ_SHARED(float, factors, kSharedThreads);
  const unsigned mine = ThreadIndex();
  const unsigned staged = mine / kWarp * kWarp;
  const std::size_t tiles = TilesOf<1>(args.dim);
  const Mem<const T> x = Cast<const T>(args.x);
  for (std::size_t work = GridWarp(); work < args.targets * tiles; work += GridWarps()) {
    const Tile tile = TileOf<1>(work, tiles);
    if (!RZ_MUTANT("shared sums: they do not begin at zero")) sums[mine] = 0;
    const std::size_t end = args.offsets[tile.row + 1];
    for (std::size_t chunk = args.offsets[tile.row]; chunk < end; chunk += kWarp) {
      if (!RZ_MUTANT("shared sums: staged before all have read")) SyncWarp(kAllLanes);
      const Staged edge = StageEdge(args, chunk + Lane(), end);
      sources[mine] = edge.source;
      factors[mine] = edge.factor;
      if (!RZ_MUTANT("shared sums: read before all have staged")) SyncWarp(kAllLanes);
      const auto count = static_cast<unsigned>(end - chunk < kWarp ? end - chunk : kWarp);
      for (unsigned k = 0; k < count && tile.first < args.dim; ++k) {
        const T element = x[sources[staged + k] * args.x_stride + tile.first];
        sums[mine] = Sum(sums[mine], Product(factors[staged + k], Widened(element)));
      }
    }
    if (tile.first >= args.dim) continue;
    args.out[tile.row * args.out_stride + tile.first] =
        Finished(args, tile.row, tile.first, sums[mine]);
  }
}

template <typename T, int kPerLane>
RZ_KERNEL MaxRows(MaxArgsOf<Mem> args) {
  const std::size_t tiles = TilesOf<kPerLane>(args.dim);
  const Mem<const T> x = Cast<const T>(args.x);
  for (std::size_t work = GridWarp(); work < args.targets * tiles; work += GridWarps()) {
    const Tile tile = TileOf<kPerLane>(work, tiles);
    const std::uint32_t begin = args.offsets[tile.row];
    const std::uint32_t end = args.offsets[tile.row + 1];
    float best[kPerLane] = {};
    std::uint32_t winner[kPerLane];
    for (int i = 0; i < kPerLane; ++i) winner[i] = begin == end ? kNoWinner : begin;
    for (std::uint32_t chunk = begin; chunk < end; chunk += kWarp) {
      std::uint32_t mine = 0;
      if (chunk + Lane() < end) mine = args.index[chunk + Lane()];
      const std::uint32_t count = end - chunk < kWarp ? end - chunk : kWarp;
      for (std::uint32_t k = 0; k < count; ++k) {
        const std::size_t row = Shuffle(kAllLanes, mine, k) * args.x_stride;
        for (int i = 0; i < kPerLane; ++i) {
          const std::size_t column = tile.first + static_cast<std::size_t>(i) * kWarp;
          if (column >= args.dim) continue;
          const T element = x[row + column];
          const float value = Widened(element);
          const bool nan_is_larger = !(value <= best[i]) && best[i] == best[i];
          const bool larger = RZ_MUTANT("max: a NaN is not larger")       ? value > best[i]
                              : RZ_MUTANT("max: the last of equals wins") ? value >= best[i]
                                                                          : nan_is_larger;
          if (chunk + k != begin && !larger) continue;
          best[i] = value;
          winner[i] = chunk + k;
        }
      }
    }
    for (int i = 0; i < kPerLane; ++i) {
      const std::size_t column = tile.first + static_cast<std::size_t>(i) * kWarp;
      if (column >= args.dim) continue;
      args.out[tile.row * args.out_stride + column] = best[i];
      if (!(args.winner == nullptr)) args.winner[tile.row * args.dim + column] = winner[i];
    }
  }
}

RZ_KERNEL MaxGradientRows(MaxGradientArgsOf<Mem> args) {
  const std::size_t tiles = TilesOf<1>(args.dim);
  for (std::size_t work = GridWarp(); work < args.sources * tiles; work += GridWarps()) {
    const Tile tile = TileOf<1>(work, tiles);
    const std::uint32_t end = args.offsets[tile.row + 1];
    float sum = 0;
    for (std::uint32_t chunk = args.offsets[tile.row]; chunk < end; chunk += kWarp) {
      std::uint32_t target = 0;
      std::uint32_t edge = 0;
      if (chunk + Lane() < end) {
        target = args.target[chunk + Lane()];
        edge = args.edge[chunk + Lane()];
      }
      const std::uint32_t count = end - chunk < kWarp ? end - chunk : kWarp;
      for (std::uint32_t k = 0; k < count; ++k) {
        const std::size_t at = Shuffle(kAllLanes, target, k) * args.dim + tile.first;
        const std::uint32_t won = Shuffle(kAllLanes, edge, k);
        if (tile.first >= args.dim) continue;
        if (args.winner[at] == (RZ_MUTANT("max gradient: places for edges") ? chunk + k : won))
          sum = Sum(sum, args.gradient[at]);
      }
    }
    if (tile.first < args.dim) args.out[tile.row * args.dim + tile.first] = sum;
  }
}

/// A warp computes two edges of a list at a time, one per half-warp.
template <typename T>
RZ_KERNEL EdgeDots(EdgeDotArgsOf<Mem> args) {
  constexpr unsigned kParts = 16;
  const Mem<const T> x = Cast<const T>(args.x);
  const unsigned part = Lane() % kParts;
  for (std::size_t t = GridWarp(); t < args.targets; t += GridWarps()) {
    const std::size_t end = args.offsets[t + 1];
    for (std::size_t pair = args.offsets[t]; pair < end; pair += 2) {
      const std::size_t edge = pair + Lane() / kParts;
      float sum = 0;
      if (edge < end) {
        const std::size_t row = args.index[edge] * args.x_stride;
        for (std::size_t column = part; column < args.dim; column += kParts) {
          const T element = x[row + column];
          sum = Sum(sum, Product(args.gradient[t * args.dim + column], Widened(element)));
        }
      }
      for (unsigned step = kParts / 2; step > 0; step /= 2) {
        const unsigned distance =
            RZ_MUTANT("edge dots: the tree is turned over") ? kParts / 2 / step : step;
        sum = Sum(sum, Shuffle(kAllLanes, sum, Lane() ^ distance));
      }
      if (edge < end && (part == 0 || RZ_MUTANT("edge dots: every lane writes")))
        args.out[edge] = sum;
    }
  }
}

/// Calls visit(T{}) with the type of the rows' elements.
template <typename Visit>
void WithElement(Element type, const Visit& visit) {
  if (type == Element::kFloat32) return visit(float{});
  if (type == Element::kFloat16) return visit(Half{});
  visit(Bfloat{});
}

/// Calls visit(number) with the number of columns per lane, as a std::integral_constant.
template <typename Visit>
void WithColumns(std::size_t dim, const Visit& visit) {
  if (dim <= kWarp) return visit(std::integral_constant<int, 1>());
  if (dim <= 2 * kWarp) return visit(std::integral_constant<int, 2>());
  visit(std::integral_constant<int, 4>());
}

/// Returns the number of blocks for `rows` of `dim` columns, with `per_lane` columns per lane.
inline std::size_t TileBlocks(std::size_t rows, std::size_t dim, int per_lane,
                              const Geometry& geometry) {
  const std::size_t columns = static_cast<std::size_t>(per_lane) * kWarp;
  return geometry.BlocksFor(rows * ((dim + columns - 1) / columns) * kWarp);
}

/// Returns whether four adjacent columns can be read, and written as float32, in one access.
/// `widths` is the bitwise OR of all widths and strides, `address` of all base addresses.
inline bool AreAdjacent(std::size_t widths, std::uint64_t address) {
  return widths % 4 == 0 && address % sizeof(Pack<float, 4>) == 0;
}

/// Calls visit(lanes, vector) with the number of lanes for a row of `dim` columns, and the number
/// of adjacent columns per lane.
template <typename Visit>
void WithLanes(std::size_t dim, bool adjacent, const Visit& visit) {
  using One = std::integral_constant<int, 1>;
  using Four = std::integral_constant<int, 4>;
  using Warp = std::integral_constant<int, kWarp>;
  if (!adjacent) return visit(Warp(), One());
  if (dim <= 32) return visit(std::integral_constant<int, 8>(), Four());
  if (dim <= 64) return visit(std::integral_constant<int, 16>(), Four());
  visit(Warp(), Four());
}

/// `address`: bitwise OR of the addresses of the rows, the output and the partial sums.
inline void LaunchSum(Stream stream, const SumArgsOf<Mem>& args, std::uint64_t address,
                      const Geometry& geometry = {}) {
  if (args.targets == 0 || args.dim == 0) return;
  const bool scaled = !(args.source_scale == nullptr && args.edge_weight == nullptr);
  const bool adjacent = AreAdjacent(args.dim | args.x_stride | args.out_stride, address) ||
                        RZ_MUTANT("sum: all rows are read four columns at a time");
  WithElement(args.type, [&](auto element) {
    using T = decltype(element);
    WithLanes(args.dim, adjacent, [&](auto lanes, auto vector) {
      constexpr int kLanes = decltype(lanes)::value;
      constexpr int kVector = decltype(vector)::value;
      constexpr std::size_t kColumns = std::size_t{kLanes} * kVector;
      const std::size_t tiles = (args.dim + kColumns - 1) / kColumns;
      const std::size_t blocks =
          geometry.BlocksFor((args.piece_count + args.targets) * tiles * kLanes);
      const auto kernel =
          scaled ? SumRows<T, kLanes, kVector, true> : SumRows<T, kLanes, kVector, false>;
      RZ_LAUNCH(kernel, blocks, geometry.block, stream, args);
    });
  });
  if (args.partial_count == 0) return;
  const std::size_t blocks = geometry.BlocksFor(args.piece_count * args.dim);
  RZ_LAUNCH(AddPartials, blocks, geometry.block, stream, args);
}

inline void LaunchSumInSharedMemory(Stream stream, const SumArgsOf<Mem>& args,
                                    std::size_t max_blocks = Geometry().max_blocks) {
  if (args.targets == 0 || args.dim == 0) return;
  const Geometry geometry{kSharedThreads, max_blocks};
  const std::size_t blocks = TileBlocks(args.targets, args.dim, 1, geometry);
  WithElement(args.type, [&](auto element) {
    const auto kernel = SumRowsInSharedMemory<decltype(element)>;
    RZ_LAUNCH(kernel, blocks, geometry.block, stream, args);
  });
}

inline void LaunchMax(Stream stream, const MaxArgsOf<Mem>& args, const Geometry& geometry = {}) {
  if (args.targets == 0 || args.dim == 0) return;
  WithElement(args.type, [&](auto element) {
    using T = decltype(element);
    WithColumns(args.dim, [&](auto columns) {
      constexpr int kPerLane = decltype(columns)::value;
      const std::size_t blocks = TileBlocks(args.targets, args.dim, kPerLane, geometry);
      const auto kernel = MaxRows<T, kPerLane>;
      RZ_LAUNCH(kernel, blocks, geometry.block, stream, args);
    });
  });
}

inline void LaunchMaxGradient(Stream stream, const MaxGradientArgsOf<Mem>& args,
                              const Geometry& geometry = {}) {
  if (args.sources == 0 || args.dim == 0) return;
  const std::size_t blocks = TileBlocks(args.sources, args.dim, 1, geometry);
  RZ_LAUNCH(MaxGradientRows, blocks, geometry.block, stream, args);
}

inline void LaunchEdgeDots(Stream stream, const EdgeDotArgsOf<Mem>& args,
                           const Geometry& geometry = {}) {
  if (args.targets == 0) return;
  const std::size_t blocks = geometry.BlocksFor(args.targets * kWarp);
  WithElement(args.type, [&](auto element) {
    const auto kernel = EdgeDots<decltype(element)>;
    RZ_LAUNCH(kernel, blocks, geometry.block, stream, args);
  });
}

}  // namespace rhizome::cuda
