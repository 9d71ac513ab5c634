#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/storage/array_versions.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/manifest.h"
#include "rhizome/storage/store.h"

namespace RHIZOME_API rhizome {

/// A finished array to publish: files below `root`, laid out as ChunkArrayWriter leaves them.
struct ArraySource {
  std::span<const ArrayEntry> arrays;  ///< the array, and its sidecar in layout row
  Path root;                           ///< such as a job's scratch folder
  std::span<const FileEntry> files;
};

/// A change of the arrays of a store: any number of steps, which become visible together, as one
/// new manifest version, or not at all. The steps touch nothing but memory; Commit writes.
///
/// Files come under their new names as links where the file system has them; only zarr.json, which
/// holds the array's name, is written anew. What is dropped stays on disk as long as somebody pins
/// the generation, and goes at the end of Run or at an opening for writing after that.
///
/// Errors of the steps: kNotFound, no such array, version or alias (the message lists those there
/// are); kAlreadyExists; kInvalidArgument.
/// Threads: one at a time. Ownership: `store` and the sources must outlive it.
class ArrayChange {
 public:
  /// `store` is open for writing.
  static Result<ArrayChange> Begin(Store& store);

  /// Takes the writer's lock of the store at `path`, checks that `generation` is still current
  /// (0: whichever is), lets `steps` make a change and commits it. Jobs end with this: it leaves
  /// scratch folders alone. With 0 a full disk has room for the commit, if the store could set some
  /// aside (reserve.h): a change that drops arrays makes room. Errors: those of Store::Open, kBusy
  /// among them; kInvalidArgument, a compaction came in between; those of the steps.
  static Status Run(FileSystem& fs, const Path& path, std::uint64_t generation,
                    const std::function<Status(ArrayChange&)>& steps);

  /// Removes the files of arrays that were dropped, for who read the store itself when they were: a
  /// reader keeps them. Who reads it still keeps them longer, until the next open for writing.
  /// Errors: those of Store::Open; kBusy.
  static Status RemoveDropped(FileSystem& fs, const Path& path);

  /// Adds an array under a name that no array bears. Returns the name that it is stored under:
  /// another version of it where the folder of that name was used before.
  Result<std::string> Add(const ArraySource& source);

  /// Adds the next version of the array `name`. One that has no versions yet becomes version 1.
  /// Where there is none, this one is version 1.
  Result<std::string> AddVersion(const ArraySource& source, std::string_view name);

  /// Puts the source in the place of an array or version: the next version, to which its aliases
  /// move; the old one is dropped. The same array with other rows: its array_id should stay.
  Result<std::string> Replace(std::string_view reference, const ArraySource& source);

  /// Drops an array, a version (emb@3) that no alias stands for, all parts of an attribute of the
  /// edges, or, if `all_versions`, every version of an array with its aliases.
  Status Drop(std::string_view reference, bool all_versions = false);

  /// Drops a stored array whose bytes are lost, whatever stands for it: aliases go back to what
  /// they stood for before, or go too. Of an attribute of edges, all parts.
  Status DropLost(std::string_view stored);

  /// Gives an array without versions another name, or an array with versions: then all of them, and
  /// their aliases.
  Status Rename(std::string_view from, std::string_view to);

  /// Lets `name`@`alias` stand for a version from now on; what it stood for is remembered.
  Status SetAlias(std::string_view name, std::string_view alias, std::uint64_t version);
  Status DropAlias(std::string_view name, std::string_view alias);

  /// Lets an alias stand again for what it stood for before. Returns that version.
  Result<std::uint64_t> RollBack(std::string_view name, std::string_view alias);

  /// Drops versions of `name` but the newest `count` and those that aliases stand for. Returns the
  /// versions that were dropped.
  Result<std::vector<std::uint64_t>> KeepNewest(std::string_view name, std::uint64_t count);

  /// What the store will look like.
  const Manifest& manifest() const { return next_; }

  /// The store that is changed, for what a job has to write beside its arrays.
  Store& store() const { return *store_; }

  /// Makes it so. Errors: kInvalidArgument, the store has moved on since the change began: begin
  /// again; kBusy, it is being compacted; kIoError, kOutOfSpace, ...; then nothing has changed, or
  /// (after a failed commit) the store must be opened again to know.
  Status Commit();

 private:
  /// A file of the next manifest that is not there yet: a link of `from`, or `text`.
  struct NewFile {
    Path from;
    std::string text;
    FileEntry entry;
  };

  explicit ArrayChange(Store& store) : store_(&store), next_(*store.Shown()) {}
  Result<bool> IsFresh(std::string_view stored) const;
  Result<std::string> FreshName(const std::string& name);
  std::uint64_t NextVersion(std::string_view name);
  ArraySeries& SeriesOf(std::string_view name);
  Status Publish(const ArraySource& source, const std::string& stored);
  Status PublishOne(const ArraySource& source, const ArrayEntry& entry, const std::string& stored);
  Status MoveStored(const std::string& from, const std::string& to);
  void RemoveStored(std::string_view stored);
  Status DropVersion(std::string_view name, std::uint64_t version);
  Status DropEdgeAttribute(std::string_view name);
  Status NotFound(std::string_view reference) const;
  Result<ArrayAlias*> FindAlias(std::string_view name, std::string_view alias);
  Status CheckBase() const;
  Status WriteFiles();
  Status MakeFolder(const Path& folder);

  Store* store_;
  Manifest next_;
  std::vector<NewFile> new_files_;
  bool drops_ = false;
};

}  // namespace rhizome
