#pragma once

#include <cstddef>
#include <cstdint>

#include "cache/kernels/attention_parts_inl.h"
#include "cache/kernels/gather_max_inl.h"
#include "storage/base/mutant.h"

// Full-graph attention kernels (gather_kernels.h), over the vector type V of
// aggregate_kernels_inl.h. Lists are processed in chunks of edges, as in attention_kernels_inl.h.

namespace rhizome {
inline namespace internal {
namespace {

/// Edges of one target or source that are processed at once.
struct GatherChunk {
  std::size_t edge = 0;  // the first edge
  std::size_t count = 0;
  std::size_t limit = 0;  // edges below it may be prefetched

  /// Processes the list of target (or source) `place` in chunks of at most `most` edges.
  template <typename Work>
  [[gnu::always_inline]] void Walk(const GatherRows& rows, std::size_t place, std::size_t most,
                                   const Work& work) {
    const std::size_t end = rows.ends[place];
    limit = GatherLimit(rows, end);
    for (edge = rows.begins[place]; edge < end; edge += count) {
      count = end - edge < most ? end - edge : most;
      work();
    }
  }
};

/// Describes the rows of a chunk for AddRows. They are added to `out` with the weights [heads] of
/// each edge; the weights of consecutive edges are `numbers` apart.
inline WeightedRows<float> RowsOfChunk(const GatherRows& all, const GatherChunk& chunk,
                                       std::size_t heads, std::size_t width, std::size_t numbers,
                                       const ChunkNumbers& weight, float* out) {
  WeightedRows<float> rows;
  rows.x = all.x;
  rows.stride = all.stride;
  rows.index = all.index + chunk.edge;
  rows.count = chunk.count;
  rows.heads = heads;
  rows.width = width;
  rows.numbers = numbers;
  rows.weight = weight.at;
  rows.edge = chunk.edge;
  rows.limit = chunk.limit;
  rows.keep = true;
  rows.out = out;
  return rows;
}

/// Dropout draws for the edges of one target or source, in the order of its list.
template <typename V>
class EdgeDraws {
 public:
  EdgeDraws(const GatherDropout& dropout, const GatherNumbers& numbers, std::size_t heads)
      : rule_{.dropped = dropout.dropped, .scale = dropout.scale},
        seed_(dropout.seed),
        numbers_(numbers),
        heads_(heads) {}

  bool any() const { return rule_.dropped != 0; }

  /// Starts the list of target (or source) `place` of the state.
  void Begin(std::size_t place, const GatherRows& rows) {
    fixed_ = numbers_.first + place;
    begin_ = rows.begins[place];
    parallel_ = 0;
  }

  /// Advances to the given edge. `to_target`: the edge's row in `rows` is the target, else the
  /// source.
  void Next(const GatherRows& rows, std::size_t edge, bool to_target) {
    const bool again = edge > begin_ && rows.index[edge - 1] == rows.index[edge];
    parallel_ = again && !RHIZOME_MUTANT("parallel edges are dropped together") ? parallel_ + 1 : 0;
    const std::uint64_t other = numbers_.own ? fixed_ : numbers_.of_rows[rows.index[edge]];
    const std::uint64_t target = to_target ? other : fixed_;
    key_ = SplitMix64(SplitMix64(seed_, target), to_target ? fixed_ : other);
  }

  /// Applies dropout to the weights of heads `head` and above.
  typename V::Reg Drop(std::size_t head, typename V::Reg weights) const {
    const std::size_t row = numbers_.own ? 0 : parallel_ + 1;
    return Dropped<V>(rule_, key_, row * heads_ + head, weights);
  }

 private:
  const AttendDropout rule_;
  const std::uint64_t seed_;
  const GatherNumbers numbers_;
  const std::size_t heads_;
  std::uint64_t fixed_ = 0;   // the row whose list is processed
  std::size_t begin_ = 0;     // start of the list
  std::size_t parallel_ = 0;  // earlier edges between the same two rows
  std::uint64_t key_ = 0;     // key of the current edge's draws
};

template <typename V>
class GatherAttention {
 public:
  explicit GatherAttention(const GatherAttendArgs& args)
      : args_(args),
        rows_of_(args.rows),
        columns_(args.heads * args.width),
        slope_(V::Set(args.slope)),
        layout_(args.heads),
        most_(ChunkOf<V>(args.heads, columns_ * sizeof(float))),
        rows_(GatherAhead(args.rows, columns_)),
        scores_{reinterpret_cast<const char*>(args.rows.x + columns_), args.heads * sizeof(float),
                args.rows.stride * sizeof(float), args.rows.index, 2 * kChunkEdges},
        draws_(args.dropout, args.numbers, args.heads) {}

  void Target(std::size_t t) {
    state_ = args_.state + t * (2 * columns_ + 4 * args_.heads);
    draws_.Begin(t, rows_of_);
    chunk_.Walk(rows_of_, t, most_, [this] {
      Weigh();
      if (draws_.any()) Drop();
      Add(above_, state_, &rows_);
      Add(below_, state_ + columns_, nullptr);  // the rows are in the cache at this point
    });
  }

 private:
  /// State of the recurrence for the heads of one register: the maximum repeated for all edges of
  /// the register, the sums for the first edge.
  struct Softmax {
    typename V::Reg largest, above, below;
  };

  void TakeScores() {
    float* at = above_.at;
    const std::size_t end = chunk_.edge + chunk_.count;
    for (std::size_t e = chunk_.edge; e < end; ++e, at += layout_.numbers) {
      scores_.Fetch(e, chunk_.limit);
      CopyNumbers(rows_of_.x + rows_of_.index[e] * rows_of_.stride + columns_, args_.heads, at);
    }
  }

  /// Turns scores into weights, records rescale factors where a maximum grows, and accumulates the
  /// weights.
  [[gnu::noinline]] void Weigh() {
    rescales_.Begin(chunk_.count);
    TakeScores();
    const std::size_t heads = args_.heads;
    for (std::size_t h = 0; h < heads; h += V::kWidth) {
      const std::size_t left = heads - h;
      float* const sums = state_ + 2 * columns_ + h;
      const typename V::Reg query = layout_.Of(LoadSome<V>(sums + 3 * heads, left), 0);
      Softmax state{.largest = layout_.Of(LoadSome<V>(sums + 2 * heads, left), 0),
                    .above = LoadSome<V>(sums, left),
                    .below = LoadSome<V>(sums + heads, left)};
      const bool fresh = sums[2 * heads] == -__builtin_inff();
      for (std::size_t i = 0; i < chunk_.count; i += layout_.edges) {
        const std::size_t at = i * layout_.numbers + h;
        const typename V::Reg sum = V::Add(layout_.Load(above_.at + at, left), query);
        const typename V::Reg score = Leaky<V>(sum, slope_);
        if (fresh && i == 0) state.largest = layout_.Of(score, 0);  // nothing to rescale yet
        if (V::Any(Grows(score, state.largest))) {
          OneByOne(i, h, sum, state);
          continue;
        }
        const typename V::Reg weight = Exp<V>(V::Sub(score, state.largest));
        typename V::Reg above = V::Keep(V::Positive(sum), weight);
        typename V::Reg below = V::Pick(V::Positive(sum), V::Zero(), weight);
        V::Store(above_.at + at, above);
        V::Store(below_.at + at, below);
        AddUp(above, below, state);
        for (std::size_t k = 1; k < layout_.edges && i + k < chunk_.count; ++k) {
          above = layout_.Next(above);
          below = layout_.Next(below);
          AddUp(above, below, state);
        }
      }
      StoreSome<V>(sums, state.above, left);
      StoreSome<V>(sums + heads, state.below, left);
      StoreSome<V>(sums + 2 * heads, state.largest, left);
    }
  }

  static void AddUp(typename V::Reg above, typename V::Reg below, Softmax& state) {
    state.above = V::Add(state.above, above);
    state.below = V::Add(state.below, below);
  }

  static typename V::Mask Grows(typename V::Reg score, typename V::Reg largest) {
    return V::Positive(V::Sub(score, V::Add(largest, V::Set(kMaximumSlack))));
  }

  /// Slow path of Weigh, used if a maximum grows: processes the edges in one register, starting
  /// with edge i, one by one.
  [[gnu::noinline]] void OneByOne(std::size_t i, std::size_t h, typename V::Reg sums,
                                  Softmax& state) {
    const std::size_t left = args_.heads - h;
    for (std::size_t k = 0; k < layout_.edges && i + k < chunk_.count; ++k) {
      const std::size_t at = (i + k) * layout_.numbers + h;
      const typename V::Reg sum = layout_.Of(sums, k);
      const typename V::Reg score = Leaky<V>(sum, slope_);
      const typename V::Mask grows = Grows(score, state.largest);
      if (V::Any(grows)) {
        const typename V::Reg before = state.largest;
        state.largest = V::Pick(grows, score, before);
        const typename V::Reg rescale = Exp<V>(V::Sub(before, state.largest));
        state.above = V::Mul(state.above, rescale);
        if (!RHIZOME_MUTANT("sums below zero are not rescaled"))
          state.below = V::Mul(state.below, rescale);
        rescales_.Need(i + k, args_.heads, layout_.numbers);
        StoreSome<V>(rescales_.numbers.at + at, rescale, left);
      }
      const typename V::Reg weight = Exp<V>(V::Sub(score, state.largest));
      const typename V::Reg above = V::Keep(V::Positive(sum), weight);
      const typename V::Reg below = V::Pick(V::Positive(sum), V::Zero(), weight);
      AddUp(above, below, state);
      StoreSome<V>(above_.at + at, above, left);
      StoreSome<V>(below_.at + at, below, left);
    }
  }

  /// Applies dropout to the chunk's weights, after they were accumulated.
  [[gnu::noinline]] void Drop() {
    for (std::size_t i = 0; i < chunk_.count; ++i) {
      draws_.Next(rows_of_, chunk_.edge + i, /*to_target=*/false);
      for (std::size_t h = 0; h < args_.heads; h += V::kWidth) {
        const std::size_t left = args_.heads - h;
        float* const above = above_.at + i * layout_.numbers + h;
        float* const below = below_.at + i * layout_.numbers + h;
        StoreSome<V>(above, draws_.Drop(h, LoadSome<V>(above, left)), left);
        StoreSome<V>(below, draws_.Drop(h, LoadSome<V>(below, left)), left);
      }
    }
  }

  void Add(const ChunkNumbers& weight, float* out, const Ahead* ahead) {
    WeightedRows<float> rows =
        RowsOfChunk(rows_of_, chunk_, args_.heads, args_.width, layout_.numbers, weight, out);
    rows.rescale = rescales_.numbers.at;
    rows.rescaled = rescales_.any ? rescales_.of : nullptr;
    rows.ahead = ahead;
    AddRows<V>(rows);
  }

  const GatherAttendArgs& args_;
  const GatherRows& rows_of_;
  const std::size_t columns_;
  const typename V::Reg slope_;
  const HeadLayout<V> layout_;
  const std::size_t most_;  // maximum edges of a chunk
  const Ahead rows_;
  const Ahead scores_;
  EdgeDraws<V> draws_;
  float* state_ = nullptr;  // state of the target
  GatherChunk chunk_;
  ChunkNumbers above_;  // scores at first, then weights of edges with a positive sum
  ChunkNumbers below_;  // weights of the other edges
  ChunkRescales rescales_;
};

template <typename V>
void GatherAttend(const GatherAttendArgs& args, std::size_t begin, std::size_t end) {
  GatherAttention<V> attention(args);
  for (std::size_t t = begin; t < end; ++t) attention.Target(t);
}

template <typename V>
class GatherSourceGradient {
 public:
  explicit GatherSourceGradient(const GatherAttendGradientArgs& args)
      : args_(args),
        rows_of_(args.rows),
        columns_(args.heads * args.width),
        slope_(V::Set(args.slope)),
        numbers_(Padded<V>(args.heads)),
        most_(ChunkOf<V>(args.heads, columns_ * sizeof(float))),
        rows_(GatherAhead(args.rows, columns_ + 4 * args.heads)),
        draws_(args.dropout, args.numbers, args.heads) {}

  void Source(std::size_t j) {
    state_ = args_.state + j * (2 * columns_ + 3 * args_.heads);
    draws_.Begin(j, rows_of_);
    chunk_.Walk(rows_of_, j, most_, [this] {
      WithWidth(args_.width, [&]<std::size_t kColumns>() { Dots<kColumns>(); });
      if (draws_.any()) Draw();
      Weigh();
      Add();
    });
  }

 private:
  const float* Row(std::size_t i) const {
    return rows_of_.x + rows_of_.index[chunk_.edge + i] * rows_of_.stride;
  }

  template <std::size_t kColumns>
  [[gnu::noinline]] void Dots() {
    const float* const z = state_ + columns_ + 2 * args_.heads;
    for (std::size_t i = 0; i < chunk_.count; ++i) {
      rows_.Fetch(chunk_.edge + i, chunk_.limit);
      DotHeads<V, kColumns>(z, Row(i), args_.heads, args_.width, dot_.at + i * numbers_);
    }
  }

  /// Draws the dropout factors of the weights (zero or the scale). The same factors apply to the
  /// products.
  [[gnu::noinline]] void Draw() {
    for (std::size_t i = 0; i < chunk_.count; ++i) {
      draws_.Next(rows_of_, chunk_.edge + i, /*to_target=*/true);
      for (std::size_t h = 0; h < args_.heads; h += V::kWidth) {
        const typename V::Reg factor = draws_.Drop(h, V::Set(1.0F));
        float* const dot = dot_.at + i * numbers_ + h;
        V::Store(factor_.at + i * numbers_ + h, factor);
        V::Store(dot, V::Mul(V::Load(dot), factor));
      }
    }
  }

  [[gnu::noinline]] void Weigh() {
    const typename V::Reg one = V::Set(1.0F);
    const std::size_t heads = args_.heads;
    for (std::size_t h = 0; h < heads; h += V::kWidth) {
      const std::size_t left = heads - h;
      const typename V::Reg source = LoadSome<V>(state_ + 2 * columns_ + 2 * heads + h, left);
      typename V::Reg total = LoadSome<V>(state_ + columns_ + h, left);
      for (std::size_t i = 0; i < chunk_.count; ++i) {
        const float* const of_target = Row(i) + columns_ + h;
        const typename V::Reg sum = V::Add(source, LoadSome<V>(of_target, left));
        const typename V::Reg largest = LoadSome<V>(of_target + heads, left);
        const typename V::Reg power = Exp<V>(V::Sub(Leaky<V>(sum, slope_), largest));
        const typename V::Reg weight = V::Mul(power, LoadSome<V>(of_target + 2 * heads, left));
        typename V::Reg mean = LoadSome<V>(of_target + 3 * heads, left);
        if (RHIZOME_MUTANT("gathered gradients forget that weights add up to 1")) mean = V::Zero();
        const typename V::Reg product = V::Load(dot_.at + i * numbers_ + h);
        typename V::Reg gradient = V::Mul(weight, V::Sub(product, mean));
        gradient = V::Mul(gradient, V::Pick(V::Positive(sum), one, slope_));
        total = V::Add(total, gradient);
        V::Store(weight_.at + i * numbers_ + h,
                 draws_.any() ? V::Mul(weight, V::Load(factor_.at + i * numbers_ + h)) : weight);
      }
      StoreSome<V>(state_ + columns_ + h, total, left);
    }
  }

  void Add() {
    AddRows<V>(RowsOfChunk(rows_of_, chunk_, args_.heads, args_.width, numbers_, weight_, state_));
  }

  const GatherAttendGradientArgs& args_;
  const GatherRows& rows_of_;
  const std::size_t columns_;
  const typename V::Reg slope_;
  const std::size_t numbers_;
  const std::size_t most_;  // maximum edges of a chunk
  const Ahead rows_;
  EdgeDraws<V> draws_;
  float* state_ = nullptr;  // state of the source
  GatherChunk chunk_;
  ChunkNumbers weight_;
  ChunkNumbers dot_;
  ChunkNumbers factor_;  // dropout factors of the weights
};

template <typename V>
void GatherAttendGradient(const GatherAttendGradientArgs& args, std::size_t begin,
                          std::size_t end) {
  GatherSourceGradient<V> returns(args);
  for (std::size_t j = begin; j < end; ++j) returns.Source(j);
}

}  // namespace
}  // namespace internal
}  // namespace rhizome
