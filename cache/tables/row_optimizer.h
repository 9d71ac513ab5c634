#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "rhizome/export.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// How the rows of a table learn. Only the rows of a step move.
enum class RowOptimizerKind : std::uint8_t {
  kAdagrad,     ///< a sum of squares for each number (Duchi et al., JMLR 2011)
  kAdagradRow,  ///< one sum for each row, of the mean square (FBGEMM's rowwise_adagrad)
  kAdam,        ///< lazy: moments of other rows do not decay (PyTorch's SparseAdam)
  kSgd,
};

std::string_view RowOptimizerName(RowOptimizerKind kind);
std::optional<RowOptimizerKind> ParseRowOptimizer(std::string_view name);

struct RowOptimizerOptions {
  RowOptimizerKind kind = RowOptimizerKind::kAdagrad;
  float learning_rate = 0.1F;
  float epsilon = 1e-10F;  ///< added to the root
  float beta1 = 0.9F;      ///< kAdam
  float beta2 = 0.999F;    ///< kAdam
};

/// Updates rows [value | state] of a table. The state of a new row is zeros.
/// Threads: const functions from any number of threads.
class RowOptimizer {
 public:
  /// `dim`: numbers of a value, at least 1.
  RowOptimizer(const RowOptimizerOptions& options, std::size_t dim);

  std::size_t dim() const { return dim_; }

  /// Returns the numbers of a row: its value and its state.
  std::size_t row_floats() const { return dim_ + StateFloats(options_.kind, dim_); }
  static std::size_t StateFloats(RowOptimizerKind kind, std::size_t dim);

  /// Moves a row against its gradient [dim]. `step` counts the steps of the training from 1.
  void Update(std::span<float> row, std::span<const float> gradient, std::uint64_t step) const;

 private:
  void UpdateAdam(float* value, float* state, const float* gradient, std::uint64_t step) const;

  const RowOptimizerOptions options_;
  const std::size_t dim_;
};

}  // namespace internal
}  // namespace rhizome
