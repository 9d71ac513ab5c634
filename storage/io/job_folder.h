#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "rhizome/file_system.h"

namespace rhizome {
inline namespace internal {

/// Creates the scratch folder of a job, or takes over an existing one, and marks it with a file
/// LOCK, which remains locked during the lifetime of the result. The mark is durable before this
/// returns, so that a power cut leaves no files of the job without it. Errors: kBusy, the job is
/// running; kAlreadyExists, the folder is not empty and has no job's mark; kIoError, kOutOfSpace.
Result<std::unique_ptr<FileLock>> ClaimJobFolder(FileSystem& fs, const Path& folder);

/// Removes the folder of a job that the caller has claimed; its mark is removed last. Errors:
/// kIoError.
Status RemoveJobFolder(FileSystem& fs, const Path& folder);

/// Removes from `scratch`, which may be absent, the folders of jobs that are not running: those
/// with a job's mark, and empty ones. Everything else remains. Errors: kIoError; kCorruption, a
/// folder contains something other than files and folders; nothing is removed from that folder.
Status RemoveIdleJobs(FileSystem& fs, const Path& scratch);

/// Removes one such folder of scratch/. A folder that is no job's remains. Errors: kBusy, the job
/// is running; kNotFound, kAlreadyExists, the folder changed in the meantime; as RemoveIdleJobs.
Status RemoveIdleJob(FileSystem& fs, const Path& folder);

/// The state of a folder in scratch/.
enum class JobState : std::uint8_t {
  kNone,    ///< not of a job: it is never removed
  kIdle,    ///< empty, or of a job that is not running
  kRunning  ///< of a running job
};
/// Errors: kNotFound; errors of reading the folder.
Result<JobState> StateOfJob(FileSystem& fs, const Path& folder);

/// Checks that `folder`, which may be absent, contains only files and folders at any depth.
/// Errors: kCorruption, naming a link, a pipe or a device.
Status CheckPlain(FileSystem& fs, const Path& folder);

}  // namespace internal
}  // namespace rhizome
