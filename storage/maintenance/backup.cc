#include "rhizome/backup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <map>
#include <optional>
#include <set>

#include "storage/array/array_rules.h"
#include "storage/array/file_copy.h"
#include "storage/base/damage.h"
#include "storage/base/exceptions.h"
#include "storage/base/mutant.h"
#include "storage/base/stopwatch.h"
#include "storage/catalog/catalog.h"
#include "storage/catalog/catalog_key.h"
#include "storage/io/file_scan.h"
#include "storage/io/files.h"
#include "storage/io/job_folder.h"
#include "storage/io/outside.h"
#include "storage/io/stored_file.h"
#include "storage/io/walk_files.h"
#include "storage/maintenance/backup_folder.h"
#include "storage/maintenance/backup_format.h"
#include "storage/store/caller_path.h"
#include "storage/store/diverged_states.h"
#include "storage/store/store_copy.h"
#include "storage/store/store_files.h"

namespace rhizome {

namespace {

using Kind = DirectoryEntry::Kind;
using LockMode = FileSystem::LockMode;

constexpr std::size_t kPieceBytes = std::size_t{4} << 20;  // one read while files are copied

/// Reports the bytes that were copied or read back. Add fails if the job was cancelled.
struct Progress {
  const JobControl& control;
  std::string_view phase;
  std::uint64_t done = 0;
  std::uint64_t total = 0;
  Status Add(std::uint64_t bytes, const std::string& detail) {
    done += bytes;
    return control.Report({.phase = phase, .done = done, .total = total, .detail = detail});
  }
};

/// Reads a file piece by piece and passes the pieces to `take`. Fails if length or hashes do not
/// match `entry`.
Status ReadChecked(FileSystem& fs, const Path& path, const FileEntry& entry, Progress& progress,
                   const std::function<Status(std::span<const std::byte>)>& take) {
  RHIZOME_ASSIGN_OR_RETURN(const auto file, OpenStored(fs, path));
  if (file->size_bytes() != entry.size_bytes) {
    return Status::Corruption(fmt::format("'{}' has {} bytes instead of {}", path.string(),
                                          file->size_bytes(), entry.size_bytes));
  }
  std::vector<std::byte> memory(std::min<std::uint64_t>(kPieceBytes, entry.size_bytes));
  StreamHash hash;
  for (std::uint64_t done = 0; done < entry.size_bytes;) {
    const auto piece =
        std::span(memory).first(std::min<std::uint64_t>(memory.size(), entry.size_bytes - done));
    RHIZOME_RETURN_IF_ERROR(ReadExactly(*file, done, piece));
    hash.Update(piece);
    RHIZOME_RETURN_IF_ERROR(take(piece));
    done += piece.size();
    RHIZOME_RETURN_IF_ERROR(progress.Add(piece.size(), entry.path));
  }
  if (hash.xxh3() == entry.xxh3 && hash.crc32c() == entry.crc32c) return Status::Ok();
  return Status::Corruption(fmt::format("'{}' is damaged: its hash differs", path.string()));
}

/// Copies a file and compares it with its entry. If this fails, it removes the copy.
Status CopyChecked(FileSystem& fs, const Path& from, const Path& to, const FileEntry& entry,
                   Progress& progress) {
  RHIZOME_ASSIGN_OR_RETURN(const auto target, fs.CreateFile(to));
  Status status = ReadChecked(fs, from, entry, progress, [&](std::span<const std::byte> piece) {
    return target->Append(piece);
  });
  if (status.ok()) status = target->Sync();
  const Status closed = target->Close();
  if (status.ok()) status = closed;
  if (!status.ok()) static_cast<void>(fs.RemoveFile(to));
  return status;
}

BackupInfo InfoOf(const BackupRecord& record) {
  BackupInfo info{.number = record.number,
                  .unix_seconds = record.unix_seconds,
                  .generation = record.manifest.generation,
                  .manifest_version = record.manifest.version,
                  .sequence = record.sequence,
                  .files = record.manifest.files.size(),
                  .bytes = record.delta.size_bytes,
                  .delta_entries = record.delta_entries};
  for (const FileEntry& file : record.manifest.files) info.bytes += file.size_bytes;
  return info;
}

/// One run of BackupStore:
///   1. opens the store for reading, which pins its generation, and takes the lock of the folder of
///      backups, creating the folder if needed (OpenFolder);
///   2. reads the records of earlier backups (ReadRecords);
///   3. finds the files that earlier backups contain intact (CheckShared), and copies all
///      others (CopyFiles) and the delta (CopyDelta); all hashes are verified;
///   4. syncs the folders, then writes the record: from then on the backup exists (Seal);
///   5. removes older backups, and files that no record names (Remove).
///
/// A file below files/ that an intact record names was synced before the record was written. It is
/// compared with its hash before it is shared. Any other file comes from a run that was killed, and
/// is replaced.
/// Threads: one.
class Backup {
 public:
  Backup(FileSystem& fs, const Path& dir, const BackupOptions& options, const JobControl& control)
      : fs_(fs), dir_(dir), options_(options), control_(control) {}
  Result<BackupReport> Run(const Path& store_path);

