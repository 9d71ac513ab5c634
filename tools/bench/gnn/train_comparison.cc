#include "tools/bench/gnn/train_comparison.h"

#include <fmt/format.h>

#include <algorithm>

#include "rhizome/chunk_array.h"
#include "storage/io/files.h"
#include "tools/bench/harness/bench_common.h"
#include "tools/bench/harness/child_process.h"
#include "tools/bench/harness/gnuplot.h"
#include "tools/bench/harness/memory_group.h"
#include "tools/cli/json.h"
#include "tools/cli/sibling_binary.h"

namespace rhizome {
namespace {

/// Reads all rows once through the page cache.
Status WarmRows(const Store& store) {
  RHIZOME_ASSIGN_OR_RETURN(const auto rows, store.OpenArray("feat"));
  std::vector<std::byte> buffer(std::size_t{1} << 20);
  for (std::uint64_t chunk = 0; chunk < rows->entry().chunk_count(); ++chunk) {
    RHIZOME_ASSIGN_OR_RETURN(const auto file,
                             rows->fs().OpenRead(rows->root() / (*rows->ChunkFile(chunk))->path));
    for (std::uint64_t at = 0; at < file->size_bytes();) {
      RHIZOME_ASSIGN_OR_RETURN(const std::size_t got, file->ReadAt(at, buffer));
      if (got == 0) break;
      at += got;
    }
  }
  return Status::Ok();
}

/// Returns the array of features of a contestant.
std::string FeaturesOf(const Contestant& contestant) {
  const auto flag = std::find(contestant.flags.begin(), contestant.flags.end(), "--features");
  return flag == contestant.flags.end() ? "feat" : *(flag + 1);
}

std::string TrainPlotScript(const std::string& path, const Json& results, const std::string& name) {
  std::string script = PlotHead(path, 900, 500);
  script += "$d << EOD\n";
  for (const Json& row : results) {
    if (row.contains("failed")) continue;
    script += fmt::format("\"{}\"", row[name].get<std::string>());
    for (const char* field :
         {"stall_ms", "compute_ms", "inspect_ms", "switch_ms", "gather_ms", "update_ms"})
      script += fmt::format(" {}", row[field].get<double>());
    script += "\n";
  }
  script +=
      "EOD\nset style data histograms\nset style histogram clustered gap 1\nset style fill solid\n"
      "set grid ytics\nset ylabel 'ms a minibatch (stages run at once)'\nset yrange [0:*]\n"
      "set key top left\nplot $d using 2:xtic(1) title 'waiting', '' using 3 title 'compute', "
      "'' using 4 title 'inspect', '' using 5 title 'switch', '' using 6 title 'gather', "
      "'' using 7 title 'update'\n";
  return script;
}

}  // namespace

Status TrainComparison::MeasureBase() {
  const Contestant probe{
      .name = "probe", .flags = {"--cache", "none"}, .steps = 1, .limit_bytes = {}};
  RHIZOME_ASSIGN_OR_RETURN(const Json report, RunReport(probe));
  base_bytes_ = report["base_memory_bytes"];
  if (base_bytes_ < options_.limit_bytes) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("--limit is too small: the process needs {} bytes at start", base_bytes_));
}

/// Runs one training in a child process and returns its report: (1) creates the control group, if
/// there is a limit; (2) drops the page cache, and fills it with the rows if the contestant is
/// warm; (3) runs `rhizome train` and parses its JSON report.
Result<Json> TrainComparison::RunReport(const Contestant& contestant) {
  std::vector<std::string> command = Command(contestant);
  std::optional<MemoryGroup> group;
  if (contestant.limit_bytes) {
    RHIZOME_ASSIGN_OR_RETURN(MemoryGroup made, MemoryGroup::Create(*contestant.limit_bytes));
    group.emplace(std::move(made));
    command = group->Command(command);
  }
  dropped_caches_ = DropPageCache() && dropped_caches_;
  if (contestant.warm) RHIZOME_RETURN_IF_ERROR(WarmRows(store_));
  return RunForJson(command, fmt::format("train ({})", contestant.name), scratch_);
}

