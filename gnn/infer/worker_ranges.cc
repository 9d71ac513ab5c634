#include "gnn/infer/worker_ranges.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "cache/ranges/pass_features.h"
#include "cache/ranges/prediction_error.h"
#include "cache/ranges/range_cut.h"

// Cut (1) cuts the unfinished chunks into ranges of equal numbers of edges; (2) if costs may be
// learned, computes features of the ranges and cuts them by predicted cost, too; (3) chooses one of
// both cuts (Judge); (4) returns tasks. Learn (1) adds up the measured costs by range; (2) measures
// the model's error and updates the model; (3) writes the cost file.

namespace rhizome {
inline namespace internal {
namespace {

/// Number of measurements after which a model is used. Few are enough, because the model's error is
/// measured each time and compared with the next predicted gain.
constexpr std::uint64_t kEnough = 4;

/// Assumed error of a model before its first prediction.
constexpr double kUnknownError = 0.25;

/// The unfinished chunks of a layer, and prefix sums of their costs.
class OpenChunks {
 public:
  explicit OpenChunks(const std::vector<bool>& done) {
    for (std::uint64_t chunk = 0; chunk < done.size(); ++chunk) {
      if (!done[chunk]) chunks_.push_back(chunk);
    }
  }
  std::uint64_t operator[](std::size_t i) const { return chunks_[i]; }
  std::size_t size() const { return chunks_.size(); }

  /// Returns [size() + 1] prefix sums of cost_of(chunk).
  template <typename CostOf>
  std::vector<double> Sums(const CostOf& cost_of) const {
    std::vector<double> sums = {0};
    for (const std::uint64_t chunk : chunks_) sums.push_back(sums.back() + cost_of(chunk));
    return sums;
  }

 private:
  std::vector<std::uint64_t> chunks_;
};

std::vector<std::size_t> CutBySums(const std::vector<double>& sums, std::size_t parts) {
  return CutByCost(sums.size() - 1, parts,
                   [&](std::size_t begin, std::size_t end) { return sums[end] - sums[begin]; });
}

double LargestOf(const std::vector<std::size_t>& ends, const std::vector<double>& sums) {
  double largest = 0;
  for (std::size_t i = 0; i + 1 < ends.size(); ++i)
    largest = std::max(largest, sums[ends[i + 1]] - sums[ends[i]]);
  return largest;
}

std::vector<WorkerTask> TasksOf(const OpenChunks& open, const std::vector<std::size_t>& ends,
                                std::uint32_t layer) {
  std::vector<WorkerTask> tasks;
  for (std::size_t range = 0; range + 1 < ends.size(); ++range) {
    for (std::size_t i = ends[range]; i < ends[range + 1]; ++i) {
      if (i == ends[range] || open[i] != open[i - 1] + 1)
        tasks.push_back({.stage = layer, .begin = open[i], .end = open[i]});
      ++tasks.back().end;
    }
  }
  return tasks;
}

/// Explains why a layer without known costs is cut by edges.
std::string WhyEdges(const PassDrawOptions& draw, InferWorkers::Ranges by) {
  if (draw.no_edges) return "equal rows: no edges are followed";
  if (by == InferWorkers::Ranges::kEdges) return "equal edges, as requested";
  return draw.neighbors != nullptr ? "equal edges: costs are not learned for lists on disk"
                                   : "equal edges: no costs are known for such a layer";
}

Row RowAt(const BlockPlannerOptions& pass, std::uint64_t place) {
  return pass.target_order == nullptr ? static_cast<Row>(place) : pass.target_order->RowAt(place);
}

}  // namespace

std::string CostModelName(const LayerToCut& layer) {
  const Direction direction = layer.pass.planner.draw.direction;
  return fmt::format("{}/{}x{}/{}", layer.kind, std::bit_ceil(layer.columns_read),
                     std::bit_ceil(layer.columns_written),
                     direction == Direction::kIn    ? "in"
                     : direction == Direction::kOut ? "out"
                                                    : "both");
}

WorkerRanges::WorkerRanges(const InferWorkers& workers, JobNote note)
    : file_(workers.costs), by_(workers.ranges), note_(std::move(note)) {
  if (file_.empty()) return;
  Result<CostModels> models = LoadCostModels(FileSystem::Posix(), file_);
  if (models) {
    models_ = *std::move(models);
  } else if (models.error().code() != StatusCode::kNotFound && note_) {
    note_(models.error().message());
  }
}

Result<std::vector<WorkerTask>> WorkerRanges::Cut(const LayerToCut& layer,
                                                  const std::vector<bool>& done,
                                                  std::uint32_t workers,
                                                  const JobControl& control) {
  report_ = {};
  report_.model = CostModelName(layer);
  report_.because = WhyEdges(layer.pass.planner.draw, by_);
  const std::uint64_t chunk_rows = layer.pass.output_chunk_rows;
  const OpenChunks open(done);
  const auto end_of = [&](std::uint64_t chunk) {
    return std::min((chunk + 1) * chunk_rows, layer.rows);
  };
  const std::vector<double> edges = open.Sums([&](std::uint64_t chunk) {
    std::uint64_t sum = 0;
    for (std::uint64_t place = chunk * chunk_rows; place < end_of(chunk); ++place)
      sum += EdgesOfRow(layer.pass.planner, RowAt(layer.pass.planner, place));
    // A chunk without edges still has a small cost.
    return static_cast<double>(sum) +
           1e-3 * static_cast<double>(end_of(chunk) - chunk * chunk_rows);
  });
  std::vector<std::size_t> ends = CutBySums(edges, workers);
  has_features_ = WantsFeatures(layer);
  if (has_features_) {
    RHIZOME_RETURN_IF_ERROR(FindFeatures(layer, control));
    const CostModel& model = models_[report_.model];
    const std::vector<double> costs = open.Sums([&](std::uint64_t chunk) {
      return model.Predict(known_->features.Of(chunk * chunk_rows, end_of(chunk)));
    });
    const std::vector<std::size_t> learned = CutBySums(costs, workers);
    if (model.measurements() > 0) Judge(model, LargestOf(ends, costs), LargestOf(learned, costs));
    if (report_.learned) ends = learned;
    for (std::size_t i = 0; i + 1 < ends.size() && model.measurements() > 0; ++i)
      report_.predicted.push_back(costs[ends[i + 1]] - costs[ends[i]]);
  }
  for (const std::size_t end : ends)
    report_.cuts.push_back(end == open.size() ? layer.rows : open[end] * chunk_rows);
  open_rows_.assign(ends.size() - 1, 0);
  for (std::size_t range = 0; range < open_rows_.size(); ++range) {
    for (std::size_t i = ends[range]; i < ends[range + 1]; ++i)
      open_rows_[range] += end_of(open[i]) - open[i] * chunk_rows;
  }
  return TasksOf(open, ends, layer.layer);
}

/// Returns whether features are worth computing. They need a walk over all lists, so they are only
/// computed if this job or a later one may use them.
bool WorkerRanges::WantsFeatures(const LayerToCut& layer) const {
  const PassDrawOptions& draw = layer.pass.planner.draw;
  // Lists on disk would all be read for this.
  if (draw.no_edges || draw.neighbors != nullptr) return false;
  const auto model = models_.find(report_.model);
  const bool is_believed = model != models_.end() && model->second.measurements() >= kEnough;
  return is_believed || layer.alike > 0 || !file_.empty();
}

bool WorkerRanges::KnowsFeatures(const LayerToCut& layer) const {
  const BlockPlannerOptions& pass = layer.pass.planner;
  return known_ && known_->columns == layer.columns_read && known_->rows == layer.rows &&
         layer.pass.output_chunk_rows % known_->features.step() == 0 && known_->as_stored &&
         (pass.target_order == nullptr || pass.target_order->as_stored()) &&
         TakeSameLists(known_->draw, pass.draw);
}

Status WorkerRanges::FindFeatures(const LayerToCut& layer, const JobControl& control) {
  if (KnowsFeatures(layer)) return Status::Ok();
  known_.reset();
  const BlockPlannerOptions& pass = layer.pass.planner;
  RHIZOME_ASSIGN_OR_RETURN(
      RangeFeatures features,
      FeaturesOfPass(layer.graph, pass, layer.rows,
                     {.columns = layer.columns_read,
                      .step = std::gcd(kTileRows, layer.pass.output_chunk_rows)},
                     control));
  known_.emplace(Known{.draw = pass.draw,
                       .as_stored = pass.target_order == nullptr || pass.target_order->as_stored(),
                       .columns = layer.columns_read,
                       .rows = layer.rows,
                       .features = std::move(features)});
  return Status::Ok();
}

/// Chooses between two cuts, given the largest predicted cost of a range in each. Changing ranges
/// moves no data, but a gain below the model's error is not significant: equal edges are then as
/// good, and do not change from job to job.
void WorkerRanges::Judge(const CostModel& model, double equal_edges, double learned) {
  const double doubt = model.Error().value_or(kUnknownError);
  const double gain = learned > 0 ? equal_edges / learned - 1 : 0;
  report_.predicted_gain = gain;
  report_.doubt = doubt;
  if (by_ == InferWorkers::Ranges::kEdges) return;
  if (model.measurements() < kEnough) {
    report_.because = fmt::format("equal edges: {} measurements are too few to predict a cost",
                                  model.measurements());
    return;
  }
  report_.learned = IsWorthMoving(equal_edges, learned, 1, doubt * learned);
  report_.because = fmt::format(
      "{}: the predicted gain of {:.1f} % is {} the model's error of {:.1f} %{}",
      report_.learned ? "predicted cost" : "equal edges", 100 * gain,
      report_.learned ? "above" : "not above", 100 * doubt,
      model.Error() ? "" : ", which is a default until a first prediction was compared");
}

Result<InferRanges> WorkerRanges::Learn(std::vector<InferLayerReport::Cost> costs) {
  const std::vector<std::uint64_t>& cuts = report_.cuts;
  report_.measured.assign(cuts.size() - 1, 0);
  std::vector<std::uint64_t> measured_rows(report_.measured.size(), 0);
  for (const InferLayerReport::Cost& cost : costs) {
    const auto after = std::upper_bound(cuts.begin(), cuts.end(), cost.begin);
    if (after == cuts.begin() || after == cuts.end() || cost.end > *after ||
        cost.begin >= cost.end || !(cost.cpu_seconds >= 0)) {
      return Fail(Status::IoError(
          fmt::format("a worker measured rows {} to {}, which are not part of its range",
                      cost.begin, cost.end)));
    }
    const auto range = static_cast<std::size_t>(after - cuts.begin()) - 1;
    report_.measured[range] += cost.cpu_seconds;
    measured_rows[range] += cost.end - cost.begin;
  }
  for (std::size_t range = 0; range < measured_rows.size(); ++range) {
    if (measured_rows[range] != open_rows_[range]) report_.measured[range] = -1;
  }
  if (has_features_ && !costs.empty()) {
    RHIZOME_RETURN_IF_ERROR(LearnParts(costs));
    Save();
  }
  return std::move(report_);
}

Status WorkerRanges::LearnParts(const std::vector<InferLayerReport::Cost>& costs) {
  CostModel& model = models_[report_.model];
  std::vector<FeatureVector> features;
  std::vector<double> measured;
  PredictionError error;
  for (const InferLayerReport::Cost& cost : costs) {
    const auto is_end = [&](std::uint64_t row) {
      return row % known_->features.step() == 0 || row == known_->features.vertices();
    };
    if (!is_end(cost.begin) || !is_end(cost.end))
      return Status::IoError(fmt::format(
          "a worker measured rows {} to {}, which are not whole tiles", cost.begin, cost.end));
    features.push_back(known_->features.Of(cost.begin, cost.end));
    measured.push_back(cost.cpu_seconds);
    if (model.measurements() > 0) error.Add(model.Predict(features.back()), cost.cpu_seconds);
  }
  if (error.count() > 0) {
    report_.error = error.Error();
    report_.r2 = error.R2();
  }
  RHIZOME_RETURN_IF_ERROR(model.Learn(features, measured));
  for (std::size_t f = 0; f < kRangeFeatures; ++f)
    report_.weights.emplace_back(RangeFeatureName(f), model.weights()[f]);
  return Status::Ok();
}

void WorkerRanges::Save() {
  if (file_.empty()) return;
  const Status saved = SaveCostModels(models_, file_);
  if (!saved.ok() && note_) note_("costs could not be saved: " + saved.message());
}

}  // namespace internal
}  // namespace rhizome
