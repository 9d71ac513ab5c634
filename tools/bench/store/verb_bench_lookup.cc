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
  verb->add_option("--dir", flags->dir, "Where store and database go")
      ->type_name("FOLDER")
      ->capture_default_str();
  AddMetricsFile(*verb, flags->metrics);
  AddLookupCount(*verb, "--scale", options.graph.scale, 24U, "Graph: 2^N vertices, 16 edges each");
  AddLookupCount(*verb, "--partitions", options.graph.partitions, 1024U, "Partitions of the store");
  AddLookupCount(*verb, "--dim", options.dim, 65536U, "Floats of a row");
  AddLookupCount(*verb, "--lookups", options.lookups, 1000000000U, "Look-ups of each contestant");
  AddLookupCount(*verb, "--batch", options.batch, 1000000U, "Vertices of a batched look-up");
  AddLookupCount(*verb, "--threads", options.threads, 1024U, "Threads of the batched look-ups");
  BenchColdRowsOptions& cold = flags->cold;
  AddSize(
      *verb, "--cold", cold.bytes,
      "Only rows on disk, of an array of so many bytes: against the reader of training, and fio");
  AddLookupCount(*verb, "--cold-batch", cold.batch, 10000000U, "Vertices of a call for them");
  AddLookupCount(*verb, "--cold-dim", cold.dim, 65536U, "Floats of such a row");
  AddTurnFlags(*verb, cold.rounds, cold.seconds, "a turn of one contestant for cold rows");
}

}  // namespace rhizome
