#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rhizome/backup.h"
#include "rhizome/manifest.h"
#include "rhizome/types.h"
#include "storage/base/hash.h"
#include "storage/io/place_names.h"

namespace rhizome {
inline namespace internal {

/// The record of one backup: backups/NNNNNN (storage/FORMAT.md, "Backups").
struct BackupRecord {
  std::uint64_t number = 0;
  std::int64_t unix_seconds = 0;
  std::uint64_t sequence = 0;
  std::uint64_t base_sequence = 0;
  HistoryState base_state = {};  ///< after commit base_sequence; unknown in version 1
  std::uint64_t last_delta = 0;  ///< last commit of the delta, or base_sequence
  HistoryState state = {};       ///< after commit last_delta
  std::uint64_t delta_entries = 0;
  FileEntry delta = {};  ///< the file deltas/NNNNNN; its path is not stored
  Manifest manifest = {};
};

std::vector<std::byte> EncodeBackupRecord(const BackupRecord& record, const StoreId& store_id);

/// Parses a record; accesses no file. Errors: kCorruption; kUnsupported, a newer format.
Result<BackupRecord> DecodeBackupRecord(std::span<const std::byte> bytes, const StoreId& store_id);

/// Appends an entry of the delta in the format of deltas/NNNNNN: uint32 length of the key, key,
/// uint32 length of the value, value.
void AppendDeltaEntry(std::vector<std::byte>& out, std::string_view key, std::string_view value);

/// Max length of a key or value that a reader accepts, so that a bad length uses no memory.
inline constexpr std::uint32_t kMaxDeltaEntryBytes = std::uint32_t{1} << 30;

/// Returns the path of the file with this content, "files/ab/ab…".
std::string BackupFilePath(const Hash128& xxh3);

/// Create and parse the content of BACKUP.
std::string BackupText(const StoreId& id);
Result<StoreId> ParseBackupText(std::string_view text);

}  // namespace internal
}  // namespace rhizome
