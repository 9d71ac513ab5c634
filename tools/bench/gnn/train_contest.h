#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench_train.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/store.h"

namespace rhizome {

/// One way to train, as flags of the verb.
struct Contestant {
  std::string name;
  std::vector<std::string> flags;
  std::uint64_t steps = 0;
  std::optional<std::uint64_t> limit_bytes;  ///< of the control group; absent: none
  std::uint64_t batch_size = 0;              ///< 0: as the options say
  bool warm = false;                         ///< rows are in the page cache
  std::string store = {};                    ///< empty: the bench's
};

/// Trains in child processes, each in a control group of its own.
class TrainContest {
 public:
  TrainContest(const BenchTrainOptions& options, const Store& store, Path scratch)
      : options_(options), store_(store), scratch_(std::move(scratch)) {}

  /// Measures the memory of a training process before it opens anything.
  Status MeasureBase();
  std::uint64_t base_bytes() const { return base_bytes_; }
  bool dropped_caches() const { return dropped_caches_; }

  /// Trains once and returns the times and reads for each minibatch (see StepJson). Errors:
  /// kIoError, with the output of the process.
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

/// A picture of `results`: bars of where the time of a minibatch goes, named by field `name`.
Status DrawSteps(const std::string& path, const nlohmann::ordered_json& results,
                 const std::string& name);

}  // namespace rhizome
