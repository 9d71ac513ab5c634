#pragma once

#include <cmath>
#include <cstddef>

namespace rhizome::testing {

/// Returns a value that a chi-square statistic with so many degrees of freedom exceeds once in 10^8
/// times (Wilson and Hilferty's approximation, which is above the true value there), so that a
/// correct sampler practically never fails.
inline double ChiSquareBound(std::size_t degrees_of_freedom) {
  constexpr double kNormalQuantile = 5.612;
  const auto k = static_cast<double>(degrees_of_freedom);
  const double root = 1 - 2 / (9 * k) + kNormalQuantile * std::sqrt(2 / (9 * k));
  return k * root * root * root;
}

}  // namespace rhizome::testing
