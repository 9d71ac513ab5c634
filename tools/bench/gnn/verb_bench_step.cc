#include "tools/bench/gnn/bench_kernels.h"
#include "tools/bench/harness/bench_common.h"
#include "tools/bench/harness/verb_bench.h"

namespace rhizome {
namespace {

using nlohmann::ordered_json;

struct BenchStepOptions {
  BenchGraphOptions graph;
  std::uint32_t batches = 8;  ///< batches per round
  StepBenchOptions step;      ///< seeds, fanouts, threads and seed are set from `graph`
};

Result<ordered_json> BenchStep(const BenchStepOptions& options, const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(const BenchGraph graph, OpenBenchGraph(options.graph, control));
  StepBenchOptions step = options.step;
  step.fanouts = options.graph.fanouts;
  step.threads = options.graph.threads;
  step.seed = options.graph.seed;
  const std::uint64_t vertices = graph.graph->vertex_count();
  for (std::uint32_t batch = 0; batch < options.batches; ++batch) {
    step.seeds.push_back(DrawSeeds(vertices, options.graph.batch_size, options.graph.seed, batch));
  }
  RHIZOME_ASSIGN_OR_RETURN(const StepBenchReport report, MeasureStep(*graph.graph, step, control));
  ordered_json json = {{"workload", "step"},
                       {"figure", report.step_seconds},
                       {"figure_is", "seconds of forward, backward and optimiser, median"},
                       {"model", step.model.kind},
                       {"model_options", step.model.options},
                       {"cpu_seconds", report.step_cpu_seconds},
                       {"peak_memory_bytes", report.peak_memory},
                       {"step_memory_bytes", report.step_memory},
                       {"rows_per_batch", report.rows},
                       {"edges_per_batch", report.edges},
                       {"last_loss", report.last_loss},
                       {"dim", step.dim},
                       {"hidden", step.model.hidden},
                       {"dropout", step.model.dropout},
                       {"relations", step.relations},
                       {"fanouts", step.fanouts},
                       {"batch_size", options.graph.batch_size},
                       {"batches", options.batches},
                       {"rounds", step.rounds},
                       {"threads", step.threads},
                       {"simd", report.simd}};
  json["graph"] = DescribeGraph(options.graph, *graph.graph);
  json["machine"] = DescribeMachine(options.graph.store.value_or(options.graph.dir));
  return json;
}

struct StepFlags {
  BenchStepOptions options;
  std::string store;
  std::string dir = ".";
};

/// Adds --model and --model-option, whose values the model checks.
void AddModelFlags(CLI::App& verb, ModelSpec& model) {
  verb.add_option("--model", model.kind, "Kind of model; 'rhizome models' lists them")
      ->type_name("NAME")
      ->capture_default_str();
  verb.add_option_function<std::vector<std::string>>(
          "--model-option",
          [&model](const std::vector<std::string>& given) {
            for (const std::string& one : given) {
              const std::size_t equals = one.find('=');
              if (equals == one.npos || equals == 0) {
                throw CLI::ValidationError("--model-option", "'" + one + "' is not NAME=VALUE");
              }
              model.options[one.substr(0, equals)] = one.substr(equals + 1);
            }
          },
          "Option of the model, such as heads=4; may be repeated")
      ->type_name("NAME=VALUE");
}

Result<Answer> RunStep(const StepFlags& flags, Session& session) {
  RHIZOME_ASSIGN_OR_RETURN(Json fields, BenchStep(OptionsAt(flags), session.control));
  return Answer{std::move(fields), DescribeBench, {}};
}

}  // namespace

void AddStepBench(const Bench& bench, CLI::App& root, Session& session) {
  auto flags = std::make_shared<StepFlags>();
  BenchStepOptions& options = flags->options;
  CLI::App* verb = AddBench(bench, root, session,
                            "rhizome bench step --scale 10 --batch-size 50 --hidden 16 --rounds 1",
                            flags, RunStep);
  AddPlaceFlags(*verb, flags->store, flags->dir);
  AddGraphFlags(*verb, options.graph);
  AddModelFlags(*verb, options.step.model);
  verb->add_option("--dim", options.step.dim, "Width of the features")
      ->check(CLI::Range(1, 65536))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--hidden", options.step.model.hidden, "Width of the hidden layers")
      ->check(CLI::Range(1, 65536))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--dropout", options.step.model.dropout, "Fraction of units to drop")
      ->check(CLI::Range(0.0, 0.99))
      ->type_name("X")
      ->capture_default_str();
  verb->add_option("--relations", options.step.relations,
                   "Relations of edges, drawn at random, for models with weights by edge type")
      ->check(CLI::Range(1, 32768))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--batches", options.batches, "Minibatches per round")
      ->check(CLI::Range(1U, 1000000U))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--rounds", options.step.rounds, "Measurements per minibatch")
      ->check(CLI::Range(1U, 1000U))
      ->type_name("N")
      ->capture_default_str();
}

}  // namespace rhizome
