#include <torch/torch.h>

#include <vector>

#include "cache/job/compute_threads.h"
#include "cache/job/work_clock.h"
#include "gnn/ops/dense.h"
#include "gnn/ops/torch_guard.h"
#include "gnn/ops/torch_threads.h"
#include "tools/bench/gnn/bench_kernels.h"

namespace rhizome {
namespace {

/// Products per thread between two checks of the clock.
constexpr std::size_t kProducts = 64;

struct Layer {
  torch::Tensor x;
  PackedWeight weight;
  torch::Tensor bias;
};

Result<double> MultiplyTiles(const ProductBenchOptions& options, const JobControl& control) {
  if (options.inputs < 1 || options.outputs < 1) {
    return Fail(Status::InvalidArgument("a layer has at least one input and one output"));
  }
  const c10::InferenceMode guard;
  SetTorchThreads(options.threads);
  std::vector<Layer> layers;  // one per thread
  for (std::uint32_t t = 0; t < ComputeThreads(); ++t) {
    layers.push_back({.x = torch::rand({kDenseRows, options.inputs}),
                      .weight = PackedWeight(torch::rand({options.outputs, options.inputs})),
                      .bias = torch::rand({options.outputs})});
  }
  const auto multiply = [&] {
    ComputeFor(layers.size(), [&](std::size_t t) {
      const c10::InferenceMode inference;
      for (std::size_t i = 0; i < kProducts; ++i) {
        Multiply(layers[t].x, layers[t].weight, layers[t].bias);
      }
    });
  };
  multiply();  // fills the caches
  const WorkClock clock;
  double products = 0;
  do {
    RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
    multiply();
    products += static_cast<double>(kProducts * layers.size());
  } while (clock.seconds() < options.seconds);
  return products * 2 * static_cast<double>(kDenseRows * options.inputs * options.outputs) /
         clock.seconds();
}

}  // namespace

Result<double> MeasureProducts(const ProductBenchOptions& options, const JobControl& control) {
  return GuardedTorch([&] { return MultiplyTiles(options, control); });
}

}  // namespace rhizome
