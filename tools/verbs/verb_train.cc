#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "cache/feed/feed_fields.h"
#include "rhizome/policy.h"
#include "tools/cli/allocator.h"
#include "tools/cli/flag_names.h"
#include "tools/cli/gnn_library.h"
#include "tools/cli/help.h"
#include "tools/cli/text.h"
#include "tools/cli/topology_flags.h"
#include "tools/import/gnn_flags.h"
#include "tools/import/learning_report.h"
#include "tools/output/svg_chart.h"
#include "tools/output/training_curves.h"
#include "tools/output/training_page.h"
#include "tools/verbs/evaluation_report.h"
#include "tools/verbs/full_graph_report.h"
#include "tools/verbs/table_report.h"
#include "tools/verbs/train_flags.h"
#include "tools/verbs/train_ranks.h"
#include "tools/verbs/verbs.h"

namespace rhizome {
namespace {

Json OrNull(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

/// Returns the report of an epoch as JSON. `valid`: the validation set has an accuracy.
Json EpochJson(const EpochReport& e, bool valid, bool on_device) {
  Json json = {{"loss", e.loss},
               {"valid_accuracy", valid ? Json(e.valid_accuracy) : Json()},
               {"valid_metric", OrNull(e.valid_metric)},
               {"valid_loss", OrNull(e.valid_loss)},
               {"learning_rate", e.learning_rate},
               {"seconds", e.seconds},
               {"resident_bytes", e.resident_bytes},
               {"metrics",
                {{"train", MetricValuesJson(e.train_metrics)},
                 {"valid", MetricValuesJson(e.valid_metrics)}}}};
  const auto add = [&](const char* name, const auto& figure) { json[name] = figure; };
  StageSeconds::Each(add, e);
  json["compute_seconds"] = e.compute_seconds;
  json["stall_seconds"] = e.stall_seconds;
  RowReads::Each(add, e);
  json["hit_rate"] = e.hit_rate();
  if (!on_device) return json;
  json["upload_bytes"] = e.upload_bytes;
  json["upload_seconds"] = e.upload_seconds;
  json["device_wait_seconds"] = e.device_wait_seconds;
  json["device_hits"] = e.device_hits;
  return json;
}

Json DeviceJson(const DeviceReport& device) {
  return {{"name", device.name},
          {"sm", device.sm},
          {"memory_bytes", device.memory_bytes},
          {"frame_bytes", device.frame_bytes},
          {"reads_host_cache", device.reaches},
          {"host_bytes", device.host_bytes},
          {"planned_host_bytes", device.planned_host_bytes},
          {"cache", PolicyName(device.cache)}};
}

/// Formats the use of the device: uploads, and rows found in device memory.
std::string DescribeDevice(const Json& f) {
  std::uint64_t rows = 0, hits = 0, bytes = 0;
  double uploading = 0, waiting = 0;
  for (const Json& e : f["epochs"]) {
    rows += e["rows_requested"].get<std::uint64_t>();
    hits += e["device_hits"].get<std::uint64_t>();
    bytes += e["upload_bytes"].get<std::uint64_t>();
    uploading += e["upload_seconds"].get<double>();
    waiting += e["device_wait_seconds"].get<double>();
  }
  const Json& device = f["device"];
  return fmt::format(
      "device {}: {} for rows (policy {}), hit rate {}; {} uploaded{} in {:.2f} s; waited {:.2f} s "
      "for the device\n",
      device["name"].get<std::string>(), HumanBytes(device["frame_bytes"]),
      device["cache"].get<std::string>(),
      Percent(rows == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(rows)),
      HumanBytes(bytes),
      device["reads_host_cache"].get<bool>() ? " directly from the row cache" : ", packed",
      uploading, waiting);
}

Json ProfileJson(const FeedProfileReport& profile) {
  Json tried = Json::array();
  for (const FeedProfileReport::Tried& one : profile.tried) {
    tried.push_back({{"superbatch", one.superbatch},
                     {"cache_bytes", one.cache_bytes},
                     {"read_seconds", one.read_seconds}});
  }
  return {
      {"minibatches", profile.minibatches}, {"depth", profile.depth}, {"tried", std::move(tried)}};
}

/// Formats the trial runs that determined the length of a superbatch.
std::string DescribeTrials(const Json& f) {
  std::string text =
      fmt::format("superbatch sizes tried in a replay of {} minibatches, read time per minibatch:",
                  f["profile"]["minibatches"].get<std::uint64_t>());
  for (const Json& one : f["profile"]["tried"]) {
    text += fmt::format("{} {}: {:.3g} ms", text.back() == ':' ? "" : ",",
                        one["superbatch"].get<std::uint32_t>(),
                        one["read_seconds"].get<double>() * 1e3);
  }
  return text +
         fmt::format("; at most {} reads in flight\n", f["profile"]["depth"].get<std::uint32_t>());
}

Json LearnedRowsJson(const LearnedRowsReport& learned) {
  return {{"rows", learned.rows},
          {"table_bytes", learned.table_bytes},
          {"cached_rows", learned.cached_rows},
          {"rows_requested", learned.rows_requested},
          {"rows_read", learned.rows_read},
          {"rows_written", learned.rows_written}};
}

std::string DescribeLearnedRows(const Json& learned) {
  return fmt::format("learned rows: {}, {}; {} requested, {} read, {} written\n",
                     WithCommas(learned["rows"]), HumanBytes(learned["table_bytes"]),
                     WithCommas(learned["rows_requested"]), WithCommas(learned["rows_read"]),
                     WithCommas(learned["rows_written"]));
}

/// Returns how to measure a model that the training has not measured.
std::string_view HowToMeasure(const Json& f) {
  if (f.contains("test")) return "its ranks of the test edges follow";
  if (f["task"] == "link") return "'rhizome evaluate' measures it";
  return f.contains("learned") ? "'rhizome infer' measures it"
                               : "its accuracy was not measured (--no-test)";
}

/// Formats the quality of the weights that were kept.
std::string DescribeOutcome(const Json& f) {
  const int best = f["best_epoch"].get<int>();
  std::string text;
  if (f["stopped_early"].get<bool>())
    text += fmt::format("stopped after epoch {}: no improvement since epoch {}\n",
                        f["epochs"].size(), best);
  if (!f["tested"].get<bool>()) {
    text += fmt::format("epoch {} was kept; {}\n", best, HowToMeasure(f));
  } else if (f["majority_accuracy"].is_null()) {
    text += fmt::format("epoch {}:\n", best);
  } else {
    text += fmt::format(
        "validation {}, test {}  (epoch {}; always predicting the most common class: {})\n",
        PercentOrNone(f["valid_accuracy"]), PercentOrNone(f["test_accuracy"]), best,
        PercentOrNone(f["majority_accuracy"]));
  }
  return text + DescribeMetrics(f) + DescribeSeeds(f);
}

/// Lists the files that describe the training.
std::string Described(const Json& f) {
  std::string text;
  for (const Json& file : f["described_in"])
    text += fmt::format("wrote {}\n", file.get<std::string>());
  return text;
}

/// Returns the command that uses the model.
std::string NextStep(const Json& f, const std::string& model) {
  const std::string store = f["store"], array = f["out_array"];
  if (array.empty())
    return fmt::format("wrote {}\nnext: rhizome infer {} --model-file {} --out embedding\n", model,
                       store, model);
  return fmt::format(
      "wrote {} and the array {}\nnext: rhizome evaluate {} --array {} --decoder {} --test F\n",
      model, array, store, array, model);
}

std::string DescribeTrain(const Json& f) {
  const std::string model = f["model"];
  const std::string next = model.empty() ? std::string() : NextStep(f, model);
  if (f.contains("plan"))
    return DescribeFullGraphEpochs(f) + DescribeEdges(f) + DescribeOutcome(f) +
           DescribeFullGraphPlan(f) +
           fmt::format("peak memory {}\n", HumanBytes(f["peak_memory_bytes"])) + Described(f) +
           next;
  TextTable table({0, 1, 2, 3, 4, 5, 6, 7});
  const std::string monitor = f["monitor"];
  table.Add({"epoch", "loss", "valid " + monitor, "seconds", "rows requested", "rows read",
             "bytes read", "hits, with prefill"});
  std::size_t number = 0;
  for (const Json& e : f["epochs"]) {
    ++number;
    table.Add({std::to_string(number), fmt::format("{:.4f}", e["loss"].get<double>()),
               MetricText(monitor, e["valid_metric"]),
               fmt::format("{:.2f}", e["seconds"].get<double>()), WithCommas(e["rows_requested"]),
               WithCommas(e["rows_read"]), HumanBytes(e["bytes_read"]), Percent(e["hit_rate"])});
  }
  std::string text = table.ToString();
  text += DescribeEdges(f);
  text += DescribeOutcome(f);
  if (f.contains("learned")) text += DescribeLearnedRows(f["learned"]);
  const Json& memory = f["memory"];
  text += fmt::format(
      "superbatches of {} minibatches (schedules {}), overlap {}, row cache {}, prior {}; graph "
      "and labels {}, minibatches in flight {}\n",
      f["superbatch"].get<int>(), HumanBytes(memory["schedule_bytes"]),
      f["overlap"].get<std::string>(), HumanBytes(memory["cache_bytes"]),
      f["prior"].get<std::string>(), HumanBytes(memory["held_bytes"]),
      HumanBytes(memory["working_bytes"]));
  if (!f["profile"]["tried"].empty()) text += DescribeTrials(f);
  if (f.contains("device")) text += DescribeDevice(f);
  if (f.contains("ranks")) text += DescribeTrainRanks(f);
  const Json& io = f["io"];
  text += fmt::format("reads by {}{}, {:.1f} in flight on average; peak memory {}\n",
                      io["maker"].get<std::string>(), io["direct"].get<bool>() ? ", direct" : "",
                      io["mean_depth"].get<double>(), HumanBytes(f["peak_memory_bytes"]));
  if (f.contains("topology")) {
    const Json& lists = f["topology"];
    text += fmt::format(
        "lists from disk: {} reads, {}, {:.1f} in flight; sampled together: {}; {} lists "
        "requested, {} of them in the neighbour cache ({}, filled at the start)\n",
        WithCommas(lists["reads"]), HumanBytes(lists["bytes_read"]),
        lists["mean_depth"].get<double>(), lists["swept"].get<int>(), WithCommas(lists["lists"]),
        Percent(lists["hit_rate"]), HumanBytes(lists["neighbor_cache_bytes"]));
  }
  if (f.contains("test")) text += "test edges:\n" + RanksTable(f["test"]);
  return text + Described(f) + next;
}

Json ListsJson(const ListReadsReport& lists) {
  Json json = ListReadsJson(lists);
  json["neighbor_cache_bytes"] = lists.cache_bytes;
  json["neighbor_cache_lists"] = lists.cached_lists;
  json["neighbor_cache_seconds"] = lists.cache_seconds;
  json["neighbor_cache_loads"] = lists.cache_loads;
  json["swept"] = lists.swept;
  return json;
}

Json NetworkJson(const ModelSpec& network) {
  return {{"kind", network.kind},
          {"layers", network.layers},
          {"hidden", network.hidden},
          {"dropout", network.dropout},
          {"options", network.options}};
}

Json TrainReportJson(const TrainReport& report) {
  Json epochs = Json::array();
  for (const EpochReport& epoch : report.epochs) {
    epochs.push_back(EpochJson(epoch, epoch.valid_metric && report.task != Task::kRegression,
                               report.device.has_value()));
  }
  Json json = {{"epochs", std::move(epochs)},
               {"io",
                {{"maker", IoMakerName(report.maker)},
                 {"direct", report.direct},
                 {"mean_depth", report.mean_depth}}},
               {"valid_accuracy", OrNull(report.valid_accuracy)},
               {"test_accuracy", OrNull(report.test_accuracy)},
               {"majority_accuracy", OrNull(report.majority_accuracy)},
               {"ignored", report.ignored},
               {"direction", NameOfChoice(report.direction)},
               {"edge_weights", report.edge_weights},
               {"best_epoch", report.best_epoch},
               {"superbatch", report.superbatch},
               {"profile", ProfileJson(report.profile)},
               {"overlap", OverlapName(report.overlap)},
               {"prior", PriorName(report.prior)},
               {"memory",
                {{"held_bytes", report.memory.held},
                 {"working_bytes", report.memory.working},
                 {"schedule_bytes", report.memory.schedules},
                 {"cache_bytes", report.memory.cache},
                 {"neighbor_cache_bytes", report.memory.neighbor_cache}}},
               {"minibatches", report.minibatches},
               {"resumed_minibatches", report.resumed_minibatches},
               {"base_memory_bytes", report.base_memory_bytes},
               {"peak_memory_bytes", report.peak_memory_bytes},
               {"network", NetworkJson(report.network)},
               {"model", report.model}};
  if (report.full_graph) AddFullGraphReport(report, json);
  if (report.device) json["device"] = DeviceJson(*report.device);
  if (report.learned) json["learned"] = LearnedRowsJson(*report.learned);
  if (!report.ranks.empty()) AddTrainRanks(report, json);
  if (report.list_reads) json["topology"] = ListsJson(*report.list_reads);
  AddLearningReport(report, json);
  return json;
}

void AddLinkTest(const TrainReport& report, Json& fields) {
  if (report.link_test)
    fields["test"] = EvaluationJson(*report.link_test, report.link_test->seconds);
}

/// Returns the paths of the files that describe the training.
std::vector<std::string> DescribedIn(const TrainFlags& flags) {
  std::vector<std::string> files;
  for (const std::string& path : {flags.report, flags.curves, flags.plot})
    if (!path.empty()) files.push_back(path);
  return files;
}

/// Checks before the training that the files describing it can be written, since a training may
/// take hours.
Status CheckDescriptions(const TrainFlags& flags) {
  if (!flags.plot.empty() && !flags.plot.ends_with(".svg"))
    return Status::InvalidArgument(fmt::format("--plot {}: the name must end in .svg", flags.plot));
  const std::pair<const char*, std::string> files[] = {{"--report", flags.report},
                                                       {"--curves", flags.curves},
                                                       {"--plot", flags.plot},
                                                       {"--out", flags.options.job.out.string()},
                                                       {"--trace", flags.minibatch.trace.string()}};
  for (std::size_t i = 0; i < std::size(files); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (files[i].second.empty() || files[i].second != files[j].second) continue;
      return Status::InvalidArgument(fmt::format("{} and {} name the same file, {}", files[j].first,
                                                 files[i].first, files[i].second));
    }
  }
  for (const auto& [flag, path] : files) {
    if (const Status probed = ProbeOutput(path); !probed.ok()) return probed.WithContext(flag);
  }
  return Status::Ok();
}

/// Returns the options of the run that were given, with their values, and those that have a
/// default.
std::vector<std::pair<std::string, std::string>> OptionsOf(const CLI::App& verb) {
  std::vector<std::pair<std::string, std::string>> options;
  for (const CLI::Option* option : verb.get_options()) {
    std::string value = fmt::format("{}", fmt::join(option->results(), " "));
    if (option->count() == 0) value = option->get_default_str();
    if (option->count() > 0 && option->get_expected_max() == 0) value = "true";
    if (option->count() == 0 && value.empty()) continue;
    options.emplace_back(option->get_name(), value);
  }
  return options;
}

/// Writes the files that describe a training. `stopped`: as in TrainingPageFacts.
Status WriteDescriptions(const TrainFlags& flags, const TrainReport& report,
                         const std::string& stopped) {
  if (!flags.report.empty()) {
    const TrainingPageFacts facts{.store = flags.store,
                                  .options = OptionsOf(*flags.verb),
                                  .stopped = SpellFlags(stopped, flags.verb)};
    TrainReport shown = report;
    for (auto* const texts : {&shown.ignored, &shown.warnings})
      for (std::string& text : *texts) text = SpellFlags(text, flags.verb);
    RHIZOME_RETURN_IF_ERROR(WriteText(flags.report, TrainingPage(shown, facts)));
  }
  if (!flags.plot.empty())
    RHIZOME_RETURN_IF_ERROR(WriteText(flags.plot, DrawCharts(LearningCharts(report))));
  return flags.curves.empty() ? Status::Ok() : WriteText(flags.curves, CurvesCsv(report));
}

struct TrainVerbFlags : TrainFlags {
  TrainRankFlags ranks;
};

/// Trains and writes the descriptions, also of a training that stops early.
Result<TrainReport> TrainAndDescribe(const GnnEntry& gnn, TrainOptions options,
                                     const TrainVerbFlags& flags, const TrainRanks& ranks,
                                     const JobControl& control) {
  options.learning.train_metrics = flags.describes() && options.learning.task != Task::kLink;
  std::optional<TrainReport> partial;
  if (flags.describes()) options.job.on_stop = [&](const TrainReport& report) { partial = report; };
  Result<TrainReport> report = ranks.Train(gnn, options, control);
  if (report) {
    if (ranks.speaks()) RHIZOME_RETURN_IF_ERROR(WriteDescriptions(flags, *report, ""));
    return report;
  }
  if (!partial) return report;
  const Status& why = report.error();
  const Status written = WriteDescriptions(flags, *partial, why.message());
  if (written.ok()) {
    options.job.note(
        fmt::format("the results so far are in {}", fmt::join(DescribedIn(flags), ", ")));
  } else {
    options.job.note("the results so far could not be written: " + written.ToString());
  }
  return report;
}

// Trains: (1) completes and checks the options; (2) loads librhizome_gnn and opens the ranks, if
// any; (3) trains; (4) converts the report to the answer, in the process that prints the result.
Result<Answer> RunTrain(const TrainVerbFlags& flags, Session& session) {
  RHIZOME_ASSIGN_OR_RETURN(TrainOptions options, CompleteTrainOptions(flags));
  if (options.model.kind == kTableModel && flags.describes())
    return Fail(Status::Unsupported(
        "--report, --curves and --plot describe networks; --json has the figures of a table"));
  RHIZOME_RETURN_IF_ERROR(CheckDescriptions(flags));
  RHIZOME_ASSIGN_OR_RETURN(const GnnEntry* const gnn, LoadGnnLibrary());
  RHIZOME_ASSIGN_OR_RETURN(const TrainRanks ranks, TrainRanks::Open(flags.ranks));
  if (!ranks.several()) {
    RHIZOME_RETURN_IF_ERROR(CheckAlone(flags));
  } else if (options.minibatch() == nullptr) {
    return Fail(Status::InvalidArgument("training over ranks uses minibatches: omit --full-graph"));
  } else {
    options.minibatch()->ranks = RankOptions{.prefetch = flags.prefetch};
  }
  if (!ranks.speaks())
    session.printer = std::make_unique<ProgressPrinter>(ProgressStyle::kNone, stderr);
  options.job.note = PrintsNotes(session);
  StartMemory(session, options.resources.memory_bytes);
  // Passes allocate buffers of different sizes, which malloc would otherwise keep.
  if (options.full_graph() != nullptr && options.resources.memory_bytes != 0)
    ReturnFreedMemory(1 << 20);
  RHIZOME_ASSIGN_OR_RETURN(const TrainReport report,
                           TrainAndDescribe(*gnn, options, flags, ranks, session.control));
  if (!ranks.speaks()) return Answer();
  if (report.table) {
    Answer answer{TableReportJson(*report.table), DescribeTableTraining, {}};
    answer.fields["store"] = flags.store;
    answer.fields["warnings"] = report.warnings;
    AddLinkTest(report, answer.fields);
    return answer;
  }
  Answer answer{TrainReportJson(report), DescribeTrain, {}};
  answer.fields["store"] = flags.store;
  answer.fields["tested"] = options.learning.test && report.task != Task::kLink && !report.learned;
  answer.fields["out_array"] = options.link.out_array;
  AddLinkTest(report, answer.fields);
  if (ranks.several()) answer.fields["prefetch"] = PrefetchName(flags.prefetch.policy);
  answer.fields["described_in"] = DescribedIn(flags);
  return answer;
}

}  // namespace

void AddTrainVerb(CLI::App& root, Session& session) {
  auto flags = std::make_shared<TrainVerbFlags>();
  CLI::App* verb =
      AddVerb(root, session, "train", "Train a network on a graph larger than memory",
              "rhizome train demo.rz --model sage --layers 2 --fanout 10,10 --epochs 3 "
              "--memory 512M --out demo.safetensors",
              flags, RunTrain);
  AddTrainFlags(*verb, *flags, session);
  AddTrainRankFlags(*verb, flags->ranks);
  ArrangeOptions(*verb,
                 {"model", "layers", "fanout", "hidden", "epochs", "batch-size", "lr", "memory",
                  "threads", "out"},
                 {"features",
                  "labels",
                  "split",
                  "dropout",
                  "weight-decay",
                  "seed",
                  "seeds",
                  "device",
                  "full-graph",
                  "spill",
                  "resume",
                  "checkpoint-every",
                  "report",
                  "curves",
                  "plot",
                  "scratch",
                  "job",
                  "task",
                  "class-weights",
                  "optimizer",
                  "schedule",
                  "patience",
                  "norm",
                  "residual",
                  "heads",
                  "edge-weights",
                  "typed-fanout",
                  "meta-path",
                  "weighted",
                  "cache",
                  "prefetch",
                  "steps",
                  "no-test",
                  "eval-every",
                  "ranks",
                  "peer-timeout",
                  "dim",
                  "decoder",
                  "negatives",
                  "n3",
                  "reciprocal",
                  "out-array",
                  "loss",
                  "margin",
                  "negative-sources",
                  "filter-negatives",
                  "valid",
                  "test",
                  "allow-leaked"});
  verb->footer(std::string(kIgnoredHelp) + verb->get_footer());
}

}  // namespace rhizome
