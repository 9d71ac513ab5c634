#pragma once

#include "tools/cli/cli.h"

namespace rhizome {

/// Adds `plan infer`, which needs librhizome_gnn.
void AddPlanInfer(CLI::App& plan, Session& session);

/// Adds `plan train`, which also needs librhizome_gnn.
void AddPlanTrain(CLI::App& plan, Session& session);

}  // namespace rhizome
