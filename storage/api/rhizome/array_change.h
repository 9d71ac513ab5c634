#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "rhizome/manifest.h"
#include "rhizome/store.h"
#include "rhizome/store_options.h"

namespace RHIZOME_API rhizome {

/// A finished array to publish: files below `root`, in the layout of ChunkArrayWriter.
struct ArraySource {
  std::span<const ArrayEntry> arrays;  ///< the array and, in layout kRow, its sidecar
  Path root;                           ///< root of the files, such as a job's scratch folder
  std::span<const FileEntry> files;
};

/// The store that ArrayChange::Run changes.
struct ChangedStore {
  std::uint64_t generation = 0;    ///< generation that must be current; 0: any
  std::optional<StoreId> id = {};  ///< id that the store must have; unset: any
  LockWait wait = {};              ///< time to wait for the writer's lock
};

/// A change of the arrays of a store. It consists of any number of steps, which become visible
/// atomically as one new manifest version. The steps work only in memory; Commit writes.
///
/// The files of dropped arrays remain on disk while a handle sees an earlier state. They are
/// removed at the end of Run, or by a later opening for writing.
///
/// Errors of the steps: kNotFound, no such array, version or alias (the message lists the existing
/// ones); kAlreadyExists; kInvalidArgument.
/// Threads: one at a time.
/// Ownership: `store` and the sources must outlive it.
class ArrayChange {
 public:
  /// Begins a change of `store`, which must be open for writing.
  static Result<ArrayChange> Begin(Store& store);
  ArrayChange(ArrayChange&&) noexcept;
  ArrayChange& operator=(ArrayChange&&) noexcept;
  ~ArrayChange();

  /// Takes the writer's lock of the store at `path`, checks that it is the store that `expected`
  /// describes, runs `steps`, and commits the change. Jobs call it at their end, so it does not
  /// remove scratch folders. If any generation is accepted, it may use the store's reserve
  /// (reserve.h), so that a change which drops arrays can commit on a full disk. Errors: errors of
  /// Store::Open, such as kBusy; kInvalidArgument, another generation is current; kIoError, another
  /// store is at `path`, which was not changed; errors of the steps.
  static Status Run(FileSystem& fs, const Path& path, const ChangedStore& expected,
                    const std::function<Status(ArrayChange&)>& steps);

  /// Checks that no process has the store open for writing, by taking the lock for a moment. Jobs
  /// that end with Run call it before their work, which would otherwise be lost. A writer may still
  /// appear later.
  /// Errors: kBusy; errors of FileSystem::Lock.
  static Status CheckNoWriter(FileSystem& fs, const Path& path);

  /// Removes the files of dropped arrays of the store `id`. A caller that read the store itself,
  /// and so kept the files, calls this after closing it. Files that another reader still sees
  /// remain until a later opening for writing. Errors: errors of Store::Open; kBusy; kIoError,
  /// another store is at `path`.
  static Status RemoveDropped(FileSystem& fs, const Path& path, const StoreId& id);

  /// Adds an array under a name that no array has. Returns its stored name, which is the name of a
  /// version if the folder of the plain name was used before.
  Result<std::string> Add(const ArraySource& source);

  /// Adds the next version of the array `name`, and returns its stored name. An existing array
  /// without versions first becomes version 1. If there is no array, the source becomes version 1.
  Result<std::string> AddVersion(const ArraySource& source, std::string_view name);

  /// Replaces an array or a version by the source: the source becomes the next version, aliases of
  /// the old version move to it, and the old version is dropped. If it is the same array with other
  /// rows, it should have the same array_id. An array of texts without a dictionary of its own
  /// keeps the old one's. Returns its stored name.
  Result<std::string> Replace(std::string_view reference, const ArraySource& source);

  /// Drops an array; a version (emb@3) to which no alias refers; all parts of an edge attribute;
  /// or, if `all_versions`, every version of an array with its aliases.
  /// Errors: as above; kInvalidArgument, an edge attribute has values in commits since the last
  /// compaction; kBusy, a graph of this process writes to the store of an edge attribute.
  Status Drop(std::string_view reference, bool all_versions = false);

  /// Drops a stored array whose bytes are lost, even if aliases refer to it: they fall back to the
  /// previous version, or are dropped. For an edge attribute, drops all of its parts.
  Status DropLost(std::string_view stored);

  /// Replaces the manifest's entries of stored arrays, and of the `files` of theirs that differ.
  /// Only a repair calls it, which then puts these files in the place of lost ones.
  Status PatchLost(std::span<const ArrayEntry> arrays, std::span<const FileEntry> files);

  /// Replaces the ends of the edge types in the manifest. Only a repair calls it.
  /// Errors: kInvalidArgument, the manifest has another number of ends.
  Status SetEdgeEnds(std::vector<EdgeEnds> ends);

  /// Renames an array, with all of its versions and aliases.
  Status Rename(std::string_view from, std::string_view to);

  /// Makes `name`@`alias` refer to a version; its history keeps the previous one.
  Status SetAlias(std::string_view name, std::string_view alias, std::uint64_t version);
  Status DropAlias(std::string_view name, std::string_view alias);

  /// Makes an alias refer to its previous version again, and returns that version.
  Result<std::uint64_t> RollBack(std::string_view name, std::string_view alias);

  /// Drops all versions of `name` except the newest `count` and those to which aliases refer.
  /// Returns the dropped versions.
  Result<std::vector<std::uint64_t>> KeepNewest(std::string_view name, std::uint64_t count);

  /// The manifest that Commit will make current; its version number is not incremented yet.
  const Manifest& manifest() const;

  /// The store to change.
  Store& store() const;

  /// Commits the change durably. Errors: kInvalidArgument, the store has changed since this change
  /// began: begin again; kBusy, it is being compacted; kIoError, kOutOfSpace and others: nothing
  /// has changed, unless the write of the commit record itself failed; then the outcome is unknown
  /// until the store is opened again.
  Status Commit();

 private:
  explicit ArrayChange(Store& store);
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rhizome
