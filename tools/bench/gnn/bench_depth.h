#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/file_system.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"

// `bench depth`: accuracy of models by depth and width, trained on the full graph, with and without
// residual connections, and on minibatches.
//
// Source: ROC (Jia et al., MLSys 2020), section 7.5 and Figure 7. There, GCNs of 2 to 4 layers of
// 16 to 512 columns with residual connections reach a higher accuracy on Reddit the deeper and
// wider they are.

namespace rhizome {

struct BenchDepthOptions {
  Path data;       ///< folder of all data sets, as in bench_models.h
  Path dir = ".";  ///< folder of temporary stores
  std::vector<std::string> sets = {"amazon_computers", "coauthor_cs"};
  std::string model = "gcn";
  std::vector<std::uint32_t> layers = {2, 3, 4};
  std::vector<std::uint32_t> hidden = {64, 128, 256, 512};
  /// also trains each on minibatches with all neighbours, for as many epochs
  bool minibatch = false;
  std::uint32_t epochs = 200;
  std::uint32_t patience = 50;
  std::uint32_t seeds = 3;
  std::uint32_t threads = 1;
  bool list = false;                                ///< lists the models without training them
  std::string plot;                                 ///< .svg or .png, or empty
  std::function<void(std::string_view)> note = {};  ///< receives each row as soon as it is complete
};

/// Trains each model through the public interface of the library (GnnEntry::Train).
/// Errors: as IngestDataSet and training; kInvalidArgument, the name of the plot; kInterrupted.
Result<nlohmann::ordered_json> BenchDepth(const BenchDepthOptions& options,
                                          const JobControl& control);

}  // namespace rhizome
