#include "tools/bench/cache/bench_inputs.h"
#include "tools/bench/harness/verb_bench.h"

namespace rhizome {
namespace {

Result<Answer> RunBenchInputs(const BenchInputsOptions& options, Session& session) {
  RHIZOME_ASSIGN_OR_RETURN(Json fields, BenchInputs(options, session.control));
  return Answer{std::move(fields), DescribeBench, {}};
}

}  // namespace

void AddInputsBench(const Bench& bench, CLI::App& root, Session& session) {
  auto options = std::make_shared<BenchInputsOptions>();
  CLI::App* verb = AddBench(bench, root, session,
                            "rhizome bench inputs --scale 10 --batch-size 50 --superbatch 4 "
                            "--shares 0.1",
                            options, RunBenchInputs);
  AddMadeGraphFlags(*verb, options->dir, options->scale, options->edge_factor);
  verb->add_option("--dims", options->dims, "Width of the array of each vertex type")
      ->delimiter(',')
      ->check(CLI::Range(1U, 65536U))
      ->type_name("N,...")
      ->default_str("32,128,768");
  verb->add_option("--parts", options->parts, "Part of the vertices that has each type")
      ->delimiter(',')
      ->check(CLI::PositiveNumber)
      ->type_name("X,...")
      ->default_str("0.6,0.3,0.1");
  verb->add_option("--shares", options->shares, "Cache memory, as fractions of the rows' bytes")
      ->delimiter(',')
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("X,...")
      ->default_str("0.05,0.1,0.2,0.4");
  verb->add_option("--fanout", options->fanouts, "Neighbours sampled in each hop")
      ->delimiter(',')
      ->type_name("N,...")
      ->default_str("10,10");
  verb->add_option("--batch-size", options->batch_size, "Seeds per minibatch")
      ->check(CLI::Range(1U, 1000000U))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--superbatch", options->superbatch, "Minibatches that are scheduled together")
      ->check(CLI::Range(1U, 1000000U))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--seed", options->seed, "Random seed")->type_name("N")->capture_default_str();
}

}  // namespace rhizome
