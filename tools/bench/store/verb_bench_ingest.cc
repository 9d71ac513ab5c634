#include "tools/bench/harness/verb_bench.h"
#include "tools/bench/store/bench_ingest.h"

namespace rhizome {
namespace {

struct BenchIngestFlags {
  BenchIngestOptions options;
  std::string dir = ".";
};

Result<Answer> RunBenchIngest(const BenchIngestFlags& flags, Session& session) {
  BenchIngestOptions options = flags.options;
  options.dir = flags.dir;
  RHIZOME_ASSIGN_OR_RETURN(Json fields, BenchIngest(options, session.control));
  return Answer{std::move(fields), DescribeBench, {}};
}

}  // namespace

void AddIngestBench(const Bench& bench, CLI::App& root, Session& session) {
  auto flags = std::make_shared<BenchIngestFlags>();
  BenchIngestOptions& options = flags->options;
  CLI::App* verb = AddBench(bench, root, session, "rhizome bench ingest --scale 12 --partitions 4",
                            flags, RunBenchIngest);
  AddMadeGraphFlags(*verb, flags->dir, options.scale, options.edge_factor);
  verb->add_option("--partitions", options.partitions,
                   "Number of partitions in the runs with several")
      ->check(CLI::Range(std::size_t{1}, kMaxPartitions))
      ->type_name("P")
      ->capture_default_str();
  verb->add_option(
          "--rounds", options.rounds,
          "Number of rounds, in which every competitor is measured; the fastest is reported")
      ->check(CLI::Range(1U, 1000U))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--seed", options.seed, "Random seed; equal seeds give equal graphs")
      ->type_name("N")
      ->capture_default_str();
  AddThreads(*verb, options.threads);
}

}  // namespace rhizome
