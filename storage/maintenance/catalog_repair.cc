#include "storage/maintenance/catalog_repair.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "storage/array/array_rules.h"
#include "storage/array/file_copy.h"
#include "storage/array/manifest_format.h"
#include "storage/base/damage.h"
#include "storage/base/little_endian.h"
#include "storage/io/files.h"
#include "storage/store/store_files.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Copies a file that may end too early. Any other failure to copy it is an error, so that no data
/// is left behind.
Status CopyLeft(FileSystem& fs, const Path& from, const Path& to) {
  for (int attempt = 1;; ++attempt) {
    RHIZOME_ASSIGN_OR_RETURN(const FileInfo info, fs.Stat(from));
    const Status copied = CopyFile(fs, from, to, info.size_bytes);
    if (copied.ok() || !ProvesDamage(copied)) return copied;
    if (attempt == 2) return Status::Ok();  // RocksDB repairs without the rest
    const Status removed = fs.RemoveFile(to);
    if (!removed.ok() && removed.code() != StatusCode::kNotFound) return removed;
  }
}

Status CopyFolder(FileSystem& fs, const Path& from, const Path& to) {
  RHIZOME_RETURN_IF_ERROR(CreateDirectories(fs, to));
  const auto entries = fs.List(from);
  if (!entries && entries.error().code() == StatusCode::kNotFound) return Status::Ok();
  if (!entries) return entries.error();
  for (const DirectoryEntry& entry : *entries) {
    if (entry.kind != DirectoryEntry::Kind::kFile) continue;
    RHIZOME_RETURN_IF_ERROR(CopyLeft(fs, from / entry.name, to / entry.name));
  }
  return Status::Ok();
}

/// Returns the numbers in the names of a folder's entries, largest first.
Result<std::vector<std::uint64_t>> NumbersIn(FileSystem& fs, const Path& folder,
                                             std::string_view prefix) {
  std::vector<std::uint64_t> numbers;
  const auto entries = fs.List(folder);
  if (!entries && !ProvesDamage(entries.error())) return Fail(entries.error());
  if (!entries) return numbers;
  for (const DirectoryEntry& entry : *entries)
    if (const auto number = ParseNumbered(entry.name, prefix)) numbers.push_back(*number);
  std::sort(numbers.rbegin(), numbers.rend());
  return numbers;
}

/// Creates a commit record for the newest intact manifest; nullopt if there is none.
Result<std::optional<CommitRecord>> NewestManifest(FileSystem& fs, const Path& store,
                                                   const StoreId& id) {
  RHIZOME_ASSIGN_OR_RETURN(const auto generations, NumbersIn(fs, store / kGenerationsName, ""));
  for (const std::uint64_t generation : generations) {
    const Path folder = store / kGenerationsName / GenerationName(generation);
    RHIZOME_ASSIGN_OR_RETURN(const auto versions, NumbersIn(fs, folder, kManifestPrefix));
    for (const std::uint64_t version : versions) {
      const auto bytes = ReadWholeFile(fs, folder / ManifestName(version), kMaxManifestBytes);
      if (!bytes && !ProvesDamage(bytes.error())) return Fail(bytes.error());
      if (!bytes) continue;
      const auto manifest = DecodeManifest(*bytes, id);
      if (!manifest || manifest->generation != generation || manifest->version != version) continue;
      return std::optional(CommitRecord{.generation = generation,
                                        .manifest_version = version,
                                        .manifest_bytes = bytes->size(),
                                        .manifest_xxh3 = Xxh3(*bytes)});
    }
  }
  return std::optional<CommitRecord>();
}

/// Copies entries of the delta, one commit at a time, as long as each commit follows the previous
/// one.
class DeltaCopier {
 public:
  DeltaCopier(std::uint64_t base, Catalog& to) : to_(to), base_(base), last_(base) {}

  Status See(std::string_view key, std::string_view value) {
    if (stopped_) return Status::Ok();
    // A record's key ends in 0, and its commit's rows follow it (FORMAT.md, "Catalogue records").
    const bool record = key.size() == kRecordKeyBytes && key.back() == '\0';
    if (record) {
      RHIZOME_RETURN_IF_ERROR(Flush());
      if (!Follows(value)) {
        stopped_ = true;
        return Status::Ok();
      }
    }
    if (begun_ != 0) entries_.emplace_back(key, value);
    return Status::Ok();
  }

  Status Flush() {
    if (entries_.empty()) return Status::Ok();
    RHIZOME_RETURN_IF_ERROR(to_.PutDeltaEntries(entries_));
    entries_.clear();
    last_ = begun_;
    return Status::Ok();
  }

  std::uint64_t last() const { return last_; }

 private:
  static constexpr std::size_t kRecordKeyBytes = 9;
  static constexpr std::size_t kSequenceAt = 1;
  static constexpr std::size_t kBeforeAt = 9;

