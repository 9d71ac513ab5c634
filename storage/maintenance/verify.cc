#include "rhizome/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>

#include "rhizome/store.h"
#include "storage/array/array_rules.h"
#include "storage/array/array_versions.h"
#include "storage/array/chunk_writer.h"
#include "storage/array/shard_file.h"
#include "storage/base/damage.h"
#include "storage/base/exceptions.h"
#include "storage/base/mutant.h"
#include "storage/base/pause.h"
#include "storage/catalog/catalog.h"
#include "storage/io/file_scan.h"
#include "storage/io/files.h"
#include "storage/io/job_folder.h"
#include "storage/io/walk_files.h"
#include "storage/maintenance/file_buffer.h"
#include "storage/maintenance/row_watcher.h"
#include "storage/store/caller_path.h"
#include "storage/store/store_files.h"

namespace rhizome {

namespace {

using Kind = DirectoryEntry::Kind;

using LockMode = FileSystem::LockMode;

/// One run of VerifyFiles, which checks everything below a store and continues after damage:
///   1. reads FORMAT, and checks whether a writer is active (CheckFormat, NoWriter);
///   2. opens the catalogue, pins the current generation, and checks all blocks of the catalogue
///      (CheckCatalog);
///   3. checks the entries at the top level and in scratch/ (CheckTop, CheckScratch);
///   4. for each generation reads its manifests (CheckManifest), compares their files with the
///      existing files (CheckFiles), and reads and hashes all of them (ScanKnown, Judge);
///   5. drops orphans that a concurrent writer may have created (DropOrphansOfWriter).
/// Threads: one.
///
/// Leftovers of a killed writer are orphans (FORMAT.md, "Store directory and commit protocol"):
///   (1) a generation or a manifest later than the committed one, with any content;
///   (2) in the committed generation, a file that no committed manifest names;
///   (3) an earlier generation without manifests, because manifests are removed first;
///   (4) a job's scratch folder whose lock is free.
/// Every other difference from the committed state is damage. Earlier manifests were committed, so
/// they and the files that they name must be intact.
class Verifier {
 public:
  Verifier(FileSystem& fs, Path store, const JobControl& control, FileTaker* taker)
      : fs_(fs), store_(std::move(store)), control_(control), taker_(taker) {}

  Result<VerifyReport> Run();

 private:
  void Damaged(const std::string& file, std::string what) {
    report_.damaged.push_back({file, 0, std::move(what)});
  }
  bool IsFault(const std::string& file, const Status& status, Kind wanted = Kind::kFile) const;
  void Note(const std::string& file, const Status& status, Kind wanted = Kind::kFile) {
    if (IsFault(file, status, wanted))
      report_.unread.push_back({file, status});
    else
      Damaged(file, status.message());
  }
  void Orphaned(std::string path) {
    if (quiet_) report_.orphans.push_back(std::move(path));
  }
  Status NothingCommitted() const {
    return Status::NotFound(
        fmt::format("'{}' holds no committed generation: the job that creates it did not finish",
                    store_.string()));
  }
  bool IsCurrent(std::uint64_t generation) const {
    return record_ && record_->generation == generation;
  }
  /// Returns whether an entry is a file, or was one that a writer has removed since it was listed.
  bool IsFile(const std::string& entry) const {
    const auto info = fs_.Stat(store_ / entry);
    return !info || info->kind == Kind::kFile;
  }
  Status Look();
  Status CheckFormat(bool anything_else);
  Status CheckCatalog();
  void CheckCatalogKinds();
  void FindSpecial(const std::string& folder);
  bool IsForeign(const DirectoryEntry& entry, const std::string& path);
  /// Reports a leftover folder, and everything in it that prevents the next writer from removing
  /// it.
  void Left(const std::string& folder) {
    FindSpecial(folder);
    Orphaned(folder);
  }
  Status PinCurrent(Catalog& catalog);
  void CheckTop(const std::vector<DirectoryEntry>& entries);
  void CheckScratch();
  Status CheckGenerations();
  Status CheckGeneration(const std::string& folder, std::uint64_t generation);
  Status CheckWithPin(const std::string& folder, std::uint64_t generation);
  void CheckManifest(const std::string& folder, const std::string& name, std::uint64_t generation,
                     std::uint64_t version);
  Status CheckFiles(const std::string& folder, std::uint64_t generation);
  Status ScanKnown(const std::string& folder);
  std::vector<const FileEntry*> ScanOrder() const;
  struct RowFinding;
  std::function<std::unique_ptr<FileWatcher>()> WatcherOf(const FileEntry& entry,
                                                          RowFinding& finding);
  void Judge(const std::string& folder, const FileEntry& entry, const ScanOutcome& outcome,
             const RowFinding& finding);
  void WatchRows(const std::string& folder, const Manifest& manifest);
  void NoteShards(const Manifest& manifest);
  void BadHash(const std::string& name, const FileEntry& entry);
  bool NoWriter() const;
  void DropOrphansOfWriter();

