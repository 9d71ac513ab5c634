#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/storage/chunk_array.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/hash.h"
#include "rhizome/storage/manifest.h"
#include "rhizome/storage/section_file.h"
#include "rhizome/storage/store_id.h"

namespace rhizome {

class Catalog;

/// One directory, one graph (DESIGN section 3). Knows files, locks, manifests and the commit point;
/// a Graph (index/graph.h) reads what is in it.
///
/// Invariants:
///   (1) the committed manifest is the one that the catalogue names, by path, length and hash;
///   (2) every file it names is whole and synced before the commit;
///   (3) nothing committed is ever overwritten; what no manifest names is rubbish of a crash and
///       goes at the next open for writing;
///   (4) a reader holds a shared lock on its generation's PIN, so (3) never removes files under it.
///
/// Threads: const functions from many threads; the rest one at a time.
class Store {
 public:
  enum class Mode : std::uint8_t { kRead, kWrite };

  /// Opens a committed store. kWrite takes LOCK and removes orphans; kRead never writes into the
  /// folder. Errors: kNotFound, no store there; kBusy, another writer (its pid is named);
  /// kUnsupported, a newer format; kCorruption.
  static Result<std::unique_ptr<Store>> Open(FileSystem& fs, const Path& path, Mode mode);

  /// Makes an empty store for ingestion, holding LOCK. `path` must be absent, an empty folder, or
  /// what a killed ingestion of ours left, which is cleared; kAlreadyExists otherwise.
  /// Until a generation is committed, Open says kNotFound.
  static Result<std::unique_ptr<Store>> Create(FileSystem& fs, const Path& path, const StoreId& id);
  ~Store();

  /// Adds a finished array to the current generation of the store at `path`: links its files from
  /// `source_root` (a scratch folder laid out as ChunkArrayWriter leaves it), writes a new manifest
  /// version and commits it, holding the writer's lock meanwhile.
  /// Errors: kBusy; kAlreadyExists, the name is taken; kInvalidArgument, `generation` is no longer
  /// the current one (compaction came in between).
  static Status PublishArray(FileSystem& fs, const Path& path, std::uint64_t generation,
                             std::span<const ArrayEntry> arrays, const Path& source_root,
                             std::span<const FileEntry> files);

  const Path& path() const { return path_; }
  const StoreId& id() const { return id_; }
  FileSystem& fs() const { return *fs_; }

  /// The committed manifest that this handle sees.
  const Manifest& manifest() const { return manifest_; }

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
  friend class GenerationWriter;
  Store() = default;
  static Result<std::unique_ptr<Store>> OpenForWriting(FileSystem& fs, const Path& path,
                                                       bool clear_scratch);
  static Result<std::unique_ptr<Store>> OpenForReading(FileSystem& fs, const Path& path);
  Result<bool> TryPin();
  Status CommitManifest(const Manifest& manifest);
  Status WriteAndCommit(const Manifest& manifest);

  FileSystem* fs_ = nullptr;
  Path path_;
  StoreId id_;
  std::unique_ptr<FileLock> lock_;  // kWrite
  std::unique_ptr<FileLock> pin_;   // kRead
  std::unique_ptr<Catalog> catalog_;
  Manifest manifest_;
  std::uint64_t sequence_ = 0;  // of the last commit
  Status broken_;               // after a failed commit every further one fails
};

/// Writes the files of a new generation and commits it. Destroying it without Commit leaves
/// orphans, which the next open for writing removes. Threads: one at a time (files that it created
/// may be filled from other threads). Ownership: `store`, open for writing or just created, must
/// outlive it.
class GenerationWriter {
 public:
  static Result<std::unique_ptr<GenerationWriter>> Create(Store& store);

  /// A file below the generation's folder, being written and hashed. Close syncs it and enters it
  /// into the manifest.
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

  /// `relative_path` such as "topology/part-0000.adj"; folders are made as needed.
  Result<std::unique_ptr<File>> CreateFile(std::string_view relative_path);

  /// Enters an array that a ChunkArrayWriter finished below root().
  Status AddArray(std::span<const ArrayEntry> arrays, std::span<const FileEntry> files);

  /// The generation's folder, absolute or as the store's path was given.
  const Path& root() const { return root_; }
  const StoreId& store_id() const { return store_.id(); }
  FileSystem& fs() const { return store_.fs(); }

  /// Syncs the folders, writes and syncs the manifest, commits. After it the generation is the
  /// store's current one. Nothing is visible to anyone before.
  Status Commit(const GenerationInfo& info);

 private:
  explicit GenerationWriter(Store& store) : store_(store) {}
  Status SyncFolders();
  Store& store_;
  Path root_;
  Manifest manifest_;
};

}  // namespace rhizome
