#pragma once

#include <optional>

#include "index/generation/graph_builder.h"
#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "rhizome/ingest.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

/// Writes `input` as a new store at `path`; the last step of Ingest and of the importers.
/// Errors: as BuildGeneration; kAlreadyExists.
Result<IngestReport> IngestGraph(FileSystem& fs, const Path& path, GraphInput input,
                                 const BuildOptions& build, std::optional<StoreId> store_id,
                                 const JobControl& control, const BuildHooks& hooks = {});

}  // namespace rhizome
