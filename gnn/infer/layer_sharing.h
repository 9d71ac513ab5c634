#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "rhizome/cache/inference_log.h"
#include "rhizome/cache/score_table.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// Processes without a common folder that compute the layers of a run together: each computes some
/// chunks of a layer's array, and gives them to the others before the next layer. A row's bits
/// depend on what it is computed from alone, so the result is that of one process. All of them make
/// the same run, with the same options but for memory and threads. Threads: one at a time.
class LayerSharing {
 public:
  /// Chunks [begin, end).
  struct Chunks {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };

  virtual ~LayerSharing() = default;

  virtual std::uint32_t processes() const = 0;

  /// Returns which of `chunks` chunks this process computes.
  virtual Chunks Own(std::uint64_t chunks) const = 0;

  /// Gives the files of this process's chunks, `own`, below `root`, to all others, and writes
  /// theirs below `root`. Calls adopt(chunk, finished) for each that came. Errors: another process
  /// is lost or has failed; kCorruption, what came is not what that one computes; those of writing
  /// and of `adopt`.
  virtual Status Exchange(
      FileSystem& fs, const Path& root, std::uint64_t chunks,
      const std::map<std::uint64_t, FinishedChunk>& own,
      const std::function<Status(std::uint64_t chunk, const FinishedChunk& finished)>& adopt) = 0;

  /// Completes scores, of which each process has those of the rows that it computed, with those of
  /// the others. Errors: another process is lost or has failed.
  virtual Status ShareScores(ScoreTable& scores) = 0;
};

}  // namespace rhizome::inline internal
