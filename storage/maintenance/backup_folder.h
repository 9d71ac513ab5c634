#pragma once

#include <cstdint>
#include <vector>

#include "rhizome/file_system.h"
#include "rhizome/status.h"
#include "rhizome/types.h"
#include "storage/maintenance/backup_format.h"

namespace rhizome {
inline namespace internal {

/// Reads the id of the store whose backups are in `dir`. Errors: kNotFound, BACKUP is missing;
/// kCorruption; kUnsupported.
Result<StoreId> ReadBackupId(FileSystem& fs, const Path& dir);

/// Lists the numbers of the backups in `dir`, ascending, including backups with damaged records.
Result<std::vector<std::uint64_t>> ListBackupNumbers(FileSystem& fs, const Path& dir);

/// Reads the record of a backup. Errors: kNotFound; kCorruption; kUnsupported.
Result<BackupRecord> ReadBackupRecord(FileSystem& fs, const Path& dir, std::uint64_t number,
                                      const StoreId& id);

Path BackupRecordPath(const Path& dir, std::uint64_t number);
Path BackupDeltaPath(const Path& dir, std::uint64_t number);

}  // namespace internal
}  // namespace rhizome
