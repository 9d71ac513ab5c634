#include "gnn/links/combination.h"

#include <array>
#include <cmath>

#include "cache/kernels/distance_kernels.h"
#include "cache/kernels/simd.h"
#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Number of partial sums of a score. Column d is added to sum d % kLanes, and the sums are added
/// as a fixed tree, so that the compiler may use vectors of any width and the bits are the same.
constexpr std::size_t kLanes = 16;

float AddLanes(std::array<float, kLanes> lanes) {
  for (std::size_t half = kLanes / 2; half > 0; half /= 2)
    for (std::size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  return lanes[0];
}

template <typename Term>
float SumOf(std::size_t count, Term term) {
  std::array<float, kLanes> lanes{};
  std::size_t d = 0;
  for (; d + kLanes <= count; d += kLanes)
    for (std::size_t i = 0; i < kLanes; ++i) lanes[i] += term(d + i);
  for (std::size_t i = 0; d + i < count; ++i) lanes[i] += term(d + i);
  return AddLanes(lanes);
}

/// Adds `value` to numbers[i] unless `numbers` is null.
void AddTo(float* numbers, std::size_t i, float value) {
  if (numbers != nullptr) numbers[i] += value;
}

float Sign(float x) { return static_cast<float>(x > 0) - static_cast<float>(x < 0); }

RowDistance DistanceOf(Combination by) {
  switch (by) {
    case Combination::kL1:
      return RowDistance::kL1;
    case Combination::kL2:
      return RowDistance::kL2;
    case Combination::kModulus:
      return RowDistance::kModulus;
    case Combination::kDot:
      break;
  }
  RHIZOME_CHECK(false);
  return RowDistance::kL1;
}

}  // namespace

float Combine(Combination by, std::size_t dim, const float* query, const float* row) {
  const auto difference = [&](std::size_t d) { return query[d] - row[d]; };
  switch (by) {
    case Combination::kDot:
      return SumOf(dim, [&](std::size_t d) { return query[d] * row[d]; });
    case Combination::kL1:
      return -SumOf(dim, [&](std::size_t d) { return std::fabs(difference(d)); });
    case Combination::kL2:
      return -std::sqrt(SumOf(dim, [&](std::size_t d) { return difference(d) * difference(d); }));
    case Combination::kModulus:
      break;
  }
  const std::size_t half = dim / 2;
  return -SumOf(half, [&](std::size_t d) {
    const float re = difference(d);
    const float im = difference(half + d);
    return std::sqrt(re * re + im * im);
  });
}

void AddCombineGradient(Combination by, std::size_t dim, const float* query, const float* row,
                        float gradient, float* query_gradient, float* row_gradient) {
  const auto add = [&](std::size_t d, float of_query) {
    AddTo(query_gradient, d, of_query);
    AddTo(row_gradient, d, -of_query);
  };
  switch (by) {
    case Combination::kDot:
      for (std::size_t d = 0; d < dim; ++d) {
        AddTo(query_gradient, d, gradient * row[d]);
        AddTo(row_gradient, d, gradient * query[d]);
      }
      return;
    case Combination::kL1:
      for (std::size_t d = 0; d < dim; ++d) add(d, -gradient * Sign(query[d] - row[d]));
      return;
    case Combination::kL2: {
      const float distance = -Combine(by, dim, query, row);
      if (distance == 0) return;
      const float scale = -gradient / distance;
      for (std::size_t d = 0; d < dim; ++d) add(d, scale * (query[d] - row[d]));
      return;
    }
    case Combination::kModulus:
      break;
  }
  const std::size_t half = dim / 2;
  for (std::size_t d = 0; d < half; ++d) {
    const float re = query[d] - row[d];
    const float im = query[half + d] - row[half + d];
    const float modulus = std::sqrt(re * re + im * im);
    if (modulus == 0) continue;
    add(d, -gradient * re / modulus);
    add(half + d, -gradient * im / modulus);
  }
}

PackedQueries::PackedQueries(Combination by, std::size_t dim, std::span<const float> queries)
    : by_(by), dim_(dim), count_(queries.size() / dim), panels_(PanelsOf(count_) * dim * kPanel) {
  for (std::size_t q = 0; q < count_; ++q) {
    float* const panel = panels_.data() + q / kPanel * dim * kPanel + q % kPanel;
    for (std::size_t d = 0; d < dim; ++d) panel[d * kPanel] = queries[q * dim + d];
  }
}

void PackedQueries::Score(const ProductRows& rows, std::size_t count, float* out,
                          std::size_t stride) const {
  if (by_ == Combination::kDot) {
    Products().multiply({.rows = rows,
                         .panels = panels_.data(),
                         .outputs = count_,
                         .out = out,
                         .out_stride = stride},
                        0, count);
    return;
  }
  Distances().negative({.by = DistanceOf(by_),
                        .rows = rows,
                        .panels = panels_.data(),
                        .outputs = count_,
                        .out = out,
                        .out_stride = stride},
                       0, count);
}

}  // namespace internal
}  // namespace rhizome
