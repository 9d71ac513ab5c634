#pragma once

#include <memory>
#include <string>

#include "rhizome/storage/export.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/store.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// A job's own folder, scratch/<job>/ of a store, held by a lock in it. Removed with everything in
/// it when this is destroyed, unless Keep was called. Threads: one at a time.
class JobScratch {
 public:
  enum class Leftovers : std::uint8_t {
    kRemove,  ///< start from nothing
    kKeep,    ///< go on with what a killed job left
  };

  /// Where a job's folder is.
  static Path FolderOf(const Store& store, const std::string& job) { return store.scratch() / job; }

  /// Errors: kBusy, a job of this name runs; kInvalidArgument, a bad name; kIoError, kOutOfSpace.
  /// Ownership: the store's FileSystem must outlive it.
  static Result<std::unique_ptr<JobScratch>> Open(const Store& store, const std::string& job,
                                                  Leftovers leftovers);
  ~JobScratch();
  JobScratch(const JobScratch&) = delete;
  JobScratch& operator=(const JobScratch&) = delete;

  const Path& folder() const { return folder_; }

  /// Leaves the folder for a later run to resume; and the contrary, which is the default.
  void Keep() { keep_ = true; }
  void RemoveAtEnd() { keep_ = false; }

 private:
  JobScratch(FileSystem& fs, Path folder, std::unique_ptr<FileLock> lock)
      : fs_(fs), folder_(std::move(folder)), lock_(std::move(lock)) {}

  FileSystem& fs_;
  const Path folder_;
  std::unique_ptr<FileLock> lock_;
  bool keep_ = false;
};

}  // namespace internal
}  // namespace rhizome