 private:
  Status OpenFolder(const StoreId& id);
  Status CheckFolder();
  Status ReadRecords();
  Status CheckHistory() const;
  Status CheckShared();
  Status CopyFiles();
  Status CopyFile(const FileEntry& file);
  Status ReplaceFile(const Path& from, const Path& to, const FileEntry& file, Progress& progress);
  Status CopyDelta();
  Status Seal();
  Status Remove(std::uint64_t keep);
  Status RemoveUnnamed();

  FileSystem& fs_;
  const Path dir_;
  const BackupOptions options_;
  const JobControl& control_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<FileLock> lock_;
  std::vector<std::uint64_t> numbers_;
  std::map<std::uint64_t, BackupRecord> records_;
  std::set<Hash128> named_;  // files that intact records name
  std::set<Hash128> whole_;  // files among named_ that are intact, and copied files
  std::set<Path> touched_;   // folders with new names
  BackupRecord next_;
  BackupReport report_;
};

Status Backup::CheckFolder() {
  const auto taken = [&](std::string_view what) {
    return Status::AlreadyExists(
        fmt::format("'{}' {}: choose another folder for backups", dir_.string(), what));
  };
  const auto info = fs_.Stat(dir_);
  if (!info) return info.error().code() == StatusCode::kNotFound ? Status::Ok() : info.error();
  if (info->kind == Kind::kFile) return taken("is not a folder");
  RHIZOME_ASSIGN_OR_RETURN(const auto entries, fs_.List(dir_));  // dir_ may be a link to a folder
  const std::set<std::string_view> ours = {kLockName, kBackupName, kBackupFilesName,
                                           kBackupDeltasName, kBackupRecordsName};
  bool marked = true;  // whether a file of ours is there, or only foreign files
  for (const DirectoryEntry& entry : entries) marked = marked && IsForeignEntry(entry);
  for (const DirectoryEntry& entry : entries) {
    if (IsForeignEntry(entry)) continue;
    if (!ours.contains(entry.name)) return taken("holds '" + entry.name + "'");
    marked = marked || entry.name == kBackupName || entry.name == kLockName;
  }
  return marked ? Status::Ok() : taken("is not a folder of backups");
}

Status Backup::OpenFolder(const StoreId& id) {
  RHIZOME_RETURN_IF_ERROR(CheckFolder());
  const std::vector<Path> missing = MissingFolders(fs_, dir_);
  RHIZOME_RETURN_IF_ERROR(CreateDirectories(fs_, dir_));
  RHIZOME_RETURN_IF_ERROR(CheckPlain(fs_, dir_));
  auto lock = fs_.Lock(dir_ / kLockName, LockMode::kExclusive, LockContent());
  if (!lock) {  // a full disk
    RemoveEmptyFolders(fs_, missing);
    return lock.error();
  }
  lock_ = *std::move(lock);
  RHIZOME_ASSIGN_OR_RETURN(numbers_, ListBackupNumbers(fs_, dir_));
  auto found = ReadBackupId(fs_, dir_);
  const bool torn = !found && found.error().code() == StatusCode::kCorruption && numbers_.empty();
  if (torn) RHIZOME_RETURN_IF_ERROR(fs_.RemoveFile(dir_ / kBackupName));
  if (torn || (!found && found.error().code() == StatusCode::kNotFound && numbers_.empty())) {
    const std::string text = BackupText(id);
    RHIZOME_RETURN_IF_ERROR(
        WriteWholeFile(fs_, dir_ / kBackupName, std::as_bytes(std::span(text))));
    found = id;
  }
  if (!found) return found.error();
  if (*found != id)
    return Status::InvalidArgument(
        fmt::format("'{}' holds backups of store {}, not of {}; choose another folder",
                    dir_.string(), found->ToString(), id.ToString()));
  for (const std::string_view name : {kBackupFilesName, kBackupDeltasName, kBackupRecordsName})
    RHIZOME_RETURN_IF_ERROR(CreateDirectories(fs_, dir_ / name));
  return fs_.SyncDirectory(dir_);
}

// A record that cannot be read is the leftover of a killed run, or damaged. Its number is not
// reused, and files that it may name are kept.
Status Backup::ReadRecords() {
  for (const std::uint64_t number : numbers_) {
    auto record = ReadBackupRecord(fs_, dir_, number, store_->id());
    if (!record && record.error().code() == StatusCode::kCorruption) continue;
    if (!record) return record.error();
    for (const FileEntry& file : record->manifest.files) named_.insert(file.xxh3);
    records_.emplace(number, *std::move(record));
  }
  return Status::Ok();
}

/// Checks that the store continues the newest backup, since a folder contains the backups of one
/// store over time, and not of copies that have diverged. Unknown states are not compared.
Status Backup::CheckHistory() const {
  if (records_.empty()) return Status::Ok();
  const BackupRecord& newest = records_.rbegin()->second;
  if (!newest.state.known()) return Status::Ok();
  RHIZOME_ASSIGN_OR_RETURN(const HistoryState had, store_->StateAt(newest.last_delta));
  StateId ours{.commits = had.commits};
  StateId theirs{.commits = newest.state.commits};
  if (newest.manifest.generation == next_.manifest.generation) {
    ours.files = HashOfGraph(next_.manifest);
    theirs.files = HashOfGraph(newest.manifest);
  }
  if (!had.known() || ours == theirs) return Status::Ok();
  return DivergedStates(fmt::format("'{}'", store_->path().string()), ours,
                        fmt::format("backup {} in '{}'", newest.number, dir_.string()), theirs,
                        "choose another folder for its backups");
}

/// Replaces a file of a killed run, or of a backup whose record currently cannot be read. The old
/// file is removed only when the new one is complete.
Status Backup::ReplaceFile(const Path& from, const Path& to, const FileEntry& file,
                           Progress& progress) {
  const Path aside = to.string() + ".new";
  if (fs_.Stat(aside)) RHIZOME_RETURN_IF_ERROR(fs_.RemoveFile(aside));
  RHIZOME_RETURN_IF_ERROR(CopyChecked(fs_, from, aside, file, progress));
  RHIZOME_RETURN_IF_ERROR(fs_.RemoveFile(to));
  RHIZOME_RETURN_IF_ERROR(LinkOrCopyFile(fs_, aside, to, file.size_bytes));
  return fs_.RemoveFile(aside);
}

Status Backup::CopyFile(const FileEntry& file) {
  const Path target = dir_ / BackupFilePath(file.xxh3);
  if (whole_.contains(file.xxh3)) {
    ++report_.files_shared;
    report_.bytes_shared += file.size_bytes;
    return Status::Ok();
  }
  RHIZOME_RETURN_IF_ERROR(CreateDirectories(fs_, target.parent_path()));
  Progress progress{control_, "copy files", report_.bytes_copied + report_.bytes_shared,
                    InfoOf(next_).bytes};
  const Path from = store_->GenerationFolder() / file.path;
  if (fs_.Stat(target))
    RHIZOME_RETURN_IF_ERROR(ReplaceFile(from, target, file, progress));
  else
    RHIZOME_RETURN_IF_ERROR(CopyChecked(fs_, from, target, file, progress));
  if (named_.contains(file.xxh3)) report_.mended.push_back(BackupFilePath(file.xxh3));
  touched_.insert(target.parent_path());
  whole_.insert(file.xxh3);
  ++report_.files_copied;
  report_.bytes_copied += file.size_bytes;
  return Status::Ok();
}

/// Finds the store's files that earlier backups contain intact, and adds them to whole_.
Status Backup::CheckShared() {
  std::vector<ScanFile> files;
  std::vector<const FileEntry*> entries;
  std::set<Hash128> seen;
  for (const FileEntry& file : next_.manifest.files) {
    if (!named_.contains(file.xxh3) || !seen.insert(file.xxh3).second) continue;
    const Path path = dir_ / BackupFilePath(file.xxh3);
    const auto info = fs_.Stat(path);
    if (!info && !ProvesDamage(info.error())) return info.error();
    if (!info || info->kind != Kind::kFile || info->size_bytes != file.size_bytes) continue;
    if (options_.trust || RHIZOME_MUTANT("shared files are not read")) whole_.insert(file.xxh3);
    entries.push_back(&file);
    files.push_back({path, file.size_bytes});
  }
  if (options_.trust || RHIZOME_MUTANT("shared files are not read")) return Status::Ok();
  RHIZOME_ASSIGN_OR_RETURN(const auto outcomes, ScanFiles(fs_, files, {}, control_));
  for (std::size_t i = 0; i < files.size(); ++i) {
    const ScanOutcome& outcome = outcomes[i];
    if (!outcome.status.ok() && !ProvesDamage(outcome.status)) return outcome.status;
    const FileEntry& file = *entries[i];
    if (outcome.status.ok() && outcome.xxh3 == file.xxh3 && outcome.crc32c == file.crc32c)
      whole_.insert(file.xxh3);
  }
  return Status::Ok();
}

Status Backup::CopyFiles() {
  std::uint64_t needed = 0;
  for (const FileEntry& file : next_.manifest.files)
    if (!whole_.contains(file.xxh3)) needed += file.size_bytes;
  RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t free, fs_.FreeBytes(dir_));
  if (needed > free)
    return Status::OutOfSpace(fmt::format(
        "the backup needs {} bytes in '{}', which has {} bytes free", needed, dir_.string(), free));
  for (const FileEntry& file : next_.manifest.files) RHIZOME_RETURN_IF_ERROR(CopyFile(file));
  return Status::Ok();
}

Status Backup::CopyDelta() {
  const Path path = BackupDeltaPath(dir_, next_.number);
  if (fs_.Stat(path)) RHIZOME_RETURN_IF_ERROR(fs_.RemoveFile(path));  // left by a killed run
  RHIZOME_ASSIGN_OR_RETURN(const auto file, fs_.CreateFile(path));
  StreamHash hash;
  std::vector<std::byte> piece;
  const auto put = [&]() -> Status {
    hash.Update(piece);
    RHIZOME_RETURN_IF_ERROR(file->Append(piece));
    piece.clear();
    return control_.Report({.phase = "copy delta", .done = file->size_bytes()});
  };
  RHIZOME_RETURN_IF_ERROR(
      StoreCopy::ScanDelta(*store_, [&](std::string_view key, std::string_view value) -> Status {
        AppendDeltaEntry(piece, key, value);
        ++next_.delta_entries;
        next_.last_delta = CommitOfDeltaKey(key);
        return piece.size() < kPieceBytes ? Status::Ok() : put();
      }));
  RHIZOME_RETURN_IF_ERROR(put());
  RHIZOME_RETURN_IF_ERROR(file->Sync());
  next_.delta = {path.filename().string(), file->size_bytes(), hash.xxh3(), hash.crc32c()};
  next_.last_delta = std::max(next_.last_delta, next_.base_sequence);
  RHIZOME_ASSIGN_OR_RETURN(next_.state, store_->StateAt(next_.last_delta));
  report_.bytes_copied += file->size_bytes();
  return file->Close();
}

/// Creates the backup: writes its record after everything that it names is durable.
Status Backup::Seal() {
  for (const Path& folder : touched_) RHIZOME_RETURN_IF_ERROR(fs_.SyncDirectory(folder));
  RHIZOME_RETURN_IF_ERROR(fs_.SyncDirectory(dir_ / kBackupFilesName));
  RHIZOME_RETURN_IF_ERROR(fs_.SyncDirectory(dir_ / kBackupDeltasName));
  RHIZOME_RETURN_IF_ERROR(WriteWholeFile(fs_, BackupRecordPath(dir_, next_.number),
                                         EncodeBackupRecord(next_, store_->id())));
  RHIZOME_RETURN_IF_ERROR(fs_.SyncDirectory(dir_ / kBackupRecordsName));
  report_.backup = InfoOf(next_);
  records_.emplace(next_.number, next_);
  return Status::Ok();
}

/// Removes files that no backup names; they belonged to backups that were removed or killed. They
/// can be determined only if every record is readable.
Status Backup::RemoveUnnamed() {
  std::set<std::string> named;
  for (const auto& [number, record] : records_) {
    named.insert(BackupDeltaPath({}, number).generic_string());
    for (const FileEntry& file : record.manifest.files) named.insert(BackupFilePath(file.xxh3));
  }
  std::vector<std::string> unnamed;
  for (const std::string_view folder : {kBackupFilesName, kBackupDeltasName}) {
    RHIZOME_RETURN_IF_ERROR(WalkFiles(fs_, dir_ / folder, [&](const std::string& relative, Kind) {
      std::string path = fmt::format("{}/{}", folder, relative);
      if (!named.contains(path) && !IsForeignPath(relative)) unnamed.push_back(std::move(path));
      return Status::Ok();
    }));
  }
  for (const std::string& path : unnamed) RHIZOME_RETURN_IF_ERROR(fs_.RemoveFile(dir_ / path));
  return Status::Ok();
}

Status Backup::Remove(std::uint64_t keep) {
  while (keep > 0 && records_.size() > keep) {
    const std::uint64_t oldest = records_.begin()->first;
    RHIZOME_RETURN_IF_ERROR(fs_.RemoveFile(BackupRecordPath(dir_, oldest)));
    report_.removed.push_back(oldest);
    records_.erase(records_.begin());
  }
  // The removal of a record must be durable before any file that it names is removed.
  if (!report_.removed.empty())
    RHIZOME_RETURN_IF_ERROR(fs_.SyncDirectory(dir_ / kBackupRecordsName));
  RHIZOME_ASSIGN_OR_RETURN(const auto left, ListBackupNumbers(fs_, dir_));
  if (left.size() != records_.size()) return Status::Ok();
  // The new backup exists, so a failure to remove leftovers of killed runs is not an error.
  const Status removed = RemoveUnnamed();
  return report_.removed.empty() ? Status::Ok() : removed;
}

Result<BackupReport> Backup::Run(const Path& store_path) {
  const Stopwatch watch;
  RHIZOME_ASSIGN_OR_RETURN(store_, Store::Open(fs_, store_path, Store::Mode::kRead));
  RHIZOME_RETURN_IF_ERROR(OpenFolder(store_->id()));
  RHIZOME_RETURN_IF_ERROR(ReadRecords());
  next_.number = numbers_.empty() ? 1 : numbers_.back() + 1;
  next_.unix_seconds = std::time(nullptr);
  next_.sequence = StoreCopy::Sequence(*store_);
  next_.base_sequence = store_->base_sequence();
  next_.base_state = StoreCopy::BaseState(*store_);
  next_.manifest = store_->manifest();
  RHIZOME_RETURN_IF_ERROR(CheckHistory());
  RHIZOME_RETURN_IF_ERROR(CheckShared());
  RHIZOME_RETURN_IF_ERROR(CopyFiles());
  RHIZOME_RETURN_IF_ERROR(CopyDelta());
  RHIZOME_RETURN_IF_ERROR(Seal());
  RHIZOME_RETURN_IF_ERROR(Remove(options_.keep));
  report_.seconds = watch.seconds();
  return std::move(report_);
}

/// One run of RestoreStore:
///   1. reads the record of the backup (ReadRecord), and creates an empty store;
///   2. copies the files while verifying their hashes, and reads them back (CopyFiles, ReadBack);
///   3. writes the delta (PutDelta), and commits the manifest;
///   4. after an error, removes the store again.
/// Threads: one.
class Restore {
 public:
  Restore(FileSystem& fs, const Path& dir, const JobControl& control)
      : fs_(fs), dir_(dir), control_(control) {}
  Result<RestoreReport> Run(const Path& target, std::optional<std::uint64_t> number);

