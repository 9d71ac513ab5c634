#include "bench_common.h"
#include "bench_kernels.h"
#include "bench_library.h"

namespace rhizome {

using nlohmann::ordered_json;

Result<ordered_json> BenchStep(const BenchStepOptions& options, const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(const GnnBench* bench, LoadGnnBench());
  RHIZOME_ASSIGN_OR_RETURN(const BenchGraph graph, OpenBenchGraph(options.graph, control));
  StepBenchOptions step = options.step;
  step.fanouts = options.graph.fanouts;
  step.threads = options.graph.threads;
  step.seed = options.graph.seed;
  const std::uint64_t vertices = graph.graph->vertex_count();
  for (std::uint32_t batch = 0; batch < options.batches; ++batch) {
    step.seeds.push_back(DrawSeeds(vertices, options.graph.batch_size, options.graph.seed, batch));
  }
  RHIZOME_ASSIGN_OR_RETURN(const StepBenchReport report, bench->Step(*graph.graph, step, control));
  ordered_json json = {{"workload", "step"},
                       {"figure", report.step_seconds},
                       {"figure_is", "seconds of forward, backward and optimiser, median"},
                       {"cpu_seconds", report.step_cpu_seconds},
                       {"rows_per_batch", report.rows},
                       {"edges_per_batch", report.edges},
                       {"last_loss", report.last_loss},
                       {"dim", step.dim},
                       {"hidden", step.hidden},
                       {"dropout", step.dropout},
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

}  // namespace rhizome
