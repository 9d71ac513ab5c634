#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "rhizome/status.h"
#include "rhizome/store.h"
#include "tools/bench/gnn/bench_train.h"

namespace rhizome {

/// A configuration of training, as flags of the verb.
struct Contestant {
  std::string name;
  std::vector<std::string> flags;
  std::uint64_t steps = 0;
  std::optional<std::uint64_t> limit_bytes;  ///< limit of the control group; absent: none
  std::uint64_t batch_size = 0;              ///< 0: as in the options
  bool warm = false;                         ///< the rows are in the page cache at the start
  std::string store = {};                    ///< empty: the store of the bench
};

/// Runs trainings in child processes, each in its own control group.
class TrainComparison {
 public:
  TrainComparison(const BenchTrainOptions& options, const Store& store, Path scratch)
      : options_(options), store_(store), scratch_(std::move(scratch)) {}

  /// Measures the memory of a training process before it opens any file.
  Status MeasureBase();
  std::uint64_t base_bytes() const { return base_bytes_; }
  bool dropped_caches() const { return dropped_caches_; }

  /// Trains once and returns times and reads per minibatch (see StepJson). Errors: kIoError, with
  /// the output of the process.
  Result<nlohmann::ordered_json> Run(const Contestant& contestant);

 private:
  Result<nlohmann::ordered_json> RunReport(const Contestant& contestant);
  std::vector<std::string> Command(const Contestant& contestant) const;
  nlohmann::ordered_json StepJson(const nlohmann::ordered_json& report,
                                  const Contestant& contestant) const;

  const BenchTrainOptions& options_;
  const Store& store_;
  const Path scratch_;
  std::uint64_t base_bytes_ = 0;
  bool dropped_caches_ = true;
};

/// Draws a bar chart of the time of a minibatch by phase. The bars are named by field `name` of
/// `results`.
Status DrawSteps(const std::string& path, const nlohmann::ordered_json& results,
                 const std::string& name);

}  // namespace rhizome
