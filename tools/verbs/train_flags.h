#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rhizome/result.h"
#include "rhizome/train_options.h"
#include "tools/cli/cli.h"

namespace rhizome {

/// The flags of `train`, shared by `plan train`.
struct TrainFlags {
  TrainOptions options;
  std::string store;
  std::string out;
  std::string trace;
  std::optional<std::uint32_t> layers;
  std::optional<std::vector<std::int64_t>> fanouts;
  std::string report;  // output files that describe the training; empty: not written
  std::string curves;
  std::string plot;
  const CLI::App* verb = nullptr;  // the verb whose options the report lists

  bool describes() const { return !report.empty() || !curves.empty() || !plot.empty(); }
};

/// Adds the flags. `flags` must outlive the verb.
void AddTrainFlags(CLI::App& verb, TrainFlags& flags, Session& session);

/// Rejects flags that require a training over ranks. Errors: kInvalidArgument, naming the flag.
Status CheckAlone(const CLI::App& verb);

/// Returns the options with the values that the flags imply. Errors: kInvalidArgument, conflicting
/// flags.
Result<TrainOptions> CompleteTrainOptions(const TrainFlags& flags);

}  // namespace rhizome
