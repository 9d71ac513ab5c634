#include "storage/maintenance/upgrade.h"

#include <fmt/format.h>

#include <algorithm>

#include "storage/base/exceptions.h"
#include "storage/store/caller_path.h"
#include "storage/store/store_files.h"

namespace rhizome {

// Format 1 is the first. Each later format adds a step here, and a store of the previous format to
// tests/storage/golden.
std::span<const UpgradeStep> UpgradeSteps() { return {}; }

namespace {

Result<UpgradeReport> Upgrade(FileSystem& fs, const Path& path, std::uint64_t to,
                              std::span<const UpgradeStep> steps, const JobControl& control,
                              const LockWait& wait) {
  const auto enclosed = fs.Enclose(path);
  UpgradeReport report{.to = to};
  RHIZOME_ASSIGN_OR_RETURN(report.from, ReadFormatVersion(fs, path));
  if (report.from > to) {
    return Fail(Status::Unsupported(fmt::format(
        "'{}' has format {}, which is newer than this build's {}; use a newer version of Rhizome",
        path.string(), report.from, to)));
  }
  if (report.from == to) return report;
  RHIZOME_ASSIGN_OR_RETURN(const auto lock, LockForWriting(fs, path, wait));
  for (std::uint64_t format = report.from; format < to; ++format) {
    const auto step = std::find_if(steps.begin(), steps.end(),
                                   [&](const UpgradeStep& one) { return one.from == format; });
    if (step == steps.end())
      return Fail(Status::Unsupported(fmt::format(
          "'{}' has format {}, which this build cannot upgrade", path.string(), format)));
    RHIZOME_RETURN_IF_ERROR(control.Report(
        {.phase = "upgrade", .done = format - report.from, .total = to - report.from}));
    RHIZOME_RETURN_IF_ERROR(step->run(fs, path, control));
  }
  return report;
}

}  // namespace

Result<UpgradeReport> UpgradeStore(FileSystem& fs, const Path& path, std::uint64_t to,
                                   std::span<const UpgradeStep> steps, const JobControl& control,
                                   const LockWait& wait) try {
  return WithAbsolute(fs, path, [&](const Path& absolute) {
    return Upgrade(fs, absolute, to, steps, control, wait);
  });
} catch (...) {
  return Fail(StatusOfException());
}

Result<UpgradeReport> UpgradeStore(FileSystem& fs, const Path& path, const JobControl& control,
                                   const LockWait& wait) try {
  return UpgradeStore(fs, path, kStoreFormatVersion, UpgradeSteps(), control, wait);
} catch (...) {
  return Fail(StatusOfException());
}

}  // namespace rhizome