  bool Follows(std::string_view value) {
    const auto* bytes = reinterpret_cast<const std::byte*>(value.data());
    if (value.size() < kBeforeAt + sizeof(std::uint64_t)) return false;
    const auto before = LoadLittle<std::uint64_t>(bytes + kBeforeAt);
    if (last_ == base_ ? before > base_ : before != last_) return false;
    begun_ = LoadLittle<std::uint64_t>(bytes + kSequenceAt);
    return true;
  }

  Catalog& to_;
  const std::uint64_t base_;
  std::uint64_t last_;
  std::uint64_t begun_ = 0;  // the commit whose entries are being collected
  bool stopped_ = false;
  std::vector<std::pair<std::string, std::string>> entries_;
};

}  // namespace

/// Salvages in these steps:
///   1. Copies the catalogue to `work`, runs RocksDB's repair on the copy, and opens it.
///   2. Uses the commit record of the copy if it names an intact manifest.
///   3. Otherwise creates a record for the newest intact manifest.
Result<CatalogSalvage> SalvageCatalog(FileSystem& fs, const Path& store, const StoreId& id,
                                      const Path& work) {
  RHIZOME_RETURN_IF_ERROR(CopyFolder(fs, store / kCatalogName, work));
  CatalogSalvage salvage;
  const Status repaired = RepairDatabase(fs, work);
  if (!repaired.ok() && !ProvesDamage(repaired)) return Fail(repaired);
  if (repaired.ok()) {
    auto opened = Catalog::Open(fs, work, Catalog::Mode::kWrite, id);
    if (!opened && !ProvesDamage(opened.error())) return Fail(opened.error());
    if (opened) salvage.left = *std::move(opened);
  }
  if (salvage.left != nullptr) {
    const auto record = salvage.left->Current();
    if (!record && !ProvesDamage(record.error())) return Fail(record.error());
    const auto manifest = record ? ReadCommittedManifest(fs, store, id, *record)
                                 : Result<Manifest>(Fail(record.error()));
    if (!manifest && !ProvesDamage(manifest.error())) return Fail(manifest.error());
    if (manifest) {
      salvage.record = *record;
      salvage.from_catalog = true;
      return salvage;
    }
  }
  RHIZOME_ASSIGN_OR_RETURN(salvage.record, NewestManifest(fs, store, id));
  // Without the record it is unknown which commits are in the generation, so numbers continue above
  // all of them.
  const auto last = salvage.left == nullptr ? Result<std::uint64_t>(0) : salvage.left->LastDelta();
  if (!last && !ProvesDamage(last.error())) return Fail(last.error());
  if (salvage.record) {
    salvage.record->sequence = last.value_or(0) + 1;
    salvage.record->base_sequence = salvage.record->sequence;
  }
  return salvage;
}

Result<bool> HoldsCommit(FileSystem& fs, const StoreId& id, const Path& catalog) {
  const auto opened = Catalog::Open(fs, catalog, Catalog::Mode::kRead, id);
  const auto record = opened ? (*opened)->Current() : Result<CommitRecord>(Fail(opened.error()));
  if (!record && !ProvesDamage(record.error())) return Fail(record.error());
  return record.has_value();
}

Status PutCatalog(FileSystem& fs, const Path& from, const Path& to) {
  RHIZOME_RETURN_IF_ERROR(CreateDirectories(fs, to));
  RHIZOME_ASSIGN_OR_RETURN(const auto entries, fs.List(from));
  const auto put = [&](const std::string& name) -> Status {
    RHIZOME_ASSIGN_OR_RETURN(const FileInfo info, fs.Stat(from / name));
    return LinkOrCopyFile(fs, from / name, to / name, info.size_bytes);
  };
  for (const DirectoryEntry& entry : entries)
    if (entry.kind == DirectoryEntry::Kind::kFile && entry.name != kCatalogCurrent &&
        entry.name != kLockName)
      RHIZOME_RETURN_IF_ERROR(put(entry.name));
  RHIZOME_RETURN_IF_ERROR(fs.SyncDirectory(to));
  RHIZOME_RETURN_IF_ERROR(put(std::string(kCatalogCurrent)));
  return fs.SyncDirectory(to);
}

Result<std::uint64_t> CopyDelta(Catalog& from, std::uint64_t base, Catalog& to) {
  DeltaCopier copier(base, to);
  const Status scanned = from.ScanDeltaEntries(
      base, [&](std::string_view key, std::string_view value) { return copier.See(key, value); });
  if (!scanned.ok() && scanned.code() != StatusCode::kCorruption) return Fail(scanned);
  // A commit in which damage was found is not written.
  if (scanned.ok()) RHIZOME_RETURN_IF_ERROR(copier.Flush());
  return copier.last();
}

}  // namespace internal
}  // namespace rhizome
