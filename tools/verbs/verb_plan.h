#pragma once

#include "cli.h"

namespace rhizome {

/// Adds `plan infer`, which needs librhizome_gnn.
void AddPlanInfer(CLI::App& plan, Session& session);

/// Adds `plan train`, which needs it too.
void AddPlanTrain(CLI::App& plan, Session& session);

}  // namespace rhizome
