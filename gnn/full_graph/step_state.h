#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gnn/passes/scratch_array.h"
#include "gnn/passes/tile_sums.h"
#include "rhizome/file_system.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// A step of a training that is in progress: the results of its passes so far, and the files that
/// hold them. Another process can resume it, with any number of threads and any memory in which its
/// chunks fit.
struct StepState {
  std::uint64_t step = 0;         ///< number of the step, over all epochs
  std::uint64_t chunk_rows = 0;   ///< rows per chunk, of all arrays
  std::uint64_t stored_sums = 0;  ///< FullGraphPlan::stored_sums of the training step
  std::uint64_t pass = 0;         ///< the pass in progress; earlier ones are complete
  std::uint64_t chunk = 0;        ///< first chunk of the pass that is not computed
  std::vector<TileSums> sums;     ///< [pass] sums of complete passes, in the first group
  TileSums current{0};            ///< sums of the pass in progress, up to `chunk`
  std::vector<float> scores;      ///< scores kept by the sink; empty: none so far
  std::map<std::string, std::vector<ScratchFile>> files;  ///< by name of the array
};

/// Writes a state with a checksum over all of it, and replaces an existing one atomically. `job`:
/// as in SaveCheckpoint. Errors: kIoError; kOutOfSpace.
Status SaveStepState(const Path& path, const std::string& job, const StepState& state);

/// Loads the state at `path`. Returns nullopt if there is none, or if it cannot be resumed: it is
/// damaged or belongs to another job. Errors: kIoError.
Result<std::optional<StepState>> LoadStepState(FileSystem& fs, const Path& path,
                                               const std::string& job);

}  // namespace internal
}  // namespace rhizome
