#include "storage/maintenance/backup_folder.h"

#include <fmt/format.h>

#include <algorithm>

#include "storage/io/files.h"
#include "storage/store/store_files.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::uint64_t kMaxRecordBytes = kMaxManifestBytes + 4096;
constexpr std::uint64_t kMaxBackupHeadBytes = 4096;

}  // namespace

Result<std::vector<std::uint64_t>> ListBackupNumbers(FileSystem& fs, const Path& dir) {
  std::vector<std::uint64_t> numbers;
  const auto entries = fs.List(dir / kBackupRecordsName);
  if (!entries && entries.error().code() == StatusCode::kNotFound) return numbers;
  if (!entries) return Fail(entries.error());
  for (const DirectoryEntry& entry : *entries)
    if (const auto number = ParseNumbered(entry.name, "")) numbers.push_back(*number);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

Path BackupRecordPath(const Path& dir, std::uint64_t number) {
  return dir / kBackupRecordsName / GenerationName(number);
}
Path BackupDeltaPath(const Path& dir, std::uint64_t number) {
  return dir / kBackupDeltasName / GenerationName(number);
}

Result<BackupRecord> ReadBackupRecord(FileSystem& fs, const Path& dir, std::uint64_t number,
                                      const StoreId& id) {
  const Path path = BackupRecordPath(dir, number);
  RHIZOME_ASSIGN_OR_RETURN(const auto bytes, ReadWholeFile(fs, path, kMaxRecordBytes));
  auto record = DecodeBackupRecord(bytes, id);
  if (!record) return Fail(record.error().WithContext(path.string()));
  if (record->number != number)
    return Fail(
        Status::Corruption(fmt::format("'{}': has the number of another backup", path.string())));
  record->delta.path = fmt::format("{}/{}", kBackupDeltasName, GenerationName(number));
  return record;
}

Result<StoreId> ReadBackupId(FileSystem& fs, const Path& dir) {
  const auto bytes = ReadWholeFile(fs, dir / kBackupName, kMaxBackupHeadBytes);
  if (!bytes && bytes.error().code() == StatusCode::kNotFound)
    return Fail(Status::NotFound(fmt::format("'{}' is not a folder of backups: it has no file {}",
                                             dir.string(), kBackupName)));
  if (!bytes) return Fail(bytes.error());
  auto id = ParseBackupText({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
  if (!id) return Fail(id.error().WithContext((dir / kBackupName).string()));
  return id;
}

}  // namespace internal
}  // namespace rhizome
