#pragma once

#include <cstdint>
#include <span>

#include "rhizome/storage/export.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace RHIZOME_API rhizome {

/// Brings a store from one format to the next. It must be such that a crash at any moment leaves a
/// store of the old format or of the new: FORMAT is written last, and what it replaces is kept
/// until then. The caller holds LOCK.
struct UpgradeStep {
  std::uint64_t from = 0;
  Status (*run)(FileSystem& fs, const Path& store, const JobControl& control) = nullptr;
};

/// The steps that this build knows, one for each format that was ever released before its own.
std::span<const UpgradeStep> UpgradeSteps();

struct UpgradeReport {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
};

/// Brings the store at `path` to the format of this build, step by step. A store that has it
/// already is not touched. Errors: kNotFound, no store; kUnsupported, a newer format; kBusy;
/// kCorruption; those of the steps.
Result<UpgradeReport> UpgradeStore(FileSystem& fs, const Path& path, const JobControl& control);

/// The same to format `to` by `steps`: what UpgradeStore does, and what its test calls.
Result<UpgradeReport> UpgradeStore(FileSystem& fs, const Path& path, std::uint64_t to,
                                   std::span<const UpgradeStep> steps, const JobControl& control);

}  // namespace rhizome
