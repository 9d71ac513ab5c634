#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "rhizome/storage/file_system.h"
#include "rhizome/storage/hash.h"
#include "rhizome/storage/manifest.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/section_file.h"
#include "rhizome/storage/store.h"

namespace rhizome::inline internal {

/// Writes the files of a new generation and commits it. Destroying it without Commit leaves
/// orphans, which the next open for writing removes. Threads: one at a time (files that it created
/// may be filled from other threads). Ownership: `store`, open for writing or just created, must
/// outlive it.
class GenerationWriter {
 public:
  /// Errors: kBusy, there is one already; kInvalidArgument, open for reading; kIoError.
  static Result<std::unique_ptr<GenerationWriter>> Create(Store& store);
  ~GenerationWriter() { store_.EndBuilding(); }

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

  /// How many generations before this one stay, instead of what the store has kept so far.
  void set_keep(const KeepRule& rule) { manifest_.keep = rule; }

  /// Enters an array that a ChunkArrayWriter finished below root().
  Status AddArray(std::span<const ArrayEntry> arrays, std::span<const FileEntry> files);

  /// The generation's folder, absolute or as the store's path was given.
  const Path& root() const { return root_; }
  std::uint64_t generation() const { return manifest_.generation; }
  const StoreId& store_id() const { return store_.id(); }
  FileSystem& fs() const { return store_.fs(); }

  /// The store as it will be after Commit, to read back what was written. Takes all of Commit's
  /// time but a moment: nothing can be added any more.
  Result<std::shared_ptr<const Store>> Preview(const GenerationInfo& info,
                                               std::uint64_t base_sequence);

  /// Syncs the folders, writes and syncs the manifest, commits. After it the generation is the
  /// store's current one. Nothing is visible to anyone before. `base_sequence`: the last commit of
  /// the delta that the generation holds; later ones become its delta.
  Status Commit(const GenerationInfo& info, std::uint64_t base_sequence = 0);

 private:
  explicit GenerationWriter(Store& store) : store_(store) {}
  Status Seal(const GenerationInfo& info);
  Status SyncFolders();
  Store& store_;
  Path root_;
  Manifest manifest_;
  bool prepared_ = false;
};

}  // namespace rhizome::inline internal
