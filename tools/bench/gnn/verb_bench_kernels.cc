#include "bench_kernels.h"
#include "verb_bench.h"
#include "verbs.h"

namespace rhizome {
namespace {

struct AggregateFlags {
  AggregateBenchOptions options;
  std::vector<std::string> tables;
};

Result<Answer> RunAggregate(const AggregateFlags& flags, Session& session) {
  AggregateBenchOptions options = flags.options;
  if (!flags.tables.empty()) options.table_bytes.clear();
  for (const std::string& text : flags.tables) {
    const std::optional<std::uint64_t> bytes = ParseSize(text);
    if (!bytes) {
      return Fail(Status::InvalidArgument("--tables: " + text + " is no size; write 64M or 1G"));
    }
    options.table_bytes.push_back(*bytes);
  }
  RHIZOME_ASSIGN_OR_RETURN(Json fields, BenchAggregate(options, session.control));
  return Answer{std::move(fields), DescribeBench, {}};
}

struct StepFlags {
  BenchStepOptions options;
  std::string store;
  std::string dir = ".";
};

Result<Answer> RunStep(const StepFlags& flags, Session& session) {
  RHIZOME_ASSIGN_OR_RETURN(Json fields, BenchStep(OptionsAt(flags), session.control));
  return Answer{std::move(fields), DescribeBench, {}};
}

}  // namespace

void AddBenchAggregate(CLI::App& bench, Session& session) {
  auto flags = std::make_shared<AggregateFlags>();
  AggregateBenchOptions& options = flags->options;
  CLI::App* verb =
      AddVerb(bench, session, "aggregate", "Aggregation kernels, against the memory and libtorch",
              "rhizome bench aggregate --widths 32 --tables 256K --rounds 1", flags, RunAggregate);
  verb->add_option("--widths", options.widths, "Columns of the rows")
      ->delimiter(',')
      ->type_name("N,...")
      ->default_str("32,64,128,256,512");
  verb->add_option("--dtypes", options.dtypes, "Of the rows: float32, float16, bfloat16")
      ->delimiter(',')
      ->type_name("NAME,...")
      ->default_str("float32,float16");
  verb->add_option("--tables", flags->tables, "Sizes of the table whose rows are read")
      ->delimiter(',')
      ->type_name("SIZE,...")
      ->default_str("256M,4M");
  verb->add_option("--degree", options.degree, "Neighbours of a target")
      ->check(CLI::Range(1U, 1U << 20))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--rounds", options.rounds, "Turns of each contestant; the median counts")
      ->check(CLI::Range(1U, 1000U))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--seed", options.seed, "Of the rows drawn")
      ->type_name("N")
      ->capture_default_str();
  AddThreads(*verb, options.threads);
}

void AddBenchStep(CLI::App& bench, Session& session) {
  auto flags = std::make_shared<StepFlags>();
  BenchStepOptions& options = flags->options;
  CLI::App* verb = AddVerb(bench, session, "step", "One step of training GraphSAGE, in memory",
                           "rhizome bench step --scale 10 --batch-size 50 --hidden 16 --rounds 1",
                           flags, RunStep);
  AddPlaceFlags(*verb, flags->store, flags->dir);
  AddGraphFlags(*verb, options.graph);
  verb->add_option("--dim", options.step.dim, "Columns of the features")
      ->check(CLI::Range(1, 65536))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--hidden", options.step.hidden, "Width of the hidden layers")
      ->check(CLI::Range(1, 65536))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--dropout", options.step.dropout, "Share of units dropped")
      ->check(CLI::Range(0.0, 0.99))
      ->type_name("X")
      ->capture_default_str();
  verb->add_option("--batches", options.batches, "Minibatches of a round")
      ->check(CLI::Range(1U, 1000000U))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--rounds", options.step.rounds, "Times that each minibatch is measured")
      ->check(CLI::Range(1U, 1000U))
      ->type_name("N")
      ->capture_default_str();
}

}  // namespace rhizome
