#include "tools/bench/cache/bench_ranges.h"
#include "tools/bench/harness/verb_bench.h"

namespace rhizome {
namespace {

Result<Answer> RunBenchRanges(const BenchRangesOptions& options, Session& session) {
  RHIZOME_ASSIGN_OR_RETURN(Json fields, BenchRanges(options, session.control));
  return Answer{std::move(fields), DescribeBench, {}};
}

}  // namespace

void AddRangesBench(const Bench& bench, CLI::App& root, Session& session) {
  auto options = std::make_shared<BenchRangesOptions>();
  CLI::App* verb =
      AddBench(bench, root, session, "rhizome bench ranges --scale 10 --parts 2,4 --rounds 1",
               options, RunBenchRanges);
  verb->add_option("--fit", options->fit,
                   "Stores to learn from; default: an R-MAT graph of --scale")
      ->delimiter(',')
      ->type_name("STORE,...");
  verb->add_option("--cut", options->cut,
                   "Store to divide into ranges; default: an R-MAT graph of --scale + 1")
      ->type_name("STORE");
  verb->add_option("--scale", options->scale,
                   "Without stores: generate an R-MAT graph with 2^N vertices")
      ->check(CLI::Range(1U, 30U))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--parts", options->parts, "Numbers of ranges")
      ->delimiter(',')
      ->check(CLI::Range(1U, 65536U))
      ->type_name("P,...")
      ->default_str("2,4,8,16");
  verb->add_option("--columns", options->columns, "Width of the rows to sum")
      ->check(CLI::Range(1U, 65536U))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--iterations", options->iterations, "Iterations on each graph to learn from")
      ->check(CLI::Range(2U, 10000U))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--rounds", options->rounds, "Measurements per range; the median is used")
      ->check(CLI::Range(1U, 1000U))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--seed", options->seed,
                   "Random seed of generated graphs and of the ranges to learn from")
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--dir", options->dir, "Folder for generated graphs")
      ->type_name("DIR")
      ->capture_default_str();
  verb->add_option("--costs", options->costs, "Write the learned costs here, as JSON")
      ->type_name("F");
  verb->add_option("--plot", options->plot, "Also draw the curves with gnuplot")
      ->type_name("F.svg|F.png");
}

}  // namespace rhizome