 private:
  Status ReadRecord(std::optional<std::uint64_t> number);
  Status CopyFiles();
  Status ReadBack();
  Status PutDelta();
  Status Fill();

  FileSystem& fs_;
  const Path dir_;
  const JobControl& control_;
  StoreId id_;
  BackupRecord record_;
  std::unique_ptr<Store> store_;
  Path generation_;
};

Status Restore::ReadRecord(std::optional<std::uint64_t> number) {
  RHIZOME_ASSIGN_OR_RETURN(id_, ReadBackupId(fs_, dir_));
  RHIZOME_ASSIGN_OR_RETURN(const auto numbers, ListBackupNumbers(fs_, dir_));
  if (number && std::find(numbers.begin(), numbers.end(), *number) == numbers.end())
    return Status::NotFound(fmt::format(
        "backup {} does not exist in '{}'; existing backups: {}", *number, dir_.string(),
        numbers.empty() ? "none" : fmt::format("{}", fmt::join(numbers, ", "))));
  if (number) {
    RHIZOME_ASSIGN_OR_RETURN(record_, ReadBackupRecord(fs_, dir_, *number, id_));
    return Status::Ok();
  }
  // Take the newest backup whose record is intact, as killed runs leave torn records.
  Status status = Status::NotFound(fmt::format("'{}' holds no backup", dir_.string()));
  for (auto at = numbers.rbegin(); at != numbers.rend(); ++at) {
    auto record = ReadBackupRecord(fs_, dir_, *at, id_);
    if (record) {
      record_ = *std::move(record);
      return Status::Ok();
    }
    // The record is torn or damaged, so try the previous backup; the report names the one that was
    // restored.
    status = record.error();
    if (status.code() != StatusCode::kCorruption) return status;
  }
  return status;
}

Status Restore::CopyFiles() {
  std::uint64_t total = 0;
  for (const FileEntry& file : record_.manifest.files) total += file.size_bytes;
  RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t free, fs_.FreeBytes(store_->path()));
  if (total > free)
    return Status::OutOfSpace(
        fmt::format("the store needs {} bytes at '{}', which has {} bytes free", total,
                    store_->path().string(), free));
  Progress progress{control_, "copy files", 0, total};
  std::set<Path> folders = {generation_};
  for (const FileEntry& file : record_.manifest.files) {
    const Path target = generation_ / file.path;
    for (Path folder = target.parent_path(); folders.insert(folder).second;
         folder = folder.parent_path()) {
    }
    RHIZOME_RETURN_IF_ERROR(CreateDirectories(fs_, target.parent_path()));
    RHIZOME_RETURN_IF_ERROR(
        CopyChecked(fs_, dir_ / BackupFilePath(file.xxh3), target, file, progress));
  }
  for (const Path& folder : folders) RHIZOME_RETURN_IF_ERROR(fs_.SyncDirectory(folder));
  return Status::Ok();
}

