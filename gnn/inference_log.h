#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "rhizome/gnn/labels.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/job_log.h"
#include "rhizome/storage/manifest.h"
#include "rhizome/storage/result.h"

namespace rhizome {

/// A finished chunk of one layer's output.
struct FinishedChunk {
  FileEntry file;
  AccuracyCounts accuracy;  ///< of its vertices; last layer only
};

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

  /// Chunks of `layer` (0-based) that are done, by number.
  const std::map<std::uint64_t, FinishedChunk>& Finished(std::uint32_t layer) const;

  Status Append(std::uint32_t layer, std::uint64_t chunk, const FinishedChunk& finished);

  /// nullptr: the layer was not begun.
  const LoggedOrder* Order(std::uint32_t layer) const;
  Status AppendOrder(std::uint32_t layer, const LoggedOrder& order);

 private:
  InferenceLog() = default;
  Status ReadRecord(const std::string& record);
  Status ReadOrder(const std::string& record);

  std::unique_ptr<JobLog> log_;
  std::map<std::uint32_t, std::map<std::uint64_t, FinishedChunk>> finished_;
  std::map<std::uint32_t, LoggedOrder> orders_;
};

}  // namespace rhizome
