#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rhizome/backup.h"
#include "storage/base/damage.h"
#include "storage/base/exceptions.h"
#include "storage/base/little_endian.h"
#include "storage/io/file_scan.h"
#include "storage/io/files.h"
#include "storage/io/walk_files.h"
#include "storage/maintenance/backup_folder.h"
#include "storage/store/caller_path.h"
#include "storage/store/store_files.h"

namespace rhizome {
namespace {

using Kind = DirectoryEntry::Kind;

/// One run of VerifyBackups, which continues after damage:
///   1. takes the folder's lock, and reads BACKUP;
///   2. checks the top-level entries (CheckTop), and reads the records (ReadRecords), which
///      determine which backup needs which file;
///   3. reads every needed file and compares its hashes (Scan);
///   4. finds files that no backup needs, and entries that are neither files nor folders
///      (FindUnnamed, FindSpecial).
/// Threads: one.
class BackupVerifier {
 public:
  BackupVerifier(FileSystem& fs, const Path& dir, const JobControl& control)
      : fs_(fs), dir_(dir), control_(control) {}
  Result<VerifyReport> Run();

 private:
  /// A file and the numbers of the backups that need it.
  struct Needed {
    FileEntry entry;
    std::set<std::uint64_t> by;
  };

  void Note(const std::string& file, const Status& status) {
    if (ProvesDamage(status))
      report_.damaged.push_back({file, 0, status.message()});
    else
      report_.unread.push_back({file, status});
  }
  void CheckTop(const std::vector<DirectoryEntry>& entries);
  Status ReadRecords(const StoreId& id);
  void NoteRecord(std::uint64_t number, const Status& status);
  bool IsTorn(const Path& record) const;
  void Need(const std::string& path, const FileEntry& entry, std::uint64_t by);
  Status Scan();
  Status FindUnnamed();
  void FindSpecial(const std::vector<DirectoryEntry>& entries);

