#pragma once

#include <cstddef>
#include <vector>

#include "rhizome/export.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Error of predictions against later measurements. Threads: one at a time.
class PredictionError {
 public:
  void Add(double predicted, double measured) {
    predicted_.push_back(predicted);
    measured_.push_back(measured);
  }
  void Add(const PredictionError& other) {
    predicted_.insert(predicted_.end(), other.predicted_.begin(), other.predicted_.end());
    measured_.insert(measured_.end(), other.measured_.begin(), other.measured_.end());
  }

  std::size_t count() const { return measured_.size(); }
  const std::vector<double>& predicted() const { return predicted_; }
  const std::vector<double>& measured() const { return measured_; }

  /// Returns the mean absolute error divided by the mean measurement; 0 without measurements.
  double Error() const;

  /// Returns the coefficient of determination, 1 minus the unexplained share of the variance; 0 if
  /// the variance is 0.
  double R2() const;

 private:
  std::vector<double> predicted_;
  std::vector<double> measured_;
};

/// Returns the maximum of the values divided by their mean; 1 if all are 0.
double MaxOverMean(const std::vector<double>& values);

}  // namespace internal
}  // namespace rhizome
