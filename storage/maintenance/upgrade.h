#pragma once

#include <cstdint>
#include <span>

#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"
#include "rhizome/store_options.h"

namespace RHIZOME_API rhizome {

/// A step that converts a store from one format to the next. A crash at any moment must leave a
/// store of either the old or the new format: FORMAT is written last, and replaced files are kept
/// until then. The caller holds LOCK.
struct UpgradeStep {
  std::uint64_t from = 0;
  Status (*run)(FileSystem& fs, const Path& store, const JobControl& control) = nullptr;
};

/// Returns the steps of this build, one for each released format before its own.
std::span<const UpgradeStep> UpgradeSteps();

struct UpgradeReport {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
};

/// Converts the store at `path` to the format of this build, step by step. A store that already has
/// this format is not changed. `wait` is the time to wait for the writer's lock. Errors: kNotFound,
/// no store; kUnsupported, a newer format; kBusy; kCorruption; errors of the steps.
Result<UpgradeReport> UpgradeStore(FileSystem& fs, const Path& path, const JobControl& control,
                                   const LockWait& wait = {});

/// Converts a store to format `to` by `steps`. Called by the above and by its test.
Result<UpgradeReport> UpgradeStore(FileSystem& fs, const Path& path, std::uint64_t to,
                                   std::span<const UpgradeStep> steps, const JobControl& control,
                                   const LockWait& wait = {});

}  // namespace rhizome
