#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rhizome/gnn/scratch_array.h"
#include "rhizome/gnn/tile_sums.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// A step of a training in the middle: what its passes have computed, and the files that hold it.
/// Another process goes on from it, whatever its threads and its memory.
struct StepState {
  std::uint64_t step = 0;         ///< its number, over all epochs
  std::uint64_t chunk_rows = 0;   ///< of all arrays
  std::uint64_t stored_sums = 0;  ///< as FullGraphPlan has it, of learning
  std::uint64_t pass = 0;         ///< the pass that goes on; those before are complete
  std::uint64_t chunk = 0;        ///< the first of it that is not computed
  std::vector<TileSums> sums;     ///< [pass] what each summed, in its first group
  TileSums current{0};            ///< of the pass that goes on, up to `chunk`
  std::vector<float> scores;      ///< what the sink keeps; empty: no pass has given it any yet
  std::map<std::string, std::vector<ScratchFile>> files;  ///< by array
};

/// Writes a state, with a checksum over all of it; one that is there is replaced atomically. `job`:
/// as SaveCheckpoint has it. Errors: kIoError; kOutOfSpace.
Status SaveStepState(const Path& path, const std::string& job, const StepState& state);

/// Loads the state at `path`. Nothing if there is none, or one that cannot be gone on from:
/// damaged, or of another job. Errors: kIoError.
Result<std::optional<StepState>> LoadStepState(FileSystem& fs, const Path& path,
                                               const std::string& job);

}  // namespace rhizome::inline internal
