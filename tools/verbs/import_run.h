#pragma once

#include <string>

#include "rhizome/ingest.h"
#include "tools/cli/cli.h"
#include "tools/import/layout_flags.h"

namespace rhizome {

/// Flags of `import`.
struct ImportFlags {
  std::string name;  ///< wordnet, ogb or graphbolt
  std::string store;
  std::string from;
  std::uint64_t feature_dim = 128;
  std::string split;
  bool undirected = false;
  IngestOptions::Spill spill = IngestOptions::Spill::kAuto;
  Path scratch;
  LayoutFlags layout;
};

/// Imports a data set. Errors: any error of its reader and of Ingest.
Result<Answer> RunImport(const ImportFlags& flags, Session& session);

/// Returns the data set whose files a folder has: "ogb" (raw/) or "graphbolt" (metadata.yaml);
/// empty for another folder.
std::string KindOfFolder(const Path& folder);

}  // namespace rhizome
