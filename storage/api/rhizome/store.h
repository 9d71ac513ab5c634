#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/chunk_array.h"
#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "rhizome/manifest.h"
#include "rhizome/store_options.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace internal {
class GenerationWriter;
class SectionFile;
class StoreCopy;
enum class FileKind : std::uint32_t;
struct DeltaCommit;
}  // namespace internal
}  // namespace rhizome

namespace RHIZOME_API rhizome {

class Logger;

/// A store is a directory that contains one graph (docs/DESIGN.md, section 3). This class manages
/// its files, locks, manifests and the commit point; Graph (rhizome/graph.h) reads the contents.
///
/// Threads: const functions, CommitDelta and CollectGarbage may be called from many threads, also
/// concurrently with a GenerationWriter or an ArrayChange; other functions by one thread at a time.
/// In a forked child, functions that use the catalogue or commit fail with kInvalidArgument; the
/// child may end by exit().
/// Ownership: the FileSystem must outlive the store and its snapshots.
class Store {
 public:
  using Mode = rhizome::Mode;

  /// Opens a committed store. kWrite takes LOCK and removes orphans; kRead never writes into the
  /// folder.
  /// Errors: kNotFound, there is no committed store, or the state StoreOptions::at is gone because
  /// no process held it any longer; kBusy, another writer has it open (the message names its pid if
  /// it is known) and StoreOptions::wait is over; kUnsupported, a newer format; kCorruption;
  /// kInvalidArgument, `options` out of range, StoreOptions::at belongs to another store or is
  /// combined with kWrite, or kWrite in a fork of a process that had a store open; kIoError and
  /// other errors of the FileSystem.
  static Result<std::unique_ptr<Store>> Open(FileSystem& fs, const Path& path, Mode mode,
                                             const StoreOptions& options = {});

  /// Creates an empty store for ingestion, and holds its LOCK. `path` must be absent, an empty
  /// folder, or the leftover of a killed ingestion of Rhizome, which is cleared. Until a generation
  /// is committed, Open returns kNotFound. Errors: kAlreadyExists, something else is at `path`;
  /// kInvalidArgument, `path` is inside a store or a folder of backups, or `options` out of range;
  /// kBusy; errors of the FileSystem.
  static Result<std::unique_ptr<Store>> Create(FileSystem& fs, const Path& path, const StoreId& id,
                                               const StoreOptions& options = {});

  /// Removes a store that Create made and in which nothing was committed, and the parent folders
  /// that Create made. Holds LOCK while it does so, so that no other store can be created there.
  /// Errors: kIoError; the next Create then clears the rest.
  static Status Discard(std::unique_ptr<Store> store);
  ~Store();

  /// Returns a handle that permanently sees the state that this handle sees now. All files of that
  /// state are kept for the lifetime of the snapshot, regardless of later commits. Reads no file. A
  /// snapshot of a writer's handle keeps LOCK during its lifetime.
  std::shared_ptr<const Store> Snapshot() const;

  /// Returns a snapshot that, if this is a reader's handle, does not keep the files of arrays: once
  /// an array is dropped, its files are removed as soon as no other handle sees it. Topology and
  /// ids are kept.
  std::shared_ptr<const Store> SnapshotOfGraph() const;

  /// Moves a reader's handle to the latest commit. For a writer's handle, which sees its own
  /// commits, it only checks that the store was not moved; for a snapshot it does nothing. Errors:
  /// as for Open; this handle then sees the same state as before.
  Status Refresh();

  /// Appends the commits that `make` returns to the delta, atomically; if `sync` is true, they are
  /// durable when this returns. `make` receives the sequence number of the first commit, and the
  /// state before it.
  /// Errors: kInvalidArgument, open for reading; kIoError, kOutOfSpace: afterwards the handle
  /// refuses to write until it is opened again; an exception of `make`, as an error such as
  /// kOutOfMemory: nothing was written, and the handle remains usable.
  using MakeCommits =
      std::function<std::vector<DeltaCommit>(std::uint64_t first, const HistoryState& before)>;
  Status CommitDelta(bool sync, const MakeCommits& make);

  /// Returns the state after the last commit of the delta that is not above `commit`. Its hash is
  /// unknown (zeros) if `commit` is below base_sequence(). Errors: kCorruption; kIoError.
  Result<HistoryState> StateAt(std::uint64_t commit) const;

