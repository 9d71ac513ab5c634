#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rhizome/gnn/chunk_mover.h"
#include "rhizome/gnn/full_job.h"
#include "rhizome/gnn/step_state.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/stopwatch.h"

namespace rhizome::inline internal {

/// The states of steps that a job writes as it goes, so that a process that goes on from the job's
/// checkpoint need not begin at a step's first pass.
/// Threads: one at a time.
/// Ownership: borrows `full`.
class StepKeeper {
 public:
  struct Options {
    Path path;             ///< of the state
    std::string job;       ///< as SaveCheckpoint has it
    double every = 0;      ///< seconds between two states, at least
    bool enabled = false;  ///< else none is written
  };
  StepKeeper(FullJob& full, Options options) : full_(full), options_(std::move(options)) {}

  /// Goes on from a state that was loaded.
  void GoOnFrom(StepState state);

  /// Returns the state to go on from, if it is of this step; once.
  std::optional<StepState> StateOf(std::uint64_t step);

  /// Is it time to write a state?
  bool IsDue() const { return options_.enabled && since_.seconds() >= options_.every; }

  /// Writes the state of a step. `checkpoint`: writes the job's checkpoint, of what was before the
  /// step, which is done once for each. Errors: those of both.
  Status Save(const StepState& state, const std::function<Status()>& checkpoint);

  /// Forgets the state, as its files are damaged. Errors: those of the FileSystem.
  Status Discard();

 private:
  void Protect(const StepState* state);

  FullJob& full_;
  const Options options_;
  Stopwatch since_;
  std::optional<StepState> loaded_;
  std::optional<std::uint64_t> checkpoint_of_;  // the step whose checkpoint was written here
};

/// One run of the passes of a step, in order. Its arrays are empty afterwards.
/// Ownership: borrows all that it is given.
class StepRun {
 public:
  struct Options {
    bool measures = false;
    std::uint64_t step = 0;
    StepKeeper* keeper = nullptr;             ///< null: it cannot be gone on from
    std::function<Status()> checkpoint = {};  ///< see StepKeeper::Save
    std::span<float> scores = {};             ///< what the sink keeps of those that passes give
  };
  StepRun(FullJob& full, Options options);
  ~StepRun();

  /// Runs the next pass, or says what it summed in an earlier process. Errors: those of RunPass;
  /// those of StepKeeper.
  Result<TileSums> Run(const GraphPass& pass, const std::string& phase, const JobControl& control);

 private:
  Result<TileSums> RunNext(const GraphPass& pass, const std::string& phase,
                           const JobControl& control);
  Status Keep(const PassPoint& point);
  void Remember(const TileSums& sums);
  std::optional<StepState> TakeState();
  bool Keeps() const {  // what passes gave so far can be gone on from
    return options_.keeper != nullptr && (!scored_ || !options_.scores.empty());
  }

  FullJob& full_;
  const Options options_;
  const FullStepPlan& step_;
  std::optional<StepState> from_;  // where an earlier process left it
  ChunkMover mover_;
  std::size_t next_ = 0;
  std::vector<TileSums> sums_;  // of the passes that are complete, in the first group
  bool scored_;                 // a pass has given scores
};

}  // namespace rhizome::inline internal
