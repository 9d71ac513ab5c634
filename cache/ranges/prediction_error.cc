#include "cache/ranges/prediction_error.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace rhizome {
inline namespace internal {
namespace {

double SumOf(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

}  // namespace

double PredictionError::Error() const {
  double error = 0;
  for (std::size_t i = 0; i < count(); ++i) error += std::abs(predicted_[i] - measured_[i]);
  const double sum = SumOf(measured_);
  return sum > 0 ? error / sum : 0;
}

double PredictionError::R2() const {
  if (count() == 0) return 0;
  const double mean = SumOf(measured_) / static_cast<double>(count());
  double rest = 0;
  double all = 0;
  for (std::size_t i = 0; i < count(); ++i) {
    rest += (measured_[i] - predicted_[i]) * (measured_[i] - predicted_[i]);
    all += (measured_[i] - mean) * (measured_[i] - mean);
  }
  return all > 0 ? 1 - rest / all : 0;
}

double MaxOverMean(const std::vector<double>& values) {
  const double sum = SumOf(values);
  return sum > 0 ? *std::max_element(values.begin(), values.end()) *
                       static_cast<double>(values.size()) / sum
                 : 1;
}

}  // namespace internal
}  // namespace rhizome
