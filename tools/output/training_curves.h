#pragma once

#include <string>
#include <vector>

#include "rhizome/train_options.h"
#include "tools/output/svg_chart.h"

namespace rhizome {

/// Returns whether a metric is a ratio, which is shown in percent.
bool IsShare(Metric metric);

/// Returns charts by epoch of the loss, each metric and the learning rate, for the training set
/// (measured during training) and the validation set. The best seed is drawn in the foreground, the
/// others behind it.
std::vector<Chart> LearningCharts(const TrainReport& report);

/// Returns charts by epoch of memory, bytes read from disk and seconds, for the best seed.
std::vector<Chart> CostCharts(const TrainReport& report);

/// Returns CSV with a header line and one line per seed and epoch: seed, epoch, best (1 in the
/// epoch whose weights were kept), learning_rate, loss, valid_loss, then each metric of the
/// training and the validation set, then costs. A field that was not measured is empty.
std::string CurvesCsv(const TrainReport& report);

}  // namespace rhizome
