#pragma once

#include <cstddef>
#include <cstdint>

#include "rhizome/cache/attention_parts_inl.h"

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
        most_(ChunkOf(args.heads, args.heads * args.width * sizeof(T))),
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
      Score(t);
      Grow(t, fresh);
      Weigh(t, fresh);
      if (args_.dropout.dropped != 0) Drop(t, begin);
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

  void Score(std::size_t t) {
    const float* const query = args_.query + t * args_.query_stride;
    float* at = chunk_.weight.at;
    if (args_.score == AttendScore::kAdditive) {
      if (chunk_.own != 0) {
        AddScores(args_.own_source + t * args_.own_source_stride, query, at);
        at += args_.heads;
      }
      for (std::size_t e = chunk_.edge; e < chunk_.edge + chunk_.count; ++e, at += args_.heads) {
        scores_.Fetch(e, limit_);
        AddScores(args_.source + args_.index[e] * args_.source_stride, query, at);
      }
      return;
    }
    if (chunk_.own != 0) {
      RowScores(args_.own + t * args_.own_stride, query, at);
      at += args_.heads;
    }
    for (std::size_t e = chunk_.edge; e < chunk_.edge + chunk_.count; ++e, at += args_.heads) {
      rows_.Fetch(e, limit_);
      RowScores(x_ + args_.index[e] * args_.x_stride, query, at);
    }
  }

  void AddScores(const float* source, const float* query, float* out) const {
    for (std::size_t h = 0; h < args_.heads; h += V::kWidth) {
      const std::size_t left = args_.heads - h;
      const typename V::Reg sum =
          V::Add(LoadSome<V>(source + h, left), LoadSome<V>(query + h, left));
      StoreSome<V>(out + h, Leaky<V>(sum, slope_), left);
    }
  }

  template <typename Row>
  void RowScores(const Row* row, const float* query, float* out) const {
    for (std::size_t h = 0; h < args_.heads; ++h) {
      const std::size_t at = h * args_.width;
      out[h] = ScoreV2<V>(row + at, query + at, args_.attention + at, args_.width, slope_);
    }
  }

  /// Replaces each score by its difference to the maximum so far, and notes by how much that grew.
  void Grow(std::size_t t, bool fresh) {
    for (std::size_t e = 0; e < edges(); ++e) chunk_.rescaled[e] = false;
    chunk_.any_rescaled = false;
    for (std::size_t h = 0; h < args_.heads; h += V::kWidth) {
      const std::size_t left = args_.heads - h;
      float* const maximum = args_.maximum + t * args_.heads + h;
      // There is nothing to rescale before the first score.
      typename V::Reg largest =
          fresh ? LoadSome<V>(chunk_.weight.at + h, left) : LoadSome<V>(maximum, left);
      float* weight = chunk_.weight.at + h;
      float* rescale = chunk_.rescale.at + h;
      for (std::size_t e = 0; e < edges(); ++e, weight += args_.heads, rescale += args_.heads) {
        const typename V::Reg score = LoadSome<V>(weight, left);
        const typename V::Reg larger = V::Max(largest, score);
        StoreSome<V>(weight, V::Sub(score, larger), left);
        StoreSome<V>(rescale, V::Sub(largest, larger), left);
        chunk_.rescaled[e] |= V::Any(V::Positive(V::Sub(larger, largest)));
        chunk_.any_rescaled |= chunk_.rescaled[e];
        largest = larger;
      }
      StoreSome<V>(maximum, largest, left);
    }
  }

  /// Makes weights and factors of the differences, and adds up the denominators.
  void Weigh(std::size_t t, bool fresh) {
    ExpAll<V>(chunk_.weight.at, edges() * args_.heads);
    if (chunk_.any_rescaled) ExpAll<V>(chunk_.rescale.at, edges() * args_.heads);
    for (std::size_t h = 0; h < args_.heads; h += V::kWidth) {
      const std::size_t left = args_.heads - h;
      float* const denominator = args_.denominator + t * args_.heads + h;
      typename V::Reg sum = fresh ? V::Zero() : LoadSome<V>(denominator, left);
      const float* weight = chunk_.weight.at + h;
      const float* rescale = chunk_.rescale.at + h;
      for (std::size_t e = 0; e < edges(); ++e, weight += args_.heads, rescale += args_.heads) {
        if (chunk_.rescaled[e]) sum = V::Mul(sum, LoadSome<V>(rescale, left));
        sum = V::Add(sum, LoadSome<V>(weight, left));
      }
      StoreSome<V>(denominator, sum, left);
    }
  }

  void Drop(std::size_t t, std::size_t begin) {
    const std::uint64_t key = SplitMix64(args_.dropout.seed, args_.dropout.first_target + t);
    const std::size_t first = (chunk_.edge - begin + 1 - chunk_.own) * args_.heads;
    for (std::size_t i = 0; i < edges() * args_.heads; i += V::kWidth) {
      float* const weight = chunk_.weight.at + i;
      V::Store(weight, Dropped<V>(args_.dropout, key, first + i, V::Load(weight)));
    }
  }

  void Add(std::size_t t, bool fresh, bool finish) {
    const std::size_t own = chunk_.own;
    const float* const denominator = args_.denominator + t * args_.heads;
    for (std::size_t h = 0; h < args_.heads && finish; ++h) factor_[h] = Inverse(denominator[h]);
    WeightedRows<T> rows;
    rows.x = x_;
    rows.stride = args_.x_stride;
    rows.index = args_.index + chunk_.edge;
    rows.count = chunk_.count;
    rows.heads = args_.heads;
    rows.width = args_.width;
    rows.weight = chunk_.weight.at + own * args_.heads;
    rows.rescale = chunk_.rescale.at + own * args_.heads;
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
