#pragma once

#include <string_view>

namespace rhizome::inline internal {

// Names at the top of a store (storage/FORMAT.md, "Store directory and commit protocol").
inline constexpr std::string_view kFormatName = "FORMAT";
inline constexpr std::string_view kLockName = "LOCK";
inline constexpr std::string_view kCatalogName = "catalog";
inline constexpr std::string_view kGenerationsName = "generations";
inline constexpr std::string_view kScratchName = "scratch";

// Names in a folder of backups.
inline constexpr std::string_view kBackupName = "BACKUP";
inline constexpr std::string_view kBackupFilesName = "files";
inline constexpr std::string_view kBackupDeltasName = "deltas";
inline constexpr std::string_view kBackupRecordsName = "backups";

}  // namespace rhizome::inline internal
