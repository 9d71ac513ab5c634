#include "tools/bench/cache/bench_tables.h"
#include "tools/bench/harness/verb_bench.h"

namespace rhizome {
namespace {

struct TablesFlags {
  BenchTablesOptions options;
  std::string store;
  std::string dir = ".";
};

Result<Answer> RunBenchTables(const TablesFlags& flags, Session& session) {
  RHIZOME_ASSIGN_OR_RETURN(Json fields, BenchTables(OptionsAt(flags), session.control));
  return Answer{std::move(fields), DescribeBench, {}};
}

}  // namespace

void AddTablesBench(const Bench& bench, CLI::App& root, Session& session) {
  auto flags = std::make_shared<TablesFlags>();
  flags->options.graph.scale = 15;
  flags->options.graph.partitions = 32;
  flags->options.graph.batch_size = 1024;
  CLI::App* verb = AddBench(bench, root, session,
                            "rhizome bench tables --scale 10 --partitions 8 --batch-size 256 "
                            "--negatives 64 --dim 8",
                            flags, RunBenchTables);
  BenchTablesOptions& options = flags->options;
  AddPlaceFlags(*verb, flags->store, flags->dir);
  verb->add_option("--scale", options.graph.scale, "Generate an R-MAT graph with 2^N vertices")
      ->check(CLI::Range(1U, 32U))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--edge-factor", options.graph.edge_factor, "Edges per vertex")
      ->check(CLI::Range(1U, 4096U))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--partitions", options.graph.partitions,
                   "Number of partitions of the generated graph")
      ->check(CLI::Range(1U, 1024U))
      ->type_name("P")
      ->capture_default_str();
  verb->add_option("--batch-size", options.graph.batch_size, "Edges per batch")
      ->check(CLI::Range(1U, 1U << 20))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--negatives", options.negatives, "Negatives per batch and side; 0: none")
      ->check(CLI::Range(0U, 1U << 20))
      ->type_name("K")
      ->capture_default_str();
  verb->add_option("--mixture", options.mixture,
                   "Sources of negatives: resident, uniform, degree^ALPHA, in-batch, each with its "
                   "share")
      ->type_name("SOURCE:SHARE,...")
      ->capture_default_str();
  verb->add_option("--shares", options.shares, "Rows that fit in memory, as fractions of all rows")
      ->delimiter(',')
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("X,...")
      ->default_str("0.25,0.125,0.0625");
  verb->add_option("--epochs", options.epochs, "Epochs; all but the first one are counted")
      ->check(CLI::Range(2U, 1000U))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--dim", options.dim,
                   "Also create a table with values of N numbers and Adagrad's sums in --dir, and "
                   "measure the epochs and BETA on it; 0: count rows only")
      ->check(CLI::Range(0U, 65536U))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--seed", options.graph.seed, "Random seed")
      ->type_name("N")
      ->capture_default_str();
}

}  // namespace rhizome
