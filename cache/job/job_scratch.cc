#include "cache/job/job_scratch.h"

#include <fmt/format.h>

#include "storage/io/files.h"
#include "storage/io/job_folder.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr const char* kLockName = "LOCK";

/// Removes everything from the folder except the lock file, which this process holds.
Status ClearFolder(FileSystem& fs, const Path& folder) {
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, fs.List(folder));
  for (const DirectoryEntry& entry : entries) {
    if (entry.name == kLockName) continue;
    if (entry.kind == DirectoryEntry::Kind::kDirectory) {
      RHIZOME_RETURN_IF_ERROR(RemoveTree(fs, folder / entry.name));
    } else {
      RHIZOME_RETURN_IF_ERROR(fs.RemoveFile(folder / entry.name));
    }
  }
  return Status::Ok();
}

}  // namespace

Result<std::unique_ptr<JobScratch>> JobScratch::Open(const Store& store, const std::string& job,
                                                     Leftovers leftovers) {
  RHIZOME_RETURN_IF_ERROR(CheckName("job", job));
  FileSystem& fs = store.fs();
  const Path folder = FolderOf(store, job);
  Result<std::unique_ptr<FileLock>> lock = ClaimJobFolder(fs, folder);
  if (!lock && lock.error().code() == StatusCode::kBusy)
    return Fail(lock.error().WithContext(fmt::format("job {} is running", job)));
  if (!lock) return Fail(lock.error());
  std::unique_ptr<JobScratch> scratch(new JobScratch(fs, folder, *std::move(lock)));
  if (leftovers == Leftovers::kRemove) {
    RHIZOME_RETURN_IF_ERROR(ClearFolder(fs, folder));
  }
  return scratch;
}

JobScratch::~JobScratch() {
  if (keep_) return;
  // A folder that cannot be removed is harmless: the next job of this name clears it.
  const Status removed = RemoveJobFolder(fs_, folder_);
  static_cast<void>(removed);
}

}  // namespace internal
}  // namespace rhizome
