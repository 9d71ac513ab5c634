#include "tools/bench/graph/bench_partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "index/ingest/edge_pairs.h"
#include "tools/bench/harness/bench_common.h"
#include "tools/bench/harness/gnuplot.h"
#include "tools/cli/json.h"
#include "tools/import/generate.h"
#include "tools/import/partition_run.h"

namespace rhizome {
namespace {

// Constants, not measured in this run: results of other programs on this kind of graph (scale 20,
// edge factor 16, 8 parts), measured once on 2 cores of another machine. Balances are max over
// mean.
Json References() {
  const auto row = [](const char* program, double rf, double vb, double eb, double cpu) {
    return Json{{"program", program},
                {"measured", "elsewhere, once; a constant"},
                {"scale", 20},
                {"partitions", 8},
                {"replication_factor", rf},
                {"vertex_balance", vb},
                {"edge_balance", eb},
                {"cpu_seconds", cpu}};
  };
  return Json::array({row("DistributedNE", 1.62, 3.46, 1.02, 57),
                      row("METIS, degree weights, as vertex cut", 2.02, 1.03, 1.03, 38),
                      row("HDRF, another program than ours", 2.04, 1.10, 1.00, 5.3)});
}

Result<EdgePairs> MakePartitionGraph(const BenchPartitionOptions& options, std::uint32_t scale,
                                     const ScratchFolder& scratch, const JobControl& control) {
  const GenerateOptions graph{.kind = GraphKind::kRmat,
                              .scale = scale,
                              .edge_factor = options.edge_factor,
                              .seed = options.seed,
                              .undirected = true,
                              .simple = true,
                              .permute = true};
  RHIZOME_RETURN_IF_ERROR(GenerateGraph(FileSystem::Posix(), scratch.path(), graph, control));
  IngestOptions input;
  input.edges = {scratch.path() / "edges.npy"};
  input.vertices = std::uint64_t{1} << scale;
  return ReadEdgePairs(FileSystem::Posix(), scratch.path(), input, control);
}

// Returns the run with the median replication factor.
Result<PartitionRun> MedianRun(const EdgePairs& pairs, PartitionOptions options,
                               std::uint32_t seeds, const JobControl& control) {
  std::vector<PartitionRun> runs;
  for (std::uint32_t i = 0; i < seeds; ++i, ++options.seed) {
    RHIZOME_ASSIGN_OR_RETURN(PartitionRun run, RunPartitioner(pairs.input(), options, control));
    run.partition_of_edge = {};
    runs.push_back(std::move(run));
  }
  std::sort(runs.begin(), runs.end(), [](const PartitionRun& a, const PartitionRun& b) {
    return a.metrics.replication_factor < b.metrics.replication_factor;
  });
  return std::move(runs[runs.size() / 2]);
}

// A curve of the plot. If there are several scales, curves are drawn over scales, one per
// partitioner and number of parts; otherwise over numbers of parts, one per partitioner.
struct Curve {
  std::string title;
  std::string points;  // x, then the columns that PartitionPlotScript plots
};

// Formats a number for gnuplot. Infinities are null in JSON.
std::string OrNaN(const Json& number) {
  const std::string text = number.dump();
  return text == "null" ? "NaN" : text;
}

std::vector<Curve> Curves(const BenchPartitionOptions& options, const Json& results) {
  const bool by_scale = options.scales.size() > 1;
  std::vector<Curve> curves;
  for (const Json& row : results) {
    std::string title = row["partitioner"];
    if (by_scale && options.partitions.size() > 1)
      title += fmt::format(", {} parts", row["partitions"].dump());
    auto curve = std::find_if(curves.begin(), curves.end(),
                              [&](const Curve& known) { return known.title == title; });
    if (curve == curves.end()) curve = curves.insert(curve, {title, {}});
    curve->points += fmt::format(
        "{} {} {} {} {} {} {} {}\n", row[by_scale ? "scale" : "partitions"].dump(),
        row["replication_factor"].dump(), row["vertex_balance"].dump(), row["edge_balance"].dump(),
        row["cpu_seconds"].dump(), OrNaN(row["bytes_per_edge"]), OrNaN(row["vertex_max_over_min"]),
        OrNaN(row["edge_max_over_min"]));
  }
  return curves;
}

std::string PartitionPlotScript(const BenchPartitionOptions& options, const Json& results) {
  const bool by_scale = options.scales.size() > 1;
  const std::vector<Curve> curves = Curves(options, results);
  std::string script = PlotHead(options.plot, 1100, 1000);
  for (std::size_t i = 0; i < curves.size(); ++i)
    script += fmt::format("$d{} << EOD\n{}EOD\n", i, curves[i].points);
  script += fmt::format("set multiplot layout 4,2\nset xlabel '{}'\nset {} 2\nset grid\n",
                        by_scale ? "scale" : "parts", by_scale ? "xtics" : "logscale x");
  const char* titles[] = {"replication factor",          "vertices, largest over mean",
                          "edges, largest over mean",    "CPU seconds",
                          "peak bytes an edge",          "vertices, largest over smallest",
                          "edges, largest over smallest"};
  for (std::size_t column = 0; column < std::size(titles); ++column) {
    const bool seconds = column == 3;
    script += fmt::format("{}set logscale y\nset title '{}'\nset key {}\nplot ",
                          seconds ? "" : "un", titles[column], seconds ? "left top" : "off");
    for (std::size_t i = 0; i < curves.size(); ++i) {
      script += fmt::format("{}$d{} using 1:{} with linespoints title '{}'", i == 0 ? "" : ", ", i,
                            column + 2, curves[i].title);
    }
    script += "\n";
  }
  return script + "unset multiplot\n";
}

}  // namespace

// Measures partitioners: for each scale, generates a graph, then runs each partitioner with each
// number of parts and keeps the run with the median replication factor. Draws the plot, if
// requested.
Result<Json> BenchPartition(const BenchPartitionOptions& options, const JobControl& control) {
  if (!options.plot.empty()) RHIZOME_RETURN_IF_ERROR(CheckPlotPath(options.plot));
  Json results = Json::array();
  for (const std::uint32_t scale : options.scales) {
    RHIZOME_ASSIGN_OR_RETURN(const ScratchFolder scratch, ScratchFolder::Create(options.dir));
    RHIZOME_ASSIGN_OR_RETURN(const EdgePairs pairs,
                             MakePartitionGraph(options, scale, scratch, control));
    for (const PartitionerKind kind : options.partitioners) {
      for (const std::uint32_t partitions : options.partitions) {
        PartitionOptions partition{.kind = kind, .partitions = partitions, .seed = options.seed};
        partition.threads = options.threads;
        RHIZOME_ASSIGN_OR_RETURN(const PartitionRun run,
                                 MedianRun(pairs, partition, options.seeds, control));
        Json row = {{"scale", scale},
                    {"edges", pairs.edge_count()},
                    {"partitioner", PartitionerName(kind)},
                    {"partitions", partitions}};
        row.update(PartitionRunFields(run, pairs.edge_count()));
        const auto warning = BalanceWarning(partition, run.metrics.vertex_balance,
                                            pairs.edge_count(), pairs.vertex_count());
        row["balance_warning"] = warning ? Json(*warning) : Json();
        results.push_back(std::move(row));
      }
    }
  }
  if (!options.plot.empty()) {
    RHIZOME_RETURN_IF_ERROR(DrawPlot(options.plot, PartitionPlotScript(options, results)));
  }
  Json fields = {{"workload", "partition"},
                 {"edge_factor", options.edge_factor},
                 {"threads", options.threads},
                 {"seeds", options.seeds},
                 {"results", std::move(results)},
                 {"reference", References()},
                 {"machine", DescribeMachine(options.dir)}};
  if (!options.plot.empty()) fields["plot"] = options.plot;
  return fields;
}

}  // namespace rhizome
