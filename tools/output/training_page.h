#pragma once

#include <string>
#include <utility>
#include <vector>

#include "rhizome/train_options.h"

namespace rhizome {

/// Facts about a training that its page shows besides the report.
struct TrainingPageFacts {
  std::string store;
  std::vector<std::pair<std::string, std::string>> options;  ///< of the run: name, value
  std::string stopped;  ///< reason for an early end; empty: it was not stopped
};

/// Describes a training as an HTML page (HtmlPage): result, curves, confusion matrix or the details
/// that replace it, seeds, model, memory and disk, ignored parts of the store, and the options of
/// the run. `report` must have a seed with at least one epoch.
std::string TrainingPage(const TrainReport& report, const TrainingPageFacts& facts);

}  // namespace rhizome
