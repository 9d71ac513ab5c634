#pragma once

#include <cstddef>
#include <cstdint>

#include "rhizome/cache/attention_parts_inl.h"
#include "rhizome/storage/mutant.h"

// The forward kernel of attention, over the vector type V of aggregate_kernels_inl.h.

namespace rhizome::inline internal {
namespace {

/// Edges ahead of which sources' scores are prefetched: a chunk's are used at once.
constexpr std::size_t kScoresAhead = 2 * kChunkEdges;

/// The edges of one target that are attended to at once, the own edge first.
struct AttendChunk {
  ChunkNumbers weight;  // scores at first
  ChunkNumbers rescale;
  bool rescaled[kChunkEdges] = {};
  bool any_rescaled = false;
  std::size_t own = 0;    // own edges: 0 or 1
  std::size_t edge = 0;   // the first other edge
  std::size_t count = 0;  // of the others
};

template <typename V, typename T>
class Attention {
 public:
  explicit Attention(const AttendArgs& args)
      : args_(args),
        x_(static_cast<const T*>(args.x)),
        slope_(V::Set(args.slope)),
        numbers_(Padded<V>(args.heads)),
        most_(ChunkOf<V>(args.heads, args.heads * args.width * sizeof(T))),
        rows_(MakeAhead<T>(args.x, args.heads * args.width, args.x_stride, args.index)),
        scores_{reinterpret_cast<const char*>(args.source), args.heads * sizeof(float),
                args.source_stride * sizeof(float), args.index, kScoresAhead} {}

  void Target(std::size_t t) {
    const std::size_t begin = args_.begins[t];
    const std::size_t end = args_.ends[t];
    if (begin == end && args_.own == nullptr) return Empty(t);
    limit_ = args_.index_end > end ? args_.index_end : end;
    bool fresh = !args_.keep;
    chunk_.own = args_.own == nullptr ? 0 : 1;
    std::size_t next = begin;
    do {
      chunk_.edge = next;
      chunk_.count = end - next < most_ - chunk_.own ? end - next : most_ - chunk_.own;
      next += chunk_.count;
      if (args_.score == AttendScore::kAdditive) {
        Weigh<true>(t, fresh, begin);
      } else {
        WithWidth(args_.width, [&]<std::size_t kColumns>() { ScoreRows<kColumns>(t); });
        Weigh<false>(t, fresh, begin);
      }
      Add(t, fresh, args_.finish && next == end);
      fresh = false;
      chunk_.own = 0;
    } while (next < end);
  }

 private:
  std::size_t width() const { return args_.heads * args_.width; }
  std::size_t edges() const { return chunk_.own + chunk_.count; }

  void Empty(std::size_t t) {
    float* const maximum = args_.maximum + t * args_.heads;
    float* const denominator = args_.denominator + t * args_.heads;
    float* const out = args_.out + t * args_.out_stride;
    for (std::size_t h = 0; h < args_.heads && !args_.keep; ++h) {
      maximum[h] = -__builtin_inff();
      denominator[h] = 0;
    }
    for (std::size_t c = 0; c < width() && !args_.keep; ++c) out[c] = 0;
    if (!args_.keep || !args_.finish) return;
    for (std::size_t h = 0; h < args_.heads; ++h) {
      const float factor = Inverse(denominator[h]);
      for (std::size_t c = h * args_.width; c < (h + 1) * args_.width; ++c) out[c] *= factor;
    }
  }

  static float Inverse(float denominator) { return denominator == 0 ? 0 : 1 / denominator; }

  /// Computes the scores of additive-v2, into the weights.
  template <std::size_t kColumns>
  [[gnu::noinline]] void ScoreRows(std::size_t t) {
    const float* const query = args_.query + t * args_.query_stride;
    float* at = chunk_.weight.at;
    if (chunk_.own != 0) {
      ScoreRow<kColumns>(args_.own + t * args_.own_stride, query, at);
      at += numbers_;
    }
    for (std::size_t e = chunk_.edge; e < chunk_.edge + chunk_.count; ++e, at += numbers_) {
      rows_.Fetch(e, limit_);
      ScoreRow<kColumns>(x_ + args_.index[e] * args_.x_stride, query, at);
    }
  }

  template <std::size_t kColumns, typename Row>
  void ScoreRow(const Row* row, const float* query, float* out) const {
    for (std::size_t h = 0; h < args_.heads; ++h) {
      const std::size_t at = h * args_.width;
      out[h] =
          ScoreV2<V, kColumns>(row + at, query + at, args_.attention + at, args_.width, slope_);
    }
  }

  /// Returns the additive scores of edge i of the chunk, those of heads from h on.
  typename V::Reg AddScores(std::size_t t, std::size_t i, std::size_t h,
                            typename V::Reg query) const {
    const float* source = args_.own_source + t * args_.own_source_stride;
    if (i >= chunk_.own) {
      source = args_.source + args_.index[chunk_.edge + i - chunk_.own] * args_.source_stride;
    }
    return Leaky<V>(V::Add(LoadSome<V>(source + h, args_.heads - h), query), slope_);
  }

  /// Begins the factors of edge i with ones.
  void Rescale(std::size_t i) {
    if (chunk_.rescaled[i]) return;
    chunk_.rescaled[i] = true;
    chunk_.any_rescaled = true;
    for (std::size_t h = 0; h < args_.heads; ++h) chunk_.rescale.at[i * numbers_ + h] = 1;
  }

