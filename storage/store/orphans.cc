#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "rhizome/store.h"
#include "storage/array/array_rules.h"
#include "storage/base/damage.h"
#include "storage/base/mutant.h"
#include "storage/catalog/catalog_seal.h"
#include "storage/io/files.h"
#include "storage/io/job_folder.h"
#include "storage/io/walk_files.h"
#include "storage/store/store_files.h"

namespace rhizome {
inline namespace internal {

namespace {

using Kind = DirectoryEntry::Kind;
using LockMode = FileSystem::LockMode;

constexpr std::uint64_t kMaxHeadBytes = 4096;

/// Removes the manifests of `folder` that are not in `kept`. Called before any of their files is
/// removed, since a manifest guarantees that its files exist, even after a power cut.
Status RemoveManifests(FileSystem& fs, const Path& folder, const std::set<std::string>& kept) {
  RHIZOME_ASSIGN_OR_RETURN(const auto entries, fs.List(folder));
  bool removed = false;
  for (const DirectoryEntry& entry : entries) {
    if (!entry.name.starts_with(kManifestPrefix) || entry.kind == Kind::kDirectory) continue;
    if (kept.contains(entry.name)) continue;
    RHIZOME_RETURN_IF_ERROR(fs.RemoveFile(folder / entry.name));
    removed = true;
  }
  return removed ? fs.SyncDirectory(folder) : Status::Ok();
}

/// Removes an earlier generation that no reader pins.
Status RemoveSuperseded(FileSystem& fs, const Path& folder) {
  const auto pin = fs.Lock(folder / kPinName, LockMode::kExclusive, "");
  if (!pin && !RHIZOME_MUTANT("pinned generation is removed"))
    return pin.error().code() == StatusCode::kBusy ? Status::Ok() : pin.error();
  if (!RHIZOME_MUTANT("files go before their manifest"))
    RHIZOME_RETURN_IF_ERROR(RemoveManifests(fs, folder, {}));
  return RemoveTree(fs, folder);
}

/// Removes a later generation, unless a process is writing it: it locks PIN after it created the
/// folder.
Status RemoveUncommitted(FileSystem& fs, const Path& folder) {
  const Path path = folder / kPinName;
  if (!fs.Stat(path)) return RemoveTree(fs, folder);
  const auto pin = fs.Lock(path, LockMode::kExclusive, "");
  if (!pin && pin.error().code() == StatusCode::kBusy) return Status::Ok();
  if (!pin) return pin.error();
  return RemoveTree(fs, folder);
}

/// Returns the total size of a generation's files according to its newest manifest; nullopt unless
/// that manifest is intact.
std::optional<std::uint64_t> BytesOf(FileSystem& fs, const Path& folder, const StoreId& id) {
  const auto entries = fs.List(folder);
  if (!entries) return std::nullopt;
  std::uint64_t newest = 0;
  for (const DirectoryEntry& entry : *entries)
    newest = std::max(newest, ParseNumbered(entry.name, kManifestPrefix).value_or(0));
  if (newest == 0) return std::nullopt;
  const auto manifest = ReadManifestFile(fs, folder / ManifestName(newest), id);
  if (!manifest) return std::nullopt;
  std::uint64_t bytes = 0;
  for (const FileEntry& file : manifest->files) bytes += file.size_bytes;
  return bytes;
}

/// Returns the numbers of the generations before `current`, newest first.
Result<std::vector<std::uint64_t>> EarlierGenerations(FileSystem& fs, const Path& store,
                                                      std::uint64_t current) {
  RHIZOME_ASSIGN_OR_RETURN(const auto entries, fs.List(store / kGenerationsName));
  std::vector<std::uint64_t> earlier;
  for (const DirectoryEntry& entry : entries) {
    const auto generation = ParseNumbered(entry.name, "");
    if (generation && entry.kind == Kind::kDirectory && *generation < current)
      earlier.push_back(*generation);
  }
  std::sort(earlier.rbegin(), earlier.rend());
  return earlier;
}

/// Removes files of the store that are not in `keep`, and folders that are empty afterwards.
/// Returns whether anything is left in `folder`.
Result<bool> Prune(FileSystem& fs, const Path& folder, const std::string& prefix,
                   const std::set<std::string>& keep) {
  RHIZOME_ASSIGN_OR_RETURN(const auto entries, fs.List(folder));
  bool left = false;
  for (const DirectoryEntry& entry : entries) {
    const std::string relative = prefix + entry.name;
    if (IsForeignEntry(entry) && !keep.contains(relative)) {
      left = true;
    } else if (entry.kind == Kind::kDirectory) {
      RHIZOME_ASSIGN_OR_RETURN(const bool inner,
                               Prune(fs, folder / entry.name, relative + "/", keep));
      if (!inner) RHIZOME_RETURN_IF_ERROR(fs.RemoveDirectory(folder / entry.name));
      left = left || inner;
    } else if (keep.contains(relative)) {
      left = true;
    } else {
      RHIZOME_RETURN_IF_ERROR(fs.RemoveFile(folder / entry.name));
    }
  }
  return left;
}

// Removes from the current generation everything that no manifest in use names. A reader locks PIN
// and its manifest; manifests later than the current one were never committed. Unused manifests
// stay locked until they are removed, so that no reader begins to use one.
Status PruneCurrent(FileSystem& fs, const Path& folder, const StoreId& id,
                    const Manifest& current) {
  const auto pin = fs.Lock(folder / kPinName, LockMode::kExclusive, "");
  if (!pin && pin.error().code() != StatusCode::kBusy) return pin.error();
  std::vector<std::unique_ptr<FileLock>> unused;
  std::set<std::string> keep = {std::string(kPinName), ManifestName(current.version)};
  const auto keep_files = [&](const Manifest& manifest) {
    for (const FileEntry& file : manifest.files) keep.insert(file.path);
  };
  keep_files(current);
  RHIZOME_ASSIGN_OR_RETURN(const auto entries, fs.List(folder));
  for (const DirectoryEntry& entry : entries) {
    const auto version = ParseNumbered(entry.name, kManifestPrefix);
    if (RHIZOME_MUTANT("pinned version is removed")) continue;
    if (!version || *version >= current.version || pin) continue;
    if (entry.kind != Kind::kFile) return Status::Ok();  // damage, which verify reports
    auto lock = fs.Lock(folder / entry.name, LockMode::kExclusive, "");
    if (!lock && lock.error().code() != StatusCode::kBusy) return lock.error();
    if (lock) {
      unused.push_back(*std::move(lock));
      continue;
    }
    const auto manifest = ReadManifestFile(fs, folder / entry.name, id);
    if (!manifest) return Status::Ok();  // it may name any file: leave all of them
    keep.insert(entry.name);
    keep_files(*manifest);
  }
  RHIZOME_RETURN_IF_ERROR(RemoveManifests(fs, folder, keep));
  RHIZOME_RETURN_IF_ERROR(Prune(fs, folder, "", keep));
  return Status::Ok();
}

// Removes from a kept earlier generation the files that none of its manifests names. A power cut
// may bring back files whose removal was not durable when the next generation was committed.
Status PruneKept(FileSystem& fs, const Path& folder, const StoreId& id) {
  std::set<std::string> keep = {std::string(kPinName)};
  RHIZOME_ASSIGN_OR_RETURN(const auto entries, fs.List(folder));
  for (const DirectoryEntry& entry : entries) {
    if (!ParseNumbered(entry.name, kManifestPrefix)) continue;
    const auto manifest = ReadManifestFile(fs, folder / entry.name, id);
    if (!manifest) return Status::Ok();  // it may name any file
    keep.insert(entry.name);
    for (const FileEntry& file : manifest->files) keep.insert(file.path);
  }
  RHIZOME_RETURN_IF_ERROR(Prune(fs, folder, "", keep));
  return Status::Ok();
}

Status TakenBy(const Path& store, std::string_view what) {
  return Status::AlreadyExists(
      fmt::format("'{}' exists and {}; choose another path", store.string(), what));
}

/// Returns whether a file of ours that begins with `head` may look like `text` after a kill or a
/// power cut: complete, truncated anywhere, or with zeros in places that were never written.
bool IsOursOrTorn(std::string_view text, std::string_view head) {
  for (std::size_t i = 0; i < std::min(text.size(), head.size()); ++i)
    if (text[i] != head[i] && text[i] != '\0') return false;
  return true;
}

Status CheckHeadFile(FileSystem& fs, const Path& store, const DirectoryEntry& entry,
                     std::string_view head) {
  const std::string_view name = entry.name;
  if (entry.kind != Kind::kFile)
    return TakenBy(store, fmt::format("its {} is not a regular file", name));
  const auto bytes = ReadWholeFile(fs, store / name, kMaxHeadBytes);
  if (!bytes && bytes.error().code() == StatusCode::kCorruption)
    return TakenBy(store, fmt::format("its {} is too long to be written by Rhizome", name));
  if (!bytes) return bytes.error();
  const std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  if (IsOursOrTorn(text, head)) return Status::Ok();
  return TakenBy(store, fmt::format("its {} was not written by Rhizome", name));
}

Status CheckNothingCommitted(FileSystem& fs, const Path& store) {
  const auto id = ReadFormat(fs, store);
  if (!id && !ProvesDamage(id.error())) return id.error();
  if (!id) return TakenBy(store, "its FORMAT cannot be read");
  const auto catalog = Catalog::Open(fs, store / kCatalogName, Catalog::Mode::kRead, *id);
  if (!catalog) {
    if (!ProvesDamage(catalog.error())) return catalog.error();
    if (catalog.error().code() != StatusCode::kNotFound)
      return TakenBy(store, "its catalogue cannot be read");
    // The catalogue is created before any manifest, so a manifest proves that the catalogue was
    // lost.
    RHIZOME_ASSIGN_OR_RETURN(const bool has_manifest, HasManifest(fs, store));
    return has_manifest ? TakenBy(store, "is a damaged store") : Status::Ok();
  }
  const auto record = (*catalog)->Current();
  if (!record && record.error().code() == StatusCode::kNotFound) return Status::Ok();
  return TakenBy(store, "is a store");
}

}  // namespace

Result<bool> HasManifest(FileSystem& fs, const Path& store) {
  const auto generations = fs.List(store / kGenerationsName);
  if (!generations && generations.error().code() == StatusCode::kNotFound) return false;
  if (!generations) return Fail(generations.error());
  for (const DirectoryEntry& generation : *generations) {
    if (generation.kind != Kind::kDirectory) continue;
    RHIZOME_ASSIGN_OR_RETURN(const auto files, fs.List(store / kGenerationsName / generation.name));
    for (const DirectoryEntry& file : files)
      if (file.name.starts_with(kManifestPrefix)) return true;
  }
  return false;
}

std::vector<std::uint64_t> KeptGenerations(FileSystem& fs, const Path& store, const StoreId& id,
                                           const Manifest& current) {
  std::vector<std::uint64_t> kept;
  const auto earlier = EarlierGenerations(fs, store, current.generation);
  if (!earlier || earlier->empty() || current.keep.generations == 0) return kept;
  const std::uint64_t free = fs.FreeBytes(store).value_or(0);
  const std::uint64_t most = std::min(current.keep.bytes, free);
  std::uint64_t bytes = 0;
  for (const std::uint64_t generation : *earlier) {
    if (kept.size() == current.keep.generations) break;
    const auto size = BytesOf(fs, Store::GenerationFolder(store, generation), id);
    if (!size) continue;  // damaged, or about to be removed
    if (*size > most - bytes) break;
    bytes += *size;
    kept.push_back(generation);
  }
  return kept;
}

Result<bool> EarlierIsPinned(FileSystem& fs, const Path& store, std::uint64_t current) {
  RHIZOME_ASSIGN_OR_RETURN(const auto earlier, EarlierGenerations(fs, store, current));
  for (const std::uint64_t generation : earlier) {
    const Path pin = Store::GenerationFolder(store, generation) / kPinName;
    const auto lock = fs.Lock(pin, LockMode::kExclusive, "");
    if (!lock && lock.error().code() == StatusCode::kBusy) return true;
    if (!lock && lock.error().code() != StatusCode::kNotFound) return Fail(lock.error());
  }
  return false;
}

/// Removes orphans in these steps:
///   1. Refuses a store that contains links, pipes or devices, before anything is removed.
///   2. Removes generations after the current one, which were never committed, unless a process is
///      writing them.
///   3. Removes earlier generations, unless a reader pins them or the manifest's rule keeps them;
///      from the kept ones, removes files that no manifest names.
///   4. Removes from the current generation everything that no manifest in use names.
///   5. Removes the scratch folders of jobs that are not running, if `with_scratch`.
Status RemoveOrphans(FileSystem& fs, const Path& store, const StoreId& id, const Manifest& current,
                     bool with_scratch, std::uint64_t building) {
  if (RHIZOME_MUTANT("orphans stay")) return Status::Ok();
  const Path generations = store / kGenerationsName;
  // An entry that no store contains is a sign that this folder may not be a store.
  RHIZOME_RETURN_IF_ERROR(CheckPlain(fs, generations));
  RHIZOME_ASSIGN_OR_RETURN(const auto entries, fs.List(generations));
  const auto kept = KeptGenerations(fs, store, id, current);
  for (const DirectoryEntry& entry : entries) {
    const auto generation = ParseNumbered(entry.name, "");
    if (!generation || entry.kind != Kind::kDirectory || *generation == building) continue;
    const Path folder = generations / entry.name;
    if (*generation > current.generation) {
      RHIZOME_RETURN_IF_ERROR(RemoveUncommitted(fs, folder));
    } else if (*generation < current.generation) {
      const bool stays = std::find(kept.begin(), kept.end(), *generation) != kept.end();
      RHIZOME_RETURN_IF_ERROR(stays ? PruneKept(fs, folder, id) : RemoveSuperseded(fs, folder));
    } else {
      RHIZOME_RETURN_IF_ERROR(PruneCurrent(fs, folder, id, current));
    }
  }
  return with_scratch ? RemoveIdleJobs(fs, store / kScratchName) : Status::Ok();
}

Status CheckLeftover(FileSystem& fs, const Path& store) {
  RHIZOME_ASSIGN_OR_RETURN(const auto entries, fs.List(store));
  if (entries.empty()) return Status::Ok();
  constexpr std::string_view kOurs[] = {kLockName, kFormatName, kCatalogName, kGenerationsName,
                                        kScratchName};
  for (const DirectoryEntry& entry : entries) {
    if (IsForeignEntry(entry)) continue;
    if (std::find(std::begin(kOurs), std::end(kOurs), entry.name) == std::end(kOurs))
      return TakenBy(store,
                     fmt::format("holds '{}', which was not written by Rhizome", entry.name));
  }
  bool only_head = true;
  for (const DirectoryEntry& entry : entries) {
    if (entry.name == kLockName) {
      RHIZOME_RETURN_IF_ERROR(CheckHeadFile(fs, store, entry, "rhizome"));
    } else if (entry.name == kFormatName) {
      RHIZOME_RETURN_IF_ERROR(CheckHeadFile(fs, store, entry, "rhizome store\n"));
    } else if (!IsForeignEntry(entry)) {
      only_head = false;
    }
  }
  // Nothing else is created before FORMAT is synced, so a folder with only these files is a
  // leftover.
  return only_head ? Status::Ok() : CheckNothingCommitted(fs, store);
}

Status ClearLeftover(FileSystem& fs, const Path& store) {
  // With its seal, a half removed catalogue would count as damaged.
  RHIZOME_RETURN_IF_ERROR(BreakCatalogSeal(fs, store / kCatalogName));
  for (const std::string_view name : {kScratchName, kGenerationsName, kCatalogName})
    RHIZOME_RETURN_IF_ERROR(CheckPlain(fs, store / name));
  // Each removal is durable before the next: manifests without a catalogue would look like a
  // damaged store, and a catalogue without FORMAT like another program's database.
  for (const std::string_view name : {kScratchName, kGenerationsName, kCatalogName}) {
    RHIZOME_RETURN_IF_ERROR(RemoveTree(fs, store / name));
    RHIZOME_RETURN_IF_ERROR(fs.SyncDirectory(store));
  }
  const Status removed = fs.RemoveFile(store / kFormatName);
  return removed.code() == StatusCode::kNotFound ? Status::Ok() : removed;
}

}  // namespace internal
}  // namespace rhizome
