#include "gnn_bench.h"

#include <utility>

#include "rhizome/cache/safetensors.h"
#include "rhizome/gnn/model.h"
#include "rhizome/gnn/torch_guard.h"
#include "torch_benches.h"

namespace rhizome {
namespace {

class Bench final : public GnnBench {
 public:
  Result<AggregateBenchReport> Aggregate(const AggregateBenchOptions& options,
                                         const JobControl& control) const override {
    return GuardedTorch([&] { return BenchAggregateKernels(options, control); });
  }
  Result<StepBenchReport> Step(const GraphSnapshot& graph, const StepBenchOptions& options,
                               const JobControl& control) const override {
    return GuardedTorch([&] { return BenchTrainingStep(graph, options, control); });
  }
  Result<double> Products(const ProductBenchOptions& options,
                          const JobControl& control) const override {
    return GuardedTorch([&] { return BenchProducts(options, control); });
  }
  Status SaveModel(const ModelSpec& spec, std::int64_t inputs, std::uint64_t seed,
                   const Path& path) const override {
    const auto saved = GuardedTorch([&]() -> Result<bool> {
      RHIZOME_ASSIGN_OR_RETURN(const Model model,
                               Model::Create({.spec = spec, .inputs = inputs, .classes = 2}, seed));
      RHIZOME_RETURN_IF_ERROR(SaveSafetensors(path, model.ToFile()));
      return true;
    });
    return saved ? Status::Ok() : saved.error();
  }
};

}  // namespace
}  // namespace rhizome

extern "C" __attribute__((visibility("default"))) const rhizome::GnnBench* rhizome_gnn_bench_v1();
extern "C" const rhizome::GnnBench* rhizome_gnn_bench_v1() {
  static const rhizome::Bench bench;
  return &bench;
}
