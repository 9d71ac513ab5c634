#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "cache/kernels/attention_kernels.h"
#include "cache/kernels/simd.h"
#include "cuda/attention_args.h"
#include "cuda/gatv2_args.h"

// Runs the work of attention kernels, given the arguments of a device, with the CPU's kernels. The
// kernel tests show that both have the same bits.

namespace rhizome::testing {

inline AttendDropout DropoutOfProcessor(const cuda::Dropout& dropout) {
  return {.dropped = dropout.dropped,
          .scale = dropout.scale,
          .seed = dropout.seed,
          .first_target = dropout.first_row};
}

/// Copies the targets' own rows as floats; the CPU's kernel reads them separately.
inline std::vector<float> OwnRowsOf(const cuda::AttendArgs& args) {
  const std::size_t dim = args.heads * args.width;
  const auto type = static_cast<RowType>(args.type);
  std::vector<float> own(args.targets * dim);
  for (std::size_t t = 0; t < args.targets; ++t) {
    const unsigned char* const row = args.x + t * args.x_stride * BytesOf(type);
    if (type == RowType::kFloat32) {
      std::memcpy(own.data() + t * dim, row, dim * sizeof(float));
    } else {
      Kernels().widen(type, row, dim, own.data() + t * dim);
    }
  }
  return own;
}

inline void AttendWithKernels(const cuda::AttendArgs& args) {
  const std::vector<float> own = args.own ? OwnRowsOf(args) : std::vector<float>();
  AttendArgs same;
  same.type = static_cast<RowType>(args.type);
  same.x = args.x;
  same.x_stride = args.x_stride;
  same.heads = args.heads;
  same.width = args.width;
  same.begins = args.offsets;
  same.ends = args.offsets + 1;
  same.index = args.index;
  same.source = args.source;
  same.source_stride = args.heads;
  same.query = args.query;
  same.query_stride = args.heads;
  same.slope = args.slope;
  if (args.own) {
    same.own = own.data();
    same.own_stride = args.heads * args.width;
    same.own_source = args.source;
    same.own_source_stride = args.heads;
  }
  same.dropout = DropoutOfProcessor(args.dropout);
  same.finish = true;
  same.maximum = args.maximum;
  same.denominator = args.denominator;
  same.out = args.out;
  same.out_stride = args.heads * args.width;
  Kernels().attend(same, 0, args.targets);
}

inline void AttendGradientWithKernels(const cuda::AttendGradientArgs& args) {
  const AttendStatsArgs stats{.heads = args.heads,
                              .width = args.width,
                              .maximum = args.maximum,
                              .denominator = args.denominator,
                              .query = args.query,
                              .out = args.out,
                              .gradient = args.gradient,
                              .stats = args.stats};
  Kernels().attend_stats(stats, 0, args.targets);
  AttendGradientArgs same;
  same.heads = args.heads;
  same.width = args.width;
  same.x = args.x;
  same.source = args.source;
  same.query = args.query;
  same.slope = args.slope;
  same.own = args.own;
  same.dropout = DropoutOfProcessor(args.dropout);
  same.stats = args.stats;
  same.gradient = args.gradient;
  same.begins = args.offsets;
  same.ends = args.offsets + 1;
  same.transposed_begins = args.transposed_offsets;
  same.turned_ends = args.transposed_offsets + 1;
  same.target = args.target;
  same.edge = args.edge;
  same.edge_count = args.offsets[args.targets];
  same.x_gradient = args.x_gradient;
  same.source_gradient = args.source_gradient;
  same.edge_gradient = args.edge_gradient;
  same.own_gradient = args.own_gradient;
  same.query_gradient = args.query_gradient;
  Kernels().attend_source_gradient(same, 0, args.sources);
  Kernels().attend_query_gradient(same, 0, args.targets);
}

inline void AttendV2WithKernels(const cuda::AttendV2Args& args) {
  AttendArgs same;
  same.score = AttendScore::kGatv2;
  same.x = args.x;
  same.x_stride = same.own_stride = same.query_stride = same.out_stride = args.heads * args.width;
  same.heads = args.heads;
  same.width = args.width;
  same.begins = args.offsets;
  same.ends = args.offsets + 1;
  same.index = args.index;
  same.query = args.query;
  same.attention = args.attention;
  same.slope = args.slope;
  same.own = args.own ? args.x : nullptr;
  same.dropout = DropoutOfProcessor(args.dropout);
  same.finish = true;
  same.maximum = args.maximum;
  same.denominator = args.denominator;
  same.out = args.out;
  Kernels().attend(same, 0, args.targets);
}

/// Applies the dropout of an edge at `place` of a target's list to a number, using the mask that
/// the CPU's kernel makes.
inline float KeptPlainly(const cuda::AttendV2GradientArgs& args, std::size_t target,
                         std::size_t place, std::size_t head, float number) {
  if (args.dropout.dropped == 0) return number;
  const std::size_t columns = (place + 1) * args.heads;
  const std::vector<float> ones(columns, 1);
  std::vector<float> mask(columns);
  Kernels().activate({.in = ones.data(),
                      .in_stride = columns,
                      .out = mask.data(),
                      .out_stride = columns,
                      .dim = columns,
                      .dropped = args.dropout.dropped,
                      .scale = args.dropout.scale,
                      .seed = args.dropout.seed,
                      .first_row = args.dropout.first_row + target},
                     0, 1);
  return number * mask[place * args.heads + head];
}

/// Computes the gradient by its definition, edge by edge; the CPU's kernel has other intermediate
/// results.
inline void AttendV2GradientPlainly(const cuda::AttendV2GradientArgs& args) {
  const std::size_t dim = args.heads * args.width;
  for (float* const rows : {args.x_gradient, args.x_slopes})
    std::fill_n(rows, args.sources * dim, 0.0F);
  std::fill_n(args.query_slopes, args.targets * dim, 0.0F);
  const auto visit = [&](std::size_t t, std::size_t j, std::size_t place) {
    for (std::size_t h = 0; h < args.heads; ++h) {
      const float* const x = args.x + j * dim + h * args.width;
      const float* const query = args.query + t * dim + h * args.width;
      const float* const gradient = args.gradient + t * dim + h * args.width;
      const float* const out = args.out + t * dim + h * args.width;
      float score = 0, dot = 0, of_target = 0;
      for (std::size_t c = 0; c < args.width; ++c) {
        const float sum = x[c] + query[c];
        score += args.attention[h * args.width + c] * (sum > 0 ? sum : sum * args.slope);
        dot += x[c] * gradient[c];
        of_target += out[c] * gradient[c];
      }
      const std::size_t i = t * args.heads + h;
      const float share = std::exp(score - args.maximum[i]) / args.denominator[i];
      const float kept = KeptPlainly(args, t, place, h, share);
      const float of_score = share * (KeptPlainly(args, t, place, h, dot) - of_target);
      for (std::size_t c = 0; c < args.width; ++c) {
        const float slope = of_score * (x[c] + query[c] > 0 ? 1 : args.slope);
        const std::size_t at = j * dim + h * args.width + c;
        args.x_gradient[at] += kept * gradient[c] + args.attention[h * args.width + c] * slope;
        args.x_slopes[at] += slope;
        args.query_slopes[t * dim + h * args.width + c] += slope;
      }
    }
  };
  for (std::size_t t = 0; t < args.targets; ++t) {
    if (t < args.own) visit(t, t, 0);
    for (std::size_t e = args.offsets[t]; e < args.offsets[t + 1]; ++e)
      visit(t, args.index[e], e - args.offsets[t] + 1);
    for (std::size_t c = 0; c < dim; ++c)
      args.query_gradient[t * dim + c] = args.attention[c] * args.query_slopes[t * dim + c];
  }
}

}  // namespace rhizome::testing
