#pragma once

#include <cstring>
#include <vector>

#include "rhizome/cache/attention_kernels.h"
#include "rhizome/cache/simd.h"
#include "rhizome/cuda/attention_args.h"

// The work of a device for the arguments of attention's kernels, by the processor's: the same
// bits, as the tests of the kernels show.

namespace rhizome::testing {

inline AttendDropout DropoutOfProcessor(const cuda::Dropout& dropout) {
  return {.dropped = dropout.dropped,
          .scale = dropout.scale,
          .seed = dropout.seed,
          .first_target = dropout.first_row};
}

/// Copies the own rows of targets, which the processor's kernel reads apart, as floats.
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
  same.turned_begins = args.turned_offsets;
  same.turned_ends = args.turned_offsets + 1;
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

}  // namespace rhizome::testing
