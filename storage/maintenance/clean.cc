#include <utility>

#include "rhizome/store_options.h"
#include "storage/base/exceptions.h"
#include "storage/io/job_folder.h"
#include "storage/io/place_names.h"
#include "storage/io/posix_place.h"
#include "storage/io/walk_files.h"
#include "storage/store/caller_path.h"
#include "storage/store/store_files.h"

namespace rhizome {
namespace {

using State = JobScratchFolder::State;

State StateOf(JobState state) {
  if (state == JobState::kRunning) return State::kRunning;
  return state == JobState::kIdle ? State::kEnded : State::kForeign;
}

Result<std::uint64_t> BytesOf(FileSystem& fs, const Path& folder) {
  std::uint64_t bytes = 0;
  RHIZOME_RETURN_IF_ERROR(
      WalkFiles(fs, folder, [&](const std::string& relative, DirectoryEntry::Kind) {
        const auto info = fs.Stat(folder / relative);
        if (info) bytes += info->size_bytes;  // otherwise the job removed the file
        return Status::Ok();
      }));
  return bytes;
}

/// Adds one folder to the report, and removes it if its job ended.
Status CleanOne(FileSystem& fs, const Path& path, bool dry_run, CleanReport& report) {
  RHIZOME_ASSIGN_OR_RETURN(const JobState state, StateOfJob(fs, path));
  JobScratchFolder folder{.path = path, .state = StateOf(state)};
  RHIZOME_ASSIGN_OR_RETURN(folder.bytes, BytesOf(fs, path));
  if (folder.state == State::kEnded && !dry_run) {
    const Status removed = RemoveIdleJob(fs, path);
    // A job may have begun in the folder in the meantime.
    if (removed.code() == StatusCode::kBusy || removed.code() == StatusCode::kAlreadyExists)
      folder.state = State::kRunning;
    else
      RHIZOME_RETURN_IF_ERROR(removed);
  }
  const bool gone = folder.state == State::kEnded && !dry_run;
  report.removed += gone ? 1 : 0;
  report.removed_bytes += gone ? folder.bytes : 0;
  report.folders.push_back(std::move(folder));
  return Status::Ok();
}

Status CleanFolders(FileSystem& fs, const Path& scratch, bool dry_run, CleanReport& report) {
  const auto entries = fs.List(scratch);
  if (!entries && entries.error().code() == StatusCode::kNotFound) return Status::Ok();
  if (!entries) return entries.error();
  for (const DirectoryEntry& entry : *entries) {
    if (entry.kind != DirectoryEntry::Kind::kDirectory || IsForeignEntry(entry)) continue;
    const Status cleaned = CleanOne(fs, scratch / entry.name, dry_run, report);
    // A job that ended in the meantime has removed its folder itself.
    if (!cleaned.ok() && cleaned.code() != StatusCode::kNotFound) return cleaned;
  }
  return Status::Ok();
}

}  // namespace

Result<CleanReport> CleanScratch(FileSystem& fs, const Path& store,
                                 const CleanOptions& options) try {
  const Path elsewhere = AbsolutePath(fs, options.scratch);
  return WithAbsolute(fs, store, [&](const Path& folder) -> Result<CleanReport> {
    const auto enclosed = fs.Enclose(folder);
    const Status held = HoldFolder(enclosed);
    RHIZOME_ASSIGN_OR_RETURN(const StoreId id, ReadFormat(fs, folder));  // the best message
    RHIZOME_RETURN_IF_ERROR(held);
    RHIZOME_RETURN_IF_ERROR(CheckScratch(fs, folder));
    CleanReport report;
    RHIZOME_RETURN_IF_ERROR(CleanFolders(fs, folder / kScratchName, options.dry_run, report));
    if (elsewhere.empty()) return report;
    const auto outside = fs.Enclose(elsewhere);
    RHIZOME_RETURN_IF_ERROR(CleanFolders(fs, elsewhere / id.ToString(), options.dry_run, report));
    return report;
  });
} catch (...) {
  return Fail(StatusOfException());
}

}  // namespace rhizome
