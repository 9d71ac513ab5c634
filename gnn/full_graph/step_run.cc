#include "gnn/full_graph/step_run.h"

#include <algorithm>
#include <utility>

// StepRun::Run, called for each pass of a step:
//   1. Returns the saved sums if an earlier process completed the pass.
//   2. Limits the memory of chunk buffers, and finds the chunk at which the pass starts.
//   3. Runs the pass (RunPass), which saves the state of the step whenever that is due (Keep).
//   4. Remembers the sums of the pass for later states.

namespace rhizome {
inline namespace internal {

void StepCheckpointer::ResumeFrom(StepState state) {
  loaded_ = std::move(state);
  Protect(&*loaded_);
}

std::optional<StepState> StepCheckpointer::StateOf(std::uint64_t step) {
  std::optional<StepState> state = std::exchange(loaded_, std::nullopt);
  if (!state || state->step != step) return std::nullopt;
  checkpoint_of_ = step;
  return state;
}

Status StepCheckpointer::Save(const StepState& state, const std::function<Status()>& checkpoint) {
  if (checkpoint_of_ != state.step) {
    RHIZOME_RETURN_IF_ERROR(checkpoint());
    checkpoint_of_ = state.step;
  }
  RHIZOME_RETURN_IF_ERROR(SaveStepState(options_.path, options_.job, state));
  Protect(&state);
  since_ = Stopwatch();
  return Status::Ok();
}

/// Protects the files of `state` from removal, and no others. Null: protects no files.
void StepCheckpointer::Protect(const StepState* state) {
  std::set<Path> paths;
  for (const ScratchArray* const array : full_.Arrays()) {
    if (state == nullptr) break;
    const auto found = state->files.find(array->shape().name);
    if (found == state->files.end()) continue;
    for (const ScratchFile& file : found->second)
      paths.insert(array->FileOf(state->step, file.chunk));
  }
  full_.space().Protect(std::move(paths));
}

Status StepCheckpointer::Discard() {
  if (!options_.enabled) return Status::Ok();
  Protect(nullptr);
  FileSystem& fs = full_.space().fs();
  const Result<FileInfo> info = fs.Stat(options_.path);
  return info ? fs.RemoveFile(options_.path) : Status::Ok();
}

StepRun::StepRun(FullJob& full, Options options)
    : full_(full),
      options_(std::move(options)),
      step_(full.StepOf(options_.measures)),
      from_(TakeState()),
      mover_(*step_.spill, full.Arrays()),
      scored_(from_ && !from_->scores.empty()) {
  for (ScratchArray* const array : full_.Arrays()) {
    std::span<const ScratchFile> files;
    if (from_) {
      const auto found = from_->files.find(array->shape().name);
      if (found != from_->files.end()) files = found->second;
    }
    array->Begin(options_.step, files);
  }
}

/// Returns the state to resume, if there is one, and copies its scores to the sink.
std::optional<StepState> StepRun::TakeState() {
  if (options_.keeper == nullptr) return std::nullopt;
  std::optional<StepState> state = options_.keeper->StateOf(options_.step);
  if (!state || state->scores.empty()) return state;
  if (state->scores.size() != options_.scores.size()) return std::nullopt;  // scores of other sets
  std::copy(state->scores.begin(), state->scores.end(), options_.scores.begin());
  return state;
}

StepRun::~StepRun() {
  mover_.Cancel();
  for (ScratchArray* const array : full_.Arrays()) array->RemoveFiles();
}

Result<TileSums> StepRun::Run(const GraphPass& pass, const std::string& phase,
                              const JobControl& control) {
  Result<TileSums> sums = RunNext(pass, phase, control);
  // A state whose files are damaged cannot be resumed.
  if (!sums && sums.error().code() == StatusCode::kCorruption && options_.keeper != nullptr)
    RHIZOME_RETURN_IF_ERROR(options_.keeper->Discard());
  return sums;
}

Result<TileSums> StepRun::RunNext(const GraphPass& pass, const std::string& phase,
                                  const JobControl& control) {
  if (from_ && next_ < from_->pass) {
    mover_.Skip();
    sums_.push_back(from_->sums[next_]);
    return sums_[next_++];
  }
  const FullGraphPlan& plan = step_.plan;
  full_.space().SetRoom(plan.capacity_bytes - plan.passes[next_].sum_bytes + ChunksOfPass(pass) +
                        step_.writer_bytes);
  PassCut cut{.block_bytes = step_.block_bytes[next_], .from = nullptr};
  PassPoint from;
  bool begun = false;  // a saved state has all inputs of the pass
  if (from_ && next_ == from_->pass) {
    begun = true;
    from = {.chunk = from_->chunk, .sums = std::move(from_->current)};
    if (from.chunk > 0) cut.from = &from;
  } else if (Keeps() && options_.keeper->IsDue()) {
    RHIZOME_RETURN_IF_ERROR(Keep({.chunk = 0, .sums = TileSums(0)}));
    begun = true;
  }
  scored_ = scored_ || pass.scores;
  if (begun && Keeps()) {
    cut.reached = [this](const PassPoint& point) {
      return options_.keeper->IsDue() ? Keep(point) : Status::Ok();
    };
  }
  RHIZOME_ASSIGN_OR_RETURN(TileSums sums,
                           RunPass(pass, full_.ground(), cut, mover_, phase, control));
  Remember(sums);
  ++next_;
  return sums;
}

/// Saves the state of the step, with the next pass computed up to `point`.
Status StepRun::Keep(const PassPoint& point) {
  RHIZOME_RETURN_IF_ERROR(mover_.Persist());
  StepState state{.step = options_.step,
                  .chunk_rows = full_.ground().sizes.chunk_rows,
                  .stored_sums = full_.StepOf(/*measures=*/false).plan.stored_sums,
                  .pass = next_,
                  .chunk = point.chunk,
                  .sums = sums_,
                  .current = point.sums,
                  .scores = {},
                  .files = {}};
  if (scored_) state.scores.assign(options_.scores.begin(), options_.scores.end());
  for (const ScratchArray* const array : full_.Arrays())
    if (mover_.IsLive(*array)) state.files[array->shape().name] = array->Files();
  return options_.keeper->Save(state, options_.checkpoint);
}

void StepRun::Remember(const TileSums& sums) {
  TileSums total(sums.count());
  if (options_.keeper != nullptr) {
    for (std::size_t i = 0; i < sums.count(); ++i) total.Set(0, i, sums.Sum(i));
  }
  sums_.push_back(std::move(total));
}

}  // namespace internal
}  // namespace rhizome
