#include "bench_train.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "bench_common.h"
#include "child_process.h"
#include "gnn_library.h"
#include "gnuplot.h"
#include "memory_group.h"
#include "rhizome/storage/chunk_array.h"

namespace rhizome {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kMaxReportBytes = std::uint64_t{16} << 20;

/// One way to train, as flags of the verb.
struct Contestant {
  std::string name;
  std::vector<std::string> flags;
  std::uint64_t steps = 0;
  std::uint32_t epochs = 1;
  bool limited = true;
  bool warm = false;  ///< rows are in the page cache
};

std::vector<Contestant> Contestants(const BenchTrainOptions& options) {
  std::vector<Contestant> all;
  for (const std::string& policy : options.policies)
    all.push_back({.name = policy, .flags = {"--cache", policy}, .steps = options.steps});
  const std::uint64_t few =
      options.steps == 0 ? options.mapped_steps : std::min(options.steps, options.mapped_steps);
  all.push_back({.name = "mmap", .flags = {"--cache", "none", "--io", "mmap"}, .steps = few});
  all.push_back({.name = "in memory",
                 .flags = {"--cache", "none", "--io", "mmap"},
                 .steps = options.steps,
                 .limited = false,
                 .warm = true});
  return all;
}

class TrainContest {
 public:
  TrainContest(const BenchTrainOptions& options, const Store& store, Path scratch)
      : options_(options), store_(store), scratch_(std::move(scratch)) {}

  /// What a training process takes before it opens anything.
  Status MeasureBase() {
    Contestant probe{.name = "probe", .flags = {"--cache", "none"}, .steps = 1, .limited = false};
    RHIZOME_ASSIGN_OR_RETURN(const Json report, Run(probe));
    base_bytes_ = report["base_memory_bytes"];
    if (base_bytes_ < options_.limit_bytes) return Status::Ok();
    return Status::InvalidArgument(
        fmt::format("--limit: the bare process takes {} bytes already", base_bytes_));
  }
  std::uint64_t base_bytes() const { return base_bytes_; }
  bool dropped_caches() const { return dropped_caches_; }

  /// The report of one training.
  Result<Json> Run(const Contestant& contestant) {
    std::vector<std::string> command = Command(contestant);
    std::optional<MemoryGroup> group;
    if (contestant.limited) {
      RHIZOME_ASSIGN_OR_RETURN(MemoryGroup made, MemoryGroup::Create(options_.limit_bytes));
      group.emplace(std::move(made));
      command = group->Command(command);
    }
    dropped_caches_ = DropPageCache() && dropped_caches_;
    if (contestant.warm) RHIZOME_RETURN_IF_ERROR(WarmRows());
    const ChildOutput output{.standard = scratch_ / "report.json", .errors = scratch_ / "errors"};
    RHIZOME_ASSIGN_OR_RETURN(const int code, RunChild(command, output));
    if (code != 0) return Fail(Failed(contestant, code, output));
    RHIZOME_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes,
                             ReadWholeFile(FileSystem::Posix(), output.standard, kMaxReportBytes));
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    Json report = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (report.is_discarded()) return Fail(Status::IoError("train printed no JSON object"));
    return report;
  }

 private:
  std::vector<std::string> Command(const Contestant& contestant) const {
    const BenchGraphOptions& graph = options_.graph;
    std::string fanout;
    for (const std::int64_t one : graph.fanouts)
      fanout += fmt::format("{}{}", fanout.empty() ? "" : ",", one);
    std::vector<std::string> command = {"/proc/self/exe",
                                        "train",
                                        store_.path().string(),
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
                                        std::to_string(graph.batch_size),
                                        "--seed",
                                        std::to_string(graph.seed),
                                        "--threads",
                                        std::to_string(graph.threads),
                                        "--epochs",
                                        std::to_string(contestant.epochs)};
    std::error_code error;
    const Path self = std::filesystem::read_symlink("/proc/self/exe", error);
    if (!error) command.front() = self.string();
    const auto add = [&](const std::string& flag, std::uint64_t value) {
      command.push_back(flag);
      command.push_back(std::to_string(value));
    };
    if (contestant.steps > 0) add("--steps", contestant.steps);
    if (contestant.limited) add("--memory", options_.limit_bytes - base_bytes_);
    command.insert(command.end(), contestant.flags.begin(), contestant.flags.end());
    return command;
  }

