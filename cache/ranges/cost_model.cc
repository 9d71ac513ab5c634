#include "cache/ranges/cost_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <string_view>

#include "storage/base/hash.h"
#include "storage/io/files.h"
#include "storage/section/untrusted_json.h"

namespace rhizome {
inline namespace internal {
namespace {

using Matrix = std::array<FeatureVector, kRangeFeatures>;

/// Solves the equations of the features in `free`; the others are 0. Uses elimination with the
/// largest diagonal pivot first, which is stable for a positive definite matrix.
FeatureVector SolveFree(Matrix a, FeatureVector b, std::array<bool, kRangeFeatures> free) {
  std::vector<std::size_t> order;
  for (;;) {
    std::size_t pivot = kRangeFeatures;
    for (std::size_t f = 0; f < kRangeFeatures; ++f) {
      if (free[f] && (pivot == kRangeFeatures || a[f][f] > a[pivot][pivot])) pivot = f;
    }
    if (pivot == kRangeFeatures || !(a[pivot][pivot] > 0)) break;
    free[pivot] = false;
    order.push_back(pivot);
    for (std::size_t row = 0; row < kRangeFeatures; ++row) {
      if (!free[row]) continue;
      const double factor = a[row][pivot] / a[pivot][pivot];
      for (std::size_t column = 0; column < kRangeFeatures; ++column)
        a[row][column] -= factor * a[pivot][column];
      b[row] -= factor * b[pivot];
    }
  }
  FeatureVector solved = {};
  for (std::size_t i = order.size(); i-- > 0;) {
    const std::size_t row = order[i];
    double rest = b[row];
    for (std::size_t j = i + 1; j < order.size(); ++j) rest -= a[row][order[j]] * solved[order[j]];
    solved[row] = rest / a[row][row];
  }
  return solved;
}

}  // namespace

FeatureVector SolveNonNegative(const Matrix& squares, const FeatureVector& products) {
  FeatureVector weights = {};
  std::array<bool, kRangeFeatures> free = {};
  // Each round frees the feature with the steepest descent. The number of sets of free features is
  // finite; the bound on rounds excludes cycles due to rounding.
  for (std::size_t round = 0; round < 10 * kRangeFeatures; ++round) {
    std::size_t best = kRangeFeatures;
    double steepest = 0;
    for (std::size_t f = 0; f < kRangeFeatures; ++f) {
      double slope = products[f];
      for (std::size_t g = 0; g < kRangeFeatures; ++g) slope -= squares[f][g] * weights[g];
      if (!free[f] && slope > 1e-12 * std::abs(products[f]) && slope > steepest) {
        best = f;
        steepest = slope;
      }
    }
    if (best == kRangeFeatures) break;
    free[best] = true;
    for (;;) {
      const FeatureVector solved = SolveFree(squares, products, free);
      double step = 1;
      for (std::size_t f = 0; f < kRangeFeatures; ++f) {
        if (free[f] && solved[f] <= 0 && weights[f] > solved[f])
          step = std::min(step, weights[f] / (weights[f] - solved[f]));
      }
      bool is_done = true;
      for (std::size_t f = 0; f < kRangeFeatures; ++f) {
        if (!free[f]) continue;
        const bool turns_negative = solved[f] <= 0;
        weights[f] += step * (solved[f] - weights[f]);
        if (turns_negative && weights[f] <= 1e-15 * std::abs(solved[f])) {
          weights[f] = 0;
          free[f] = false;
        }
        is_done = is_done && !turns_negative;
      }
      if (is_done) break;
    }
  }
  return weights;
}

Status CostModel::Learn(const FeatureVector& features, double cost) {
  return Learn(std::vector<FeatureVector>{features}, std::vector<double>{cost});
}

// Steps: (1) check features and costs; (2) update the prediction error with the new costs (Judge);
// (3) discount the sums of earlier measurements; (4) add the products of the new ones; (5) scale
// the features and solve the non-negative least squares problem on the sums (Solve,
// SolveNonNegative).
Status CostModel::Learn(const std::vector<FeatureVector>& features,
                        const std::vector<double>& costs) {
  const auto is_cost = [](double value) { return std::isfinite(value) && value >= 0; };
  bool all_good =
      features.size() == costs.size() && std::all_of(costs.begin(), costs.end(), is_cost);
  for (const FeatureVector& x : features)
    all_good = all_good && std::all_of(x.begin(), x.end(), is_cost);
  if (!all_good) {
    return Status::InvalidArgument(
        "a cost model needs features and costs that are finite and not negative");
  }
  Judge(features, costs);
  for (std::size_t f = 0; f < kRangeFeatures; ++f) {
    for (double& square : squares_[f]) square *= kForgetting;
    products_[f] *= kForgetting;
  }
  for (std::size_t i = 0; i < costs.size(); ++i) {
    for (std::size_t f = 0; f < kRangeFeatures; ++f) {
      for (std::size_t g = 0; g < kRangeFeatures; ++g)
        squares_[f][g] += features[i][f] * features[i][g];
      products_[f] += features[i][f] * costs[i];
    }
  }
  measurements_ += costs.size();
  Solve();
  return Status::Ok();
}

/// Updates the error by comparing predictions with costs that were not learned yet.
void CostModel::Judge(const std::vector<FeatureVector>& features,
                      const std::vector<double>& costs) {
  std::vector<double> predicted;
  for (const FeatureVector& x : features) predicted.push_back(Predict(x));
  const double measured = std::accumulate(costs.begin(), costs.end(), 0.0);
  const double sum = std::accumulate(predicted.begin(), predicted.end(), 0.0);
  if (costs.size() < 2 || !(sum > 0) || !(measured > 0)) return;
  missed_ *= kErrorForgetting;
  judged_ *= kErrorForgetting;
  for (std::size_t i = 0; i < costs.size(); ++i)
    missed_ += std::abs(predicted[i] * (measured / sum) - costs[i]);
  judged_ += measured;
}

std::optional<double> CostModel::Error() const {
  return judged_ > 0 ? std::optional(missed_ / judged_) : std::nullopt;
}

void CostModel::Solve() {
  // Features differ by orders of magnitude, so each is scaled to a square of 1.
  FeatureVector scale;
  for (std::size_t f = 0; f < kRangeFeatures; ++f)
    scale[f] = squares_[f][f] > 0 ? 1 / std::sqrt(squares_[f][f]) : 0;
  Matrix squares = {};
  FeatureVector products = {};
  for (std::size_t f = 0; f < kRangeFeatures; ++f) {
    for (std::size_t g = 0; g < kRangeFeatures; ++g)
      squares[f][g] = squares_[f][g] * scale[f] * scale[g];
    squares[f][f] += kRidge;
    products[f] = products_[f] * scale[f];
  }
  weights_ = SolveNonNegative(squares, products);
  for (std::size_t f = 0; f < kRangeFeatures; ++f) weights_[f] *= scale[f];
}

double CostModel::Predict(const FeatureVector& features) const {
  double cost = 0;
  for (std::size_t f = 0; f < kRangeFeatures; ++f) cost += weights_[f] * features[f];
  return cost;
}

std::vector<double> CostModel::State() const {
  std::vector<double> state;
  for (const FeatureVector& row : squares_) state.insert(state.end(), row.begin(), row.end());
  state.insert(state.end(), products_.begin(), products_.end());
  state.insert(state.end(), {missed_, judged_});
  state.push_back(static_cast<double>(measurements_));
  return state;
}

Result<CostModel> CostModel::FromState(const std::vector<double>& state) {
  const bool is_state =
      state.size() == kStateNumbers && std::all_of(state.begin(), state.end(), [](double value) {
        return std::isfinite(value) && value >= 0;
      });
  if (!is_state || state.back() > 9e15)
    return Fail(Status::InvalidArgument("the numbers are not a valid cost model"));
  CostModel model;
  auto next = state.begin();
  for (FeatureVector& row : model.squares_) {
    std::copy_n(next, kRangeFeatures, row.begin());
    next += kRangeFeatures;
  }
  std::copy_n(next, kRangeFeatures, model.products_.begin());
  next += kRangeFeatures;
  model.missed_ = *next++;
  model.judged_ = *next++;
  model.measurements_ = static_cast<std::uint64_t>(state.back());
  model.Solve();
  return model;
}

namespace {

constexpr std::string_view kCostModelFormat = "rhizome cost models 4";

std::string ChecksumOf(const nlohmann::json& models) {
  const std::string text = models.dump();
  std::string hex;
  for (const std::byte byte : Xxh3(std::as_bytes(std::span(text))))
    hex += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return hex;
}

}  // namespace

Status SaveCostModels(const CostModels& models, const Path& path, OutputFile::Place place) {
  nlohmann::json states = nlohmann::json::object();
  for (const auto& [name, model] : models) states[name] = model.State();
  const nlohmann::json all = {
      {"format", kCostModelFormat}, {"models", states}, {"xxh3", ChecksumOf(states)}};
  const std::string text = all.dump(1) + "\n";
  RHIZOME_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path, place));
  RHIZOME_RETURN_IF_ERROR(file.Append(std::as_bytes(std::span(text))));
  return file.Commit();
}

