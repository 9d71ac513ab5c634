#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "rhizome/store.h"
#include "storage/base/mutex.h"
#include "storage/base/process.h"
#include "storage/catalog/catalog.h"
#include "storage/store/store_context.h"

namespace rhizome {

/// The state of a Store: its locks, the catalogue, and the manifest that it shows.
///
/// Invariants:
///   (1) the committed manifest is the one that the catalogue names, by path, length and hash;
///   (2) every file that it names is complete and synced before the commit;
///   (3) committed files are never overwritten; a file that no manifest names is the orphan of a
///       crash, and the next opening for writing removes it;
///   (4) a reader holds shared locks on the PIN of its generation and on its manifest, so (3) never
///       removes files that it uses.
///
/// Threads: as for Store. Members are used by Store, ArrayChange, GenerationWriter and StoreCopy.
class Store::Impl {
 public:
  /// The numbers and hashes of the shown commit.
  struct Numbers {
    std::uint64_t sequence = 0;  ///< number of the last commit
    std::uint64_t base_sequence = 0;
    HistoryState base_state = {};  ///< after commit base_sequence
    Hash128 manifest_xxh3{};
  };

  /// Shared locks, which protect files from removal.
  struct Pins {
    std::shared_ptr<FileLock> generation;  ///< lock on the PIN of the generation
    std::shared_ptr<FileLock> manifest;    ///< lock on the manifest: protects all its files
  };

  Impl(FileSystem& fs, Path path, const StoreOptions& options);
  explicit Impl(std::shared_ptr<StoreContext> context);
  static Result<std::unique_ptr<Impl>> OpenForWriting(FileSystem& fs, const Path& path,
                                                      bool clear_scratch,
                                                      const StoreOptions& options);
  static Result<std::unique_ptr<Impl>> OpenForReading(FileSystem& fs, const Path& path,
                                                      const StoreOptions& options);
  Status MakeEmpty();
  std::unique_ptr<Impl> Copy() const RHIZOME_EXCLUDES(shown_);
  Status Refresh() RHIZOME_EXCLUDES(shown_);

  const Logger& logger() const { return *context_->logger(); }
  Path scratch() const;
  bool writable() const { return lock_ != nullptr && !snapshot_; }
  const Manifest& manifest() const RHIZOME_EXCLUDES(shown_);
  Status CheckWritable() const RHIZOME_REQUIRES(commits_);

  /// Checks that this handle may write the files of the next generation: it may write, or it is a
  /// live reader. Errors: kInvalidArgument; kIoError, the store was moved.
  Status CheckMayBuild() const RHIZOME_EXCLUDES(commits_);
  Status DropOldDelta(std::uint64_t generation, std::uint64_t base_sequence);
  Status NotThere(const StorePoint& at) const;
  Result<Pins> PinsOf(const Manifest& manifest) const;

  std::shared_ptr<const Manifest> Shown() const RHIZOME_EXCLUDES(shown_) {
    const MutexLock lock(shown_);
    return manifest_;
  }
  Numbers NumbersOf(const CommitRecord& record, const Manifest& manifest) const;
  Result<HistoryState> BaseStateOf(const Manifest& next, std::uint64_t base_sequence) const;
  static Hash128 HashOfFiles(const Numbers& numbers);
  void Show(std::shared_ptr<const Manifest> manifest, Pins pins, const Numbers& numbers) noexcept
      RHIZOME_EXCLUDES(shown_);
  Numbers numbers() const RHIZOME_EXCLUDES(shown_) {
    const MutexLock lock(shown_);
    return numbers_;
  }
  std::uint64_t sequence() const RHIZOME_EXCLUDES(shown_) { return numbers().sequence; }
  Status CheckFollows(const Manifest& next) const RHIZOME_EXCLUDES(shown_);
  void EndBuilding() RHIZOME_EXCLUDES(shown_) {
    const MutexLock lock(shown_);
    building_ = 0;
  }

  /// Commits a manifest. Commits of the delta up to `base_sequence` are contained in its
  /// generation.
  Status CommitManifest(const Manifest& manifest, std::uint64_t base_sequence)
      RHIZOME_EXCLUDES(commits_);
  Status CommitManifest(const Manifest& manifest) RHIZOME_EXCLUDES(commits_) {
    return CommitManifest(manifest, numbers().base_sequence);
  }
  Status PrepareManifest(const Manifest& manifest) RHIZOME_EXCLUDES(commits_);
  Status CommitPrepared(const Manifest& manifest, std::uint64_t base_sequence)
      RHIZOME_EXCLUDES(commits_);
  Status Break(Status status, std::string_view what) noexcept RHIZOME_REQUIRES(commits_);

  std::shared_ptr<StoreContext> context_;  // first: destroyed after files and locks, which use it
  FileSystem* fs_ = nullptr;
  Path path_;
  StoreId id_;
  bool snapshot_ = false;
  std::optional<StorePoint> opened_at_;  // upper end of the delta to read
  std::vector<Path> made_folders_;       // folders made by Create, innermost first
  std::shared_ptr<FileLock> lock_;       // LOCK; null unless kWrite
  std::shared_ptr<Catalog> catalog_;

  // Locked in this order.
  Mutex files_;              // held while orphans are removed or unreferenced files are created
  mutable Mutex commits_;    // held during a commit
  mutable ForkMutex shown_;  // held briefly, to read or change the shown state

  bool delta_claimed_ RHIZOME_GUARDED_BY(commits_) = false;
  // The state after the last commit; nullopt before this handle's first commit.
  std::optional<HistoryState> last_state_ RHIZOME_GUARDED_BY(commits_);
  Status broken_ RHIZOME_GUARDED_BY(commits_);  // after a failed commit all further ones fail

  Pins pins_ RHIZOME_GUARDED_BY(shown_);  // locks for manifest_
  std::shared_ptr<const Manifest> manifest_ RHIZOME_GUARDED_BY(shown_) =
      std::make_shared<Manifest>();
  Numbers numbers_ RHIZOME_GUARDED_BY(shown_);
  std::uint64_t building_ RHIZOME_GUARDED_BY(shown_) = 0;       // generation being written; 0: none
  mutable bool handed_out_ RHIZOME_GUARDED_BY(shown_) = false;  // callers refer to manifest_
  std::vector<std::shared_ptr<const Manifest>> earlier_ RHIZOME_GUARDED_BY(shown_);  // handed out
                                                                                     // before

 private:
  Result<bool> TryPin();
  Result<bool> TryPinAt(const StorePoint& at);
  Result<Manifest> ManifestAt(const StorePoint& at, const CommitRecord& now) const;
  Status CheckCommits(const StorePoint& at) const;
  Status CheckState(const StorePoint& at, const CommitRecord& now, const Numbers& numbers) const;
  template <typename Try>
  Status PinBy(Try&& try_once);
  void ReserveView() RHIZOME_EXCLUDES(shown_);
  Status WriteManifest(const Manifest& manifest, std::span<const std::byte> bytes);
  Status WriteManifestOrBreak(const Manifest& manifest, std::span<const std::byte> bytes)
      RHIZOME_EXCLUDES(commits_);
};

}  // namespace rhizome
