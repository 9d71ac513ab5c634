#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "rhizome/storage/file_system.h"

namespace rhizome::inline internal {

/// Makes the scratch folder of a job, or takes over one that exists, and marks it by a file LOCK,
/// which stays locked while the result lives. The mark is durable before this returns, so that a
/// power cut leaves no files of the job without it. Errors: kBusy, the job runs; kAlreadyExists,
/// the folder holds something, but no job's mark; kIoError, kOutOfSpace.
Result<std::unique_ptr<FileLock>> ClaimJobFolder(FileSystem& fs, const Path& folder);

/// Removes the folder of a job that the caller has claimed, its mark last. Errors: kIoError.
Status RemoveJobFolder(FileSystem& fs, const Path& folder);

/// Removes from `scratch`, which may be absent, the folders of jobs that do not run: those that
/// carry a job's mark, and empty ones. Everything else stays. Errors: kIoError; kCorruption, one of
/// them holds something other than files and folders, and nothing of it was removed.
Status RemoveIdleJobs(FileSystem& fs, const Path& scratch);

/// The state of a folder in scratch/.
enum class JobState : std::uint8_t {
  kNone,    ///< not of a job: nothing removes it
  kIdle,    ///< empty, or of a job that does not run
  kRunning  ///< of a job that runs
};
/// Errors: kNotFound; those of reading the folder.
Result<JobState> StateOfJob(FileSystem& fs, const Path& folder);

/// Checks that below `folder`, which may be absent, there are only files and folders. Errors:
/// kCorruption, naming a link, a pipe or a device.
Status CheckPlain(FileSystem& fs, const Path& folder);

}  // namespace rhizome::inline internal
