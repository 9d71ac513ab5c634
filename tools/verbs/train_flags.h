#pragma once

#include <memory>
#include <string>

#include "rhizome/status.h"
#include "rhizome/train_options.h"
#include "tools/cli/cli.h"
#include "tools/cli/option_flags.h"

namespace rhizome {

/// The flags of `train`, shared by `plan train`.
struct TrainFlags {
  TrainOptions options;  // its mode is made from the groups below (CompleteTrainOptions)
  MinibatchOptions minibatch;
  DeviceOptions device;
  PrefetchOptions prefetch;
  FullGraphOptions full_graph;
  bool is_full_graph = false;
  ComputeOn computes = ComputeOn::kCpu;

  std::string store;
  std::string report;  // output files that describe the training; empty: not written
  std::string curves;
  std::string plot;
  const CLI::App* verb = nullptr;  // the verb whose options the report lists
  std::unique_ptr<OptionFlags> table;

  bool describes() const { return !report.empty() || !curves.empty() || !plot.empty(); }
};

/// Adds the flags. `flags` must outlive the verb.
void AddTrainFlags(CLI::App& verb, TrainFlags& flags, Session& session);

/// Rejects flags that require a training over ranks. Errors: kInvalidArgument, naming the flag.
Status CheckAlone(const TrainFlags& flags);

/// Returns the options with the values that the flags imply; without ranks. Errors:
/// kInvalidArgument, conflicting flags.
Result<TrainOptions> CompleteTrainOptions(const TrainFlags& flags);

}  // namespace rhizome
