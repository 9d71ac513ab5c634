#include "tools/bench/cache/bench_fullgraph.h"
#include "tools/bench/harness/verb_bench.h"

namespace rhizome {
namespace {

struct FullGraphFlags {
  BenchFullGraphOptions options;
  std::string store;
  std::string dir = ".";
  bool reddit_shape = false;
};

Result<Answer> RunBenchFullGraph(const FullGraphFlags& flags, Session& session) {
  if (flags.reddit_shape) {
    RHIZOME_ASSIGN_OR_RETURN(Json fields, BenchRedditShape());
    return Answer{std::move(fields), DescribeBench, {}};
  }
  BenchFullGraphOptions options = OptionsAt(flags);
  options.graph.undirected = true;
  RHIZOME_ASSIGN_OR_RETURN(Json fields, BenchFullGraph(options, session.control));
  return Answer{std::move(fields), DescribeBench, {}};
}

void AddShapeFlags(CLI::App& app, FullGraphFlags& flags) {
  CLI::App* const verb = &app;
  BenchFullGraphOptions& options = flags.options;
  verb->add_option("--layers", options.layers, "Layers of the model")
      ->delimiter(',')
      ->check(CLI::Range(1U, 12U))
      ->type_name("K,...")
      ->default_str("2,3,4,6");
  verb->add_option("--limits", options.limits, "Memory limits, as fractions of the activations")
      ->delimiter(',')
      ->type_name("X,...")
      ->default_str("1/2,1/4,1/8");
  verb->add_option("--features", options.features, "Width of the features")
      ->check(CLI::Range(1U, 1U << 16))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--hidden", options.hidden, "Width of the layers")
      ->check(CLI::Range(1U, 1U << 16))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--chunk-rows", options.chunk_rows, "Rows per chunk")
      ->check(CLI::Range(1U, 1U << 24))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--states", options.max_states,
                   "Maximum number of states per pass in the search for a plan; if there are more, "
                   "the result is a bound")
      ->check(CLI::Range(1U, 100'000'000U))
      ->type_name("N")
      ->capture_default_str();
  verb->add_flag("--reddit-shape", flags.reddit_shape,
                 "Instead, reproduce the bars of ROC's Figure 10a, for Reddit's published sizes "
                 "and an assumed GCN 602-256-41");
  verb->add_option("--plot", options.plot, "Also draw the curves with gnuplot")
      ->type_name("F.svg|F.png");
}

}  // namespace

void AddFullGraphBench(const Bench& bench, CLI::App& root, Session& session) {
  auto flags = std::make_shared<FullGraphFlags>();
  CLI::App* verb = AddBench(bench, root, session,
                            "rhizome bench fullgraph --scale 11 --layers 2 --limits 1/2 "
                            "--chunk-rows 64",
                            flags, RunBenchFullGraph);
  AddPlaceFlags(*verb, flags->store, flags->dir);
  verb->add_option("--scale", flags->options.graph.scale,
                   "Generate an R-MAT graph with 2^N vertices")
      ->check(CLI::Range(1U, 32U))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--edge-factor", flags->options.graph.edge_factor, "Edges per vertex")
      ->check(CLI::Range(1U, 4096U))
      ->type_name("N")
      ->capture_default_str();
  AddThreads(*verb, flags->options.graph.threads);
  AddShapeFlags(*verb, *flags);
}

}  // namespace rhizome
