#include "cache/tables/row_optimizer.h"

#include <array>
#include <cmath>
#include <utility>

#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::array<std::pair<RowOptimizerKind, std::string_view>, 4> kNames = {{
    {RowOptimizerKind::kAdagrad, "adagrad"},
    {RowOptimizerKind::kAdagradRow, "adagrad-row"},
    {RowOptimizerKind::kAdam, "adam"},
    {RowOptimizerKind::kSgd, "sgd"},
}};

}  // namespace

std::string_view RowOptimizerName(RowOptimizerKind kind) {
  for (const auto& [known, name] : kNames)
    if (known == kind) return name;
  return "unknown";
}

std::optional<RowOptimizerKind> ParseRowOptimizer(std::string_view name) {
  for (const auto& [kind, known] : kNames)
    if (known == name) return kind;
  return std::nullopt;
}

RowOptimizer::RowOptimizer(const RowOptimizerOptions& options, std::size_t dim)
    : options_(options), dim_(dim) {
  RHIZOME_CHECK(dim > 0);
}

std::size_t RowOptimizer::StateFloats(RowOptimizerKind kind, std::size_t dim) {
  switch (kind) {
    case RowOptimizerKind::kAdagrad:
      return dim;
    case RowOptimizerKind::kAdagradRow:
      return 1;
    case RowOptimizerKind::kAdam:
      return 2 * dim;
    case RowOptimizerKind::kSgd:
      return 0;
  }
  return 0;
}

void RowOptimizer::Update(std::span<float> row, std::span<const float> gradient,
                          std::uint64_t step) const {
  RHIZOME_DCHECK(row.size() == row_floats() && gradient.size() == dim_ && step >= 1);
  float* const value = row.data();
  float* const state = value + dim_;
  const float rate = options_.learning_rate;
  switch (options_.kind) {
    case RowOptimizerKind::kAdagrad:
      for (std::size_t i = 0; i < dim_; ++i) {
        state[i] += gradient[i] * gradient[i];
        value[i] -= rate * gradient[i] / (std::sqrt(state[i]) + options_.epsilon);
      }
      return;
    case RowOptimizerKind::kAdagradRow: {
      float squares = 0;
      for (std::size_t i = 0; i < dim_; ++i) squares += gradient[i] * gradient[i];
      *state += squares / static_cast<float>(dim_);
      const float scale = rate / (std::sqrt(*state) + options_.epsilon);
      for (std::size_t i = 0; i < dim_; ++i) value[i] -= scale * gradient[i];
      return;
    }
    case RowOptimizerKind::kAdam:
      return UpdateAdam(value, state, gradient.data(), step);
    case RowOptimizerKind::kSgd:
      for (std::size_t i = 0; i < dim_; ++i) value[i] -= rate * gradient[i];
      return;
  }
}

void RowOptimizer::UpdateAdam(float* value, float* state, const float* gradient,
                              std::uint64_t step) const {
  float* const second = state + dim_;
  const auto steps = static_cast<double>(step);
  const double correction1 = 1 - std::pow(static_cast<double>(options_.beta1), steps);
  const double correction2 = 1 - std::pow(static_cast<double>(options_.beta2), steps);
  const auto rate =
      static_cast<float>(options_.learning_rate * std::sqrt(correction2) / correction1);
  for (std::size_t i = 0; i < dim_; ++i) {
    state[i] += (1 - options_.beta1) * (gradient[i] - state[i]);
    second[i] += (1 - options_.beta2) * (gradient[i] * gradient[i] - second[i]);
    value[i] -= rate * state[i] / (std::sqrt(second[i]) + options_.epsilon);
  }
}

}  // namespace internal
}  // namespace rhizome
