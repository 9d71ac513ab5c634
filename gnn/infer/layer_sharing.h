#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "cache/blocks/inference_log.h"
#include "cache/feed/score_table.h"
#include "rhizome/file_system.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// Connects processes without a common folder that compute the layers of a run together. Each
/// process computes some chunks of a layer's array and sends them to the others before the next
/// layer. A row's bits depend only on the inputs of that row, so the result equals the result of a
/// single process. All processes run with the same options, except for memory and threads. Threads:
/// one at a time.
class LayerSharing {
 public:
  /// Chunks [begin, end).
  struct Chunks {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };

  virtual ~LayerSharing() = default;

  virtual std::uint32_t processes() const = 0;

  /// Returns the chunks that this process computes, out of `chunks` chunks.
  virtual Chunks Own(std::uint64_t chunks) const = 0;

  /// Sends the files of this process's chunks, `own`, below `root` to all other processes, and
  /// writes the files received from them below `root`. Calls adopt(chunk, finished) for each
  /// received chunk. Errors: another process is lost or has failed; kCorruption, a received chunk
  /// is not one that its sender computes; any error of writing or of `adopt`.
  virtual Status Exchange(
      FileSystem& fs, const Path& root, std::uint64_t chunks,
      const std::map<std::uint64_t, FinishedChunk>& own,
      const std::function<Status(std::uint64_t chunk, const FinishedChunk& finished)>& adopt) = 0;

  /// Completes `scores`: each process has the scores of the rows that it computed, and receives the
  /// rest from the others. Errors: another process is lost or has failed.
  virtual Status ShareScores(ScoreTable& scores) = 0;
};

}  // namespace internal
}  // namespace rhizome
