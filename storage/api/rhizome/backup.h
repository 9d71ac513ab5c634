#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"
#include "rhizome/verify.h"

namespace RHIZOME_API rhizome {

/// One copy of a store in a folder of backups (storage/FORMAT.md, "Backups").
struct BackupInfo {
  std::uint64_t number = 0;       ///< counts from 1
  std::int64_t unix_seconds = 0;  ///< time of its creation
  std::uint64_t generation = 0;
  std::uint64_t manifest_version = 0;
  std::uint64_t sequence = 0;  ///< number of the newest commit of a generation or array change
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;  ///< total size of its files and of the delta
  std::uint64_t delta_entries = 0;
};

struct BackupOptions {
  std::uint64_t keep = 0;  ///< number of newest backups to keep; 0: keep all

  /// Trust files of earlier backups that have the right length, instead of reading and comparing
  /// them.
  bool trust = false;
};

struct BackupReport {
  BackupInfo backup;
  std::uint64_t files_copied = 0;
  std::uint64_t bytes_copied = 0;
  std::uint64_t files_shared = 0;  ///< files that an earlier backup already had
  std::uint64_t bytes_shared = 0;
  std::vector<std::string> mended;     ///< files of earlier backups that were damaged or missing
                                       ///< and were repaired
  std::vector<std::uint64_t> removed;  ///< numbers of removed older backups
  double seconds = 0;
};

/// Copies the current state of the store at `store` into the folder `dir`, next to earlier backups
/// of the same store. Files that an earlier backup already has are compared with their hashes, and
/// copied again only if they are damaged, which also repairs the earlier backups. A writer may
/// continue concurrently: the generation is pinned, and later commits are not in the backup. All
/// bytes are compared with the manifest's hashes while they are copied. A crash leaves the earlier
/// backups unchanged.
/// Errors: kNotFound, no store; kAlreadyExists, `dir` is something else; kInvalidArgument, it
/// contains backups of another store, or is inside a store or other backups; kCorruption, a file of
/// the store is damaged; kBusy, another backup or restore is running in `dir`; kOutOfSpace;
/// kInterrupted.
Result<BackupReport> BackupStore(FileSystem& fs, const Path& store, const Path& dir,
                                 const BackupOptions& options, const JobControl& control);

/// Reads all files of the backups in `dir` and compares them with their records. Each damage names
/// the backups that need the file; orphans are leftovers of killed runs. Errors: kNotFound, no
/// backups; kUnsupported, a newer format; kBusy, a backup is being made; kInterrupted;
/// kOutOfMemory.
Result<VerifyReport> VerifyBackups(FileSystem& fs, const Path& dir, const JobControl& control);

/// Lists the backups in `dir` whose records are intact, oldest first. Errors: kNotFound, `dir` is
/// not a folder of backups; kCorruption, BACKUP is damaged.
Result<std::vector<BackupInfo>> ListBackups(FileSystem& fs, const Path& dir);

struct RestoreReport {
  BackupInfo backup;
  double seconds = 0;
};

/// Creates a store at `store` from backup `number` in `dir` (absent: the newest). The written files
/// are read back and compared before they are committed; until then there is no store. Errors:
/// kNotFound, no such backup; kAlreadyExists, `store` is not absent, empty or the leftover of a
/// killed restore; kCorruption, the backup is damaged (the message names the file);
/// kInvalidArgument, `store` is inside a store or backups; kBusy; kOutOfSpace; kInterrupted. After
/// an error nothing is left at `store`.
Result<RestoreReport> RestoreStore(FileSystem& fs, const Path& dir, const Path& store,
                                   std::optional<std::uint64_t> number, const JobControl& control);

}  // namespace rhizome
