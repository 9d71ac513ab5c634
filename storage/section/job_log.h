#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rhizome/file_system.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// The append-only, checksummed progress log of a job under scratch/<job>/. Records are atomic:
/// when the log is opened again, a torn tail is cut off; an invalid record that is followed by a
/// valid one is kCorruption. Format: storage/FORMAT.md, "Job log". Threads: one at a time.
class JobLog {
 public:
  /// Max size of a record (storage/FORMAT.md, "Limits").
  static constexpr std::size_t kMaxRecordBytes = std::size_t{1} << 20;

  /// Creates the log, or opens the log of a job that was killed. Errors: kCorruption; kUnsupported,
  /// a newer format; kIoError.
  static Result<std::unique_ptr<JobLog>> Open(FileSystem& fs, const Path& path);

  /// Reads the records of a log without opening it for appending. The job may be running, perhaps
  /// in another process; a record that it is appending at that moment is omitted. Errors: as for
  /// Open; kNotFound.
  static Result<std::vector<std::string>> ReadRecords(FileSystem& fs, const Path& path);

  /// The records that existed when the log was opened.
  const std::vector<std::string>& records() const { return records_; }

  /// Appends and syncs one record. Errors: kInvalidArgument, it is longer than kMaxRecordBytes;
  /// errors of WritableFile.
  Status Append(std::string_view record);

 private:
  JobLog() = default;
  std::unique_ptr<WritableFile> file_;
  std::vector<std::string> records_;
  std::uint64_t count_ = 0;  // records in the file, including those appended since Open
};

}  // namespace internal
}  // namespace rhizome
