#pragma once

#include <cstddef>
#include <cstdint>

#include "cache/kernels/attention_parts_inl.h"
#include "storage/base/mutant.h"

// Forward kernel of attention, over the vector type V of aggregate_kernels_inl.h.

namespace rhizome {
inline namespace internal {
namespace {

/// Number of edges by which the prefetch of sources' scores runs ahead. The scores of a chunk are
/// used all at once.
constexpr std::size_t kScoresAhead = 2 * kChunkEdges;

/// The edges of one target that are processed at once, the own edge first.
struct AttendChunk {
  ChunkNumbers weight;  // scores at first
  ChunkRescales rescales;
  std::size_t own = 0;    // own edges: 0 or 1
  std::size_t edge = 0;   // the first other edge
  std::size_t count = 0;  // number of other edges
};

template <typename V, typename T>
class Attention {
 public:
  explicit Attention(const AttendArgs& args)
      : args_(args),
        x_(static_cast<const T*>(args.x)),
        slope_(V::Set(args.slope)),
        layout_(args.heads),
        columns_(AttendParts(args.score) * args.heads * args.width),
        most_(ChunkOf<V>(args.heads, columns_ * sizeof(T))),
        rows_(MakeAhead<T>(args.x, columns_, args.x_stride, args.index)),
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
        WithWidth(args_.width, [&]<std::size_t kColumns>() {
          if (args_.score == AttendScore::kDot) {
            ScoreKeys<kColumns>(t);
          } else {
            ScoreRows<kColumns>(t);
          }
        });
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

  /// Computes the additive-v2 (GATv2) scores into the weights.
  template <std::size_t kColumns>
  [[gnu::noinline]] void ScoreRows(std::size_t t) {
    const float* const query = args_.query + t * args_.query_stride;
    const auto score = [&](const auto* row, float* out) __attribute__((always_inline)) {
      ScoreHeads<V, kColumns>(row, query, args_.attention, args_.heads, args_.width, slope_, out);
    };
    float* at = chunk_.weight.at;
    if (chunk_.own != 0) {
      score(args_.own + t * args_.own_stride, at);
      at += layout_.numbers;
    }
    for (std::size_t e = chunk_.edge; e < chunk_.edge + chunk_.count; ++e, at += layout_.numbers) {
      rows_.Fetch(e, limit_);
      score(x_ + args_.index[e] * args_.x_stride, at);
    }
  }

  /// Computes dot products of keys and the query into the weights.
  template <std::size_t kColumns>
  [[gnu::noinline]] void ScoreKeys(std::size_t t) {
    const float* const query = args_.query + t * args_.query_stride;
    float* at = chunk_.weight.at;
    for (std::size_t e = chunk_.edge; e < chunk_.edge + chunk_.count; ++e, at += layout_.numbers) {
      rows_.Fetch(e, limit_);
      DotHeads<V, kColumns>(query, x_ + args_.index[e] * args_.x_stride, args_.heads, args_.width,
                            at);
    }
  }

  /// Copies the source terms of additive scores into the weights.
  void TakeScores(std::size_t t) {
    float* at = chunk_.weight.at;
    if (chunk_.own != 0) {
      CopyNumbers(args_.own_source + t * args_.own_source_stride, args_.heads, at);
      at += layout_.numbers;
    }
    for (std::size_t e = chunk_.edge; e < chunk_.edge + chunk_.count; ++e, at += layout_.numbers) {
      scores_.Fetch(e, limit_);
      CopyNumbers(args_.source + args_.index[e] * args_.source_stride, args_.heads, at);
    }
  }

  /// Turns scores into weights, records rescale factors where a maximum grows, and accumulates the
  /// denominators.
  template <bool kAdditive>
  [[gnu::noinline]] void Weigh(std::size_t t, bool fresh, std::size_t begin) {
    chunk_.rescales.Begin(edges());
    if constexpr (kAdditive) TakeScores(t);
    for (std::size_t h = 0; h < args_.heads; h += V::kWidth) {
      const std::size_t left = args_.heads - h;
      float* const maximum = args_.maximum + t * args_.heads + h;
      float* const denominator = args_.denominator + t * args_.heads + h;
      typename V::Reg query = V::Zero();
      if constexpr (kAdditive) {
        query = layout_.Of(LoadSome<V>(args_.query + t * args_.query_stride + h, left), 0);
      }
      Softmax state{.largest = V::Zero(), .sum = V::Zero()};
      if (!fresh) {
        state.largest = layout_.Of(LoadSome<V>(maximum, left), 0);
        state.sum = LoadSome<V>(denominator, left);
      }
      for (std::size_t i = 0; i < edges(); i += layout_.edges) {
        float* const at = chunk_.weight.at + i * layout_.numbers + h;
        typename V::Reg score = layout_.Load(at, left);
        if constexpr (kAdditive) score = Leaky<V>(V::Add(score, query), slope_);
        if (fresh && i == 0) state.largest = layout_.Of(score, 0);  // nothing to rescale yet
        if (V::Any(Grows(score, state.largest))) {
          OneByOne(i, h, score, state);
          continue;
        }
        typename V::Reg weight = Exp<V>(V::Sub(score, state.largest));
        V::Store(at, weight);
        state.sum = V::Add(state.sum, weight);
        for (std::size_t k = 1; k < layout_.edges && i + k < edges(); ++k) {
          weight = layout_.Next(weight);
          state.sum = V::Add(state.sum, weight);
        }
      }
      StoreSome<V>(maximum, state.largest, left);
      StoreSome<V>(denominator, state.sum, left);
      if (args_.dropout.dropped != 0) Drop(t, h, begin);
    }
  }

  /// State of the recurrence for the heads of one register: the maximum repeated for all edges of
  /// the register, the denominator for the first edge.
  struct Softmax {
    typename V::Reg largest, sum;
  };

  static typename V::Mask Grows(typename V::Reg score, typename V::Reg largest) {
    const float slack =
        RHIZOME_MUTANT("the maximum never rises") ? __builtin_inff() : kMaximumSlack;
    return V::Positive(V::Sub(score, V::Add(largest, V::Set(slack))));
  }

  /// Slow path of Weigh, used if a maximum grows: processes the edges in one register, starting
  /// with edge i, one by one.
  [[gnu::noinline]] void OneByOne(std::size_t i, std::size_t h, typename V::Reg scores,
                                  Softmax& state) {
    const std::size_t left = args_.heads - h;
    for (std::size_t k = 0; k < layout_.edges && i + k < edges(); ++k) {
      const std::size_t at = (i + k) * layout_.numbers + h;
      const typename V::Reg score = layout_.Of(scores, k);
      const typename V::Mask grows = Grows(score, state.largest);
      if (V::Any(grows)) {
        const typename V::Reg before = state.largest;
        state.largest = V::Pick(grows, score, before);
        const typename V::Reg rescale = Exp<V>(V::Sub(before, state.largest));
        if (!RHIZOME_MUTANT("denominators are not rescaled"))
          state.sum = V::Mul(state.sum, rescale);
        chunk_.rescales.Need(i + k, args_.heads, layout_.numbers);
        StoreSome<V>(chunk_.rescales.numbers.at + at, rescale, left);
      }
      const typename V::Reg weight = Exp<V>(V::Sub(score, state.largest));
      state.sum = V::Add(state.sum, weight);
      StoreSome<V>(chunk_.weight.at + at, weight, left);
    }
  }

  /// Applies dropout to the chunk's weights of heads h and above.
  void Drop(std::size_t t, std::size_t h, std::size_t begin) {
    const std::uint64_t key = SplitMix64(args_.dropout.seed, args_.dropout.first_target + t);
    const std::size_t first_place = chunk_.edge - begin + 1 - chunk_.own;
    for (std::size_t i = 0; i < edges(); i += layout_.edges) {
      float* const at = chunk_.weight.at + i * layout_.numbers + h;
      const std::size_t place = RHIZOME_MUTANT("edges are dropped together") ? 0 : first_place + i;
      const std::size_t column = place * args_.heads + h;
      V::Store(at, Dropped<V>(args_.dropout, key, column, V::Load(at)));
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
    rows.x = x_ + (AttendParts(args_.score) - 1) * width();
    rows.stride = args_.x_stride;
    rows.index = args_.index + chunk_.edge;
    rows.count = chunk_.count;
    rows.heads = args_.heads;
    rows.width = args_.width;
    rows.numbers = layout_.numbers;
    rows.weight = chunk_.weight.at + own * layout_.numbers;
    rows.rescale = chunk_.rescales.numbers.at + own * layout_.numbers;
    rows.rescaled = chunk_.rescales.any ? chunk_.rescales.of + own : nullptr;
    // Other rows were prefetched when their scores were computed.
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
  const HeadLayout<V> layout_;
  const std::size_t columns_;  // of a row of x
  const std::size_t most_;     // maximum edges of a chunk
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
}  // namespace internal
}  // namespace rhizome
