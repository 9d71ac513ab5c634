#pragma once

#include <set>
#include <string>
#include <vector>

#include "rhizome/file_system.h"
#include "rhizome/job_control.h"
#include "rhizome/manifest.h"
#include "rhizome/status.h"
#include "storage/base/mutex.h"
#include "storage/base/threads.h"
#include "storage/io/file_scan.h"
#include "storage/io/io_pacer.h"

namespace rhizome {
inline namespace internal {

/// Reads the files of a new generation back from disk and compares them with the written bytes. A
/// background thread (the follower) checks the files that Add reports while others are still being
/// written; Finish checks the rest.
/// Threads: Add from any; Finish once, from one.
/// Ownership: the constructor's arguments must outlive it.
class ReadBack {
 public:
  ReadBack(FileSystem& fs, IoPacer* pacer, const JobControl& control);
  ~ReadBack();

  /// Reports a file that is written and synced. `root` is the folder of the generation.
  void Add(const Path& root, const FileEntry& file) RHIZOME_EXCLUDES(mutex_);

  /// Waits for the reported files, and reads the entries of `files` that were not reported.
  /// Errors: kCorruption, naming the first file that differs from the written bytes; kIoError;
  /// kInterrupted.
  Status Finish(const Path& root, const std::vector<FileEntry>& files, std::uint32_t threads)
      RHIZOME_EXCLUDES(mutex_);

 private:
  struct Task {
    Path root;
    FileEntry file;
  };
  Status Compare(const std::vector<Task>& tasks, const ScanOptions& options,
                 const JobControl& control);
  Status Follow() RHIZOME_EXCLUDES(mutex_);
  Status Stop() RHIZOME_EXCLUDES(mutex_);

  FileSystem& fs_;
  IoPacer* const pacer_;
  const JobControl& control_;

  Mutex mutex_;
  CondVar changed_;
  std::vector<Task> waiting_ RHIZOME_GUARDED_BY(mutex_);
  bool ended_ RHIZOME_GUARDED_BY(mutex_) = false;
  std::set<std::string> seen_ RHIZOME_GUARDED_BY(mutex_);  // paths that Add reported
  Thread follower_;  // not started if the system has no thread; Finish then reads everything
};

}  // namespace internal
}  // namespace rhizome
