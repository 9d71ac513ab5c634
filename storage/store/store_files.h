#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/file_system.h"
#include "rhizome/manifest.h"
#include "rhizome/store_options.h"
#include "storage/catalog/catalog.h"
#include "storage/io/place_names.h"
#include "storage/io/walk_files.h"

namespace rhizome {
inline namespace internal {

/// The store format that this build creates, and the newest that it reads.
inline constexpr std::uint64_t kStoreFormatVersion = 1;

/// Returns the content of a lock file, "rhizome <pid>\n".
std::string LockContent();

/// Takes the writer's lock of the store at `path`. A process that only checks whether there is a
/// writer (verify) holds it for a moment, so this waits at least 100 ms, and longer if `wait`
/// allows it. Errors: kBusy, a writer is active; kInterrupted, `wait.control` was cancelled; errors
/// of FileSystem::Lock.
Result<std::unique_ptr<FileLock>> LockForWriting(FileSystem& fs, const Path& path,
                                                 const LockWait& wait = {});

/// Returns the three lines of FORMAT.
std::string FormatText(const StoreId& id);

/// Reads FORMAT. Errors: kNotFound, no store at `store`, or one whose creation ended at FORMAT;
/// kUnsupported, a newer format; kCorruption.
Result<StoreId> ReadFormat(FileSystem& fs, const Path& store);

/// Returns the format number in FORMAT, even if this build does not support it. Errors: as for
/// ReadFormat, except kUnsupported.
Result<std::uint64_t> ReadFormatVersion(FileSystem& fs, const Path& store);

/// Return names such as "MANIFEST-000001" and "000001", with at least six digits.
std::string ManifestName(std::uint64_t version);
std::string GenerationName(std::uint64_t generation);

/// Returns the number in such a name; nullopt for any other name.
std::optional<std::uint64_t> ParseNumbered(std::string_view name, std::string_view prefix);

/// Returns the path of the manifest that a commit names.
Path CommittedManifestPath(const Path& store, const CommitRecord& record);

/// Reads the manifest that a commit names. Errors: kNotFound, no such file; kCorruption, the file
/// is not the one that was committed.
Result<Manifest> ReadCommittedManifest(FileSystem& fs, const Path& store, const StoreId& id,
                                       const CommitRecord& record);

/// Hash the files of a generation that contain its graph, which do not change when arrays are added
/// or dropped; or the files of one of its arrays, independently of its name.
Hash128 HashOfGraph(const Manifest& manifest);
Hash128 HashOfArray(const Manifest& manifest, const ArrayEntry& array);

/// Reads a manifest file without comparing it with a commit. Errors: kNotFound; kCorruption.
Result<Manifest> ReadManifestFile(FileSystem& fs, const Path& path, const StoreId& id);

/// Removes orphans: generations and manifests later than the current ones (of a killed writer; not
/// those that a compaction of another process is writing),
/// files of the current generation that no manifest names, earlier generations that are neither
/// pinned by a reader nor kept by `current.keep`, earlier manifests that no reader pins and, if
/// `with_scratch`, the scratch folders of jobs that are not running. Does not touch the generation
/// `building`, which is being written (0: none). The caller must hold LOCK. Errors: kCorruption,
/// the store contains links, pipes or devices; kIoError.
Status RemoveOrphans(FileSystem& fs, const Path& store, const StoreId& id, const Manifest& current,
                     bool with_scratch, std::uint64_t building = 0);

/// Returns the generations before `current` that its rule keeps, newest first. They have intact
/// manifests, their number and total size are within the rule, and the free space on the disk is at
/// least their total size.
std::vector<std::uint64_t> KeptGenerations(FileSystem& fs, const Path& store, const StoreId& id,
                                           const Manifest& current);

/// Returns whether a reader pins a generation before `current`.
Result<bool> EarlierIsPinned(FileSystem& fs, const Path& store, std::uint64_t current);

/// Checks that scratch/, if it exists, is a folder, because jobs write into it without further
/// checks.
/// Errors: kCorruption.
Status CheckScratch(FileSystem& fs, const Path& store);

/// Returns whether a generation contains a manifest, which proves that the catalogue was once
/// complete.
Result<bool> HasManifest(FileSystem& fs, const Path& store);

/// Checks that the folder `store` is empty, or the leftover of a killed ingestion of Rhizome in
/// which nothing was committed. Errors: kAlreadyExists, saying what it is instead.
Status CheckLeftover(FileSystem& fs, const Path& store);

/// Removes everything except LOCK from a leftover, FORMAT last. The caller must hold LOCK.
Status ClearLeftover(FileSystem& fs, const Path& store);

}  // namespace internal
}  // namespace rhizome
