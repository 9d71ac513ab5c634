#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/storage/chunk_array.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/manifest.h"
#include "rhizome/storage/mutex.h"
#include "rhizome/storage/process.h"
#include "rhizome/storage/store_id.h"
#include "rhizome/storage/store_options.h"

namespace rhizome::inline internal {
class Catalog;
class GenerationWriter;
class SectionFile;
class StoreContext;
class StoreCopy;
enum class FileKind : std::uint32_t;
struct DeltaCommit;
}  // namespace rhizome::inline internal

namespace RHIZOME_API rhizome {

/// One directory, one graph (DESIGN section 3). Knows files, locks, manifests and the commit point;
/// a Graph (index/graph.h) reads what is in it.
///
/// Invariants:
///   (1) the committed manifest is the one that the catalogue names, by path, length and hash;
///   (2) every file it names is whole and synced before the commit;
///   (3) nothing committed is ever overwritten; what no manifest names is rubbish of a crash and
///       goes at the next open for writing;
///   (4) whoever reads a generation holds a shared lock on its PIN, so (3) never removes files
///       under it.
///
/// Threads: const functions from many threads; the rest one at a time, but CommitDelta, Snapshot
/// and CollectGarbage from many threads, beside a GenerationWriter or an ArrayChange too. In a
/// forked child what asks the catalogue or commits fails with kInvalidArgument; it may end by
/// exit() (process.h).
class Store {
 public:
  enum class Mode : std::uint8_t { kRead, kWrite };

  /// Opens a committed store. kWrite takes LOCK and removes orphans; kRead never writes into the
  /// folder. Errors: kNotFound, no store there; kBusy, another writer (its pid is named);
  /// kUnsupported, a newer format; kCorruption; kInvalidArgument, `options` out of range, or kWrite
  /// in a fork of a process that had a store open.
  static Result<std::unique_ptr<Store>> Open(FileSystem& fs, const Path& path, Mode mode,
                                             const StoreOptions& options = {});

  /// Makes an empty store for ingestion, holding LOCK. `path` must be absent, an empty folder, or
  /// what a killed ingestion of ours left, which is cleared; kAlreadyExists otherwise.
  /// Until a generation is committed, Open says kNotFound.
  static Result<std::unique_ptr<Store>> Create(FileSystem& fs, const Path& path, const StoreId& id,
                                               const StoreOptions& options = {});

  /// Gives up a store that Create made and in which nothing was committed: removes all that was
  /// made of it, and the folders that Create made on the way to it, all while LOCK is held, so that
  /// nobody has begun another one there. Errors: kIoError; then the next Create clears the rest.
  static Status Discard(std::unique_ptr<Store> store);
  ~Store();

  /// A handle that sees for ever what this one sees now, and holds it: files of its generation stay
  /// while the snapshot lives, whatever is committed meanwhile. Cheap. A snapshot of a writer's
  /// handle keeps LOCK until it goes.
  std::shared_ptr<const Store> Snapshot() const RHIZOME_EXCLUDES(shown_);

  /// kRead: moves on to what is committed now. A writer's handle sees its own commits anyway.
  /// Errors: those of Open; then this handle sees what it saw before.
  Status Refresh() RHIZOME_EXCLUDES(shown_);

  /// Writes the commits that `make` returns to the delta as one: all or none; durable when it
  /// returns if `sync`. `make` gets the sequence number of the first of them. Errors:
  /// kInvalidArgument, open for reading; kIoError, kOutOfSpace: afterwards the handle refuses to
  /// write until it is opened again. What `make` throws (no memory) goes through, and nothing is
  /// written: the handle goes on.
  Status CommitDelta(bool sync,
                     const std::function<std::vector<DeltaCommit>(std::uint64_t first)>& make)
      RHIZOME_EXCLUDES(commits_);

