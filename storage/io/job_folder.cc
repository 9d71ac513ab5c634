#include "storage/io/job_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "storage/base/mutant.h"
#include "storage/io/files.h"
#include "storage/io/place_names.h"
#include "storage/io/walk_files.h"

namespace rhizome {
inline namespace internal {
namespace {

using Kind = DirectoryEntry::Kind;

constexpr std::string_view kMark = "rhizome job";
constexpr std::uint64_t kMaxMarkBytes = 4096;

std::string MarkText() { return fmt::format("{} {}\n", kMark, getpid()); }

/// The mark of a folder: it belongs to no job (kNone), it is empty or new and has no mark yet
/// (kBare), it belongs to a job (kJob), or it has the text of old builds, which did not mark jobs
/// (kOld).
enum class Mark : std::uint8_t { kNone, kBare, kJob, kOld };

Result<Mark> MarkOf(FileSystem& fs, const Path& folder, std::vector<DirectoryEntry> entries) {
  std::erase_if(entries, IsForeignEntry);
  if (entries.empty()) return Mark::kBare;
  const auto lock = std::find_if(entries.begin(), entries.end(), [](const DirectoryEntry& entry) {
    return entry.name == kLockName && entry.kind == Kind::kFile;
  });
  if (lock == entries.end()) return Mark::kNone;
  const auto bytes = ReadWholeFile(fs, folder / kLockName, kMaxMarkBytes);
  if (!bytes && bytes.error().code() == StatusCode::kCorruption) return Mark::kNone;
  if (!bytes) return Fail(bytes.error());
  const std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  if (text.starts_with(kMark)) return Mark::kJob;
  // A truncated or zeroed mark: the job was killed, or the power failed, as it began.
  const bool cut = kMark.starts_with(text) || text.find_first_not_of('\0') == text.npos;
  if (cut && entries.size() == 1) return Mark::kBare;
  return text.starts_with("rhizome") ? Mark::kOld : Mark::kNone;
}

Status NotPlain(const Path& path) {
  return Status::Corruption(
      fmt::format("'{}' is a link, a pipe or a device, but a store or a folder of backups holds "
                  "only files and folders; remove it",
                  path.string()));
}

Result<std::unique_ptr<FileLock>> TryToClaim(FileSystem& fs, const Path& folder) {
  RHIZOME_RETURN_IF_ERROR(CreateDirectories(fs, folder));
  const auto entries = fs.List(folder);
  if (!entries) return Fail(entries.error());
  RHIZOME_ASSIGN_OR_RETURN(const Mark found, MarkOf(fs, folder, *entries));
  if (found == Mark::kNone)
    return Fail(Status::AlreadyExists(
        fmt::format("'{}' holds files that no job created; move it elsewhere", folder.string())));
  const Path path = folder / kLockName;
  const std::string text = MarkText();
  auto lock = fs.Lock(path, FileSystem::LockMode::kExclusive, text);
  if (!lock) return lock;
  RHIZOME_ASSIGN_OR_RETURN(const auto mark, fs.OpenAppend(path, text.size()));
  RHIZOME_RETURN_IF_ERROR(mark->Sync());
  RHIZOME_RETURN_IF_ERROR(mark->Close());
  RHIZOME_RETURN_IF_ERROR(fs.SyncDirectory(folder));
  return lock;
}

}  // namespace

// Until the folder has a mark, another process may remove it as the leftover of a killed job.
Result<std::unique_ptr<FileLock>> ClaimJobFolder(FileSystem& fs, const Path& folder) {
  constexpr int kAttempts = 10;
  for (int attempt = 1;; ++attempt) {
    auto lock = TryToClaim(fs, folder);
    const bool removed = !lock && lock.error().code() == StatusCode::kNotFound;
    if (!removed || attempt == kAttempts) return lock;
  }
}

Status RemoveJobFolder(FileSystem& fs, const Path& folder) {
  RHIZOME_RETURN_IF_ERROR(CheckPlain(fs, folder));
  const auto entries = fs.List(folder);
  if (!entries) return entries.error();
  for (const DirectoryEntry& entry : *entries) {
    if (entry.name == kLockName) continue;
    RHIZOME_RETURN_IF_ERROR(entry.kind == Kind::kDirectory ? RemoveTree(fs, folder / entry.name)
                                                           : fs.RemoveFile(folder / entry.name));
  }
  // The mark is removed last, after a sync, so that a power cut leaves no files without it.
  RHIZOME_RETURN_IF_ERROR(fs.SyncDirectory(folder));
  return RemoveTree(fs, folder);
}

Status RemoveIdleJob(FileSystem& fs, const Path& folder) {
  const auto entries = fs.List(folder);
  if (!entries) return entries.error();
  RHIZOME_ASSIGN_OR_RETURN(const Mark mark, MarkOf(fs, folder, *entries));
  const bool ours = mark == Mark::kJob || mark == Mark::kBare;
  if (!ours && !RHIZOME_MUTANT("unmarked scratch is removed")) return Status::Ok();
  if (mark == Mark::kBare && entries->empty()) return fs.RemoveDirectory(folder);
  if (mark == Mark::kBare && std::all_of(entries->begin(), entries->end(), IsForeignEntry))
    return Status::Ok();
  const auto lock = fs.Lock(folder / kLockName, FileSystem::LockMode::kExclusive, MarkText());
  if (!lock) return lock.error();
  return RemoveJobFolder(fs, folder);
}

Status RemoveIdleJobs(FileSystem& fs, const Path& scratch) {
  const auto jobs = fs.List(scratch);
  if (!jobs) return jobs.error().code() == StatusCode::kNotFound ? Status::Ok() : jobs.error();
  for (const DirectoryEntry& job : *jobs) {
    if (job.kind == Kind::kOther) return NotPlain(scratch / job.name);
    if (job.kind != Kind::kDirectory || IsForeignEntry(job)) continue;
    const Status removed = RemoveIdleJob(fs, scratch / job.name);
    // The folder of a running job remains (kBusy). In the meantime a job may have ended and removed
    // its folder (kNotFound), or begun and filled it (kAlreadyExists).
    const bool changed = removed.code() == StatusCode::kNotFound ||
                         removed.code() == StatusCode::kAlreadyExists ||
                         removed.code() == StatusCode::kBusy;
    if (!removed.ok() && !changed) return removed;
  }
  return Status::Ok();
}

Result<JobState> StateOfJob(FileSystem& fs, const Path& folder) {
  RHIZOME_ASSIGN_OR_RETURN(const auto entries, fs.List(folder));
  RHIZOME_ASSIGN_OR_RETURN(const Mark mark, MarkOf(fs, folder, entries));
  if (entries.empty()) return JobState::kIdle;
  if (std::all_of(entries.begin(), entries.end(), IsForeignEntry)) return JobState::kNone;
  const auto lock = fs.Lock(folder / kLockName, FileSystem::LockMode::kShared, "");
  if (!lock && lock.error().code() == StatusCode::kBusy) return JobState::kRunning;
  return mark == Mark::kJob || mark == Mark::kBare ? JobState::kIdle : JobState::kNone;
}

Status CheckPlain(FileSystem& fs, const Path& folder) {
  if (RHIZOME_MUTANT("links in a store are followed")) return Status::Ok();
  Status status = WalkFiles(fs, folder, [&](const std::string& relative, Kind kind) {
    return kind == Kind::kOther ? NotPlain(folder / relative) : Status::Ok();
  });
  return status.code() == StatusCode::kNotFound ? Status::Ok() : status;
}

}  // namespace internal
}  // namespace rhizome
