#include "gnn/train/row_optimizer_kind.h"

namespace rhizome {
inline namespace internal {

std::optional<RowOptimizerKind> RowOptimizerOf(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::kAdam:
      return RowOptimizerKind::kAdam;
    case OptimizerKind::kSgd:
      return RowOptimizerKind::kSgd;
    case OptimizerKind::kAdagrad:
      return RowOptimizerKind::kAdagrad;
    case OptimizerKind::kAdagradRow:
      return RowOptimizerKind::kAdagradRow;
    case OptimizerKind::kAdamW:
      break;
  }
  return std::nullopt;
}

}  // namespace internal
}  // namespace rhizome