  /// Reads of the delta, see Catalog. The generation holds commits up to base_sequence().
  std::uint64_t base_sequence() const RHIZOME_EXCLUDES(shown_) {
    const MutexLock lock(shown_);
    return base_sequence_;
  }
  Status ScanDelta(std::uint64_t after,
                   const std::function<Status(std::uint64_t sequence,
                                              std::span<const std::byte> record)>& visit) const;
  Status ReadDeltaRow(std::uint64_t sequence, std::uint64_t array_id, std::int64_t vertex,
                      std::span<std::byte> out) const;

  /// Removes what the store no longer needs and nobody pins: see RemoveOrphans (store_files.h), and
  /// commits of the delta that every generation holds. An open for writing does so, too. Leaves
  /// what is being written; an ArrayChange that commits meanwhile waits. Errors: kInvalidArgument,
  /// open for reading; kIoError.
  Status CollectGarbage() RHIZOME_EXCLUDES(commits_, files_);

  /// From now on so many generations before the current one stay (Manifest::keep); what is more
  /// goes at the next CollectGarbage. One commit, if the rule is another. Errors: kInvalidArgument,
  /// open for reading; those of a commit.
  Status Keep(const KeepRule& rule) RHIZOME_EXCLUDES(commits_);

  /// Removes the generations before the current one that are only kept, for want of room; they are
  /// kept again from the next one on. Errors: as CollectGarbage.
  Status RemoveKept() RHIZOME_EXCLUDES(commits_);

  /// The delta has one author at a time, who knows all of it. Errors: kBusy, there is one;
  /// kInvalidArgument, open for reading.
  Status ClaimDelta() RHIZOME_EXCLUDES(commits_);
  void ReleaseDelta() RHIZOME_EXCLUDES(commits_);

  /// May this handle write?
  bool writable() const { return lock_ != nullptr && !snapshot_; }

  /// Adds a finished array to the current generation of the store at `path`: links its files from
  /// `source_root` (a scratch folder laid out as ChunkArrayWriter leaves it), writes a new manifest
  /// version and commits it, holding the writer's lock meanwhile.
  /// Errors: kBusy; kAlreadyExists, the name is taken; kInvalidArgument, `generation` is no longer
  /// the current one (compaction came in between).
  static Status PublishArray(FileSystem& fs, const Path& path, std::uint64_t generation,
                             std::span<const ArrayEntry> arrays, const Path& source_root,
                             std::span<const FileEntry> files);

  /// Where what happens is counted; null: nowhere.
  Metrics* metrics() const;
  const Logger& logger() const;

  const Path& path() const { return path_; }
  const StoreId& id() const { return id_; }
  FileSystem& fs() const { return *fs_; }

  /// The committed manifest that this handle sees. Stays where it is as long as the handle, also
  /// when this moves on to another one.
  const Manifest& manifest() const RHIZOME_EXCLUDES(shown_);

  /// Where jobs on this store write what they need for a while: a folder of each one's own.
  Path scratch() const;

  /// "generations/000001" of that manifest, below path().
  Path GenerationFolder() const;
  static Path GenerationFolder(const Path& store, std::uint64_t generation);

  /// Loads one of the generation's section files, but for the sections `leave`, which stay on disk;
  /// compares length and hash (of more than 64 KiB, the CRC-32C that its checked blocks add up to)
  /// with the manifest's.
  /// Errors: kNotFound, the manifest names no such file; kCorruption; kIoError.
  Result<SectionFile> LoadSectionFile(std::string_view relative_path, FileKind kind,
                                      std::span<const std::uint32_t> leave = {}) const;

  /// Opens one of the generation's arrays. Errors: kNotFound, listing the names that exist.
  Result<std::unique_ptr<ChunkArray>> OpenArray(std::string_view name) const;

