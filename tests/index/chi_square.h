#pragma once

#include <cmath>
#include <cstddef>

namespace rhizome::testing {

/// Returns a bound that a chi-square statistic with the given degrees of freedom exceeds with a
/// probability of 10^-8. Correct samplers therefore practically never fail. The approximation
/// (Wilson and Hilferty) is above the true value in this range.
inline double ChiSquareBound(std::size_t degrees_of_freedom) {
  constexpr double kNormalQuantile = 5.612;
  const auto k = static_cast<double>(degrees_of_freedom);
  const double root = 1 - 2 / (9 * k) + kNormalQuantile * std::sqrt(2 / (9 * k));
  return k * root * root * root;
}

}  // namespace rhizome::testing
