#pragma once

#include <string>
#include <vector>

#include "rhizome/gnn/train_options.h"
#include "svg_chart.h"

namespace rhizome {

/// Whether a metric is a share of what there is, and shown in percent.
bool IsShare(Metric metric);

/// The loss, each metric and the learning rate by epoch, of the training set while it was learnt
/// and of the validation set; lines of the best seed, with those of the others behind.
std::vector<Chart> LearningCharts(const TrainReport& report);

/// Memory, bytes read from disk and seconds by epoch, of the best seed.
std::vector<Chart> CostCharts(const TrainReport& report);

/// One line for each seed and epoch, below a head line, as CSV: seed, epoch, best (1 in the epoch
/// that was kept), learning_rate, loss, valid_loss, then each metric of the training and the
/// validation set, then costs. What was not measured is empty.
std::string CurvesCsv(const TrainReport& report);

}  // namespace rhizome
