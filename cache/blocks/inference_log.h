#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cache/feed/labels.h"
#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "rhizome/manifest.h"
#include "rhizome/status.h"
#include "storage/section/job_log.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// A finished chunk of one layer's output.
struct FinishedChunk {
  FileEntry file;
  AccuracyCounts accuracy;            ///< accuracy of the chunk's vertices; last layer only
  std::uint64_t non_finite_rows = 0;  ///< rows with a value that is NaN or infinite
};

/// Encodes a finished chunk as one line of text, and decodes it. Errors: kCorruption.
std::string EncodeFinished(std::uint32_t layer, std::uint64_t chunk, const FinishedChunk& finished);
struct DecodedFinished {
  std::uint32_t layer = 0;
  std::uint64_t chunk = 0;
  FinishedChunk finished;
};
Result<DecodedFinished> DecodeFinished(const std::string& text);

/// The order of the rows in a layer's output, as chosen when the layer was started.
struct LoggedOrder {
  std::string rule;  ///< "stored" has no file
  Hash128 xxh3{};    ///< hash of the file that holds the order
};

/// The progress of an inference job: a description of the job, followed by every chunk that is on
/// disk. It is a JobLog with JSON records.
/// Threads: one at a time.
class InferenceLog {
 public:
  /// Opens or creates a log. `description` contains everything that affects the result. Errors:
  /// kInvalidArgument, the log has another description; kCorruption; kIoError.
  static Result<std::unique_ptr<InferenceLog>> Open(FileSystem& fs, const Path& path,
                                                    const std::string& description);

  /// Reads the current log of a job that runs in another process; the result does not support
  /// appending. Errors: as Open; kCorruption, the log is empty.
  static Result<std::unique_ptr<InferenceLog>> Read(FileSystem& fs, const Path& path,
                                                    const std::string& description);

  /// Returns whether the log was started by an older version, which recorded only the numbers of
  /// the store's state (CompareJobs).
  bool by_numbers() const { return by_numbers_; }

  /// Returns the finished chunks of `layer` (0-based), by number.
  const std::map<std::uint64_t, FinishedChunk>& Finished(std::uint32_t layer) const;

  Status Append(std::uint32_t layer, std::uint64_t chunk, const FinishedChunk& finished);

  /// Returns the order of a layer's output, or null if the layer was not started.
  const LoggedOrder* Order(std::uint32_t layer) const;
  Status AppendOrder(std::uint32_t layer, const LoggedOrder& order);

  /// Returns the metadata file of a layer's array, or null if the array is not complete.
  const FileEntry* Metadata(std::uint32_t layer) const;
  Status AppendMetadata(std::uint32_t layer, const FileEntry& file);

 private:
  InferenceLog() = default;
  Status ReadRecords(const std::vector<std::string>& records, const std::string& description);
  Status ReadRecord(const std::string& record);
  Status ReadOrder(const std::string& record);
  Status ReadMetadata(const std::string& record);

  bool by_numbers_ = false;
  std::unique_ptr<JobLog> log_;  // null: the log belongs to another process
  std::map<std::uint32_t, std::map<std::uint64_t, FinishedChunk>> finished_;
  std::map<std::uint32_t, LoggedOrder> orders_;
  std::map<std::uint32_t, FileEntry> metadata_;
};

}  // namespace internal
}  // namespace rhizome
