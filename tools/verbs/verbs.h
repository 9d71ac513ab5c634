#pragma once

#include "tools/cli/cli.h"

namespace rhizome {

// Each function is defined in verb_<name>.cc; main.cc calls them.
void AddGenerateVerb(CLI::App& root, Session& session);
void AddImportVerb(CLI::App& root, Session& session);
void AddIngestVerb(CLI::App& root, Session& session);
void AddPartitionVerb(CLI::App& root, Session& session);
void AddPlanVerb(CLI::App& root, Session& session);
void AddInitVerb(CLI::App& root, Session& session);
void AddAlterVerb(CLI::App& root, Session& session);
void AddInfoVerb(CLI::App& root, Session& session);
void AddVerifyVerb(CLI::App& root, Session& session);
void AddArrayVerb(CLI::App& root, Session& session);
void AddRepairVerb(CLI::App& root, Session& session);
void AddBackupVerb(CLI::App& root, Session& session);
void AddRestoreVerb(CLI::App& root, Session& session);
void AddCleanVerb(CLI::App& root, Session& session);
void AddUpgradeVerb(CLI::App& root, Session& session);
void AddDoctorVerb(CLI::App& root, Session& session);
void AddNeighborsVerb(CLI::App& root, Session& session);
void AddGetVerb(CLI::App& root, Session& session);
void AddPutVerb(CLI::App& root, Session& session);
void AddDeleteVerb(CLI::App& root, Session& session);
void AddChangesVerb(CLI::App& root, Session& session);
void AddCompactVerb(CLI::App& root, Session& session);
void AddSampleVerb(CLI::App& root, Session& session);
void AddTrainVerb(CLI::App& root, Session& session);
void AddModelsVerb(CLI::App& root, Session& session);
void AddInferVerb(CLI::App& root, Session& session);
void AddSimilarVerb(CLI::App& root, Session& session);
void AddScoreVerb(CLI::App& root, Session& session);
void AddEvaluateVerb(CLI::App& root, Session& session);
void AddExportVerb(CLI::App& root, Session& session);

}  // namespace rhizome
