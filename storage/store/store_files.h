#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/storage/catalog.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/manifest.h"
#include "rhizome/storage/place_names.h"
#include "rhizome/storage/walk_files.h"

namespace rhizome {

/// The format of stores that this build makes, and the newest that it reads.
inline constexpr std::uint64_t kStoreFormatVersion = 1;

/// "rhizome <pid>\n", what a lock file of ours holds.
std::string LockContent();

/// Takes the writer's lock of the store at `path`. Who only looks whether there is a writer
/// (verify) holds it for an instant: that is waited for. Errors: kBusy, a writer is at work, after
/// 100 ms; those of FileSystem::Lock.
Result<std::unique_ptr<FileLock>> LockForWriting(FileSystem& fs, const Path& path);

/// The three lines of FORMAT.
std::string FormatText(const StoreId& id);

/// Reads FORMAT. Errors: kNotFound, no store at `store`, or one whose making stopped at FORMAT;
/// kUnsupported, a newer format; kCorruption.
Result<StoreId> ReadFormat(FileSystem& fs, const Path& store);

/// The number of the format that FORMAT names, be it one that this build knows or not. Errors: as
/// above, but for a newer format.
Result<std::uint64_t> ReadFormatVersion(FileSystem& fs, const Path& store);

/// "MANIFEST-000001" and "000001": at least six digits.
std::string ManifestName(std::uint64_t version);
std::string GenerationName(std::uint64_t generation);

/// The number in such a name; nothing for any other name.
std::optional<std::uint64_t> ParseNumbered(std::string_view name, std::string_view prefix);

/// Where the manifest that a commit names stands.
Path CommittedManifestPath(const Path& store, const CommitRecord& record);

/// Reads the manifest that a commit names. Errors: kNotFound, no such file; kCorruption, the file
/// is not what was committed.
Result<Manifest> ReadCommittedManifest(FileSystem& fs, const Path& store, const StoreId& id,
                                       const CommitRecord& record);

/// Reads any manifest file, without a commit to compare it with.
Result<Manifest> ReadManifestFile(FileSystem& fs, const Path& path, const StoreId& id);

/// Removes what no manifest names: later generations and manifests (a killed writer's), files of
/// the current generation that no manifest names, earlier generations that neither a reader pins
/// nor `current.keep` keeps, earlier manifests that no reader pins and, if told so, the scratch
/// folders of jobs that do not run; but nothing of the generation `building`, which is being
/// written (0: none is). The caller holds LOCK.
Status RemoveOrphans(FileSystem& fs, const Path& store, const StoreId& id, const Manifest& current,
                     bool with_scratch, std::uint64_t building = 0);

/// The generations before `current` that its rule keeps, the newest first: sound manifests, not too
/// many, not too large together, and the disk has as much left as they take.
std::vector<std::uint64_t> KeptGenerations(FileSystem& fs, const Path& store, const StoreId& id,
                                           const Manifest& current);

/// Does a reader pin a generation before `current`?
Result<bool> EarlierIsPinned(FileSystem& fs, const Path& store, std::uint64_t current);

/// Jobs write into the folder for scratch files as they come: a store where it is none is refused
/// by whoever opens it. Errors: kCorruption.
Status CheckScratch(FileSystem& fs, const Path& store);

/// Does a generation hold a manifest? Then the catalogue was whole once.
Result<bool> HasManifest(FileSystem& fs, const Path& store);

/// Is the folder `store` what a killed ingestion of ours left, with nothing committed in it?
/// Errors: kAlreadyExists, saying what it is instead.
Status CheckLeftover(FileSystem& fs, const Path& store);

/// Removes all but LOCK from a leftover, FORMAT last. The caller holds LOCK.
Status ClearLeftover(FileSystem& fs, const Path& store);

}  // namespace rhizome
