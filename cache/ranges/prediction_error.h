#pragma once

#include <cstddef>
#include <vector>

#include "rhizome/storage/export.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// How far predictions were off what was measured then. Threads: one at a time.
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

  /// Mean absolute error, as a share of the mean that was measured; 0 of nothing.
  double Error() const;

  /// 1 less the share of the variance that was not predicted; 0 where nothing varies.
  double R2() const;

 private:
  std::vector<double> predicted_;
  std::vector<double> measured_;
};

/// The largest of values over their mean; 1 if they are all 0.
double MaxOverMean(const std::vector<double>& values);

}  // namespace internal
}  // namespace rhizome