  FileSystem& fs_;
  const Path store_;
  const JobControl& control_;
  FileTaker* const taker_;
  VerifyReport report_;

  StoreId id_;
  bool id_known_ = false;
  std::optional<CommitRecord> record_;
  std::unique_ptr<Catalog> catalog_;
  // Shared locks, like those in Store::Pins.
  std::unique_ptr<FileLock> pin_;                         // PIN of the committed generation
  std::unique_ptr<FileLock> committed_pin_;               // the committed manifest
  std::vector<std::unique_ptr<FileLock>> manifest_pins_;  // of the generation being checked
  bool quiet_ = false;                                    ///< no writer was active at the beginning

  /// The result of checking the rows of a chunk. Written by the thread that scans the chunk's file.
  struct RowFinding {
    std::optional<std::uint64_t> wrong_row;
    Status sums;  ///< the status of reading the sidecar
  };

  /// A chunk of a row array and the sidecar with which its rows are compared.
  struct WatchedChunk {
    ArrayEntry rows;
    std::uint64_t chunk = 0;
    std::shared_ptr<const ChunkArray> sums;
    FileTaker::SeeRow see;
  };

  // State of the generation that is being checked.
  std::map<std::string, FileEntry> known_;                              // by path
  std::map<std::string, WatchedChunk> watched_;                         // by path
  std::map<std::string, std::pair<ArrayEntry, std::uint64_t>> shards_;  // array and chunk, by path
  std::set<std::string> current_files_;  // files that the committed manifest names
  bool manifests_sound_ = true;
  bool current_seen_ = false;
  bool offered_ = false;  // files are passed to taker_
};

/// Returns whether an error is a failure to read, and not damage. If an entry of another kind is in
/// place of a file, opening it fails, too; that is damage.
bool Verifier::IsFault(const std::string& file, const Status& status, Kind wanted) const {
  if (ProvesDamage(status) || RHIZOME_MUTANT("shortage is damage")) return false;
  if (status.code() != StatusCode::kIoError) return true;
  const auto info = fs_.Stat(store_ / file);
  return !info || info->kind == wanted;
}

Status Verifier::CheckFormat(bool anything_else) {
  auto id = ReadFormat(fs_, store_);
  if (!id && id.error().code() == StatusCode::kUnsupported) return id.error();
  if (!id && IsFault(std::string(kFormatName), id.error())) return id.error();
  if (!id && !anything_else) return id.error();
  ++report_.files;
  if (!id) {
    Damaged(std::string(kFormatName), id.error().message());
    return Status::Ok();
  }
  id_ = *id;
  id_known_ = true;
  const std::string expected = FormatText(id_);
  const auto bytes = ReadWholeFile(fs_, store_ / kFormatName, 4096);
  if (!bytes && IsFault(std::string(kFormatName), bytes.error())) return bytes.error();
  const bool same = bytes && std::ranges::equal(*bytes, std::as_bytes(std::span(expected)));
  if (!same)
    Damaged(std::string(kFormatName), "is not exactly the three lines that Rhizome writes");
  report_.bytes += expected.size();
  return Status::Ok();
}

// Checks the catalogue, unless FORMAT is damaged: then the store's id, which the check needs, is
// unknown. The verification continues after damage of the catalogue, as manifests are found in
// their folders. It ends if the catalogue currently cannot be read: which files are orphans depends
// on which generation is current.
Status Verifier::CheckCatalog() {
  if (!id_known_) return Status::Ok();
  const std::string name(kCatalogName);
  CheckCatalogKinds();
  auto catalog = Catalog::Open(fs_, store_ / kCatalogName, Catalog::Mode::kRead, id_);
  if (!catalog) {
    if (IsFault(name, catalog.error(), Kind::kDirectory)) return catalog.error();
    // The catalogue is created before any manifest, so without a manifest nothing was ever
    // committed.
    RHIZOME_ASSIGN_OR_RETURN(const bool has_manifest, HasManifest(fs_, store_));
    if (catalog.error().code() == StatusCode::kNotFound && !has_manifest) return NothingCommitted();
    Damaged(name, catalog.error().message());
    return Status::Ok();
  }
  const Status pinned = PinCurrent(**catalog);
  if (pinned.code() == StatusCode::kNotFound) return NothingCommitted();
  if (!pinned.ok() && IsFault(name, pinned, Kind::kDirectory)) return pinned;
  if (!pinned.ok()) Damaged(name, pinned.message());
  if (const Status status = (*catalog)->VerifyChecksums(); !status.ok())
    Note(name, status, Kind::kDirectory);
  catalog_ = *std::move(catalog);
  return Status::Ok();
}

/// Reports everything that is not a file in the folder of the catalogue. A reader does not need
/// some files that a writer needs, such as RocksDB's IDENTITY and LOCK.
void Verifier::CheckCatalogKinds() {
  const auto entries = fs_.List(store_ / kCatalogName);
  if (!entries) return;  // opening the catalogue reports the error
  for (const DirectoryEntry& entry : *entries) {
    const std::string file = fmt::format("{}/{}", kCatalogName, entry.name);
    if (IsForeign(entry, file)) continue;
    if (entry.kind != Kind::kFile && !IsFile(file)) Damaged(file, "not a regular file");
  }
}

/// Reports entries that are neither files nor folders in a folder that the next writer will remove.
void Verifier::FindSpecial(const std::string& folder) {
  const Status walked =
      WalkFiles(fs_, store_ / folder, [&](const std::string& relative, Kind kind) {
        const std::string file = folder + "/" + relative;
        const auto info = kind == Kind::kOther ? fs_.Stat(store_ / file) : Result<FileInfo>({});
        if (info && kind == Kind::kOther) Damaged(file, "neither a file nor a folder");
        return Status::Ok();
      });
  if (!walked.ok() && !ProvesDamage(walked)) Note(folder, walked, Kind::kDirectory);
}

/// Reports a file or folder with a name that stores do not use, and returns true. A link or a pipe
/// is never foreign: a writer refuses a store that contains one.
bool Verifier::IsForeign(const DirectoryEntry& entry, const std::string& path) {
  if (!IsForeignEntry(entry)) return false;
  // lost+found at the top of a disk is not readable by its users, and need not be.
  if (entry.kind == Kind::kDirectory && path.starts_with(kGenerationsName)) FindSpecial(path);
  report_.strangers.push_back(path);
  return true;
}

// Pins the current generation and its manifest as Store::Impl::TryPin does: a writer may commit the
// next ones at any moment, and holds PIN for a moment while it cleans up. Missing files are
// reported later.
Status Verifier::PinCurrent(Catalog& catalog) {
  constexpr int kAttempts = 500;  // 5 s with pauses of 10 ms, as in Store::Refresh
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    RHIZOME_RETURN_IF_ERROR(catalog.CatchUp());
    RHIZOME_ASSIGN_OR_RETURN(const CommitRecord first, catalog.Current());
    auto pin = fs_.Lock(Store::GenerationFolder(store_, first.generation) / kPinName,
                        LockMode::kShared, "");
    const bool busy = !pin && pin.error().code() == StatusCode::kBusy;
    const std::string name =
        fmt::format("{}/{}/{}", kGenerationsName, GenerationName(first.generation), kPinName);
    if (!pin && !busy && IsFault(name, pin.error())) return pin.error();
    RHIZOME_RETURN_IF_ERROR(catalog.CatchUp());
    RHIZOME_ASSIGN_OR_RETURN(const CommitRecord record, catalog.Current());
    if (!busy && record.generation == first.generation) {
      auto current = fs_.Lock(CommittedManifestPath(store_, record), LockMode::kShared, "");
      RHIZOME_RETURN_IF_ERROR(catalog.CatchUp());
      RHIZOME_ASSIGN_OR_RETURN(const CommitRecord now, catalog.Current());
      if (current || now.sequence == record.sequence) {
        record_ = record;
        if (pin) pin_ = *std::move(pin);
        if (current) committed_pin_ = *std::move(current);
        return Status::Ok();
      }
    }
    PauseForWriter();
  }
  return Status::Busy(
      fmt::format("a writer is removing old files of '{}'; try again", store_.string()));
}

void Verifier::CheckTop(const std::vector<DirectoryEntry>& entries) {
  const std::map<std::string_view, Kind> ours = {{kLockName, Kind::kFile},
                                                 {kFormatName, Kind::kFile},
                                                 {kCatalogName, Kind::kDirectory},
                                                 {kGenerationsName, Kind::kDirectory},
                                                 {kScratchName, Kind::kDirectory}};
  for (const DirectoryEntry& entry : entries) {
    if (IsForeign(entry, entry.name)) continue;
    const auto at = ours.find(entry.name);
    if (at == ours.end()) Damaged(entry.name, "not part of the store");
    if (at != ours.end() && at->second != entry.kind) Damaged(entry.name, "has the wrong kind");
  }
}

// Finds folders of jobs that are not running; a job holds the lock of its folder while it runs.
void Verifier::CheckScratch() {
  const auto entries = fs_.List(store_ / kScratchName);
  if (!entries && entries.error().code() != StatusCode::kNotFound)
    Note(std::string(kScratchName), entries.error(), Kind::kDirectory);
  if (!entries) return;
  for (const DirectoryEntry& entry : *entries) {
    std::string name = fmt::format("{}/{}", kScratchName, entry.name);
    if (IsForeign(entry, name)) continue;
    if (entry.kind != Kind::kDirectory) {
      Damaged(name, "not part of the store");
      continue;
    }
    const auto state = StateOfJob(fs_, store_ / name);
    if (!state && state.error().code() != StatusCode::kNotFound)
      Note(name, state.error(), Kind::kDirectory);
    if (!state) continue;
    if (*state == JobState::kIdle) {
      FindSpecial(name);
      report_.orphans.push_back(std::move(name));
    } else if (*state == JobState::kNone) {
      report_.strangers.push_back(std::move(name));
    }
  }
}

void Verifier::CheckManifest(const std::string& folder, const std::string& name,
                             std::uint64_t generation, std::uint64_t version) {
  if (IsCurrent(generation) && version > record_->manifest_version)
    return IsFile(folder + "/" + name) ? Orphaned(folder + "/" + name)
                                       : Damaged(folder + "/" + name, "not a regular file");
  const bool is_current = IsCurrent(generation) && record_->manifest_version == version;
  // Reading the manifest reports every other error.
  auto pin = fs_.Lock(store_ / folder / name, LockMode::kShared, "");
  const bool gone = !pin && (pin.error().code() == StatusCode::kBusy ||
                             pin.error().code() == StatusCode::kNotFound);
  if (gone && !is_current) return;  // unused: a writer is removing it
  if (pin) manifest_pins_.push_back(*std::move(pin));
  ++report_.files;
  current_seen_ = current_seen_ || is_current;
  const auto manifest = is_current ? ReadCommittedManifest(fs_, store_, id_, *record_)
                                   : ReadManifestFile(fs_, store_ / folder / name, id_);
  if (!manifest || manifest->generation != generation || manifest->version != version) {
    if (manifest)
      Damaged(folder + "/" + name, "belongs to another generation or version");
    else
      Note(folder + "/" + name, manifest.error());
    manifests_sound_ = false;
    return;
  }
  if (is_current) {
    for (const FileEntry& file : manifest->files) current_files_.insert(file.path);
    WatchRows(folder, *manifest);
    offered_ = taker_ != nullptr;
    if (offered_) taker_->Begin(*manifest);
  }
  NoteShards(*manifest);
  for (const FileEntry& entry : manifest->files) {
    const auto [at, added] = known_.try_emplace(entry.path, entry);
    if (!added && at->second != entry)
      Damaged(fmt::format("{}/{}", folder, name),
              fmt::format("'{}' differs between manifests", entry.path));
  }
}

/// Prepares the comparison of the rows of row arrays with their sidecars during the scan. Sidecars
/// that cannot be opened are skipped; other checks report their damage.
void Verifier::WatchRows(const std::string& folder, const Manifest& manifest) {
  for (const ArrayEntry& entry : manifest.arrays) {
    const bool sidecar = entry.name.ends_with(kSidecarSuffix);
    const ArrayEntry* sums = FindStoredArray(manifest.arrays, SidecarName(entry.name));
    if (entry.layout != ArrayLayout::kRow || sidecar || sums == nullptr) continue;
    if (sums->rows != entry.rows || sums->row_bytes() != sizeof(std::uint32_t)) continue;
    auto opened = ChunkArray::Open(fs_, store_ / folder, *sums, manifest.files);
    const std::string name = fmt::format("{}/{}", folder, ArrayFolder(sums->name, sums->form));
    if (!opened && IsFault(name, opened.error(), Kind::kDirectory))
      report_.unread.push_back({name, opened.error()});
    if (!opened) continue;
    const std::shared_ptr<const ChunkArray> shared = *std::move(opened);
    const FileTaker::SeeRow see = taker_ == nullptr ? FileTaker::SeeRow() : taker_->RowsOf(entry);
    for (const std::uint64_t chunk : ListedChunks(entry, manifest.files))
      watched_.try_emplace(ChunkPath(entry.name, chunk), WatchedChunk{entry, chunk, shared, see});
  }
  report_.rows_checked = true;
}

void Verifier::NoteShards(const Manifest& manifest) {
  for (const ArrayEntry& entry : manifest.arrays) {
    if (!entry.sharded()) continue;
    for (const std::uint64_t chunk : ListedChunks(entry, manifest.files))
      shards_.try_emplace(ChunkPath(entry.name, chunk), entry, chunk);
  }
}

/// Reports a file with a wrong hash; for a shard, reports which of its inner chunks are damaged.
void Verifier::BadHash(const std::string& name, const FileEntry& entry) {
  const char* const why = "its bytes do not have the hash that the manifest holds";
  const auto at = shards_.find(entry.path);
  const auto bytes = at == shards_.end() || entry.size_bytes > MaxShardBytes(at->second.first)
                         ? Result<std::vector<std::byte>>(Fail(Status::NotFound("")))
                         : ReadWholeFile(fs_, store_ / name, entry.size_bytes);
  if (!bytes) return Damaged(name, why);
  const auto& [array, chunk] = at->second;
  const std::uint64_t rows = std::min(array.chunk_rows, array.rows - chunk * array.chunk_rows);
  const auto damage = FindShardDamage(array, rows, *bytes, entry);
  if (damage.empty()) Damaged(name, why);
  for (const ShardDamage& one : damage)
    report_.damaged.push_back({name, one.offset_bytes, one.what});
}

/// Returns the files in the order of the scan: the files that the taker wants come first.
std::vector<const FileEntry*> Verifier::ScanOrder() const {
  std::vector<const FileEntry*> entries;
  for (const auto& [path, entry] : known_) entries.push_back(&entry);
  if (offered_)
    std::stable_partition(entries.begin(), entries.end(),
                          [&](const FileEntry* entry) { return taker_->Wants(*entry); });
  return entries;
}

std::function<std::unique_ptr<FileWatcher>()> Verifier::WatcherOf(const FileEntry& entry,
                                                                  RowFinding& finding) {
  if (const auto at = watched_.find(entry.path); at != watched_.end()) {
    return [chunk = &at->second, found = &finding]() -> std::unique_ptr<FileWatcher> {
      auto watcher = RowWatcher::Make(
          chunk->rows, chunk->chunk, *chunk->sums,
          [found](std::uint64_t row) { found->wrong_row = row; }, chunk->see);
      if (watcher) return *std::move(watcher);
      found->sums = watcher.error();
      return nullptr;
    };
  }
  if (!offered_ || !taker_->Wants(entry)) return {};
  return [this, &entry] {
    return taker_->Admit(entry) ? std::make_unique<FileKeeper>(entry, *taker_) : nullptr;
  };
}

Status Verifier::ScanKnown(const std::string& folder) {
  const std::vector<const FileEntry*> entries = ScanOrder();
  std::vector<ScanFile> files;
  std::vector<RowFinding> findings(entries.size());
  for (const FileEntry* entry : entries) {
    files.push_back({store_ / folder / entry->path, entry->size_bytes,
                     WatcherOf(*entry, findings[files.size()])});
  }
  RHIZOME_ASSIGN_OR_RETURN(const auto outcomes, ScanFiles(fs_, files, {}, control_));
  const auto before = static_cast<std::ptrdiff_t>(report_.damaged.size());
  for (std::size_t i = 0; i < files.size(); ++i)
    Judge(folder, *entries[i], outcomes[i], findings[i]);
  std::sort(report_.damaged.begin() + before, report_.damaged.end(),
            [](const Damage& a, const Damage& b) {
              return std::tie(a.file, a.offset_bytes) < std::tie(b.file, b.offset_bytes);
            });
  return Status::Ok();
}

/// Adds the result of scanning one file to the report.
void Verifier::Judge(const std::string& folder, const FileEntry& entry, const ScanOutcome& outcome,
                     const RowFinding& finding) {
  const std::string name = folder + "/" + entry.path;
  ++report_.files;
  if (!outcome.status.ok()) {
    report_.bytes += outcome.offset_bytes;
    if (IsFault(name, outcome.status)) {
      report_.unread.push_back({name, outcome.status});
      return;
    }
    const bool missing = outcome.status.code() == StatusCode::kNotFound;
    const bool earlier =
        current_seen_ && !current_files_.empty() && !current_files_.contains(entry.path);
    const std::string what = missing ? "missing" : outcome.status.message();
    report_.damaged.push_back(
        {name, outcome.offset_bytes,
         earlier ? what + " (only an earlier version of the arrays names it)" : what, earlier});
    return;
  }
  report_.bytes += entry.size_bytes;
  if (outcome.xxh3 != entry.xxh3 || outcome.crc32c != entry.crc32c) return BadHash(name, entry);
  if (finding.wrong_row)
    Damaged(name, fmt::format("row {} does not match its checksum", *finding.wrong_row));
  // Damage of the sidecar is reported with the sidecar's own file.
  if (!finding.sums.ok() && IsFault(name, finding.sums))
    report_.unread.push_back({name, finding.sums});
}

// Compares the existing files with those that manifests name, then scans the latter.
Status Verifier::CheckFiles(const std::string& folder, std::uint64_t generation) {
  const auto visit = [&](const std::string& relative, Kind kind) {
    if (relative == kPinName || relative.starts_with(kManifestPrefix)) return Status::Ok();
    const auto at = known_.find(relative);
    if (at == known_.end() && kind == Kind::kFile && IsForeignPath(relative))
      report_.strangers.push_back(folder + "/" + relative);
    else if (kind != Kind::kFile)
      Damaged(folder + "/" + relative, "not a regular file");
    else if (at == known_.end() && manifests_sound_)
      Orphaned(folder + "/" + relative);
    return Status::Ok();
  };
  if (const Status walked = WalkFiles(fs_, store_ / folder, visit); !walked.ok())
    Note(folder, walked, Kind::kDirectory);
  const auto pin = fs_.Stat(store_ / folder / kPinName);
  ++report_.files;
  if (!pin && pin.error().code() == StatusCode::kNotFound)
    Damaged(folder + "/PIN", "missing");
  else if (!pin)
    Note(folder + "/PIN", pin.error());
  else if (pin->kind != Kind::kFile || pin->size_bytes != 0)
    Damaged(folder + "/PIN", "not an empty file");
  if (IsCurrent(generation) && !current_seen_)
    Damaged(folder + "/" + ManifestName(record_->manifest_version), "missing");
  return ScanKnown(folder);
}

Status Verifier::CheckGeneration(const std::string& folder, std::uint64_t generation) {
  if (IsCurrent(generation)) return CheckWithPin(folder, generation);
  // The lock prevents writers from removing the generation while it is read. If a writer holds it,
  // it is removing the generation.
  const auto pin = fs_.Lock(store_ / folder / kPinName, LockMode::kShared, "");
  if (!pin && pin.error().code() == StatusCode::kBusy) return Status::Ok();
  if (!pin && IsFault(fmt::format("{}/{}", folder, kPinName), pin.error())) {
    report_.unread.push_back({folder, pin.error()});
    return Status::Ok();
  }
  const auto entries = fs_.List(store_ / folder);
  if (!entries && entries.error().code() == StatusCode::kNotFound) return Status::Ok();
  const bool has_manifest =
      !entries || std::any_of(entries->begin(), entries->end(), [](const DirectoryEntry& entry) {
        return entry.name.starts_with(kManifestPrefix);
      });
  if (has_manifest || !record_) return CheckWithPin(folder, generation);
  Left(folder);
  return Status::Ok();
}

Status Verifier::CheckWithPin(const std::string& folder, std::uint64_t generation) {
  known_.clear();
  watched_.clear();
  shards_.clear();
  manifest_pins_.clear();
  manifests_sound_ = true;
  current_seen_ = false;
  offered_ = false;
  const auto entries = fs_.List(store_ / folder);
  if (!entries) {
    Note(folder, entries.error(), Kind::kDirectory);
    return Status::Ok();
  }
  for (const DirectoryEntry& entry : *entries) {
    if (!entry.name.starts_with(kManifestPrefix)) continue;
    if (IsForeign(entry, folder + "/" + entry.name)) continue;
    const auto version = ParseNumbered(entry.name, kManifestPrefix);
    if (version)
      CheckManifest(folder, entry.name, generation, *version);
    else
      Damaged(folder + "/" + entry.name, "not the name of a manifest");
  }
  return CheckFiles(folder, generation);
}

Status Verifier::CheckGenerations() {
  const auto entries = fs_.List(store_ / kGenerationsName);
  if (!entries) {
    Note(std::string(kGenerationsName), entries.error(), Kind::kDirectory);
    return Status::Ok();
  }
  bool current_found = !record_;
  for (const DirectoryEntry& entry : *entries) {
    const std::string folder = fmt::format("{}/{}", kGenerationsName, entry.name);
    if (IsForeign(entry, folder)) continue;
    const auto generation = ParseNumbered(entry.name, "");
    if (!generation || entry.kind != Kind::kDirectory) {
      Damaged(folder, "not part of the store");
      continue;
    }
    if (record_ && *generation > record_->generation) {
      Left(folder);
      continue;
    }
    current_found = current_found || IsCurrent(*generation);
    RHIZOME_RETURN_IF_ERROR(CheckGeneration(folder, *generation));
  }
  if (!current_found)
    Damaged(fmt::format("{}/{}", kGenerationsName, GenerationName(record_->generation)), "missing");
  return Status::Ok();
}

Status Verifier::Look() {
  RHIZOME_ASSIGN_OR_RETURN(const auto entries, fs_.List(store_));
  const bool anything_else =
      std::any_of(entries.begin(), entries.end(), [](const DirectoryEntry& entry) {
        return entry.name == kCatalogName || entry.name == kGenerationsName;
      });
  RHIZOME_RETURN_IF_ERROR(CheckFormat(anything_else));
  quiet_ = NoWriter();
  RHIZOME_RETURN_IF_ERROR(CheckCatalog());
  CheckTop(entries);
  CheckScratch();
  return id_known_ ? CheckGenerations() : Status::Ok();
}

/// Returns whether no writer is active; a writer has files that no manifest names yet. Its lock is
/// taken and released at once, so that a verification that takes hours does not block writers.
bool Verifier::NoWriter() const {
  const auto lock = fs_.Lock(store_ / kLockName, LockMode::kShared, "");
  return lock || lock.error().code() == StatusCode::kNotFound;  // a copy may lack it
}

/// Drops orphans from the report if a writer has begun since the start: a file that looked like an
/// orphan may be one that it has not committed yet, has committed since, or has removed.
void Verifier::DropOrphansOfWriter() {
  if (!quiet_ || catalog_ == nullptr || !record_) return;
  const auto caught_up = catalog_->CatchUp();
  const auto now = catalog_->Current();
  const bool same = caught_up.ok() && now && now->sequence == record_->sequence && NoWriter();
  std::erase_if(report_.orphans, [&](const std::string& orphan) {
    return (!same && !orphan.starts_with(kScratchName)) || !fs_.Stat(store_ / orphan);
  });
}

Result<VerifyReport> Verifier::Run() {
  RHIZOME_RETURN_IF_ERROR(Look());
  DropOrphansOfWriter();
  return std::move(report_);
}

}  // namespace

Status VerifyReport::verdict() const {
  if (!damaged.empty()) {
    const Damage& first = damaged.front();
    return Status::Corruption(fmt::format("'{}': {}", first.file, first.what));
  }
  if (unread.empty()) return Status::Ok();
  return unread.front().why.WithContext(fmt::format(
      "'{}' could not be read, so it is unknown whether it is damaged", unread.front().file));
}

Result<VerifyReport> VerifyFiles(FileSystem& fs, const Path& store, const JobControl& control,
                                 FileTaker* taker) try {
  return WithAbsolute(fs, store, [&](const Path& folder) -> Result<VerifyReport> {
    const auto enclosed = fs.Enclose(folder);
    RHIZOME_ASSIGN_OR_RETURN(VerifyReport report, Verifier(fs, folder, control, taker).Run());
    for (Damage& damage : report.damaged)
      damage.what = NamedAsWritten(std::move(damage.what), folder, store);
    for (Unread& unread : report.unread) unread.why = NamedAsWritten(unread.why, folder, store);
    return report;
  });
} catch (...) {
  return Fail(StatusOfException());
}

}  // namespace rhizome
