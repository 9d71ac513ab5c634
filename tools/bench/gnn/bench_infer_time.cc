#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "tools/bench/gnn/bench_infer.h"
#include "tools/bench/gnn/infer_comparison.h"
#include "tools/bench/harness/gnuplot.h"
#include "tools/cli/json.h"

namespace rhizome {
namespace {

struct TimedInference {
  std::string name;
  std::vector<std::string> flags;
  bool limited = false;  // under the memory limit
  bool peer = false;
  std::string model = {};  // empty: the first model
};

std::string Repeat(std::int64_t fanout, std::uint32_t layers) {
  std::string text;
  for (std::uint32_t k = 0; k < layers; ++k) text += fmt::format("{}{}", k == 0 ? "" : ",", fanout);
  return text;
}

/// Returns the contestants if there are several models: each with all neighbours under the limit,
/// and the same in PyG.
std::vector<TimedInference> ModelContestants(const BenchInferOptions& options) {
  std::vector<TimedInference> all;
  for (const std::string& model : options.models)
    all.push_back({.name = model, .flags = {"--fanout", "all"}, .limited = true, .model = model});
  if (options.peer_python.empty()) return all;
  for (const std::string& model : options.models) {
    all.push_back({.name = "PyG " + model,
                   .flags = {"--mode", "layerwise", "--fanout", "all", "--kernel",
                             options.peer_kernel, "--model", model},
                   .peer = true});
  }
  return all;
}

std::vector<TimedInference> InferContestants(const BenchInferOptions& options) {
  const std::string few = Repeat(options.few, options.layers);
  const auto peer = [&](const std::string& mode, const std::string& fanout) {
    return std::vector<std::string>{"--mode",   mode,
                                    "--fanout", fanout,
                                    "--kernel", fanout == "all" ? options.peer_kernel : "loader"};
  };
  std::vector<TimedInference> all = {
      {.name = "layerwise all", .flags = {"--fanout", "all"}, .limited = true},
      {.name = "layerwise few", .flags = {"--fanout", few}, .limited = true}};
  if (options.samplewise)
    all.push_back({.name = "samplewise few", .flags = {"--mode", "samplewise", "--fanout", few}});
  if (options.peer_python.empty()) return all;
  all.push_back({.name = "PyG layerwise all", .flags = peer("layerwise", "all"), .peer = true});
  if (options.peer_kernel != "loader") return all;
  all.push_back({.name = "PyG layerwise few", .flags = peer("layerwise", few), .peer = true});
  all.push_back({.name = "PyG samplewise few", .flags = peer("samplewise", few), .peer = true});
  return all;
}

double PerSecond(const Json& report) { return report["vertices_per_second"]; }

double BeyondBase(const Json& report) {
  return report["peak_memory_bytes"].get<double>() - report["base_memory_bytes"].get<double>();
}

/// Returns the turn with the median speed.
Json MedianInference(std::vector<Json> turns) {
  std::sort(turns.begin(), turns.end(),
            [](const Json& a, const Json& b) { return PerSecond(a) < PerSecond(b); });
  return turns[turns.size() / 2];
}

Status DrawSpeeds(const std::string& path, const Json& results) {
  std::string script = PlotHead(path, 900, 500) + "$d << EOD\n";
  for (const Json& row : results)
    script += fmt::format("\"{}\" {} {}\n", row["contestant"].get<std::string>(),
                          row["vertices_per_second"].get<double>() / 1e3,
                          row["memory_beyond_base"].get<double>() / 1e6);
  script +=
      "EOD\nset style data histograms\nset style fill solid\nset grid ytics\nset y2tics\n"
      "set ytics nomirror\nset ylabel 'thousand vertices a second'\nset yrange [0:*]\n"
      "set y2label 'MB beyond the bare process'\nset y2range [0:*]\nset xtics rotate by -20\n"
      "set key top right\nplot $d using 2:xtic(1) title 'speed', '' using 3 axes x1y2 title "
      "'memory'\n";
  return DrawPlot(path, script);
}

/// Plots the time of each layer by stage: every field of the report that is in seconds.
Status DrawStages(const std::string& path, const Json& layers) {
  std::string script = PlotHead(path, 900, 500) + "$d << EOD\n";
  std::size_t number = 0;
  for (const Json& layer : layers) {
    ++number;
    for (const auto& [field, value] : layer.items()) {
      if (!field.ends_with("_seconds")) continue;
      const std::string name = field.substr(0, field.size() - 8);
      script += fmt::format("\"layer {} {}\" {}\n", number, name, value.get<double>());
    }
  }
  script +=
      "EOD\nset style data histograms\nset style fill solid\nset grid ytics\nset yrange [0:*]\n"
      "set ylabel 'seconds (stages run at once)'\nset xtics rotate by -20\nunset key\n"
      "plot $d using 2:xtic(1)\n";
  return DrawPlot(path, script);
}

void AddRatio(Json& json, const std::string& name, const std::map<std::string, Json>& medians,
              const std::string& ours, const std::string& theirs) {
  const auto other = medians.find(theirs);
  if (other == medians.end()) return;
  json[name] = PerSecond(medians.at(ours)) / PerSecond(other->second);
}

/// Reports of all rounds, in which the contestants alternate, by name.
using InferTurns = std::map<std::string, std::vector<Json>>;

Result<InferTurns> TakeTurns(const BenchInferOptions& options,
                             const std::vector<TimedInference>& contestants,
                             InferComparison& contest, const JobControl& control) {
  InferTurns turns;
  for (std::uint32_t round = 0; round < options.rounds; ++round) {
    for (std::size_t c = 0; c < contestants.size(); ++c) {
      const TimedInference& one = contestants[c];
      RHIZOME_RETURN_IF_ERROR(control.Report({.phase = one.name,
                                              .done = round * contestants.size() + c,
                                              .total = options.rounds * contestants.size()}));
      const std::optional<std::uint64_t> limit =
          one.limited ? std::optional(options.limit_bytes) : std::nullopt;
      RHIZOME_ASSIGN_OR_RETURN(Json report, one.peer
                                                ? contest.Peer(one.flags, control)
                                                : contest.Infer(one.flags, limit, 0, one.model));
      turns[one.name].push_back(std::move(report));
    }
  }
  return turns;
}

Json ResultRow(const TimedInference& one, const Json& median) {
  Json row = {{"contestant", one.name},
              {"vertices_per_second", PerSecond(median)},
              {"seconds", median["seconds"]},
              {"peak_memory_bytes", median["peak_memory_bytes"]},
              {"memory_beyond_base", BeyondBase(median)}};
  if (one.limited) row["layers"] = median["layers"];
  if (one.peer) row["kernel"] = median["kernel"];
  return row;
}

void AddConditions(const BenchInferOptions& options, const InferComparison& contest, Json& json) {
  json["hidden"] = options.hidden;
  json["layers"] = options.layers;
  json["limit_bytes"] = options.limit_bytes;
  json["base_memory_bytes"] = contest.base_bytes();
  json["caches_dropped"] = contest.dropped_caches();
  json["threads"] = options.graph.threads;
}

/// Returns the median over the rounds of the ratio of speeds; nullopt if one of the two did not
/// run.
std::optional<double> RatioOf(const InferTurns& turns, const std::string& ours,
                              const std::string& theirs) {
  const auto mine = turns.find(ours);
  const auto other = turns.find(theirs);
  if (mine == turns.end() || other == turns.end()) return std::nullopt;
  std::vector<double> ratios;
  for (std::size_t round = 0; round < mine->second.size(); ++round)
    ratios.push_back(PerSecond(mine->second[round]) / PerSecond(other->second[round]));
  return Median(std::move(ratios));
}

/// Runs the part `time` for several models.
Status TimeModels(const BenchInferOptions& options, InferComparison& contest,
                  const JobControl& control, Json& json) {
  const std::vector<TimedInference> contestants = ModelContestants(options);
  RHIZOME_ASSIGN_OR_RETURN(const InferTurns turns,
                           TakeTurns(options, contestants, contest, control));
  const std::string& first = options.models.front();
  Json results = Json::array();
  double slowest = 1;
  for (const TimedInference& one : contestants) {
    Json row = ResultRow(one, MedianInference(turns.at(one.name)));
    const double of_first = *RatioOf(turns, one.name, one.peer ? "PyG " + first : first);
    row["of_first"] = of_first;
    if (!one.peer) {
      slowest = std::min(slowest, of_first);
      if (const auto over_pyg = RatioOf(turns, one.name, "PyG " + one.name))
        row["over_pyg"] = *over_pyg;
    }
    results.push_back(std::move(row));
  }
  json["figure"] = slowest;
  json["unit"] = fmt::format(
      "vertices a second of the slowest model over {}'s, layerwise, all neighbours, under the "
      "limit on memory",
      first);
  AddConditions(options, contest, json);
  json["results"] = results;
  if (options.plot.empty()) return Status::Ok();
  RHIZOME_RETURN_IF_ERROR(DrawSpeeds(PartPlot(options.plot, "time"), results));
  for (const TimedInference& one : contestants) {
    if (one.peer) continue;
    RHIZOME_RETURN_IF_ERROR(DrawStages(PartPlot(options.plot, "stages-" + one.name),
                                       MedianInference(turns.at(one.name))["layers"]));
  }
  return Status::Ok();
}

}  // namespace

// Runs the contestants in turns, each in its own process, and reports the turn with the median
// speed, ratios, limits of the machine, and plots. With several models, delegates to TimeModels.
Status BenchInferTime(const BenchInferOptions& options, InferComparison& contest,
                      const JobControl& control, Json& json) {
  if (options.models.size() > 1) return TimeModels(options, contest, control, json);
  const std::vector<TimedInference> contestants = InferContestants(options);
  RHIZOME_ASSIGN_OR_RETURN(const InferTurns turns,
                           TakeTurns(options, contestants, contest, control));
  std::map<std::string, Json> medians;
  Json results = Json::array();
  for (const TimedInference& one : contestants) {
    const Json& median = medians[one.name] = MedianInference(turns.at(one.name));
    results.push_back(ResultRow(one, median));
  }
  json["figure"] = PerSecond(medians["layerwise all"]);
  json["unit"] = "vertices a second, layerwise, all neighbours, under the limit on memory";
  AddRatio(json, "over_pyg_layerwise", medians, "layerwise all", "PyG layerwise all");
  AddRatio(json, "few_over_pyg_layerwise", medians, "layerwise few", "PyG layerwise few");
  AddRatio(json, "few_over_pyg_samplewise", medians, "layerwise few", "PyG samplewise few");
  AddRatio(json, "few_over_samplewise", medians, "layerwise few", "samplewise few");
  if (medians.contains("PyG layerwise all")) {
    json["memory_of_pyg"] =
        BeyondBase(medians["layerwise all"]) / BeyondBase(medians["PyG layerwise all"]);
    json["torch"] = medians["PyG layerwise all"]["torch"];
    json["torch_geometric"] = medians["PyG layerwise all"]["torch_geometric"];
  }
  RHIZOME_ASSIGN_OR_RETURN(json["limits_all"],
                           InferLimits(options, contest, medians["layerwise all"], control));
  RHIZOME_ASSIGN_OR_RETURN(json["limits_few"],
                           InferLimits(options, contest, medians["layerwise few"], control));
  json["fanout_few"] = options.few;
  AddConditions(options, contest, json);
  json["results"] = results;
  if (options.plot.empty()) return Status::Ok();
  RHIZOME_RETURN_IF_ERROR(DrawSpeeds(PartPlot(options.plot, "time"), results));
  return DrawStages(PartPlot(options.plot, "stages"), medians["layerwise all"]["layers"]);
}

Status BenchInferResume(const BenchInferOptions& options, InferComparison& contest,
                        const JobControl& control, Json& json) {
  const std::vector<std::string> flags = {"--fanout", "all"};
  Json results = Json::array();
  std::vector<double> shares;
  for (std::uint32_t round = 0; round < options.rounds; ++round) {
    RHIZOME_RETURN_IF_ERROR(
        control.Report({.phase = "resume", .done = round, .total = options.rounds}));
    RHIZOME_ASSIGN_OR_RETURN(const Json whole, contest.Infer(flags, options.limit_bytes));
    const double seconds = whole["seconds"];
    RHIZOME_ASSIGN_OR_RETURN(const Json killed,
                             contest.Infer(flags, options.limit_bytes, seconds / 2));
    if (!killed.empty()) {
      return Status::InvalidArgument(
          "the run ended before it could be killed at half of its expected time: use a larger "
          "graph");
    }
    std::vector<std::string> resume = flags;
    resume.emplace_back("--resume");
    RHIZOME_ASSIGN_OR_RETURN(const Json resumed, contest.Infer(resume, options.limit_bytes));
    const double share = resumed["seconds"].get<double>() / seconds;
    shares.push_back(share);
    results.push_back({{"whole_seconds", seconds},
                       {"resumed_seconds", resumed["seconds"]},
                       {"resumed_chunks", resumed["resumed_chunks"]},
                       {"share", share}});
  }
  json["resumed_of_whole"] = Median(shares);
  json["resumes"] = std::move(results);
  return Status::Ok();
}

}  // namespace rhizome