  FileSystem& fs_;
  const Path dir_;
  const JobControl& control_;
  VerifyReport report_;
  std::map<std::string, Needed> needed_;  // by path below dir_
  bool records_sound_ = true;
};

void BackupVerifier::CheckTop(const std::vector<DirectoryEntry>& entries) {
  const std::map<std::string_view, Kind> ours = {{kLockName, Kind::kFile},
                                                 {kBackupName, Kind::kFile},
                                                 {kBackupFilesName, Kind::kDirectory},
                                                 {kBackupDeltasName, Kind::kDirectory},
                                                 {kBackupRecordsName, Kind::kDirectory}};
  for (const DirectoryEntry& entry : entries) {
    if (IsForeignEntry(entry)) {
      report_.strangers.push_back(entry.name);
      continue;
    }
    const auto at = ours.find(entry.name);
    if (at == ours.end()) report_.damaged.push_back({entry.name, 0, "not part of the backups"});
    if (at != ours.end() && at->second != entry.kind)
      report_.damaged.push_back({entry.name, 0, "has the wrong kind"});
  }
}

void BackupVerifier::Need(const std::string& path, const FileEntry& entry, std::uint64_t by) {
  const auto [at, added] = needed_.try_emplace(path, Needed{entry, {}});
  at->second.by.insert(by);
  if (!added &&
      (at->second.entry.size_bytes != entry.size_bytes || at->second.entry.crc32c != entry.crc32c))
    report_.damaged.push_back({path, 0, "two backups record different lengths or hashes of it"});
}

/// Returns whether this record is truncated, as a power cut may leave it. The length of its
/// manifest, which is stored in it twice, determines its expected length.
bool BackupVerifier::IsTorn(const Path& record) const {
  constexpr std::size_t kHeadBytes = 108;  // storage/FORMAT.md, "Backups"
  constexpr std::size_t kLengthAt = 100;
  constexpr std::size_t kOwnLengthAt = kHeadBytes + 32;
  const auto bytes = ReadWholeFile(fs_, record, kMaxManifestBytes + 4096);
  if (!bytes) return false;
  if (bytes->size() < kOwnLengthAt + sizeof(std::uint64_t)) return true;
  const auto length = LoadLittle<std::uint64_t>(bytes->data() + kLengthAt);
  const auto own = LoadLittle<std::uint64_t>(bytes->data() + kOwnLengthAt);
  return length == own && bytes->size() < kHeadBytes + length + sizeof(std::uint32_t);
}

void BackupVerifier::NoteRecord(std::uint64_t number, const Status& status) {
  records_sound_ = false;
  const Path path = BackupRecordPath(dir_, number);
  const std::string name = path.lexically_relative(dir_).generic_string();
  if (ProvesDamage(status) && IsTorn(path))
    report_.orphans.push_back(name);
  else
    Note(name, status);
}

Status BackupVerifier::ReadRecords(const StoreId& id) {
  RHIZOME_ASSIGN_OR_RETURN(const auto numbers, ListBackupNumbers(fs_, dir_));
  for (const std::uint64_t number : numbers) {
    ++report_.files;
    const auto record = ReadBackupRecord(fs_, dir_, number, id);
    if (!record) {
      NoteRecord(number, record.error());
      continue;
    }
    for (const FileEntry& file : record->manifest.files)
      Need(BackupFilePath(file.xxh3), file, number);
    Need(record->delta.path, record->delta, number);
  }
  return Status::Ok();
}

Status BackupVerifier::Scan() {
  std::vector<ScanFile> files;
  for (const auto& [path, needed] : needed_)
    files.push_back({dir_ / path, needed.entry.size_bytes});
  RHIZOME_ASSIGN_OR_RETURN(const auto outcomes, ScanFiles(fs_, files, {}, control_));
  auto outcome = outcomes.begin();
  for (const auto& [path, needed] : needed_) {
    const ScanOutcome& one = *outcome++;
    ++report_.files;
    const std::string spoils =
        fmt::format("; backups that need it: {}", fmt::join(needed.by, ", "));
    const auto info = fs_.Stat(dir_ / path);
    const bool other_kind = info && info->kind != Kind::kFile;
    if (one.status.code() == StatusCode::kNotFound) {
      report_.damaged.push_back({path, 0, "missing" + spoils});
    } else if (!one.status.ok() && !ProvesDamage(one.status) && !other_kind) {
      report_.unread.push_back({path, one.status});
    } else if (!one.status.ok()) {
      report_.damaged.push_back({path, one.offset_bytes, one.status.message() + spoils});
    } else {
      report_.bytes += needed.entry.size_bytes;
      if (one.xxh3 != needed.entry.xxh3 || one.crc32c != needed.entry.crc32c)
        report_.damaged.push_back(
            {path, 0, "its bytes do not have the hash in the backup's record" + spoils});
    }
  }
  return Status::Ok();
}

/// Finds files that no backup names. They can be determined only if every record is readable.
Status BackupVerifier::FindUnnamed() {
  if (!records_sound_) return Status::Ok();
  for (const std::string_view folder : {kBackupFilesName, kBackupDeltasName}) {
    const auto visit = [&](const std::string& relative, Kind kind) {
      std::string path = fmt::format("{}/{}", folder, relative);
      if (kind != Kind::kFile || needed_.contains(path)) return Status::Ok();
      const bool foreign = IsForeignPath(relative);
      (foreign ? report_.strangers : report_.orphans).push_back(std::move(path));
      return Status::Ok();
    };
    const Status walked = WalkFiles(fs_, dir_ / folder, visit);
    if (!walked.ok()) Note(std::string(folder), walked);
  }
  return Status::Ok();
}

/// Finds entries that are neither files nor folders, except in place of needed files, which Scan
/// has reported. They are damage, because the next backup refuses them.
void BackupVerifier::FindSpecial(const std::vector<DirectoryEntry>& entries) {
  for (const DirectoryEntry& entry : entries) {
    if (entry.kind != Kind::kDirectory) continue;  // already checked by CheckTop
    const auto visit = [&](const std::string& relative, Kind kind) {
      std::string path = fmt::format("{}/{}", entry.name, relative);
      if (kind == Kind::kOther && !needed_.contains(path))
        report_.damaged.push_back({std::move(path), 0, "neither a file nor a folder"});
      return Status::Ok();
    };
    const Status walked = WalkFiles(fs_, dir_ / entry.name, visit);
    if (!walked.ok()) Note(entry.name, walked);
  }
}

Result<VerifyReport> BackupVerifier::Run() {
  RHIZOME_ASSIGN_OR_RETURN(const auto entries, fs_.List(dir_));
  // This lock prevents backups from removing files during the verification. It is not needed in a
  // folder that is not writable.
  const auto lock = fs_.Lock(dir_ / kLockName, FileSystem::LockMode::kShared, "");
  if (!lock && lock.error().code() == StatusCode::kBusy) return Fail(lock.error());
  const auto id = ReadBackupId(fs_, dir_);
  ++report_.files;
  if (!id && id.error().code() == StatusCode::kUnsupported) return Fail(id.error());
  if (!id) {
    const auto numbers = ListBackupNumbers(fs_, dir_);
    if (id.error().code() == StatusCode::kNotFound && (!numbers || numbers->empty()))
      return Fail(id.error());
    Note(std::string(kBackupName), id.error());
    return std::move(report_);
  }
  CheckTop(entries);
  RHIZOME_RETURN_IF_ERROR(ReadRecords(*id));
  RHIZOME_RETURN_IF_ERROR(Scan());
  RHIZOME_RETURN_IF_ERROR(FindUnnamed());
  FindSpecial(entries);
  return std::move(report_);
}

}  // namespace

Result<VerifyReport> VerifyBackups(FileSystem& fs, const Path& dir, const JobControl& control) try {
  return WithAbsolute(fs, dir, [&](const Path& folder) {
    const auto enclosed = fs.Enclose(folder);
    return BackupVerifier(fs, folder, control).Run();
  });
} catch (...) {
  return Fail(StatusOfException());
}

}  // namespace rhizome
