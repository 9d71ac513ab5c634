#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rhizome/cache/range_features.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/result.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Predicts what a range of vertices costs, as a linear function of its features, and learns from
/// what ranges did cost. Weights are never negative: a cost does not fall with work.
///
/// They minimise sum of 0.98^age (w · x - y)^2 plus a ridge of 1e-6 of each feature's own square,
/// over w >= 0. Only the sums of x x^T and x y are kept, so a measurement is a rank-one update.
///
/// Source: ROC (MLSys 2020), section 4.1, equations 4 to 7; forgetting, the ridge and the bound on
/// weights are ours.
class CostModel {
 public:
  static constexpr double kForgetting = 0.98;
  static constexpr double kErrorForgetting = 0.8;
  static constexpr double kRidge = 1e-6;

  /// Adds a measurement, after those before have aged. Errors: kInvalidArgument, a feature or the
  /// cost is negative or not finite.
  Status Learn(const FeatureVector& features, double cost);

  /// Adds measurements of one iteration: they are equally old. Errors: as Learn; none is added
  /// then.
  Status Learn(const std::vector<FeatureVector>& features, const std::vector<double>& costs);

  const FeatureVector& weights() const { return weights_; }
  double Predict(const FeatureVector& features) const;
  std::uint64_t measurements() const { return measurements_; }

  /// How far it was off what it learned next: the mean absolute difference of what was predicted
  /// and measured, over the mean that was measured. An iteration counts 0.8^age, so that it is the
  /// error of the model as it is now. Both are taken as shares of their iteration, as ranges are
  /// cut by shares alone: a graph of which all is equally dearer is no error. Nothing, before it
  /// has predicted an iteration of several measurements.
  std::optional<double> Error() const;

  /// The state as numbers: x x^T by rows, x y, the two sums of Error, and the number of
  /// measurements.
  static constexpr std::size_t kStateNumbers = kRangeFeatures * kRangeFeatures + kRangeFeatures + 3;
  std::vector<double> State() const;
  /// Errors: kInvalidArgument, the numbers are not those of a model.
  static Result<CostModel> FromState(const std::vector<double>& state);

 private:
  void Solve();
  void Judge(const std::vector<FeatureVector>& features, const std::vector<double>& costs);

  std::array<FeatureVector, kRangeFeatures> squares_ = {};  // sum of x x^T
  FeatureVector products_ = {};                             // sum of x y
  double missed_ = 0;                                       // sum of |predicted - y|
  double judged_ = 0;                                       // sum of y that were predicted
  std::uint64_t measurements_ = 0;
  FeatureVector weights_ = {};
};

/// Returns the w >= 0 that minimises w^T squares w - 2 products^T w, for a symmetric positive
/// definite matrix. Source: Lawson and Hanson, "Solving Least Squares Problems" (1974), chapter 23,
/// on the normal equations.
FeatureVector SolveNonNegative(const std::array<FeatureVector, kRangeFeatures>& squares,
                               const FeatureVector& products);

/// Models by what they are of, such as "sum/128/in": kind of layer, bucket of columns, direction.
using CostModels = std::map<std::string, CostModel>;

/// Writes models to a file of JSON, with a checksum. Errors: those of OutputFile.
Status SaveCostModels(const CostModels& models, const Path& path,
                      OutputFile::Place place = OutputFile::Place::kOutside);

/// Errors: kNotFound; kIoError; kCorruption, naming the file, if it is not what was saved.
Result<CostModels> LoadCostModels(FileSystem& fs, const Path& path);

}  // namespace internal
}  // namespace rhizome