  /// Returns StateId::files of this handle's state: a hash of the manifest that it sees and of
  /// base_sequence().
  Hash128 HashOfFiles() const;

  /// The number of the last commit in the generation's files; later commits form the delta.
  std::uint64_t base_sequence() const;

  /// Read the delta; see the functions of the same names of Catalog (catalog.h).
  Status ScanDelta(std::uint64_t after,
                   const std::function<Status(std::uint64_t sequence,
                                              std::span<const std::byte> record)>& visit) const;
  Status ReadDeltaRow(std::uint64_t sequence, std::uint64_t array_id, std::int64_t vertex,
                      std::span<std::byte> out) const;

  /// Removes files that the store no longer needs and no reader pins, and commits of the delta that
  /// no generation in use needs. Opening for writing does so, too. Errors: kInvalidArgument, open
  /// for reading; kIoError.
  Status CollectGarbage();

  /// Sets the rule on keeping earlier generations (Manifest::keep), by a commit if the rule
  /// changes. The next CollectGarbage removes generations that the new rule does not keep. Errors:
  /// kInvalidArgument, open for reading; errors of a commit.
  Status Keep(const KeepRule& rule);

  /// Removes the earlier generations that are kept only by the rule, to free space. The rule itself
  /// is not changed. Errors: as for CollectGarbage.
  Status RemoveKept();

  /// Claim and release the right to write the delta. Only one object may have it at a time, since a
  /// writer of the delta must know all of its content. Errors: kBusy, another object has it;
  /// kInvalidArgument, open for reading.
  Status ClaimDelta();
  void ReleaseDelta();

  /// Returns whether the state that this handle sees never changes: it is a snapshot, or was opened
  /// at a point.
  bool fixed() const;

  /// Returns whether this handle may write.
  bool writable() const;

  /// Adds a finished array to the current generation of the store at `path`: links its files from
  /// `source_root` (a scratch folder in the layout of ChunkArrayWriter), writes a new manifest
  /// version and commits it, while holding the writer's lock (ArrayChange::Run and Add). Errors:
  /// kBusy; kAlreadyExists, the name is in use; kInvalidArgument, `generation` is no longer the
  /// current one, because of a compaction.
  static Status PublishArray(FileSystem& fs, const Path& path, std::uint64_t generation,
                             std::span<const ArrayEntry> arrays, const Path& source_root,
                             std::span<const FileEntry> files);

  /// The metrics of this store; nullptr: nothing is counted.
  Metrics* metrics() const;
  const Logger& logger() const;

  const Path& path() const;
  const StoreId& id() const;
  FileSystem& fs() const;

  /// The committed manifest that this handle sees. The reference is valid for the lifetime of the
  /// handle, even after the handle moved to another manifest.
  const Manifest& manifest() const;

  /// The folder in which each job on this store creates a folder for its scratch files.
  Path scratch() const;

  /// The folder of the generation that this handle sees: path() / "generations/000001".
  Path GenerationFolder() const;
  static Path GenerationFolder(const Path& store, std::uint64_t generation);

  /// Loads one of the generation's section files and compares it with the manifest; the sections
  /// `leave` are left on disk.
  /// Errors: kNotFound, the manifest names no such file; kCorruption; kIoError.
  Result<SectionFile> LoadSectionFile(std::string_view relative_path, FileKind kind,
                                      std::span<const std::uint32_t> leave = {}) const;

  /// Opens one of the generation's arrays by name or reference (Manifest::FindArray). The array
  /// uses the store's FileSystem, so it must not outlive the last handle or snapshot of this store.
  /// After it is dropped from the store, it can be read as long as a handle sees the earlier state.
  /// Errors: kNotFound, listing the existing names; errors of ChunkArray::Open.
  Result<std::unique_ptr<ChunkArray>> OpenArray(std::string_view name) const;

 private:
  friend class ArrayChange;
  friend class internal::GenerationWriter;
  friend class internal::StoreCopy;

  class Impl;
  explicit Store(std::unique_ptr<Impl> impl);
  static Result<std::unique_ptr<Store>> OpenForWriting(FileSystem& fs, const Path& path,
                                                       bool clear_scratch,
                                                       const StoreOptions& options = {});
  static Result<std::unique_ptr<Store>> OpenForReading(FileSystem& fs, const Path& path,
                                                       const StoreOptions& options);

  const std::unique_ptr<Impl> impl_;
};

}  // namespace rhizome