Status Restore::ReadBack() {
  Progress progress{control_, "verify", 0, InfoOf(record_).bytes};
  for (const FileEntry& file : record_.manifest.files)
    RHIZOME_RETURN_IF_ERROR(ReadChecked(fs_, generation_ / file.path, file, progress,
                                        [](std::span<const std::byte>) { return Status::Ok(); }));
  return Status::Ok();
}

/// Splits the bytes of a backup's delta into entries as they arrive, and writes the entries to a
/// store.
class DeltaSplitter {
 public:
  explicit DeltaSplitter(Store& store) : store_(store) {}

  Status Take(std::span<const std::byte> bytes) {
    held_.insert(held_.end(), bytes.begin(), bytes.end());
    std::size_t at = 0;
    while (true) {
      const auto key = Part(at);
      if (!key) return Bad();
      const auto value = *key ? Part(at + 4 + (*key)->size()) : key;
      if (!value) return Bad();
      if (!*value) break;
      at += 8 + (*key)->size() + (*value)->size();
      entries_.emplace_back(**key, **value);
      if (entries_.size() >= kBatch) RHIZOME_RETURN_IF_ERROR(Put());
    }
    held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(at));
    return Status::Ok();
  }
  Status Finish() {
    RHIZOME_RETURN_IF_ERROR(Put());
    return held_.empty() ? Status::Ok() : Bad();
  }
  std::uint64_t count() const { return count_; }

 private:
  static constexpr std::size_t kBatch = 1024;  // entries that are written at once

  /// Returns the bytes after the length at `at`; an empty optional if not all have arrived yet.
  Result<std::optional<std::string>> Part(std::size_t at) const {
    if (held_.size() < at + 4) return std::optional<std::string>();
    std::uint32_t length = 0;
    std::memcpy(&length, held_.data() + at, sizeof(length));
    if (length > kMaxDeltaEntryBytes) return Fail(Bad());
    if (held_.size() < at + 4 + length) return std::optional<std::string>();
    return std::string(reinterpret_cast<const char*>(held_.data()) + at + 4, length);
  }
  static Status Bad() { return Status::Corruption("the backup's delta is not a list of entries"); }
  Status Put() {
    count_ += entries_.size();
    RHIZOME_RETURN_IF_ERROR(StoreCopy::PutDelta(store_, entries_));
    entries_.clear();
    return Status::Ok();
  }

  Store& store_;
  std::vector<std::byte> held_;
  std::vector<std::pair<std::string, std::string>> entries_;
  std::uint64_t count_ = 0;
};

