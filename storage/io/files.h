#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "rhizome/status.h"

namespace RHIZOME_API rhizome {

/// Reads exactly out.size() bytes. Errors: see ReadAt; kCorruption, the file ends too early
/// (truncated).
Status ReadExactly(ReadableFile& file, std::uint64_t offset_bytes, std::span<std::byte> out);

/// Reads a whole file into the front of a buffer, whose size must be the file's size
/// rounded up to its alignment_bytes(). Errors: see ReadAt; kCorruption, the file ends before its
/// size.
Status ReadWhole(ReadableFile& file, std::span<std::byte> room);

/// Reads a whole file. Errors: kCorruption if it is longer than `max_bytes`.
Result<std::vector<std::byte>> ReadWholeFile(FileSystem& fs, const Path& path,
                                             std::uint64_t max_bytes);

/// Creates, syncs and closes a file with the given bytes. The caller must sync the directory.
Status WriteWholeFile(FileSystem& fs, const Path& path, std::span<const std::byte> bytes);

/// Creates `path` and its missing parent folders, and syncs the parent of each. A link to a folder
/// counts as a folder, unless it is in an enclosed folder. Errors: kAlreadyExists, `path` or a
/// parent exists and is not a folder.
Status CreateDirectories(FileSystem& fs, const Path& path);

/// Returns the folders that CreateDirectories would create, innermost first. It stops at the first
/// that exists or whose Stat fails.
std::vector<Path> MissingFolders(FileSystem& fs, const Path& path);

/// Removes these folders in order, and stops at the first that is not empty or cannot be removed.
void RemoveEmptyFolders(FileSystem& fs, std::span<const Path> folders);

/// Removes a file, or a folder with all its contents, without following links. An absent `path` is
/// OK.
Status RemoveTree(FileSystem& fs, const Path& path);

/// Checks that `name` is a valid name of an array, a type or a job: [A-Za-z0-9_.-]{1,128}, no
/// leading dot, no "..". `what` says in the message what is being named. Errors: kInvalidArgument,
/// with the name and the rule.
Status CheckName(std::string_view what, std::string_view name);

/// Replaces a file atomically. The new content is written next to `path` under a temporary name,
/// synced, and renamed over `path`, so that a reader sees either the old file or the complete new
/// one. Used for files that users ask for (exports, models) and for files that jobs keep in
/// scratch; no other files are renamed.
/// Threads: one at a time.
class OutputFile {
 public:
  enum class Place : std::uint8_t {
    kOutside,  ///< not in a store or a folder of backups (CheckOutside)
    kScratch   ///< the scratch folder of the job that writes it, which may be in a store
  };
  /// Errors: kInvalidArgument, `path` is not in such a place, or exists and is not a regular file;
  /// errors of the FileSystem.
  static Result<OutputFile> Create(const Path& path, Place place = Place::kOutside);
  OutputFile(OutputFile&&) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();  ///< removes the temporary file unless Commit succeeded

  /// Errors: see WritableFile; kInvalidArgument after Commit.
  Status Append(std::span<const std::byte> bytes);

  /// Syncs the file, renames it to its final name and syncs the folder. Errors: as for Append.
  Status Commit();

 private:
  OutputFile(Path path, Path temporary, std::unique_ptr<WritableFile> file);
  Path path_;
  Path temporary_;
  std::unique_ptr<WritableFile> file_;
};

}  // namespace rhizome
