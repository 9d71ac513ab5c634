#pragma once

#include <cstddef>
#include <cstdint>

#include "cache/kernels/attention_leaky_inl.h"
#include "cache/kernels/attention_parts_inl.h"
#include "storage/base/mutant.h"

// Backward kernels of attention, over the vector type V of aggregate_kernels_inl.h. Weights are
// recomputed from the maximum and denominator of their target.

namespace rhizome {
inline namespace internal {
namespace {

template <typename V>
void AttendStats(const AttendStatsArgs& args, std::size_t begin, std::size_t end) {
  const std::size_t heads = args.heads;
  for (std::size_t t = begin; t < end; ++t) {
    float* const stats = args.stats + t * AttendStatsSize(args.score, heads);
    const std::size_t row = t * heads * args.width;
    DotHeads<V, 0>(args.gradient + row, args.out + row, heads, args.width, stats + 2 * heads);
    for (std::size_t h = 0; h < heads; ++h) {
      const float denominator = args.denominator[t * heads + h];
      stats[h] = args.maximum[t * heads + h];
      stats[heads + h] = denominator == 0 ? 0 : 1 / denominator;
      if (RHIZOME_MUTANT("gradients forget that weights add up to 1")) stats[2 * heads + h] = 0;
      if (args.query != nullptr) stats[3 * heads + h] = args.query[t * heads + h];
    }
  }
}

template <typename V>
class SourceGradient {
 public:
  explicit SourceGradient(const AttendGradientArgs& args)
      : args_(args),
        dim_(args.heads * args.width),
        row_(AttendParts(args.score) * dim_),
        stats_size_(AttendStatsSize(args.score, args.heads)),
        numbers_(Padded<V>(args.heads)),
        most_(ChunkOf<V>(args.heads, dim_ * sizeof(float))),
        gradients_(MakeAhead<float>(args.gradient, dim_, dim_, args.target)),
        queries_(MakeAhead<float>(args.query, dim_, dim_, args.target)),
        stats_{reinterpret_cast<const char*>(args.stats), stats_size_ * sizeof(float),
               stats_size_ * sizeof(float), args.target, kMaxAhead} {}

  void Source(std::size_t j) {
    std::size_t next = args_.transposed_begins[j];
    const std::size_t end = args_.turned_ends[j];
    number_ = args_.first_source + j;
    bool own = number_ < args_.own;
    if (next == end && !own) return Zero(j);
    bool fresh = true;
    do {
      count_ = 0;
      if (own) Take(static_cast<std::uint32_t>(number_), kNoEdge);
      own = false;
      first_ = next - count_;
      while (count_ < most_ && next < end) {
        Take(args_.target[next], args_.edge[next]);
        ++next;
      }
      WithWidth(args_.width, [&]<std::size_t kColumns>() { Dots<kColumns>(j); });
      if (additive()) {
        Weigh<true>(j, fresh);
      } else {
        WithWidth(args_.width, [&]<std::size_t kColumns>() { ScoreRows<kColumns>(j); });
        Weigh<false>(j, fresh);
      }
      Add(j, fresh);
      fresh = false;
    } while (next < end);
  }

 private:
  bool additive() const { return args_.score == AttendScore::kAdditive; }
  bool dot() const { return args_.score == AttendScore::kDot; }

  /// Returns the summed columns of source j.
  const float* Values(std::size_t j) const { return args_.x + j * row_ + (row_ - dim_); }

  void Zero(std::size_t j) {
    for (std::size_t c = 0; c < row_; ++c) args_.x_gradient[j * row_ + c] = 0;
    for (std::size_t h = 0; additive() && h < args_.heads; ++h) {
      args_.source_gradient[j * args_.heads + h] = 0;
    }
  }

  void Take(std::uint32_t target, std::uint32_t edge) {
    target_[count_] = target;
    edge_[count_] = edge;
    ++count_;
  }

  /// Prefetches for entry i of the chunk. The own edge is in no list.
  [[gnu::always_inline]] void Fetch(const Ahead& ahead, std::size_t i) const {
    if (edge_[i] != kNoEdge) ahead.Fetch(first_ + i, args_.edge_count);
  }

  /// Computes scores that are not additive into the weights.
  template <std::size_t kColumns>
  [[gnu::noinline]] void ScoreRows(std::size_t j) {
    const typename V::Reg slope = V::Set(args_.slope);
    for (std::size_t i = 0; i < count_; ++i) {
      Fetch(queries_, i);
      const float* const query = args_.query + target_[i] * dim_;
      float* const out = weight_.at + i * numbers_;
      if (dot()) {
        DotHeads<V, kColumns>(query, args_.x + j * row_, args_.heads, args_.width, out);
      } else {
        ScoreHeads<V, kColumns>(args_.x + j * row_, query, args_.attention, args_.heads,
                                args_.width, slope, out);
      }
    }
  }

  template <std::size_t kColumns>
  [[gnu::noinline]] void Dots(std::size_t j) {
    const float* const x = Values(j);
    for (std::size_t i = 0; i < count_; ++i) {
      Fetch(gradients_, i);
      Fetch(stats_, i);
      if (edge_[i] != kNoEdge) __builtin_prefetch(args_.edge_gradient + edge_[i] * args_.heads, 1);
      DotHeads<V, kColumns>(x, args_.gradient + target_[i] * dim_, args_.heads, args_.width,
                            dot_.at + i * numbers_);
    }
  }

  /// Computes the weights of gradient rows, and the gradients of scores (also in dot_).
  template <bool kAdditive>
  [[gnu::noinline]] void Weigh(std::size_t j, bool fresh) {
    const typename V::Reg slope = V::Set(args_.slope);
    const typename V::Reg one = V::Set(1.0F);
    const std::size_t heads = args_.heads;
    for (std::size_t h = 0; h < heads; h += V::kWidth) {
      const std::size_t left = heads - h;
      typename V::Reg source = V::Zero();
      typename V::Reg total = V::Zero();
      if constexpr (kAdditive) {
        source = LoadSome<V>(args_.source + j * heads + h, left);
        if (!fresh) total = LoadSome<V>(args_.source_gradient + j * heads + h, left);
      }
      for (std::size_t i = 0; i < count_; ++i) {
        const float* const stats = args_.stats + target_[i] * stats_size_ + h;
        float* const weight = weight_.at + i * numbers_ + h;
        float* const dot = dot_.at + i * numbers_ + h;
        typename V::Reg sum = V::Zero();
        typename V::Reg score;
        if constexpr (kAdditive) {
          sum = V::Add(source, LoadSome<V>(stats + 3 * heads, left));
          score = Leaky<V>(sum, slope);
        } else {
          score = LoadSome<V>(weight, left);
        }
        const typename V::Reg power = Exp<V>(V::Sub(score, LoadSome<V>(stats, left)));
        const typename V::Reg share = V::Mul(power, LoadSome<V>(stats + heads, left));
        typename V::Reg kept = share;
        typename V::Reg product = LoadSome<V>(dot, left);
        if (args_.dropout.dropped != 0) {
          const std::uint64_t key =
              SplitMix64(args_.dropout.seed, args_.dropout.first_target + target_[i]);
          const std::size_t column = Place(i) * heads + h;
          kept = Dropped<V>(args_.dropout, key, column, share);
          product = Dropped<V>(args_.dropout, key, column, product);
        }
        typename V::Reg gradient =
            V::Mul(share, V::Sub(product, LoadSome<V>(stats + 2 * heads, left)));
        if constexpr (kAdditive) {
          gradient = V::Mul(gradient, V::Pick(V::Positive(sum), one, slope));
          total = V::Add(total, gradient);
        }
        V::Store(weight, kept);
        V::Store(dot, gradient);
        float* const out = edge_[i] == kNoEdge ? args_.own_gradient + number_ * heads
                                               : args_.edge_gradient + edge_[i] * heads;
        StoreSome<V>(out + h, gradient, left);
      }
      if constexpr (kAdditive) {
        StoreSome<V>(args_.source_gradient + j * heads + h, total, left);
      }
    }
  }

  /// Returns the position of entry i in its target's row of dropout draws: 0 for the own edge, else
  /// 1 plus its position in the list.
  std::size_t Place(std::size_t i) const {
    return edge_[i] == kNoEdge ? 0 : edge_[i] - args_.begins[target_[i]] + 1;
  }

  void Add(std::size_t j, bool fresh) {
    WeightedRows<float> rows;
    rows.x = args_.gradient;
    rows.stride = dim_;
    rows.index = target_;
    rows.count = count_;
    rows.heads = args_.heads;
    rows.width = args_.width;
    rows.numbers = numbers_;
    rows.weight = weight_.at;
    rows.keep = !fresh;
    rows.out = args_.x_gradient + j * row_ + (row_ - dim_);
    AddRows<V>(rows);
    if (additive()) return;
    if (dot()) {  // keys
      rows.x = args_.query;
      rows.weight = dot_.at;
      rows.out -= dim_;
      return AddRows<V>(rows);
    }
    LeakyRows leaky;
    leaky.fixed = args_.x + j * dim_;
    leaky.x = args_.query;
    leaky.index = target_;
    leaky.count = count_;
    leaky.numbers = numbers_;
    leaky.weight = dot_.at;
    leaky.out = rows.out;
    AddLeakyRows<V>(args_, leaky);
  }

  const AttendGradientArgs& args_;
  const std::size_t dim_;
  const std::size_t row_;  // columns of a row of x
  const std::size_t stats_size_;
  const std::size_t numbers_;
  const std::size_t most_;  // maximum entries of a chunk
  const Ahead gradients_;
  const Ahead queries_;
  const Ahead stats_;
  std::size_t number_ = 0;  // number of the source
  std::size_t count_ = 0;   // entries of the chunk
  std::size_t first_ = 0;   // position of entry 0 in the transposed lists
  std::uint32_t target_[kChunkEdges] = {};
  std::uint32_t edge_[kChunkEdges] = {};
  ChunkNumbers weight_;
  ChunkNumbers dot_;
};

template <typename V>
void AttendSourceGradient(const AttendGradientArgs& args, std::size_t begin, std::size_t end) {
  SourceGradient<V> gradient(args);
  for (std::size_t j = begin; j < end; ++j) gradient.Source(j);
}

/// Sums the gradients of a target's additive scores.
template <typename V>
inline void SumScoreGradients(const AttendGradientArgs& args, std::size_t t) {
  for (std::size_t h = 0; h < args.heads; h += V::kWidth) {
    const std::size_t left = args.heads - h;
    typename V::Reg sum = V::Zero();
    if (t < args.own) sum = LoadSome<V>(args.own_gradient + t * args.heads + h, left);
    for (std::size_t e = args.begins[t]; e < args.ends[t]; ++e) {
      sum = V::Add(sum, LoadSome<V>(args.edge_gradient + e * args.heads + h, left));
    }
    StoreSome<V>(args.query_gradient + t * args.heads + h, sum, left);
  }
}

template <typename V>
inline void SumRowGradients(const AttendGradientArgs& args, const Ahead& ahead, std::size_t most,
                            std::size_t t) {
  const std::size_t dim = args.heads * args.width;
  LeakyRows rows;
  rows.fixed = args.query + t * dim;
  rows.x = args.x;
  rows.out = args.query_gradient + t * dim;
  rows.numbers = args.heads;
  for (std::size_t c = 0; c < dim; ++c) rows.out[c] = 0;
  if (t < args.own) {
    const auto own = static_cast<std::uint32_t>(t);
    rows.index = &own;
    rows.count = 1;
    rows.weight = args.own_gradient + t * args.heads;
    AddLeakyRows<V>(args, rows);
  }
  rows.ahead = &ahead;
  rows.limit = args.edge_count;
  for (std::size_t e = args.begins[t]; e < args.ends[t]; e += rows.count) {
    rows.edge = e;
    rows.index = args.index + e;
    rows.count = args.ends[t] - e < most ? args.ends[t] - e : most;
    rows.weight = args.edge_gradient + e * args.heads;
    AddLeakyRows<V>(args, rows);
  }
}

/// Sums the keys of a target's edges, weighted by the gradients of their scores.
template <typename V>
inline void SumKeys(const AttendGradientArgs& args, const Ahead& ahead, std::size_t t) {
  const std::size_t dim = args.heads * args.width;
  WeightedRows<float> rows;
  rows.x = args.x;
  rows.stride = AttendParts(args.score) * dim;
  rows.edge = args.begins[t];
  rows.index = args.index + rows.edge;
  rows.count = args.ends[t] - rows.edge;
  rows.heads = args.heads;
  rows.width = args.width;
  rows.numbers = args.heads;
  rows.weight = args.edge_gradient + rows.edge * args.heads;
  rows.ahead = &ahead;
  rows.limit = args.edge_count;
  rows.out = args.query_gradient + t * dim;
  AddRows<V>(rows);
}

template <typename V>
void AttendQueryGradient(const AttendGradientArgs& args, std::size_t begin, std::size_t end) {
  const std::size_t dim = args.heads * args.width;
  const std::size_t row = AttendParts(args.score) * dim;
  const Ahead ahead = MakeAhead<float>(args.x, dim, row, args.index);
  const std::size_t most = ChunkOf<V>(args.heads, dim * sizeof(float));
  for (std::size_t t = begin; t < end; ++t) {
    if (args.score == AttendScore::kAdditive) {
      SumScoreGradients<V>(args, t);
    } else if (args.score == AttendScore::kDot) {
      SumKeys<V>(args, ahead, t);
    } else {
      SumRowGradients<V>(args, ahead, most, t);
    }
  }
}

}  // namespace
}  // namespace internal
}  // namespace rhizome
