#pragma once

#include <cstddef>
#include <cstdint>

#include "cache/kernels/gather_attention_inl.h"
#include "storage/base/mutant.h"

// Full-graph GATv2 attention kernels, whose scores read whole rows of both ends, over the vector
// type V of aggregate_kernels_inl.h.

namespace rhizome {
inline namespace internal {
namespace {

template <typename V>
class GatherGatv2 {
 public:
  explicit GatherGatv2(const GatherAttendV2Args& args)
      : args_(args),
        rows_of_(args.rows),
        columns_(args.heads * args.width),
        slope_(V::Set(args.slope)),
        numbers_(Padded<V>(args.heads)),
        most_(ChunkOf<V>(args.heads, columns_ * sizeof(float))),
        rows_(GatherAhead(args.rows, columns_)),
        draws_(args.dropout, args.numbers, args.heads) {}

  void Target(std::size_t t) {
    state_ = args_.state + t * (2 * columns_ + 2 * args_.heads);
    draws_.Begin(t, rows_of_);
    chunk_.Walk(rows_of_, t, most_, [this] {
      WithWidth(args_.width, [&]<std::size_t kColumns>() { Score<kColumns>(); });
      Weigh();
      if (draws_.any()) Drop();
      Add();
    });
  }

 private:
  template <std::size_t kColumns>
  [[gnu::noinline]] void Score() {
    const float* const query = state_ + columns_ + 2 * args_.heads;
    for (std::size_t i = 0; i < chunk_.count; ++i) {
      const std::size_t edge = chunk_.edge + i;
      rows_.Fetch(edge, chunk_.limit);
      ScoreHeads<V, kColumns>(rows_of_.x + rows_of_.index[edge] * rows_of_.stride, query,
                              args_.vectors, args_.heads, args_.width, slope_,
                              weight_.at + i * numbers_);
    }
  }

  /// Turns scores into weights, records rescale factors where a maximum grows, and accumulates the
  /// weights.
  [[gnu::noinline]] void Weigh() {
    rescales_.Begin(chunk_.count);
    for (std::size_t h = 0; h < args_.heads; h += V::kWidth) {
      const std::size_t left = args_.heads - h;
      float* const sums = state_ + columns_ + h;
      float* const maxima = sums + args_.heads;
      typename V::Reg sum = LoadSome<V>(sums, left);
      typename V::Reg largest = LoadSome<V>(maxima, left);
      const bool fresh = *maxima == -__builtin_inff();
      for (std::size_t i = 0; i < chunk_.count; ++i) {
        float* const at = weight_.at + i * numbers_ + h;
        const typename V::Reg score = LoadSome<V>(at, left);
        if (fresh && i == 0) largest = score;  // nothing to rescale yet
        const typename V::Mask grows =
            V::Positive(V::Sub(score, V::Add(largest, V::Set(kMaximumSlack))));
        if (V::Any(grows)) {
          const typename V::Reg before = largest;
          largest = V::Pick(grows, score, before);
          const typename V::Reg rescale = Exp<V>(V::Sub(before, largest));
          sum = V::Mul(sum, rescale);
          rescales_.Need(i, args_.heads, numbers_);
          StoreSome<V>(rescales_.numbers.at + i * numbers_ + h, rescale, left);
        }
        const typename V::Reg weight = Exp<V>(V::Sub(score, largest));
        sum = V::Add(sum, weight);
        StoreSome<V>(at, weight, left);
      }
      StoreSome<V>(sums, sum, left);
      StoreSome<V>(maxima, largest, left);
    }
  }

  /// Applies dropout to the chunk's weights, after they were accumulated.
  [[gnu::noinline]] void Drop() {
    for (std::size_t i = 0; i < chunk_.count; ++i) {
      draws_.Next(rows_of_, chunk_.edge + i, /*to_target=*/false);
      for (std::size_t h = 0; h < args_.heads; h += V::kWidth) {
        float* const at = weight_.at + i * numbers_ + h;
        V::Store(at, draws_.Drop(h, V::Load(at)));
      }
    }
  }

  void Add() {
    WeightedRows<float> rows =
        RowsOfChunk(rows_of_, chunk_, args_.heads, args_.width, numbers_, weight_, state_);
    rows.rescale = rescales_.numbers.at;
    rows.rescaled = rescales_.any && !RHIZOME_MUTANT("sums of whole scores are not rescaled")
                        ? rescales_.of
                        : nullptr;
    AddRows<V>(rows);
  }

  const GatherAttendV2Args& args_;
  const GatherRows& rows_of_;
  const std::size_t columns_;
  const typename V::Reg slope_;
  const std::size_t numbers_;
  const std::size_t most_;  // maximum edges of a chunk
  const Ahead rows_;
  EdgeDraws<V> draws_;
  float* state_ = nullptr;  // state of the target
  GatherChunk chunk_;
  ChunkNumbers weight_;  // scores at first
  ChunkRescales rescales_;
};

template <typename V>
void GatherAttendV2(const GatherAttendV2Args& args, std::size_t begin, std::size_t end) {
  GatherGatv2<V> attention(args);
  for (std::size_t t = begin; t < end; ++t) attention.Target(t);
}

/// Rows at one end of edges that share a row at the other end, and the gradients of the edges'
/// scores.
struct ScoredRows {
  const float* fixed = nullptr;  // [heads * width], the shared row
  const float* x = nullptr;      // rows at the other end
  std::size_t stride = 0;
  const std::uint32_t* index = nullptr;
  std::size_t count = 0;
  std::size_t width = 0;
  std::size_t numbers = 1;  // distance from the gradients of an edge to the gradients of the next
  const float* gradient = nullptr;  // [count, numbers]
  float* out = nullptr;             // added to: the sum of gradient * LeakyReLU'(row + fixed)
};

/// Adds columns [column, column + N registers) of head `head`, edge by edge, so that the bits do
/// not depend on where a list is cut.
template <typename V, int N, bool kTail>
[[gnu::noinline]] void AddScored(const ScoredRows& rows, typename V::Reg slope, std::size_t head,
                                 std::size_t column, std::size_t tail) {
  const GatherColumns<V, kTail> columns{tail};
  const std::size_t first = head * rows.width + column;
  typename V::Reg acc[N], fixed[N];
  for (int i = 0; i < N; ++i) {
    acc[i] = columns.Load(rows.out + first + i * V::kWidth);
    fixed[i] = columns.Load(rows.fixed + first + i * V::kWidth);
  }
  for (std::size_t e = 0; e < rows.count; ++e) {
    const float* const row = rows.x + rows.index[e] * rows.stride + first;
    const typename V::Reg gradient = V::Set(rows.gradient[e * rows.numbers + head]);
    const typename V::Reg lesser = V::Mul(gradient, slope);
    for (int i = 0; i < N; ++i) {
      const typename V::Reg sum = V::Add(columns.Load(row + i * V::kWidth), fixed[i]);
      acc[i] = V::Add(acc[i], V::Pick(V::Positive(sum), gradient, lesser));
    }
  }
  for (int i = 0; i < N; ++i) columns.Store(rows.out + first + i * V::kWidth, acc[i]);
}

/// Accumulates the gradients that flow back to a source (kToTarget: to a target) from the edges of
/// its list.
template <typename V, bool kToTarget>
class GatherGatv2SourceGradient {
 public:
  explicit GatherGatv2SourceGradient(const GatherAttendV2GradientArgs& args)
      : args_(args),
        rows_of_(args.rows),
        columns_(args.heads * args.width),
        slope_(V::Set(args.slope)),
        numbers_(Padded<V>(args.heads)),
        most_(ChunkOf<V>(args.heads, 2 * columns_ * sizeof(float))),
        rows_(MakeAhead<float>(args.rows.x + (kToTarget ? OfSource() : 0),
                               kToTarget ? columns_ : OfSource(), args.rows.stride,
                               args.rows.index)),
        draws_(args.dropout, args.numbers, args.heads) {}

  /// Adds the edges of row `r`.
  void Row(std::size_t r) {
    // The state of a row is [T w | g w | q w | m h | r h | D h] or [E w | S w | z w].
    state_ = args_.state + r * (3 * columns_ + (kToTarget ? 3 * args_.heads : 0));
    draws_.Begin(r, rows_of_);
    chunk_.Walk(rows_of_, r, most_, [this] {
      WithWidth(args_.width, [&]<std::size_t kColumns>() { Look<kColumns>(); });
      Weigh();
      Add();
    });
  }

 private:
  /// Offset of z in a row [g w | q w | m h | r h | D h | z w].
  std::size_t OfSource() const { return 2 * columns_ + 3 * args_.heads; }

  const float* Other(std::size_t i) const {
    return rows_of_.x + rows_of_.index[chunk_.edge + i] * rows_of_.stride;
  }

  /// Computes the scores of the chunk's edges, and the dot products of z and g.
  template <std::size_t kColumns>
  [[gnu::noinline]] void Look() {
    for (std::size_t i = 0; i < chunk_.count; ++i) {
      rows_.Fetch(chunk_.edge + i, chunk_.limit);
      const float* const z = kToTarget ? Other(i) + OfSource() : state_ + 2 * columns_;
      const float* const g = kToTarget ? state_ + columns_ : Other(i);
      DotHeads<V, kColumns>(z, g, args_.heads, args_.width, dot_.at + i * numbers_);
      ScoreHeads<V, kColumns>(z, g + columns_, args_.vectors, args_.heads, args_.width, slope_,
                              weight_.at + i * numbers_);
    }
  }

  /// Computes the weights of gradients, and the gradients of scores (in dot_).
  [[gnu::noinline]] void Weigh() {
    const std::size_t heads = args_.heads;
    for (std::size_t i = 0; i < chunk_.count; ++i) {
      if (draws_.any()) draws_.Next(rows_of_, chunk_.edge + i, /*to_target=*/!kToTarget);
      const float* const of_target = (kToTarget ? state_ + columns_ : Other(i)) + 2 * columns_;
      for (std::size_t h = 0; h < heads; h += V::kWidth) {
        const std::size_t left = heads - h, at = i * numbers_ + h;
        const typename V::Reg largest = LoadSome<V>(of_target + h, left);
        const typename V::Reg power = Exp<V>(V::Sub(LoadSome<V>(weight_.at + at, left), largest));
        const typename V::Reg weight = V::Mul(power, LoadSome<V>(of_target + heads + h, left));
        const typename V::Reg mean = LoadSome<V>(of_target + 2 * heads + h, left);
        typename V::Reg product = LoadSome<V>(dot_.at + at, left);
        typename V::Reg kept = weight;
        if (draws_.any()) {
          product = draws_.Drop(h, product);
          kept = draws_.Drop(h, weight);
        }
        V::Store(weight_.at + at, kept);
        V::Store(dot_.at + at, V::Mul(weight, V::Sub(product, mean)));
      }
    }
  }

  void Add() {
    if constexpr (!kToTarget) {
      AddRows<V>(
          RowsOfChunk(rows_of_, chunk_, args_.heads, args_.width, numbers_, weight_, state_));
    }
    const ScoredRows rows{.fixed = state_ + 2 * columns_,
                          .x = rows_of_.x + (kToTarget ? OfSource() : columns_),
                          .stride = rows_of_.stride,
                          .index = rows_of_.index + chunk_.edge,
                          .count = chunk_.count,
                          .width = args_.width,
                          .numbers = numbers_,
                          .gradient = dot_.at,
                          .out = state_ + (kToTarget ? 0 : columns_)};
    for (std::size_t head = 0; head < args_.heads; ++head) {
      ForColumns<V, V::kTile / 2>(args_.width, 0,
                                  [&]<int N, bool kTail>(std::size_t column, std::size_t tail) {
                                    AddScored<V, N, kTail>(rows, slope_, head, column, tail);
                                  });
    }
  }

  const GatherAttendV2GradientArgs& args_;
  const GatherRows& rows_of_;
  const std::size_t columns_;
  const typename V::Reg slope_;
  const std::size_t numbers_;
  const std::size_t most_;  // maximum edges of a chunk
  const Ahead rows_;
  EdgeDraws<V> draws_;
  float* state_ = nullptr;  // state of the row
  GatherChunk chunk_;
  ChunkNumbers weight_;  // scores at first
  ChunkNumbers dot_;     // products at first
};

template <typename V, bool kToTarget>
void GatherAttendV2Gradient(const GatherAttendV2GradientArgs& args, std::size_t begin,
                            std::size_t end) {
  GatherGatv2SourceGradient<V, kToTarget> returns(args);
  for (std::size_t r = begin; r < end; ++r) returns.Row(r);
}

}  // namespace
}  // namespace internal
}  // namespace rhizome