  /// Makes weights of scores, and factors of the sums where a maximum grows; adds up denominators.
  template <bool kAdditive>
  [[gnu::noinline]] void Weigh(std::size_t t, bool fresh, std::size_t begin) {
    const AttendDropout& dropout = args_.dropout;
    const std::uint64_t key =
        dropout.dropped == 0 ? 0 : SplitMix64(dropout.seed, dropout.first_target + t);
    const typename V::Reg slack =
        V::Set(RHIZOME_MUTANT("the maximum never rises") ? __builtin_inff() : kMaximumSlack);
    const std::size_t first_place = chunk_.edge - begin + 1 - chunk_.own;
    for (std::size_t i = 0; i < edges(); ++i) {
      chunk_.rescaled[i] = false;
      if (kAdditive && i >= chunk_.own) scores_.Fetch(chunk_.edge + i - chunk_.own, limit_);
    }
    chunk_.any_rescaled = false;
    for (std::size_t h = 0; h < args_.heads; h += V::kWidth) {
      const std::size_t left = args_.heads - h;
      float* const maximum = args_.maximum + t * args_.heads + h;
      float* const denominator = args_.denominator + t * args_.heads + h;
      typename V::Reg query = V::Zero();
      if constexpr (kAdditive) {
        query = LoadSome<V>(args_.query + t * args_.query_stride + h, left);
      }
      typename V::Reg largest = V::Zero();
      typename V::Reg sum = V::Zero();
      if (!fresh) {
        largest = LoadSome<V>(maximum, left);
        sum = LoadSome<V>(denominator, left);
      }
      for (std::size_t i = 0; i < edges(); ++i) {
        typename V::Reg score;
        if constexpr (kAdditive) {
          score = AddScores(t, i, h, query);
        } else {
          score = LoadSome<V>(chunk_.weight.at + i * numbers_ + h, left);
        }
        if (fresh && i == 0) largest = score;  // there is nothing to rescale yet
        const typename V::Mask grows = V::Positive(V::Sub(score, V::Add(largest, slack)));
        if (V::Any(grows)) {
          const typename V::Reg before = largest;
          largest = V::Pick(grows, score, largest);
          const typename V::Reg rescale = Exp<V>(V::Sub(before, largest));
          if (!RHIZOME_MUTANT("denominators are not rescaled")) sum = V::Mul(sum, rescale);
          Rescale(i);
          V::Store(chunk_.rescale.at + i * numbers_ + h, rescale);
        }
        typename V::Reg weight = Exp<V>(V::Sub(score, largest));
        sum = V::Add(sum, weight);
        if (dropout.dropped != 0) {
          const std::size_t place =
              RHIZOME_MUTANT("edges are dropped together") ? 0 : first_place + i;
          weight = Dropped<V>(dropout, key, place * args_.heads + h, weight);
        }
        V::Store(chunk_.weight.at + i * numbers_ + h, weight);
      }
      StoreSome<V>(maximum, largest, left);
      StoreSome<V>(denominator, sum, left);
    }
  }

  void Add(std::size_t t, bool fresh, bool finish) {
    const std::size_t own = chunk_.own;
    const float* const denominator = args_.denominator + t * args_.heads;
    for (std::size_t h = 0; h < args_.heads && finish; ++h) {
      const bool mistaken = RHIZOME_MUTANT("heads are divided by the first head's sum");
      factor_[h] = Inverse(denominator[mistaken ? 0 : h]);
    }
    WeightedRows<T> rows;
    rows.x = x_;
    rows.stride = args_.x_stride;
    rows.index = args_.index + chunk_.edge;
    rows.count = chunk_.count;
    rows.heads = args_.heads;
    rows.width = args_.width;
    rows.numbers = numbers_;
    rows.weight = chunk_.weight.at + own * numbers_;
    rows.rescale = chunk_.rescale.at + own * numbers_;
    rows.rescaled = chunk_.any_rescaled ? chunk_.rescaled + own : nullptr;
    // The rows of additive-v2 are fetched for their scores.
    rows.ahead = args_.score == AttendScore::kAdditive ? &rows_ : nullptr;
    rows.edge = chunk_.edge;
    rows.limit = limit_;
    rows.own = own == 0 ? nullptr : args_.own + t * args_.own_stride;
    rows.own_weight = chunk_.weight.at;
    rows.keep = !fresh;
    rows.factor = finish ? factor_ : nullptr;
    rows.out = args_.out + t * args_.out_stride;
    AddRows<V>(rows);
  }

  const AttendArgs& args_;
  const T* const x_;
  const typename V::Reg slope_;
  const std::size_t numbers_;
  const std::size_t most_;  // edges of a chunk
  const Ahead rows_;
  const Ahead scores_;
  std::size_t limit_ = 0;  // edges below it may be prefetched
  AttendChunk chunk_;
  float factor_[kMaxHeads] = {};
};

template <typename V>
void Attend(const AttendArgs& args, std::size_t begin, std::size_t end) {
  WithElement(args.type, [&]<typename T>() {
    Attention<V, T> attention(args);
    for (std::size_t t = begin; t < end; ++t) attention.Target(t);
  });
}

}  // namespace
}  // namespace rhizome::inline internal
