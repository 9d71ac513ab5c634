#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "cache/kernels/aggregate.h"
#include "cache/kernels/attention_kernels.h"

namespace rhizome::testing {

/// Inputs of an attention over neighbour lists, and the arrays that it writes.
struct AttentionCase {
  AttendScore score = AttendScore::kAdditive;
  std::size_t heads = 1, width = 1, sources = 1;
  float slope = 0.2F;
  bool own = false;
  Csr csr;
  std::vector<float> x, source, query, attention;
  std::vector<float> maximum, denominator, out;

  std::size_t targets() const { return csr.offsets.size() - 1; }
  std::size_t dim() const { return heads * width; }
  std::size_t row() const { return AttendParts(score) * dim(); }
  std::size_t query_columns() const { return score == AttendScore::kAdditive ? heads : dim(); }

  /// Returns column d of the summed part of source j.
  double value(std::size_t j, std::size_t d) const { return x[(j + 1) * row() - dim() + d]; }
};

inline std::vector<float> RandomFloats(std::size_t count, float spread, std::mt19937_64& random) {
  std::uniform_real_distribution<float> draw(-spread, spread);
  std::vector<float> floats(count);
  for (float& f : floats) f = draw(random);
  return floats;
}

/// Fills in everything except the shape and the lists. Scores are within about +-2 `spread`.
inline void FillAttention(AttentionCase& c, float spread, std::mt19937_64& random) {
  c.x = RandomFloats(c.sources * c.row(), 1, random);
  c.source = RandomFloats(c.sources * c.heads, spread, random);
  c.query = RandomFloats(c.targets() * c.query_columns(), spread, random);
  c.attention = RandomFloats(c.dim(), spread, random);
  c.maximum.assign(c.targets() * c.heads, 7);
  c.denominator.assign(c.targets() * c.heads, 7);
  c.out.assign(c.targets() * c.dim(), 7);
}

inline AttendArgs ArgsOf(AttentionCase& c) {
  AttendArgs args;
  args.score = c.score;
  args.x = c.x.data();
  args.x_stride = c.row();
  args.heads = c.heads;
  args.width = c.width;
  args.begins = c.csr.offsets.data();
  args.ends = c.csr.offsets.data() + 1;
  args.index = c.csr.neighbors.data();
  args.index_end = static_cast<std::uint32_t>(c.csr.neighbors.size());
  args.source = c.source.data();
  args.source_stride = c.heads;
  args.query = c.query.data();
  args.query_stride = c.query_columns();
  args.attention = c.attention.data();
  args.slope = c.slope;
  if (c.own) {
    args.own = c.x.data();
    args.own_stride = c.dim();
    args.own_source = c.source.data();
    args.own_source_stride = c.heads;
  }
  args.finish = true;
  args.maximum = c.maximum.data();
  args.denominator = c.denominator.data();
  args.out = c.out.data();
  args.out_stride = c.dim();
  return args;
}

/// Returns the sources of the edges of a target; its own row comes first.
inline std::vector<std::size_t> SourcesOf(const AttentionCase& c, std::size_t t) {
  std::vector<std::size_t> sources;
  if (c.own) sources.push_back(t);
  for (std::uint32_t e = c.csr.offsets[t]; e < c.csr.offsets[t + 1]; ++e) {
    sources.push_back(c.csr.neighbors[e]);
  }
  return sources;
}

inline double ScoreInDouble(const AttentionCase& c, std::size_t j, std::size_t t, std::size_t h) {
  const auto leaky = [&](double x) { return x > 0 ? x : x * double{c.slope}; };
  if (c.score == AttendScore::kAdditive) {
    return leaky(double{c.source[j * c.heads + h]} + double{c.query[t * c.heads + h]});
  }
  double score = 0;
  for (std::size_t d = h * c.width; d < (h + 1) * c.width; ++d) {
    if (c.score == AttendScore::kDot) {
      score += double{c.x[j * c.row() + d]} * double{c.query[t * c.dim() + d]};
      continue;
    }
    score += double{c.attention[d]} *
             leaky(double{c.x[j * c.dim() + d]} + double{c.query[t * c.dim() + d]});
  }
  return score;
}

/// Returns the softmax over the edges of a target in double precision, in the order of SourcesOf.
inline std::vector<double> WeightsInDouble(const AttentionCase& c, std::size_t t, std::size_t h) {
  const std::vector<std::size_t> sources = SourcesOf(c, t);
  std::vector<double> weights;
  for (const std::size_t j : sources) weights.push_back(ScoreInDouble(c, j, t, h));
  double largest = -HUGE_VAL, sum = 0;
  for (const double weight : weights) largest = std::max(largest, weight);
  for (double& weight : weights) sum += weight = std::exp(weight - largest);
  for (double& weight : weights) weight /= sum;
  return weights;
}

}  // namespace rhizome::testing
