#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cache/ranges/range_features.h"
#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "rhizome/status.h"
#include "storage/io/files.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Predicts the cost of a range of vertices as a linear function of its features, and learns from
/// measured costs. Weights are never negative, because a cost does not fall with more work.
///
/// The weights minimise sum of 0.98^age (w · x - y)^2 plus a ridge of 1e-6 times each feature's own
/// square, over w >= 0. Only the sums of x x^T and x y are stored, so a measurement is a rank-one
/// update.
///
/// Source: ROC (MLSys 2020), section 4.1, equations 4 to 7. Forgetting, the ridge and the bound on
/// weights are our additions.
class CostModel {
 public:
  static constexpr double kForgetting = 0.98;
  static constexpr double kErrorForgetting = 0.8;
  static constexpr double kRidge = 1e-6;

  /// Adds a measurement and ages the earlier ones. Errors: kInvalidArgument, a feature or the cost
  /// is negative or not finite.
  Status Learn(const FeatureVector& features, double cost);

  /// Adds the measurements of one iteration, which have equal age. Errors: as Learn; no measurement
  /// is added in that case.
  Status Learn(const std::vector<FeatureVector>& features, const std::vector<double>& costs);

  const FeatureVector& weights() const { return weights_; }
  double Predict(const FeatureVector& features) const;
  std::uint64_t measurements() const { return measurements_; }

  /// Returns the prediction error on measurements before they were learned: the mean absolute
  /// difference of prediction and measurement, divided by the mean measurement. An iteration has
  /// weight 0.8^age, so that the error reflects the current model. Predictions and measurements are
  /// normalised to shares of their iteration, as ranges are cut by shares: a uniform slowdown does
  /// not count as an error. Returns nullopt before the first prediction of an iteration with
  /// several measurements.
  std::optional<double> Error() const;

  /// The state as numbers: x x^T by rows, x y, the two sums of Error, and the number of
  /// measurements.
  static constexpr std::size_t kStateNumbers = kRangeFeatures * kRangeFeatures + kRangeFeatures + 3;
  std::vector<double> State() const;
  /// Restores a model. Errors: kInvalidArgument, the numbers are not the state of a model.
  static Result<CostModel> FromState(const std::vector<double>& state);

 private:
  void Solve();
  void Judge(const std::vector<FeatureVector>& features, const std::vector<double>& costs);

  std::array<FeatureVector, kRangeFeatures> squares_ = {};  // sum of x x^T
  FeatureVector products_ = {};                             // sum of x y
  double missed_ = 0;                                       // sum of |predicted - y|
  double judged_ = 0;                                       // sum of y with a prediction
  std::uint64_t measurements_ = 0;
  FeatureVector weights_ = {};
};

/// Returns the w >= 0 that minimises w^T squares w - 2 products^T w, for a symmetric positive
/// definite matrix. Source: Lawson and Hanson, "Solving Least Squares Problems" (1974), chapter 23,
/// applied to the normal equations.
FeatureVector SolveNonNegative(const std::array<FeatureVector, kRangeFeatures>& squares,
                               const FeatureVector& products);

/// Models by kind of work, such as "sum/128/in": kind of layer, bucket of columns, direction.
using CostModels = std::map<std::string, CostModel>;

/// Writes models to a JSON file with a checksum. Errors: as OutputFile.
Status SaveCostModels(const CostModels& models, const Path& path,
                      OutputFile::Place place = OutputFile::Place::kOutside);

/// Reads models. Errors: kNotFound; kIoError; kCorruption, naming the file, if its content was not
/// saved by SaveCostModels.
Result<CostModels> LoadCostModels(FileSystem& fs, const Path& path);

}  // namespace internal
}  // namespace rhizome
