#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rhizome/cache/labels.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/job_log.h"
#include "rhizome/storage/manifest.h"
#include "rhizome/storage/result.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// A finished chunk of one layer's output.
struct FinishedChunk {
  FileEntry file;
  AccuracyCounts accuracy;  ///< of its vertices; last layer only
};

/// As one line of text, and back. Errors: kCorruption.
std::string EncodeFinished(std::uint32_t layer, std::uint64_t chunk, const FinishedChunk& finished);
struct DecodedFinished {
  std::uint32_t layer = 0;
  std::uint64_t chunk = 0;
  FinishedChunk finished;
};
Result<DecodedFinished> DecodeFinished(const std::string& text);

/// In which order the rows of a layer's output stand, as it was chosen when the layer was begun.
struct LoggedOrder {
  std::string rule;  ///< "stored": no file
  Hash128 xxh3{};    ///< of the file that holds it
};

/// The progress of an inference job: what it computes, then every chunk that is on disk. A JobLog
/// whose records are JSON. Threads: one at a time.
class InferenceLog {
 public:
  /// `description` says everything that the result depends on. Errors: kInvalidArgument, the log is
  /// of a job with another description; kCorruption; kIoError.
  static Result<std::unique_ptr<InferenceLog>> Open(FileSystem& fs, const Path& path,
                                                    const std::string& description);

  /// The log of a job that another process runs, as it is now; nothing can be appended. Errors: as
  /// Open.
  static Result<std::unique_ptr<InferenceLog>> Read(FileSystem& fs, const Path& path,
                                                    const std::string& description);

  /// Chunks of `layer` (0-based) that are done, by number.
  const std::map<std::uint64_t, FinishedChunk>& Finished(std::uint32_t layer) const;

  Status Append(std::uint32_t layer, std::uint64_t chunk, const FinishedChunk& finished);

  /// nullptr: the layer was not begun.
  const LoggedOrder* Order(std::uint32_t layer) const;
  Status AppendOrder(std::uint32_t layer, const LoggedOrder& order);

  /// The metadata of a layer's array, which is whole; nullptr: it is not.
  const FileEntry* Metadata(std::uint32_t layer) const;
  Status AppendMetadata(std::uint32_t layer, const FileEntry& file);

 private:
  InferenceLog() = default;
  Status ReadRecords(const std::vector<std::string>& records, const std::string& description);
  Status ReadRecord(const std::string& record);
  Status ReadOrder(const std::string& record);
  Status ReadMetadata(const std::string& record);

  std::unique_ptr<JobLog> log_;  // null: of another process
  std::map<std::uint32_t, std::map<std::uint64_t, FinishedChunk>> finished_;
  std::map<std::uint32_t, LoggedOrder> orders_;
  std::map<std::uint32_t, FileEntry> metadata_;
};

}  // namespace internal
}  // namespace rhizome
