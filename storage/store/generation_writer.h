#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rhizome/file_system.h"
#include "rhizome/manifest.h"
#include "rhizome/status.h"
#include "rhizome/store.h"
#include "storage/base/hash.h"
#include "storage/section/section_file.h"

namespace rhizome {
inline namespace internal {

/// Writes the files of a new generation and commits it. A shared lock on the generation's PIN
/// protects them from other writers. If it is destroyed without a commit, its files are orphans,
/// which the next opening for writing removes.
///
/// `store` may be open for reading. Other processes can then write to the store while the files are
/// written. The writer's lock is held only while the generation begins, and by the handle that
/// CommitInto commits it to.
/// Threads: one at a time (files that it created may be filled from other threads).
/// Ownership: `store`, a live handle or just created, must outlive it.
class GenerationWriter {
 public:
  /// Begins the next generation. Errors: kBusy, another writer is working on this store, or writes
  /// its next generation; kInvalidArgument, a snapshot, or the store has a newer generation than
  /// this handle sees; kIoError.
  static Result<std::unique_ptr<GenerationWriter>> Create(Store& store);
  ~GenerationWriter();

  /// A file below the generation's folder that is written and hashed. Close syncs it and adds it to
  /// the manifest; it must not run concurrently with another function of the writer.
  class File : public ByteSink {
   public:
    Status Append(std::span<const std::byte> bytes) override;
    Status Close();

   private:
    friend class GenerationWriter;
    File() = default;
    GenerationWriter* owner_ = nullptr;
    std::unique_ptr<WritableFile> file_;
    StreamHash hash_;
    std::string relative_path_;
  };

  /// Creates the file `relative_path`, such as "topology/part-0000.adj", and its missing parent
  /// folders.
  /// Errors: kInvalidArgument, the path violates CheckRelativePath (array_rules.h); kAlreadyExists;
  /// kIoError, kOutOfSpace.
  Result<std::unique_ptr<File>> CreateFile(std::string_view relative_path);

  /// Sets the rule on keeping earlier generations, replacing the store's current rule.
  void set_keep(const KeepRule& rule) { manifest_.keep = rule; }

  /// Sets the series, instead of the series of the store; they must fit the arrays.
  void set_series(std::vector<ArraySeries> series) { series_ = std::move(series); }

  /// Adds an array that a ChunkArrayWriter finished below root(): its arrays() and the result of
  /// Finish.
  /// Errors: kInvalidArgument, a bad entry, or a file of another length.
  Status AddArray(std::span<const ArrayEntry> arrays, std::span<const FileEntry> files);

  /// The generation's folder; absolute or relative like the store's path.
  const Path& root() const { return root_; }
  std::uint64_t generation() const { return manifest_.generation; }
  const StoreId& store_id() const { return store_.id(); }
  FileSystem& fs() const { return store_.fs(); }

  /// Returns the store as it will be after Commit, to read back what was written. Performs the slow
  /// part of Commit, so nothing can be added afterwards. Errors: as for Commit.
  Result<std::shared_ptr<const Store>> Preview(const GenerationInfo& info,
                                               std::uint64_t base_sequence);

  /// Syncs the folders, writes and syncs the manifest, and commits. This makes the generation the
  /// store's current one; before, nothing of it is visible. `base_sequence` is the last commit of
  /// the delta that the generation contains; later commits form its delta. Errors: kAlreadyExists,
  /// a file or an array was added twice; kInvalidArgument, the store has changed in the meantime;
  /// kIoError, kOutOfSpace.
  Status Commit(const GenerationInfo& info, std::uint64_t base_sequence = 0);

  /// As Commit, after Preview, through another handle of the same store that is open for writing.
  /// Errors: as for Commit; kBusy, the store was compacted, or its arrays were changed, since this
  /// handle's state; kInvalidArgument, it is another store: nothing was committed.
  Status CommitInto(Store& store, const GenerationInfo& info, std::uint64_t base_sequence);

 private:
  explicit GenerationWriter(Store& store) : store_(store) {}
  Status Begin();
  Status ClaimFolder();
  Status CheckSameState(const Store& store, std::uint64_t base_sequence) const;
  Status Seal(const GenerationInfo& info);
  Status SyncFolders();
  Store& store_;
  Path root_;
  Manifest manifest_;
  std::unique_ptr<FileLock> pin_;
  std::optional<std::vector<ArraySeries>> series_;
  bool prepared_ = false;
  bool commit_began_ = false;
};

}  // namespace internal
}  // namespace rhizome