Status Restore::PutDelta() {
  DeltaSplitter splitter(*store_);
  Progress progress{control_, "restore delta", 0, record_.delta.size_bytes};
  RHIZOME_RETURN_IF_ERROR(
      ReadChecked(fs_, BackupDeltaPath(dir_, record_.number), record_.delta, progress,
                  [&](std::span<const std::byte> piece) { return splitter.Take(piece); }));
  RHIZOME_RETURN_IF_ERROR(splitter.Finish());
  if (splitter.count() == record_.delta_entries) return Status::Ok();
  return Status::Corruption(fmt::format("the delta has {} entries, but the backup says {}",
                                        splitter.count(), record_.delta_entries));
}

/// Fills the new store with the contents of the backup, and commits them.
Status Restore::Fill() {
  generation_ = Store::GenerationFolder(store_->path(), record_.manifest.generation);
  RHIZOME_RETURN_IF_ERROR(CreateDirectories(fs_, generation_));
  RHIZOME_RETURN_IF_ERROR(WriteWholeFile(fs_, generation_ / kPinName, {}));
  RHIZOME_RETURN_IF_ERROR(CopyFiles());
  RHIZOME_RETURN_IF_ERROR(ReadBack());
  RHIZOME_RETURN_IF_ERROR(PutDelta());
  return StoreCopy::Commit(*store_, record_.manifest, record_.sequence, record_.base_sequence,
                           record_.base_state);
}

