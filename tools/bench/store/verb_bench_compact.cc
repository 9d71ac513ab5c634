#include "tools/bench/harness/verb_bench.h"
#include "tools/bench/store/bench_compact.h"

namespace rhizome {
namespace {

struct BenchCompactFlags {
  BenchCompactOptions options;
  std::string dir = ".";
};

Result<Answer> RunBenchCompact(const BenchCompactFlags& flags, Session& session) {
  BenchCompactOptions options = flags.options;
  options.dir = flags.dir;
  RHIZOME_ASSIGN_OR_RETURN(Json fields, BenchCompact(options, session.control));
  return Answer{std::move(fields), DescribeBench, {}};
}

}  // namespace

void AddCompactBench(const Bench& bench, CLI::App& root, Session& session) {
  auto flags = std::make_shared<BenchCompactFlags>();
  BenchCompactOptions& options = flags->options;
  CLI::App* verb =
      AddBench(bench, root, session, "rhizome bench compact --scale 10 --dim 16 --puts 20", flags,
               RunBenchCompact);
  AddMadeGraphFlags(*verb, flags->dir, options.scale, options.edge_factor);
  verb->add_option("--dim", options.dim, "Floats per feature row")
      ->check(CLI::Range(1U, 65536U))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--partitions", options.partitions, "Parts")
      ->check(CLI::Range(std::size_t{1}, kMaxPartitions))
      ->type_name("P")
      ->capture_default_str();
  verb->add_option("--share", options.share,
                   "Edges written before the compaction, as a fraction of all edges")
      ->check(CLI::NonNegativeNumber)
      ->type_name("X")
      ->capture_default_str();
  verb->add_option("--puts", options.puts, "Durable puts of one edge to time before the compaction")
      ->check(CLI::Range(1U, 10000000U))
      ->type_name("N")
      ->capture_default_str();
  verb->add_flag("--repartition", options.repartition, "Partition all edges again");
  AddThreads(*verb, options.threads);
  AddSize(*verb, "--memory", options.memory_bytes, "Memory limit; 0: none");
  verb->add_option("--seed", options.seed, "Random seed; equal seeds give equal graphs")
      ->type_name("N")
      ->capture_default_str();
}

}  // namespace rhizome
