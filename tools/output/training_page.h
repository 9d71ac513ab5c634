#pragma once

#include <string>
#include <utility>
#include <vector>

#include "rhizome/gnn/train_options.h"

namespace rhizome {

/// The facts that the page of a training tells beside its report.
struct TrainingPageFacts {
  std::string store;
  std::vector<std::pair<std::string, std::string>> options;  ///< of the run: name, value
  std::string stopped;  ///< why it ended before its end; empty: it did not
};

/// Describes a training as a page (HtmlPage): its figures, curves, confusion or what there is in
/// its place, seeds, network, memory and disk, what of the store was ignored, and the options of
/// the run. `report` has a seed with an epoch.
std::string TrainingPage(const TrainReport& report, const TrainingPageFacts& facts);

}  // namespace rhizome