Result<RestoreReport> Restore::Run(const Path& target, std::optional<std::uint64_t> number) {
  const Stopwatch watch;
  RHIZOME_RETURN_IF_ERROR(ReadRecord(number));
  // This lock prevents backups from removing files during the restore. It is not needed in a folder
  // that is not writable.
  const auto lock = fs_.Lock(dir_ / kLockName, LockMode::kShared, "");
  if (!lock && lock.error().code() == StatusCode::kBusy) return Fail(lock.error());
  RHIZOME_ASSIGN_OR_RETURN(store_, Store::Create(fs_, target, id_));
  const Status filled = Guarded([&] { return Fill(); });
  if (!filled.ok()) {
    static_cast<void>(Store::Discard(std::move(store_)));
    return Fail(filled);
  }
  return RestoreReport{InfoOf(record_), watch.seconds()};
}

}  // namespace

Result<BackupReport> BackupStore(FileSystem& fs, const Path& store, const Path& dir,
                                 const BackupOptions& options, const JobControl& control) try {
  RHIZOME_RETURN_IF_ERROR(CheckOutside(fs, dir));
  return WithAbsolute(fs, dir, [&](const Path& folder) {
    return WithAbsolute(fs, store, [&](const Path& source) {
      const auto enclosed = fs.Enclose(folder);
      return Backup(fs, folder, options, control).Run(source);
    });
  });
} catch (...) {
  return Fail(StatusOfException());
}

