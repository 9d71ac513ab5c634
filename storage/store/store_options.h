#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "rhizome/storage/export.h"
#include "rhizome/storage/logger.h"
#include "rhizome/storage/metrics.h"

namespace RHIZOME_API rhizome {

/// Settings fixed when a Store opens. The defaults are silent and serve a laptop-sized store; a
/// service lets GraphService (index/graph_service.h) fill them in from its one memory budget.
struct StoreOptions {
  /// Memory for what was read of the catalogue (rows of the delta, mostly), in bytes.
  std::uint64_t catalog_cache_bytes = std::uint64_t{8} << 20;

  /// Memory for what was written to the catalogue and is not yet in its sorted files, in bytes; of
  /// a reader, a bound on the writer's part that it keeps. At least 1 MiB.
  std::uint64_t catalog_write_bytes = std::uint64_t{16} << 20;

  /// A folder for the scratch files of jobs, such as one on another disk, made if need be: those of
  /// this store lie in one of its own there, named by the store's id. Empty: the store's `scratch`.
  std::filesystem::path scratch = {};

  /// What this handle writes makes room on the disk: where that is full, it may use the blocks that
  /// the store sets aside for this (storage/FORMAT.md, "Store directory"), from its opening on.
  bool frees_space = false;

  /// Lines of at least `log_level`; none: silent. The catalogue's own warnings are among them.
  LogCallback log = {};
  LogLevel log_level = LogLevel::kInfo;

  /// What the store, its graphs and their look-ups count; null: nothing is counted. One for each
  /// store: counters of two would add up.
  std::shared_ptr<Metrics> metrics = {};
};

}  // namespace rhizome
