#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "rhizome/export.h"
#include "rhizome/logger.h"
#include "rhizome/metrics.h"
#include "rhizome/store_point.h"

namespace RHIZOME_API rhizome {

/// Access to a store. At most one process has it open for writing.
enum class Mode : std::uint8_t { kRead, kWrite };

/// Settings that are fixed when a Store opens. The defaults do not log and suit a laptop-sized
/// store. In a service, GraphService (rhizome/graph_service.h) derives them from its single memory
/// budget.
struct StoreOptions {
  /// Memory for blocks that were read from the catalogue, mostly rows of the delta, in bytes.
  std::uint64_t catalog_cache_bytes = std::uint64_t{8} << 20;

  /// Memory for data that was written to the catalogue and is not yet in its sorted files
  /// (memtables), in bytes. For a reader it limits how much of the writer's unflushed data it
  /// keeps. At least 1 MiB.
  std::uint64_t catalog_write_bytes = std::uint64_t{16} << 20;

  /// A folder for the scratch files of jobs, for example on another disk; it is created if needed.
  /// This store uses a subfolder named by the store's id. Empty: scratch/ in the store.
  std::filesystem::path scratch = {};

  /// The writes of this handle free space. On a full disk it may use, from its opening on, the
  /// blocks that the store sets aside for this purpose (storage/FORMAT.md, "Store directory").
  bool frees_space = false;

  /// Receives log lines of at least `log_level`, including the catalogue's warnings; empty: no log.
  LogCallback log = {};
  LogLevel log_level = LogLevel::kInfo;

  /// Opens the store, for reading, at a point that a reader of that state holds: in any process, by
  /// a snapshot or handle that must live until this one is open. The new handle never changes its
  /// state, and holds the point itself. Unset: the last commit.
  std::optional<StorePoint> at = {};

  /// Counts the work of the store, its graphs and their look-ups; null: nothing is counted. Use one
  /// object per store; otherwise the counts of several stores are summed.
  std::shared_ptr<Metrics> metrics = {};
};

}  // namespace rhizome
