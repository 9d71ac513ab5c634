#pragma once

#include <string_view>

namespace rhizome {
inline namespace internal {

// Names at the top level of a store (storage/FORMAT.md, "Store directory and commit protocol").
inline constexpr std::string_view kFormatName = "FORMAT";
inline constexpr std::string_view kLockName = "LOCK";
inline constexpr std::string_view kCatalogName = "catalog";
inline constexpr std::string_view kGenerationsName = "generations";
inline constexpr std::string_view kScratchName = "scratch";

// Names at the top level of a folder of backups.
inline constexpr std::string_view kBackupName = "BACKUP";
inline constexpr std::string_view kBackupFilesName = "files";
inline constexpr std::string_view kBackupDeltasName = "deltas";
inline constexpr std::string_view kBackupRecordsName = "backups";

/// Return whether the name of a folder, or of a file, is one that stores never use. Operating
/// systems, file servers and editors leave such files in any folder: .DS_Store, .nfs000001,
/// lost+found, Thumbs.db, FORMAT~. They are not damage, and the engine never removes them
/// individually. An array may be called Thumbs.db, so a folder of that name is ours, as is every
/// file that a manifest names.
inline bool IsForeignFolder(std::string_view name) {
  constexpr std::string_view kOurs =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-@";
  return name.starts_with('.') || name.starts_with('@') ||
         name.find_first_not_of(kOurs) != name.npos;
}
inline bool IsForeignFile(std::string_view name) {
  return IsForeignFolder(name) || name.ends_with(".bak") || name.ends_with(".orig") ||
         name == "Thumbs.db" || name == "ehthumbs.db" || name == "desktop.ini" ||
         name == "Desktop.ini";
}

/// Returns whether a file below a folder of the store is foreign, or in a foreign folder.
inline bool IsForeignPath(std::string_view relative) {
  for (std::size_t slash = relative.find('/'); slash != relative.npos; slash = relative.find('/')) {
    if (IsForeignFolder(relative.substr(0, slash))) return true;
    relative.remove_prefix(slash + 1);
  }
  return IsForeignFile(relative);
}

}  // namespace internal
}  // namespace rhizome
