#pragma once

#include "cache/kernels/aggregate_kernels_inl.h"
#include "cache/kernels/attention_gradient_inl.h"
#include "cache/kernels/attention_kernels_inl.h"
#include "cache/kernels/distance_kernels_inl.h"
#include "cache/kernels/gather_attention_inl.h"
#include "cache/kernels/gather_gatv2_inl.h"
#include "cache/kernels/gather_max_inl.h"
#include "cache/kernels/head_dots_inl.h"
#include "cache/kernels/product_kernels_inl.h"

namespace rhizome {
inline namespace internal {
namespace {

template <typename V>
constexpr AggregateKernels MakeKernels() {
  return {.sum = Sum<V>,
          .max = Max<V>,
          .max_gradient = MaxGradient<V>,
          .edge_dot = EdgeDot<V>,
          .activate = Activate<V>,
          .activate_gradient = ActivateGradient<V>,
          .widen = Widen<V>,
          .attend = Attend<V>,
          .attend_stats = AttendStats<V>,
          .attend_source_gradient = AttendSourceGradient<V>,
          .attend_query_gradient = AttendQueryGradient<V>,
          .head_dots = HeadDots<V>,
          .head_dots_gradient = HeadDotsGradient<V>};
}

template <typename V>
constexpr GatherKernels MakeGathers() {
  return {.max = GatherMax<V>,
          .max_gradient = GatherMaxGradient<V>,
          .attend = GatherAttend<V>,
          .attend_gradient = GatherAttendGradient<V>,
          .attend_v2 = GatherAttendV2<V>,
          .attend_v2_gradient = GatherAttendV2Gradient<V, false>,
          .attend_v2_query_gradient = GatherAttendV2Gradient<V, true>};
}

template <typename V>
constexpr ProductKernels MakeProducts() {
  return {.multiply = Multiply<V>, .gradient = ProductGradient<V>};
}

template <typename V>
constexpr DistanceKernels MakeDistances() {
  return {.negative = NegativeDistance<V>};
}

}  // namespace
}  // namespace internal
}  // namespace rhizome
