#pragma once

#include <gmock/gmock.h>

#include <regex>
#include <string>

#include "gnn/gnn_testing.h"
#include "rhizome/train_options.h"
#include "testing/test_store.h"

namespace rhizome::testing {

inline Result<TrainReport> Train(const TrainOptions& options) {
  const JobControl control;
  return rhizome_gnn_entry_v1()->Train(options, control);
}

inline Result<FullGraphReport> PlanOf(const TrainOptions& options) {
  const JobControl control;
  return rhizome_gnn_entry_v1()->PlanTrain(options, control);
}

/// Returns the options of a full-graph training of one epoch.
inline TrainOptions FullTraining(const Path& store, const ModelSpec& model) {
  TrainOptions options;
  options.store = store;
  options.model = model;
  options.mode = FullGraphOptions();
  options.learning.epochs = 1;
  options.learning.seed = 3;
  options.learning.test = false;
  return options;
}

/// Returns the options of a training of two epochs that uses everything that may depend on the run:
/// dropout, batch norm, residual connections.
inline TrainOptions DeepTraining(const Path& store, const Path& out) {
  TrainOptions options =
      FullTraining(store, {.kind = "gcn",
                           .layers = 3,
                           .hidden = 48,
                           .dropout = 0.3,
                           .options = {{"residual", "true"}, {"norm", "batch"}}});
  options.learning.epochs = 2;
  options.learning.test = true;
  options.job.out = out;
  return options;
}

inline std::uint64_t PlannedArrays(const TrainOptions& options) {
  const Result<FullGraphReport> plan = PlanOf(options);
  EXPECT_OK(plan);
  std::uint64_t bytes = 0;
  if (plan)
    for (const FullGraphReport::Array& array : plan->arrays) bytes += array.bytes;
  return bytes;
}

/// Returns the minimum memory_bytes of a training with this many threads, parsed from the error
/// message that names it.
inline std::uint64_t LeastMemory(TrainOptions options, std::uint32_t threads) {
  options.resources.memory_bytes = 1 << 20;
  options.resources.threads = threads;
  const Result<FullGraphReport> plan = PlanOf(options);
  EXPECT_FALSE(plan.has_value());
  if (plan) return 0;
  EXPECT_EQ(plan.error().code(), StatusCode::kOutOfMemory);
  std::smatch found;
  const std::string message = plan.error().message();
  EXPECT_TRUE(std::regex_search(message, found, std::regex("needs at least (\\d+) MiB")))
      << message;
  EXPECT_THAT(message, ::testing::HasSubstr("pass"));
  return found.empty() ? 0 : std::stoull(found[1]) << 20;
}

inline PlantedOptions LargerGraph(std::uint64_t seed) {
  PlantedOptions options;
  options.vertices = 6000;
  options.degree = 4;
  options.seed = seed;
  return options;
}

}  // namespace rhizome::testing