 private:
  friend class ArrayChange;
  friend class internal::GenerationWriter;
  friend class internal::StoreCopy;
  Store(FileSystem& fs, Path path, const StoreOptions& options);
  explicit Store(std::shared_ptr<StoreContext> context);
  static Result<std::unique_ptr<Store>> OpenForWriting(FileSystem& fs, const Path& path,
                                                       bool clear_scratch,
                                                       const StoreOptions& options = {});
  static Result<std::unique_ptr<Store>> OpenForReading(FileSystem& fs, const Path& path,
                                                       const StoreOptions& options);
  Status MakeEmpty();
  std::shared_ptr<Store> Copy() const RHIZOME_EXCLUDES(shown_);
  Result<bool> TryPin();
  Result<std::shared_ptr<FileLock>> PinOf(std::uint64_t generation) const;
  Status CheckWritable() const RHIZOME_REQUIRES(commits_);
  Status DropOldDelta(std::uint64_t generation, std::uint64_t base_sequence);
  std::shared_ptr<const Manifest> Shown() const RHIZOME_EXCLUDES(shown_) {
    const MutexLock lock(shown_);
    return manifest_;
  }
  void Show(std::shared_ptr<const Manifest> manifest, std::shared_ptr<FileLock> pin,
            std::uint64_t sequence, std::uint64_t base_sequence) noexcept RHIZOME_EXCLUDES(shown_);
  std::shared_ptr<FileLock> Pin() const RHIZOME_EXCLUDES(shown_) {
    const MutexLock lock(shown_);
    return pin_;
  }
  std::uint64_t sequence() const RHIZOME_EXCLUDES(shown_) {
    const MutexLock lock(shown_);
    return sequence_;
  }
  void MakeRoomToShow() RHIZOME_EXCLUDES(shown_);
  Status CheckFollows(const Manifest& next) const RHIZOME_EXCLUDES(shown_);
  void EndBuilding() RHIZOME_EXCLUDES(shown_) {
    const MutexLock lock(shown_);
    building_ = 0;
  }

  /// `base_sequence`: commits up to it are in the manifest's generation.
  Status CommitManifest(const Manifest& manifest, std::uint64_t base_sequence)
      RHIZOME_EXCLUDES(commits_);
  Status CommitManifest(const Manifest& manifest) RHIZOME_EXCLUDES(commits_) {
    return CommitManifest(manifest, base_sequence());
  }
  Status PrepareManifest(const Manifest& manifest) RHIZOME_EXCLUDES(commits_);
  Status CommitPrepared(const Manifest& manifest, std::uint64_t base_sequence)
      RHIZOME_EXCLUDES(commits_);
  Status WriteManifest(const Manifest& manifest, std::span<const std::byte> bytes);
  Status Break(Status status, std::string_view what) noexcept RHIZOME_REQUIRES(commits_);

  std::shared_ptr<StoreContext> context_;  // first: files and locks count in it
  FileSystem* fs_ = nullptr;
  Path path_;
  StoreId id_;
  bool snapshot_ = false;
  std::vector<Path> made_folders_;  // by Create, the innermost first
  std::shared_ptr<FileLock> lock_;  // kWrite
  std::shared_ptr<Catalog> catalog_;

  // Locked in this order.
  Mutex files_;            // held while rubbish goes, and while files are made that none names yet
  mutable Mutex commits_;  // one commit at a time
  mutable ForkMutex shown_;  // for moments: what commits change and others look at

  bool delta_claimed_ RHIZOME_GUARDED_BY(commits_) = false;
  Status broken_ RHIZOME_GUARDED_BY(commits_);  // after a failed commit every further one fails

  std::shared_ptr<FileLock> pin_ RHIZOME_GUARDED_BY(shown_);  // of the manifest's generation
  std::shared_ptr<const Manifest> manifest_ RHIZOME_GUARDED_BY(shown_) =
      std::make_shared<Manifest>();
  std::uint64_t base_sequence_ RHIZOME_GUARDED_BY(shown_) = 0;
  std::uint64_t sequence_ RHIZOME_GUARDED_BY(shown_) = 0;  // of the last commit
  std::uint64_t building_ RHIZOME_GUARDED_BY(shown_) = 0;  // the generation being written; 0: none
  mutable bool handed_out_ RHIZOME_GUARDED_BY(shown_) = false;  // has somebody a reference to it?
  std::vector<std::shared_ptr<const Manifest>> earlier_ RHIZOME_GUARDED_BY(shown_);  // handed out
};

}  // namespace rhizome
