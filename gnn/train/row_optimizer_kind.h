#pragma once

#include <optional>

#include "cache/tables/row_optimizer.h"
#include "rhizome/train_options.h"

namespace rhizome {
inline namespace internal {

/// Returns the optimiser of rows of a table by the same rule; nullopt for AdamW, which there is
/// not for rows.
std::optional<RowOptimizerKind> RowOptimizerOf(OptimizerKind kind);

}  // namespace internal
}  // namespace rhizome
