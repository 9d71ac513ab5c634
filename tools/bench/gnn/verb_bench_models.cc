#include <fmt/format.h>

#include "tools/bench/gnn/bench_models.h"
#include "tools/bench/harness/verb_bench.h"
#include "tools/cli/text.h"
#include "tools/import/gnn_flags.h"

namespace rhizome {
namespace {

struct ModelsFlags {
  BenchModelsOptions options;
  std::string data;
  std::string dir = ".";
  std::string tier = "ci";
};

std::string Hundredths(const Json& mean, const Json& deviation) {
  if (mean.is_null()) return "-";
  const std::string text = fmt::format("{:.2f}", mean.get<double>() * 100);
  if (deviation.is_null() || deviation.get<double>() == 0) return text;
  return fmt::format("{} +- {:.2f}", text, deviation.get<double>() * 100);
}

std::string RunsText(const Json& row) {
  return fmt::format("{} {}", row["runs"].get<int>(), row["runs_are"].get<std::string>());
}

std::string SourceText(const Json& row) {
  return row["source"].is_null() ? "" : row["source"].get<std::string>();
}

std::string SettingsText(const Json& settings) {
  std::string text =
      fmt::format("{} x {}, dropout {}, rate {}, decay {}, {} epochs",
                  settings["layers"].get<int>(), settings["hidden"].get<int>(),
                  settings["dropout"].get<double>(), settings["learning_rate"].get<double>(),
                  settings["weight_decay"].get<double>(), settings["epochs"].get<int>());
  for (const auto& [name, value] : settings["options"].items())
    text += fmt::format(", {} {}", name, value.get<std::string>());
  return text;
}

std::string DescribeCases(const Json& fields) {
  TextTable table;
  table.Add({"data", "model", "metric", "runs", "published", "at least", "settings", "source"});
  for (const Json& row : fields["rows"]) {
    table.Add({row["data"], row["model"], row["metric"], RunsText(row),
               Hundredths(row["published"], row["published_deviation"]),
               Hundredths(row["least"], Json()), SettingsText(row["settings"]), SourceText(row)});
  }
  return table.ToString();
}

std::string DescribeResults(const Json& fields) {
  TextTable table;
  table.Add({"data", "model", "metric", "here", "published", "at least", "", "runs", "seconds",
             "source"});
  for (const Json& row : fields["rows"]) {
    const Json& reached = row["reached"];
    table.Add(
        {row["data"], row["model"], row["metric"], Hundredths(row["mean"], row["deviation"]),
         Hundredths(row["published"], row["published_deviation"]), Hundredths(row["least"], Json()),
         reached.is_null()     ? ""
         : reached.get<bool>() ? "reached"
                               : "MISSED",
         RunsText(row), fmt::format("{:.0f}", row["seconds"].get<double>()), SourceText(row)});
  }
  std::string text = table.ToString();
  if (fields["tier"] == "ci") text += "The tier ci has some of the cases; --tier long has all.\n";
  return text;
}

Result<Answer> RunBenchModels(const ModelsFlags& flags, Session& session) {
  BenchModelsOptions options = flags.options;
  options.data = DataFolder(flags.data);
  options.dir = flags.dir;
  options.is_long = flags.tier == "long";
  options.note = PrintsNotes(session);
  RHIZOME_ASSIGN_OR_RETURN(Json fields, BenchModels(options, session.control));
  return Answer{std::move(fields), options.list ? DescribeCases : DescribeResults, {}};
}

}  // namespace

void AddModelsBench(const Bench& bench, CLI::App& root, Session& session) {
  auto flags = std::make_shared<ModelsFlags>();
  BenchModelsOptions& options = flags->options;
  CLI::App* verb = AddBench(bench, root, session, "rhizome bench models --list --tier long", flags,
                            RunBenchModels);
  verb->add_option("--data", flags->data,
                   "Folder with the data sets; default: RHIZOME_TEST_DATA, or ../shared/data")
      ->type_name("DIR");
  verb->add_option("--dir", flags->dir, "Folder for temporary stores")
      ->type_name("DIR")
      ->capture_default_str();
  verb->add_option("--tier", flags->tier, "ci: some cases, in minutes; long: all, in hours")
      ->check(CLI::IsMember({"ci", "long"}))
      ->type_name("ci|long")
      ->capture_default_str();
  verb->add_option("--only", options.only, "Run only cases whose 'DATA MODEL' contains this text")
      ->type_name("TEXT");
  verb->add_option("--runs", options.runs, "Number of seeds, or splits, per case; 0: all")
      ->check(CLI::Range(0U, 1000U))
      ->type_name("N")
      ->capture_default_str();
  verb->add_flag("--list", options.list, "Only list the cases");
  AddThreads(*verb, options.threads);
}

}  // namespace rhizome
