#include "tools/bench/harness/verb_bench.h"
#include "tools/bench/store/bench_cold_rows.h"
#include "tools/bench/store/bench_lookup.h"

namespace rhizome {
namespace {

struct LookupFlags {
  BenchLookupOptions options;
  std::string dir = ".";
  std::string metrics;
  BenchColdRowsOptions cold{.bytes = 0};
};

Result<Answer> RunLookup(const LookupFlags& flags, Session& session) {
  BenchLookupOptions options = flags.options;
  options.graph.dir = flags.dir;
  RHIZOME_ASSIGN_OR_RETURN(options.metrics, MetricsFor(flags.metrics));
  BenchColdRowsOptions cold = flags.cold;
  if (cold.bytes > 0) {
    cold.dir = flags.dir;
    RHIZOME_ASSIGN_OR_RETURN(Json rows, BenchColdRows(cold, session.control));
    return Answer{
        {{"workload", "lookup of cold rows"}, {"cold", std::move(rows)}}, DescribeBench, {}};
  }
  RHIZOME_ASSIGN_OR_RETURN(Json fields, BenchLookup(options, session.control));
  RHIZOME_RETURN_IF_ERROR(WriteMetrics(flags.metrics, options.metrics.get(), "bench"));
  return Answer{std::move(fields), DescribeBench, {}};
}

void AddLookupCount(CLI::App& verb, const std::string& name, std::uint32_t& count,
                    std::uint32_t most, const std::string& what) {
  verb.add_option(name, count, what)
      ->check(CLI::Range(1U, most))
      ->type_name("N")
      ->capture_default_str();
}

}  // namespace

void AddLookupBench(const Bench& bench, CLI::App& root, Session& session) {
  auto flags = std::make_shared<LookupFlags>();
  BenchLookupOptions& options = flags->options;
  options.graph.scale = 16;
  CLI::App* verb = AddBench(bench, root, session, "rhizome bench lookup --scale 8 --lookups 1000",
                            flags, RunLookup);
  verb->add_option("--dir", flags->dir, "Folder for the store and the database")
      ->type_name("FOLDER")
      ->capture_default_str();
  AddMetricsFile(*verb, flags->metrics);
  AddLookupCount(*verb, "--scale", options.graph.scale, 24U,
                 "Generate a graph with 2^N vertices of 16 edges each");
  AddLookupCount(*verb, "--partitions", options.graph.partitions, 1024U, "Number of partitions");
  AddLookupCount(*verb, "--dim", options.dim, 65536U, "Floats per row");
  AddLookupCount(*verb, "--lookups", options.lookups, 1000000000U, "Lookups per competitor");
  AddLookupCount(*verb, "--batch", options.batch, 1000000U, "Vertices per batched lookup");
  AddLookupCount(*verb, "--threads", options.threads, 1024U, "Threads for batched lookups");
  BenchColdRowsOptions& cold = flags->cold;
  AddSize(*verb, "--cold", cold.bytes,
          "Measure only cold rows on disk, of an array of this size, compared with the reader of "
          "training and with fio");
  AddLookupCount(*verb, "--cold-batch", cold.batch, 10000000U, "With --cold: vertices per call");
  AddLookupCount(*verb, "--cold-dim", cold.dim, 65536U, "With --cold: floats per row");
  AddTurnFlags(*verb, cold.rounds, cold.seconds, "one measurement of cold rows");
}

}  // namespace rhizome
