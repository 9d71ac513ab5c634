#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rhizome/storage/export.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/verify.h"

namespace RHIZOME_API rhizome {

/// One copy of a store in a folder of backups (storage/FORMAT.md, "Backups").
struct BackupInfo {
  std::uint64_t number = 0;       ///< counts from 1
  std::int64_t unix_seconds = 0;  ///< when it was made
  std::uint64_t generation = 0;
  std::uint64_t manifest_version = 0;
  std::uint64_t sequence = 0;  ///< the last commit that it holds
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;  ///< of its files and of the delta
  std::uint64_t delta_entries = 0;
};

struct BackupOptions {
  std::uint64_t keep = 0;  ///< afterwards remove backups but the newest so many; 0: none

  /// Believe files of earlier backups that have the right length; else they are read and compared.
  bool trust = false;
};

struct BackupReport {
  BackupInfo backup;
  std::uint64_t files_copied = 0;
  std::uint64_t bytes_copied = 0;
  std::uint64_t files_shared = 0;  ///< were in an earlier backup already
  std::uint64_t bytes_shared = 0;
  std::vector<std::string> mended;     ///< files of earlier backups that were damaged or missing
  std::vector<std::uint64_t> removed;  ///< numbers of older backups
  double seconds = 0;
};

/// Copies the store at `store` as it is now into the folder `dir`, beside earlier backups of it;
/// files that one of those holds already are compared with their hashes, and copied again only if
/// they are damaged, which mends the earlier backups, too. A writer may go on meanwhile: the
/// generation is pinned, and what is committed later is not in the backup. Every byte is compared
/// with the manifest's hashes on its way. A crash leaves the earlier backups as they were.
/// Errors: kNotFound, no store; kAlreadyExists, `dir` is something else; kInvalidArgument, it holds
/// backups of another store, or lies in a store or in other backups; kCorruption, a file of the
/// store is damaged; kBusy, another backup or restore works in `dir`; kOutOfSpace; kInterrupted.
Result<BackupReport> BackupStore(FileSystem& fs, const Path& store, const Path& dir,
                                 const BackupOptions& options, const JobControl& control);

/// Reads all that the backups in `dir` hold and compares it with their records. Damage names the
/// backups that it spoils; orphans are what killed runs left. Errors: kNotFound, no backups; kBusy,
/// a backup is being made; kInterrupted; kOutOfMemory.
Result<VerifyReport> VerifyBackups(FileSystem& fs, const Path& dir, const JobControl& control);

/// The backups in `dir` whose records are whole, oldest first. Errors: kNotFound, none;
/// kCorruption, BACKUP is damaged.
Result<std::vector<BackupInfo>> ListBackups(FileSystem& fs, const Path& dir);

struct RestoreReport {
  BackupInfo backup;
  double seconds = 0;
};

/// Makes a store at `store` from backup `number` in `dir` (absent: the newest). What was written is
/// read back and compared before it is committed; until then there is no store.
/// Errors: kNotFound, no such backup; kAlreadyExists, `store` is not absent, empty, or what a
/// killed restore left; kCorruption, the backup is damaged (the file is named); kInvalidArgument,
/// `store` lies in a store or in backups; kBusy; kOutOfSpace; kInterrupted. Then nothing is left.
Result<RestoreReport> RestoreStore(FileSystem& fs, const Path& dir, const Path& store,
                                   std::optional<std::uint64_t> number, const JobControl& control);

}  // namespace rhizome
