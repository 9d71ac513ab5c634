#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rhizome/storage/file_system.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// The append-only, checksummed progress log of a job under scratch/<job>/. A record is there whole
/// or not at all: a torn tail is cut off when the log is opened again; a bad record that valid ones
/// follow is kCorruption.
/// Format: storage/FORMAT.md, "Job log". Threads: one at a time.
class JobLog {
 public:
  static constexpr std::size_t kMaxRecordBytes = std::size_t{1} << 20;

  /// Creates the log, or opens what a killed job left. Errors: kCorruption; kIoError.
  static Result<std::unique_ptr<JobLog>> Open(FileSystem& fs, const Path& path);

  /// The records of the log of a job that runs, perhaps in another process; what it is appending is
  /// not among them. Errors: as Open; kNotFound.
  static Result<std::vector<std::string>> ReadRecords(FileSystem& fs, const Path& path);

  /// The records that were there when the log was opened.
  const std::vector<std::string>& records() const { return records_; }

  /// Appends and syncs one record of at most kMaxRecordBytes.
  Status Append(std::string_view record);

 private:
  JobLog() = default;
  std::unique_ptr<WritableFile> file_;
  std::vector<std::string> records_;
  std::uint64_t count_ = 0;  // records in the file, those appended since included
};

}  // namespace rhizome::inline internal
