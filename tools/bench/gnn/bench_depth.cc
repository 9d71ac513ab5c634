#include "tools/bench/gnn/bench_depth.h"

#include <fmt/format.h>

#include <utility>

#include "cache/job/work_clock.h"
#include "rhizome/entry.h"
#include "rhizome/sampler.h"
#include "tools/bench/gnn/bench_models.h"
#include "tools/bench/harness/gnuplot.h"
#include "tools/cli/json.h"
#include "tools/cli/machine.h"
#include "tools/cli/scratch_folder.h"

namespace rhizome {
namespace {

constexpr std::uint64_t kDepthBatch = 512;

/// One model of the table.
struct DepthCase {
  std::string data;
  std::uint32_t layers = 0;
  std::uint32_t hidden = 0;
  bool residual = false;
  bool full_graph = true;

  std::string Name() const {
    return fmt::format("{} {} x {}{}{}", data, layers, hidden, residual ? " residual" : "",
                       full_graph ? "" : " minibatches");
  }
};

std::vector<DepthCase> CasesOfSet(const std::string& data, const BenchDepthOptions& options) {
  std::vector<DepthCase> cases;
  for (const std::uint32_t hidden : options.hidden) {
    for (const std::uint32_t layers : options.layers) {
      for (const bool residual : {false, true}) {
        cases.push_back({data, layers, hidden, residual, true});
        if (options.minibatch) cases.push_back({data, layers, hidden, residual, false});
      }
    }
  }
  return cases;
}

Json CaseJson(const DepthCase& one) {
  return {{"data", one.data},
          {"layers", one.layers},
          {"hidden", one.hidden},
          {"residual", one.residual},
          {"full_graph", one.full_graph}};
}

Result<TrainReport> TrainCase(const DepthCase& one, const Path& store,
                              const BenchDepthOptions& options, const JobControl& control) {
  TrainOptions training;
  training.store = store;
  training.resources.threads = options.threads;
  training.model = {
      .kind = options.model, .layers = one.layers, .hidden = one.hidden, .dropout = 0.5};
  if (one.residual) training.model.options["residual"] = "true";
  training.minibatch()->fanouts.assign(one.layers, kAllNeighbors);
  training.minibatch()->batch_size = kDepthBatch;
  if (one.full_graph) training.mode = FullGraphOptions();
  training.learning.epochs = options.epochs;
  training.learning.patience = options.patience;
  training.learning.weight_decay = 5e-4;
  training.learning.seeds = options.seeds;
  JobControl inner([&](const JobControl::Progress& report) {
    const Status status = control.Report(
        {.phase = one.Name(), .done = report.done, .total = report.total, .detail = report.detail});
    if (!status.ok()) inner.Cancel();
  });
  return rhizome_gnn_entry_v1()->Train(training, inner);
}

Result<Json> RunDepthCase(const DepthCase& one, const Path& store, const BenchDepthOptions& options,
                          const JobControl& control) {
  const WorkClock clock;
  RHIZOME_ASSIGN_OR_RETURN(const TrainReport report, TrainCase(one, store, options, control));
  Json row = CaseJson(one);
  for (const MetricSpread& spread : report.spread) {
    if (spread.metric != Metric::kAccuracy) continue;
    row["mean"] = spread.mean;
    row["deviation"] = spread.deviation;
  }
  if (!row.contains("mean")) {
    if (!report.test_accuracy) {
      return Fail(Status::InvalidArgument(one.data + " has no test set with classes"));
    }
    row["mean"] = *report.test_accuracy;
    row["deviation"] = 0;
  }
  row["seconds"] = clock.seconds();
  return row;
}

/// Returns a plot script with a panel per data set: accuracy by depth, a line per width, dashed
/// without residual connections.
std::string DepthPlotScript(const BenchDepthOptions& options, const Json& rows) {
  const auto sets = static_cast<int>(options.sets.size());
  std::string script = PlotHead(options.plot, 520 * sets, 480);
  script += fmt::format("set multiplot layout 1,{}\nset grid\nset key bottom left\n", sets);
  script += "set xlabel 'layers'\nset ylabel 'test accuracy, %'\nset xtics 1\n";
  int number = 0;
  for (const std::string& data : options.sets) {
    std::string lines;
    for (std::size_t w = 0; w < options.hidden.size(); ++w) {
      for (const bool residual : {true, false}) {
        script += fmt::format("$line{} << EOD\n", number);
        for (const Json& row : rows) {
          if (row["data"].get<std::string>() == data &&
              row["hidden"].get<std::uint32_t>() == options.hidden[w] &&
              row["residual"].get<bool>() == residual && row["full_graph"].get<bool>())
            script += fmt::format("{} {}\n", row["layers"].dump(), row["mean"].get<double>() * 100);
        }
        script += "EOD\n";
        lines += fmt::format(
            "{}$line{} using 1:2 with linespoints linecolor {} dashtype {} title '{}{}'",
            lines.empty() ? "" : ", ", number++, w + 1, residual ? 1 : 2, options.hidden[w],
            residual ? ", residual" : "");
      }
    }
    script += fmt::format("set title '{}' noenhanced\nplot {}\n", data, lines);
  }
  return script + "unset multiplot\n";
}

/// Returns the maximum number of percentage points by which minibatch training is better than
/// full-graph training; null: not measured.
Json LargestLag(const Json& rows) {
  Json largest;
  for (const Json& full : rows) {
    for (const Json& other : rows) {
      if (!full["full_graph"].get<bool>() || other["full_graph"].get<bool>()) continue;
      if (full["data"] != other["data"] || full["layers"] != other["layers"] ||
          full["hidden"] != other["hidden"] || full["residual"] != other["residual"])
        continue;
      const double lag = (other["mean"].get<double>() - full["mean"].get<double>()) * 100;
      if (largest.is_null() || lag > largest.get<double>()) largest = lag;
    }
  }
  return largest;
}

}  // namespace

// Trains all cases of each data set: ingests the set, trains each case with several seeds, and
// reports mean and deviation. With `list`, only lists the cases. Draws the plot, if requested.
Result<Json> BenchDepth(const BenchDepthOptions& options, const JobControl& control) {
  if (!options.plot.empty()) RHIZOME_RETURN_IF_ERROR(CheckPlotPath(options.plot));
  Json rows = Json::array();
  if (options.list) {
    for (const std::string& data : options.sets) {
      for (const DepthCase& one : CasesOfSet(data, options)) rows.push_back(CaseJson(one));
    }
    return Json{{"workload", "depth"}, {"rows", std::move(rows)}};
  }
  RHIZOME_ASSIGN_OR_RETURN(const ScratchFolder scratch, ScratchFolder::Create(options.dir));
  const WorkClock clock;
  for (const std::string& data : options.sets) {
    const Path store = scratch.path() / data;
    RHIZOME_RETURN_IF_ERROR(IngestDataSet(options.data / data, store, control));
    for (const DepthCase& one : CasesOfSet(data, options)) {
      RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
      RHIZOME_ASSIGN_OR_RETURN(Json row, RunDepthCase(one, store, options, control));
      if (options.note) {
        options.note(fmt::format(
            "{}: {:.2f} +- {:.2f}, {:.0f} s", one.Name(), row["mean"].get<double>() * 100,
            row["deviation"].get<double>() * 100, row["seconds"].get<double>()));
      }
      rows.push_back(std::move(row));
    }
  }
  if (!options.plot.empty())
    RHIZOME_RETURN_IF_ERROR(DrawPlot(options.plot, DepthPlotScript(options, rows)));
  Json json = {{"workload", "depth"},
               {"model", options.model},
               {"epochs", options.epochs},
               {"patience", options.patience},
               {"seeds", options.seeds},
               {"threads", options.threads},
               {"largest_lag_of_full_graph_points", LargestLag(rows)},
               {"rows", std::move(rows)},
               {"seconds", clock.seconds()},
               {"machine", DescribeMachine(options.dir)}};
  if (!options.plot.empty()) json["plot"] = options.plot;
  return json;
}

}  // namespace rhizome
