#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "rhizome/storage/export.h"
#include "rhizome/storage/logger.h"
#include "rhizome/storage/metrics.h"
#include "rhizome/storage/store_point.h"

namespace RHIZOME_API rhizome {

/// Settings that are fixed when a Store opens. With the defaults it logs nothing and serves a
/// laptop-sized store. In a service, GraphService (index/graph_service.h) sets them from its one
/// memory budget.
struct StoreOptions {
  /// Memory for blocks that were read from the catalogue, mostly rows of the delta, in bytes.
  std::uint64_t catalog_cache_bytes = std::uint64_t{8} << 20;

  /// Memory for data that was written to the catalogue and is not yet in its sorted files
  /// (memtables), in bytes. For a reader it bounds the part of the writer's data that it keeps. At
  /// least 1 MiB.
  std::uint64_t catalog_write_bytes = std::uint64_t{16} << 20;

  /// A folder for the scratch files of jobs, such as one on another disk; it is made if need be.
  /// This store has a folder of its own in it, named by the store's id. Empty: scratch/ in the
  /// store.
  std::filesystem::path scratch = {};

  /// The writes of this handle free space. On a full disk it may use the blocks that the store sets
  /// aside for this (storage/FORMAT.md, "Store directory"), from its opening on.
  bool frees_space = false;

  /// Receives log lines of at least `log_level`, the catalogue's warnings included; none: no log.
  LogCallback log = {};
  LogLevel log_level = LogLevel::kInfo;

  /// Opens the store, for reading, at a point that somebody holds: a reader of that state in any
  /// process, whose snapshot or handle lives until this one is open. It never changes then, and
  /// holds the point itself. Unset: the last commit.
  std::optional<StorePoint> at = {};

  /// Counts the work of the store, its graphs and their look-ups; null: nothing is counted. Use one
  /// for each store, or the counts of two would add up.
  std::shared_ptr<Metrics> metrics = {};
};

}  // namespace rhizome