Result<CostModels> LoadCostModels(FileSystem& fs, const Path& path) {
  constexpr std::uint64_t kMaxBytes = std::uint64_t{16} << 20;
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, ReadWholeFile(fs, path, kMaxBytes));
  const auto damaged = [&](const std::string& why) {
    return Fail(Status::Corruption(
        fmt::format("{}: {}; delete the file, and costs are learned again", path.string(), why)));
  };
  const nlohmann::json all = ParseUntrustedJson(
      std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  if (!all.is_object() || all.value("format", nlohmann::json()) != kCostModelFormat)
    return damaged("it is not a file of cost models, or has another version");
  const nlohmann::json states = all.value("models", nlohmann::json());
  if (!states.is_object() || all.value("xxh3", nlohmann::json()) != ChecksumOf(states))
    return damaged("the checksum of the models does not match");
  CostModels models;
  for (const auto& [name, numbers] : states.items()) {
    std::vector<double> state;
    for (const nlohmann::json& number : numbers) {
      if (!number.is_number()) return damaged("the state of " + name + " is not of numbers");
      state.push_back(number.get<double>());
    }
    Result<CostModel> model = CostModel::FromState(state);
    if (!model) return damaged(name + ": " + model.error().message());
    models.emplace(name, *std::move(model));
  }
  return models;
}

}  // namespace internal
}  // namespace rhizome
