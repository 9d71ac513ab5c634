#pragma once

#include <memory>
#include <string>

#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "rhizome/status.h"
#include "rhizome/store.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Scratch folder of a job, scratch/<job>/ in a store, protected by a lock file in it. The
/// destructor removes the folder and its contents unless Keep was called.
/// Threads: not thread-safe.
class JobScratch {
 public:
  enum class Leftovers : std::uint8_t {
    kRemove,  ///< start with an empty folder
    kKeep,    ///< resume with the files of a killed job
  };

  /// Returns the path of a job's folder.
  static Path FolderOf(const Store& store, const std::string& job) { return store.scratch() / job; }

  /// Creates and locks the folder. Errors: kBusy, a job of this name is running; kInvalidArgument,
  /// a bad name; kIoError; kOutOfSpace.
  /// Ownership: the store's FileSystem must outlive this object.
  static Result<std::unique_ptr<JobScratch>> Open(const Store& store, const std::string& job,
                                                  Leftovers leftovers);
  ~JobScratch();
  JobScratch(const JobScratch&) = delete;
  JobScratch& operator=(const JobScratch&) = delete;

  const Path& folder() const { return folder_; }

  /// Keep leaves the folder for a later run to resume. RemoveAtEnd, the default, undoes it.
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