std::vector<std::string> TrainComparison::Command(const Contestant& contestant) const {
  const BenchGraphOptions& graph = options_.graph;
  std::string fanout;
  for (const std::int64_t one : graph.fanouts)
    fanout += fmt::format("{}{}", fanout.empty() ? "" : ",", one);
  std::vector<std::string> command = {
      SiblingPath("rhizome").value_or("rhizome"),
      "train",
      contestant.store.empty() ? store_.path().string() : contestant.store,
      "--json",
      "--progress",
      "none",
      "--no-test",
      "--layers",
      std::to_string(options_.layers),
      "--hidden",
      std::to_string(options_.hidden),
      "--fanout",
      fanout,
      "--batch-size",
      std::to_string(contestant.batch_size > 0 ? contestant.batch_size : graph.batch_size),
      "--seed",
      std::to_string(graph.seed),
      "--threads",
      std::to_string(graph.threads),
      "--epochs",
      "1"};
  const auto add = [&](const std::string& flag, std::uint64_t value) {
    command.push_back(flag);
    command.push_back(std::to_string(value));
  };
  if (contestant.steps > 0) add("--steps", contestant.steps);
  if (contestant.limit_bytes)
    add("--memory", *contestant.limit_bytes - std::min(*contestant.limit_bytes - 1, base_bytes_));
  if (!options_.topology.empty()) {
    command.push_back("--topology");
    command.push_back(options_.topology);
  }
  command.insert(command.end(), contestant.flags.begin(), contestant.flags.end());
  return command;
}

/// Returns the times of a step in milliseconds: of the epoch, of its phases in their own threads,
/// and of the waiting of the model. Also returns the reads.
Json TrainComparison::StepJson(const Json& report, const Contestant& contestant) const {
  const std::uint64_t row_bytes = store_.manifest().FindArray(FeaturesOf(contestant))->row_bytes();
  const std::uint64_t batch =
      contestant.batch_size > 0 ? contestant.batch_size : options_.graph.batch_size;
  const Json& epoch = report["epochs"].back();
  const double requested = epoch["rows_requested"];
  const auto steps = static_cast<double>(report["minibatches"].get<std::uint64_t>());
  const auto per_step = [&](const char* field) { return epoch[field].get<double>() / steps * 1e3; };
  const double seconds = epoch["seconds"];
  return {{"step_ms", per_step("seconds")},
          {"inspect_ms", per_step("sample_seconds") + per_step("schedule_seconds")},
          {"switch_ms", per_step("switch_seconds")},
          {"gather_ms", per_step("gather_seconds")},
          {"update_ms", per_step("update_seconds")},
          {"compute_ms", per_step("compute_seconds")},
          {"stall_ms", per_step("stall_seconds")},
          {"seeds_per_second", steps * static_cast<double>(batch) / seconds},
          {"rows_read", epoch["rows_read"]},
          {"rows_per_second", requested / seconds},
          {"reads_per_second", epoch["reads_issued"].get<double>() / seconds},
          {"read_bytes_per_second", epoch["bytes_read"].get<double>() / seconds},
          {"bytes_per_useful",
           epoch["bytes_read"].get<double>() / (requested * static_cast<double>(row_bytes))},
          {"hit_rate", epoch["hit_rate"]},
          {"superbatch", report["superbatch"]},
          {"overlap", report["overlap"]},
          {"memory", report["memory"]},
          {"peak_memory_bytes", report["peak_memory_bytes"]},
          {"loss", epoch["loss"]}};
}

Result<Json> TrainComparison::Run(const Contestant& contestant) {
  RHIZOME_ASSIGN_OR_RETURN(const Json report, RunReport(contestant));
  return StepJson(report, contestant);
}

Status DrawSteps(const std::string& path, const Json& results, const std::string& name) {
  return DrawPlot(path, TrainPlotScript(path, results, name));
}

}  // namespace rhizome
