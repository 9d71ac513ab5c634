#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gnn/full_graph/full_job.h"
#include "gnn/full_graph/step_state.h"
#include "gnn/passes/chunk_mover.h"
#include "rhizome/job_control.h"
#include "storage/base/stopwatch.h"

namespace rhizome {
inline namespace internal {

/// Saves the state of a step while it runs, so that a process that resumes the job's checkpoint
/// need not start at the step's first pass.
/// Threads: one at a time.
/// Ownership: borrows `full`.
class StepCheckpointer {
 public:
  struct Options {
    Path path;             ///< path of the state file
    std::string job;       ///< the job, as in SaveCheckpoint
    double every = 0;      ///< minimum seconds between two states
    bool enabled = false;  ///< false: no state is written
  };
  StepCheckpointer(FullJob& full, Options options) : full_(full), options_(std::move(options)) {}

  /// Sets a loaded state to resume, and protects its files.
  void ResumeFrom(StepState state);

  /// Returns the loaded state if it belongs to step `step`, else nullopt. A second call returns
  /// nullopt.
  std::optional<StepState> StateOf(std::uint64_t step);

  /// Returns whether it is time to save a state.
  bool IsDue() const { return options_.enabled && since_.seconds() >= options_.every; }

  /// Saves the state of a step. Before the first state of a step it calls `checkpoint`, which
  /// writes the job's checkpoint as it was before the step. Errors: errors of `checkpoint` and of
  /// SaveStepState.
  Status Save(const StepState& state, const std::function<Status()>& checkpoint);

  /// Removes the state, because its files are damaged. Errors: errors of the FileSystem.
  Status Discard();

 private:
  void Protect(const StepState* state);

  FullJob& full_;
  const Options options_;
  Stopwatch since_;
  std::optional<StepState> loaded_;
  std::optional<std::uint64_t> checkpoint_of_;  // the step that the checkpoint on disk precedes
};

/// One run of the passes of a step, in order. The arrays are empty afterwards.
/// Ownership: borrows all arguments.
class StepRun {
 public:
  struct Options {
    bool measures = false;
    std::uint64_t step = 0;
    StepCheckpointer* keeper = nullptr;       ///< null: the step cannot be resumed
    std::function<Status()> checkpoint = {};  ///< see StepCheckpointer::Save
    std::span<float> scores = {};             ///< scores kept by the sink
  };
  StepRun(FullJob& full, Options options);
  ~StepRun();

  /// Runs the next pass, or returns its sums if an earlier process completed it. Errors: errors of
  /// RunPass and of StepCheckpointer.
  Result<TileSums> Run(const GraphPass& pass, const std::string& phase, const JobControl& control);

 private:
  Result<TileSums> RunNext(const GraphPass& pass, const std::string& phase,
                           const JobControl& control);
  Status Keep(const PassPoint& point);
  void Remember(const TileSums& sums);
  std::optional<StepState> TakeState();
  bool Keeps() const {  // the step can be resumed from here
    return options_.keeper != nullptr && (!scored_ || !options_.scores.empty());
  }

  FullJob& full_;
  const Options options_;
  const FullStepPlan& step_;
  std::optional<StepState> from_;  // the state that an earlier process saved
  ChunkMover mover_;
  std::size_t next_ = 0;
  std::vector<TileSums> sums_;  // [completed passes], all in the first group
  bool scored_;                 // a pass has passed scores to the sink
};

}  // namespace internal
}  // namespace rhizome
