#include "tools/bench/gnn/bench_train.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "rhizome/chunk_array.h"
#include "rhizome/job_report.h"
#include "tools/bench/gnn/train_comparison.h"
#include "tools/bench/harness/bench_common.h"
#include "tools/bench/harness/gnuplot.h"
#include "tools/bench/harness/memory_group.h"
#include "tools/cli/cli.h"

namespace rhizome {
namespace {

std::vector<Contestant> TrainContestants(const BenchTrainOptions& options) {
  std::vector<Contestant> all;
  for (const std::string& policy : options.policies)
    all.push_back({.name = policy,
                   .flags = {"--cache", policy},
                   .steps = options.steps,
                   .limit_bytes = options.limit_bytes});
  const std::uint64_t few =
      options.steps == 0 ? options.mapped_steps : std::min(options.steps, options.mapped_steps);
  all.push_back({.name = "mmap",
                 .flags = {"--cache", "none", "--io", "mmap"},
                 .steps = few,
                 .limit_bytes = options.limit_bytes});
  if (!options.mapped_store.empty()) {
    all.push_back(all.back());
    all.back().name = "mmap, " + options.mapped_store;
    all.back().store = options.mapped_store;
  }
  all.push_back({.name = "in memory",
                 .flags = {"--cache", "none", "--io", "mmap"},
                 .steps = options.steps,
                 .limit_bytes = {},
                 .warm = true});
  return all;
}

/// Returns the contestant for one value of a study; all other options are unchanged.
Result<Contestant> StudyContestant(const BenchTrainOptions& options, const std::string& what,
                                   const std::string& value) {
  Contestant contestant{.name = what + " " + value,
                        .flags = {"--cache", options.policies.front()},
                        .steps = options.steps,
                        .limit_bytes = options.limit_bytes};
  const std::optional<std::uint64_t> number = ParseSize(value);
  if (what == "superbatch" || what == "features") {
    contestant.flags.push_back("--" + what);
    contestant.flags.push_back(value);
  } else if (what == "memory" && number) {
    contestant.limit_bytes = number;
  } else if (what == "batch-size" && number) {
    contestant.batch_size = *number;
  } else {
    return Fail(Status::InvalidArgument(
        fmt::format("--study '{}={}': the name must be superbatch, memory, batch-size or features",
                    what, value)));
  }
  return contestant;
}

/// Returns `path` with the name of the study inserted before its extension.
std::string StudyPlot(const std::string& path, const std::string& what) {
  const std::size_t dot = path.rfind('.');
  return path.substr(0, dot) + "-" + what + path.substr(dot);
}

Result<Json> RunStudy(const BenchTrainOptions& options, const TrainStudy& study,
                      TrainComparison& contest, const JobControl& control) {
  Json results = Json::array();
  for (std::size_t i = 0; i < study.values.size(); ++i) {
    RHIZOME_RETURN_IF_ERROR(
        control.Report({.phase = study.what, .done = i, .total = study.values.size()}));
    RHIZOME_ASSIGN_OR_RETURN(const Contestant contestant,
                             StudyContestant(options, study.what, study.values[i]));
    Json row = {{"value", study.values[i]}};
    const Result<Json> step = contest.Run(contestant);
    RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
    if (step) row.update(*step);
    if (!step) row["failed"] = step.error().message();  // such as a limit that is too small
    results.push_back(std::move(row));
  }
  const bool any = std::any_of(results.begin(), results.end(),
                               [](const Json& row) { return !row.contains("failed"); });
  if (any && !options.plot.empty())
    RHIZOME_RETURN_IF_ERROR(DrawSteps(StudyPlot(options.plot, study.what), results, "value"));
  return results;
}

Result<double> RunReference(const Store& store, const Path& scratch, std::uint64_t seed) {
  RHIZOME_ASSIGN_OR_RETURN(const auto rows, store.OpenArray("feat"));
  FioJob job = RowReadsJob(*rows);
  job.seconds = 1;
  job.seed = seed;
  return RunFio(job, scratch);
}

/// Runs all contestants in turns.
Status RunTrainContest(const BenchTrainOptions& options, const Store& store, const Path& scratch,
                       TrainComparison& contest, Json& json, const JobControl& control) {
  const std::vector<Contestant> contestants = TrainContestants(options);
  std::map<std::string, std::vector<Json>> runs;
  std::vector<double> reference;
  for (std::uint32_t round = 0; round < options.rounds; ++round) {
    for (std::size_t c = 0; c < contestants.size(); ++c) {
      RHIZOME_RETURN_IF_ERROR(control.Report({.phase = contestants[c].name,
                                              .done = round * contestants.size() + c,
                                              .total = options.rounds * contestants.size()}));
      RHIZOME_ASSIGN_OR_RETURN(Json step, contest.Run(contestants[c]));
      runs[contestants[c].name].push_back(std::move(step));
    }
    const Result<double> rate = RunReference(store, scratch, round + 1);
    if (rate) reference.push_back(*rate);
  }

  Json results = Json::array();
  std::map<std::string, double> step_ms;
  for (const Contestant& contestant : contestants) {
    std::vector<Json>& of = runs[contestant.name];
    std::sort(of.begin(), of.end(),
              [](const Json& a, const Json& b) { return a["step_ms"] < b["step_ms"]; });
    Json row = {{"contestant", contestant.name}};
    row.update(of[of.size() / 2]);
    step_ms[contestant.name] = row["step_ms"];
    results.push_back(std::move(row));
  }
  const double own = step_ms[contestants.front().name];
  json["figure"] = own;
  json["unit"] = "ms a minibatch, " + contestants.front().name;
  json["reference"] = step_ms["mmap"];
  json["reference_name"] = fmt::format(
      "rows out of mapped files under the limit, from {} minibatches", options.mapped_steps);
  json["ratio"] = own / step_ms["mmap"];
  if (!options.mapped_store.empty())
    json["over_mapped_store"] = own / step_ms["mmap, " + options.mapped_store];
  json["over_in_memory"] = own / step_ms["in memory"];
  if (!reference.empty()) json["fio_reads_per_second"] = Median(reference);
  json["results"] = results;
  if (options.plot.empty()) return Status::Ok();
  return DrawSteps(options.plot, results, "contestant");
}

}  // namespace

// Opens or generates the graph, measures the memory of a training process at its start, then runs
// either the comparison (RunTrainContest) or the studies (RunStudy). Each training is a child
// process in a control group.
Result<Json> BenchTrain(const BenchTrainOptions& options, const JobControl& control) {
  if (!options.plot.empty()) RHIZOME_RETURN_IF_ERROR(CheckPlotPath(options.plot));
  // fails early if groups cannot be created
  RHIZOME_RETURN_IF_ERROR(MemoryGroup::Create(options.limit_bytes));
  RHIZOME_ASSIGN_OR_RETURN(BenchGraph opened, OpenBenchGraph(options.graph, control));
  Json json = {{"workload", "train"}};
  json.update(DescribeGraph(options.graph, *opened.graph));
  opened.graph.reset();  // leaves its memory to the contestants
  RHIZOME_ASSIGN_OR_RETURN(const ScratchFolder scratch, ScratchFolder::Create(options.graph.dir));
  TrainComparison contest(options, *opened.store, scratch.path());
  RHIZOME_RETURN_IF_ERROR(contest.MeasureBase());

  if (options.studies.empty()) {
    RHIZOME_RETURN_IF_ERROR(
        RunTrainContest(options, *opened.store, scratch.path(), contest, json, control));
  } else {
    for (const TrainStudy& study : options.studies) {
      RHIZOME_ASSIGN_OR_RETURN(json["study_" + study.what],
                               RunStudy(options, study, contest, control));
    }
  }
  json["limit_bytes"] = options.limit_bytes;
  json["base_memory_bytes"] = contest.base_bytes();
  json["caches_dropped"] = contest.dropped_caches();
  json["machine"] = DescribeMachine(opened.store->path());
  return json;
}

}  // namespace rhizome