Result<std::vector<BackupInfo>> ListBackups(FileSystem& fs, const Path& dir) try {
  const auto enclosed = fs.Enclose(dir);
  RHIZOME_ASSIGN_OR_RETURN(const StoreId id, ReadBackupId(fs, dir));
  RHIZOME_ASSIGN_OR_RETURN(const auto numbers, ListBackupNumbers(fs, dir));
  std::vector<BackupInfo> infos;
  for (const std::uint64_t number : numbers) {
    const auto record = ReadBackupRecord(fs, dir, number, id);
    // Skip torn records of killed runs. They cannot be distinguished from damaged ones here;
    // restoring a damaged backup by its number reports what is wrong.
    const bool torn = !record && record.error().code() == StatusCode::kCorruption;
    if (!record && !torn) return Fail(record.error());
    if (record) infos.push_back(InfoOf(*record));
  }
  return infos;
} catch (...) {
  return Fail(StatusOfException());
}

Result<RestoreReport> RestoreStore(FileSystem& fs, const Path& dir, const Path& store,
                                   std::optional<std::uint64_t> number,
                                   const JobControl& control) try {
  return WithAbsolute(fs, dir, [&](const Path& folder) {
    return WithAbsolute(fs, store, [&](const Path& target) {
      const auto enclosed = fs.Enclose(folder);
      return Restore(fs, folder, control).Run(target, number);
    });
  });
} catch (...) {
  return Fail(StatusOfException());
}

}  // namespace rhizome
