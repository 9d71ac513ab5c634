#include <fmt/format.h>

#include "tools/bench/gnn/bench_depth.h"
#include "tools/bench/gnn/bench_models.h"
#include "tools/bench/harness/verb_bench.h"
#include "tools/cli/text.h"
#include "tools/import/gnn_flags.h"

namespace rhizome {
namespace {

struct DepthFlags {
  BenchDepthOptions options;
  std::string data;
  std::string dir = ".";
};

std::string DescribeDepth(const Json& fields) {
  TextTable table({1, 2, 4, 5});
  table.Add({"data", "layers", "hidden", "residual", "trained on", "test accuracy", "seconds"});
  for (const Json& row : fields["rows"]) {
    table.Add({row["data"], row["layers"].dump(), row["hidden"].dump(),
               row["residual"].get<bool>() ? "yes" : "no",
               row["full_graph"].get<bool>() ? "full graph" : "minibatches",
               row.contains("mean")
                   ? fmt::format("{:.2f} +- {:.2f}", row["mean"].get<double>() * 100,
                                 row["deviation"].get<double>() * 100)
                   : "",
               row.contains("seconds") ? fmt::format("{:.0f}", row["seconds"].get<double>()) : ""});
  }
  return table.ToString();
}

Result<Answer> RunBenchDepth(const DepthFlags& flags, Session& session) {
  BenchDepthOptions options = flags.options;
  options.data = DataFolder(flags.data);
  options.dir = flags.dir;
  options.note = PrintsNotes(session);
  RHIZOME_ASSIGN_OR_RETURN(Json fields, BenchDepth(options, session.control));
  return Answer{std::move(fields), DescribeDepth, {}};
}

}  // namespace

void AddDepthBench(const Bench& bench, CLI::App& root, Session& session) {
  auto flags = std::make_shared<DepthFlags>();
  BenchDepthOptions& options = flags->options;
  CLI::App* verb =
      AddBench(bench, root, session, "rhizome bench depth --list --layers 2,4 --hidden 64", flags,
               RunBenchDepth);
  verb->add_option("--data", flags->data,
                   "Folder with the data sets; default: RHIZOME_TEST_DATA, or ../shared/data")
      ->type_name("DIR");
  verb->add_option("--dir", flags->dir, "Folder for temporary stores")
      ->type_name("DIR")
      ->capture_default_str();
  verb->add_option("--sets", options.sets, "Data sets with known classes of vertices")
      ->delimiter(',')
      ->type_name("NAME,...")
      ->default_str("amazon_computers,coauthor_cs");
  verb->add_option("--model", options.model, "Kind of model")
      ->type_name("NAME")
      ->capture_default_str();
  verb->add_option("--layers", options.layers, "Depths")
      ->delimiter(',')
      ->check(CLI::Range(1U, 16U))
      ->type_name("N,...")
      ->default_str("2,3,4");
  verb->add_option("--hidden", options.hidden, "Widths")
      ->delimiter(',')
      ->check(CLI::Range(1U, 65536U))
      ->type_name("N,...")
      ->default_str("64,128,256,512");
  verb->add_flag("--minibatch", options.minibatch,
                 "Also train each model on minibatches with all neighbours");
  verb->add_option("--epochs", options.epochs, "Maximum number of epochs")
      ->check(CLI::Range(1U, 1000000U))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--patience", options.patience, "Stop after N epochs without an improvement")
      ->check(CLI::Range(1U, 1000000U))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--seeds", options.seeds, "Number of seeds per model")
      ->check(CLI::Range(1U, 1000U))
      ->type_name("N")
      ->capture_default_str();
  verb->add_flag("--list", options.list, "Only list the models");
  verb->add_option("--plot", options.plot, "Also draw the curves with gnuplot")
      ->type_name("F.svg|F.png");
  AddThreads(*verb, options.threads);
}

}  // namespace rhizome
