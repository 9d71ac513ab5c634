#pragma once

#include <cstdint>
#include <span>

#include "rhizome/storage/export.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace RHIZOME_API rhizome {

/// A step that brings a store from one format to the next. A crash at any moment must leave a store
/// of the old or of the new format: FORMAT is written last, and files that are replaced are kept
/// until then. The caller holds LOCK.
struct UpgradeStep {
  std::uint64_t from = 0;
  Status (*run)(FileSystem& fs, const Path& store, const JobControl& control) = nullptr;
};

/// Returns the steps that this build knows, one for each format that was released before its own.
std::span<const UpgradeStep> UpgradeSteps();

struct UpgradeReport {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
};

/// Brings the store at `path` to the format of this build, step by step. A store that has it
/// already is not touched. Errors: kNotFound, no store; kUnsupported, a newer format; kBusy;
/// kCorruption; those of the steps.
Result<UpgradeReport> UpgradeStore(FileSystem& fs, const Path& path, const JobControl& control);

/// Brings it to format `to` by `steps`; the above calls this, and so does its test.
Result<UpgradeReport> UpgradeStore(FileSystem& fs, const Path& path, std::uint64_t to,
                                   std::span<const UpgradeStep> steps, const JobControl& control);

}  // namespace rhizome