  Status Failed(const Contestant& contestant, int code, const ChildOutput& output) const {
    std::string said = "nothing";
    const auto bytes = ReadWholeFile(FileSystem::Posix(), output.errors, kMaxReportBytes);
    if (bytes && !bytes->empty())
      said.assign(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    return Status::IoError(fmt::format("train ({}) ended with code {}{}; it said: {}",
                                       contestant.name, code,
                                       code == 137 ? ", killed: over the limit?" : "", said));
  }

  /// Reads all rows once through the page cache.
  Status WarmRows() const {
    RHIZOME_ASSIGN_OR_RETURN(const auto rows, store_.OpenArray("feat"));
    std::vector<std::byte> buffer(std::size_t{1} << 20);
    for (std::uint64_t chunk = 0; chunk < rows->entry().chunk_count(); ++chunk) {
      RHIZOME_ASSIGN_OR_RETURN(const auto file,
                               rows->fs().OpenRead(rows->root() / rows->ChunkFile(chunk).path));
      for (std::uint64_t at = 0; at < file->size_bytes();) {
        RHIZOME_ASSIGN_OR_RETURN(const std::size_t got, file->ReadAt(at, buffer));
        if (got == 0) break;
        at += got;
      }
    }
    return Status::Ok();
  }

  const BenchTrainOptions& options_;
  const Store& store_;
  const Path scratch_;
  std::uint64_t base_bytes_ = 0;
  bool dropped_caches_ = true;
};

/// What a step took, in milliseconds: the epoch, what its phases took on their own threads, and how
/// long the network waited.
Json StepJson(const Json& report, std::uint64_t row_bytes) {
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
          {"rows_per_second", requested / seconds},
          {"reads_per_second", epoch["reads_issued"].get<double>() / seconds},
          {"read_bytes_per_second", epoch["bytes_read"].get<double>() / seconds},
          {"bytes_per_useful",
           epoch["bytes_read"].get<double>() / (requested * static_cast<double>(row_bytes))},
          {"hit_rate", epoch["hit_rate"]},
          {"superbatch", report["superbatch"]},
          {"memory", report["memory"]},
          {"peak_memory_bytes", report["peak_memory_bytes"]},
          {"loss", epoch["loss"]}};
}

Result<double> RunReference(const Store& store, const Path& scratch, std::uint64_t seed) {
  RHIZOME_ASSIGN_OR_RETURN(const auto rows, store.OpenArray("feat"));
  FioJob job = RowReads(*rows);
  job.seconds = 1;
  job.seed = seed;
  return RunFio(job, scratch);
}

std::string PlotScript(const std::string& path, const Json& results) {
  std::string script = PlotHead(path, 900, 500);
  script += "$d << EOD\n";
  for (const Json& row : results) {
    script += fmt::format("\"{}\"", row["contestant"].get<std::string>());
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

Result<Json> BenchTrain(const BenchTrainOptions& options, const JobControl& control) {
  if (!options.plot.empty()) RHIZOME_RETURN_IF_ERROR(CheckPlotPath(options.plot));
  RHIZOME_RETURN_IF_ERROR(MemoryGroup::Create(options.limit_bytes));  // before all the work
  RHIZOME_RETURN_IF_ERROR(LoadGnnLibrary());
  RHIZOME_ASSIGN_OR_RETURN(BenchGraph opened, OpenBenchGraph(options.graph, control));
  Json json = {{"workload", "train"}};
  json.update(DescribeGraph(options.graph, *opened.graph));
  opened.graph.reset();  // its memory is the contestants'
  RHIZOME_ASSIGN_OR_RETURN(const ScratchFolder scratch, ScratchFolder::Create(options.graph.dir));
  TrainContest contest(options, *opened.store, scratch.path());
  RHIZOME_RETURN_IF_ERROR(contest.MeasureBase());

  const std::vector<Contestant> contestants = Contestants(options);
  std::map<std::string, std::vector<Json>> runs;
  std::vector<double> reference;
  const std::uint64_t row_bytes = opened.store->manifest().FindArray("feat")->row_bytes();
  for (std::uint32_t round = 0; round < options.rounds; ++round) {
    for (std::size_t c = 0; c < contestants.size(); ++c) {
      RHIZOME_RETURN_IF_ERROR(control.Report({.phase = contestants[c].name,
                                              .done = round * contestants.size() + c,
                                              .total = options.rounds * contestants.size()}));
      RHIZOME_ASSIGN_OR_RETURN(const Json report, contest.Run(contestants[c]));
      runs[contestants[c].name].push_back(StepJson(report, row_bytes));
    }
    const Result<double> rate = RunReference(*opened.store, scratch.path(), round + 1);
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
  json["over_in_memory"] = own / step_ms["in memory"];
  json["limit_bytes"] = options.limit_bytes;
  json["base_memory_bytes"] = contest.base_bytes();
  json["caches_dropped"] = contest.dropped_caches();
  if (!reference.empty()) json["fio_reads_per_second"] = Median(reference);
  json["results"] = results;
  json["machine"] = DescribeMachine(opened.store->path());
  if (!options.plot.empty())
    RHIZOME_RETURN_IF_ERROR(DrawPlot(options.plot, PlotScript(options.plot, results)));
  return json;
}

}  // namespace rhizome
