#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "rhizome/storage/file_system.h"

namespace rhizome::inline internal {

/// Makes the scratch folder of a job, or takes one that is there, and marks it as a job's: a file
/// LOCK that says so, held as long as the result lives. The mark is durable before this returns, so
/// that a power cut leaves no files of the job without it. Errors: kBusy, the job runs;
/// kAlreadyExists, there is something in it, but no job's mark; kIoError, kOutOfSpace.
Result<std::unique_ptr<FileLock>> ClaimJobFolder(FileSystem& fs, const Path& folder);

/// Removes the folder of a job, which its caller has claimed; its mark last. Errors: kIoError.
Status RemoveJobFolder(FileSystem& fs, const Path& folder);

/// Removes the folders of jobs that do not run from `scratch`, which may be absent. Only what
/// carries a job's mark goes, or holds nothing; whatever else lies there stays. Errors: kIoError;
/// kCorruption, one of them holds what is neither a file nor a folder: nothing of it is removed.
Status RemoveIdleJobs(FileSystem& fs, const Path& scratch);

/// What a folder in scratch/ is.
enum class JobState : std::uint8_t {
  kNone,    ///< no job's: nothing removes it
  kIdle,    ///< of a job that does not run, or empty
  kRunning  ///< of one that does
};
/// Errors: kNotFound; those of looking at it.
Result<JobState> StateOfJob(FileSystem& fs, const Path& folder);

/// Is all below `folder`, which may be absent, files and folders? Errors: kCorruption, naming a
/// link, a pipe or a device.
Status CheckPlain(FileSystem& fs, const Path& folder);

}  // namespace rhizome::inline internal
