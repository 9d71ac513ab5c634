#include <torch/torch.h>

#include <algorithm>
#include <functional>
#include <random>

#include "cache/job/work_clock.h"
#include "gnn/ops/dense.h"
#include "gnn/ops/torch_guard.h"
#include "gnn/ops/torch_threads.h"
#include "tools/bench/gnn/bench_kernels.h"
#include "tools/bench/harness/bench_common.h"

namespace rhizome {
namespace {

/// Numbers of columns of the products.
constexpr std::int64_t kProjectionOutputs[] = {16, 64, 256};

/// Maximum number of rows, the size of a minibatch; more rows would not change the result.
constexpr std::int64_t kMaxProjected = 1 << 16;

/// Random rows of a table, and the weights that they are multiplied by.
struct ProjectionWork {
  torch::Tensor table;
  std::vector<std::uint32_t> place;
  torch::Tensor index;  // the same positions, int64
  torch::Tensor weight;
  torch::Tensor gradient;  // gradient of the products

  ProjectionWork(std::uint64_t table_bytes, std::int64_t width, std::int64_t outputs,
                 std::uint64_t seed) {
    const auto rows = std::max<std::int64_t>(
        static_cast<std::int64_t>(table_bytes) / width / std::int64_t{sizeof(float)}, 1);
    table = torch::randn({rows, width});
    std::mt19937_64 random(seed);
    place.resize(static_cast<std::size_t>(std::min(rows, kMaxProjected)));
    for (std::uint32_t& row : place)
      row = static_cast<std::uint32_t>(random() % static_cast<std::uint64_t>(rows));
    index = torch::tensor(std::vector<std::int64_t>(place.begin(), place.end()));
    weight = torch::randn({outputs, width}).set_requires_grad(true);
    gradient = torch::randn({index.size(0), outputs});
  }

  torch::Tensor Ours() const { return Linear({table, place}, weight); }
  torch::Tensor Libtorchs() const { return torch::mm(table.index_select(0, index), weight.t()); }
};

/// Times of a product, and of the gradient of its weights.
struct ProjectionTimes {
  double seconds[2] = {};
  double cpu_seconds[2] = {};
};

template <typename Product>
ProjectionTimes TimeProjection(const ProjectionWork& work, const Product& product) {
  ProjectionTimes times;
  torch::Tensor out;
  for (const bool backward : {false, true}) {
    const WorkClock clock;
    if (backward) {
      torch::autograd::grad({out}, {work.weight}, {work.gradient});
    } else {
      out = product();
    }
    times.seconds[backward] = clock.seconds();
    times.cpu_seconds[backward] = clock.cpu_seconds();
  }
  return times;
}

/// Measures both implementations in turns.
void MeasureWork(const ProjectionWork& work, const AggregateBenchOptions& options,
                 std::vector<ProjectionFigure>& figures) {
  std::vector<double> nanoseconds[2], ratio[2], cpu_ratio[2];
  for (std::uint32_t round = 0; round <= options.rounds; ++round) {
    const ProjectionTimes ours = TimeProjection(work, [&] { return work.Ours(); });
    at::set_num_threads(static_cast<int>(options.threads));
    const ProjectionTimes libtorchs = TimeProjection(work, [&] { return work.Libtorchs(); });
    at::set_num_threads(1);
    if (round == 0) continue;  // the first round warms caches and allocator
    for (const std::size_t pass : {0, 1}) {
      nanoseconds[pass].push_back(ours.seconds[pass] * 1e9 /
                                  static_cast<double>(work.place.size()));
      ratio[pass].push_back(libtorchs.seconds[pass] / ours.seconds[pass]);
      cpu_ratio[pass].push_back(libtorchs.cpu_seconds[pass] / ours.cpu_seconds[pass]);
    }
  }
  for (const std::size_t pass : {0, 1}) {
    figures.push_back({.op = pass == 0 ? "product" : "product gradient",
                       .width = static_cast<std::uint32_t>(work.table.size(1)),
                       .outputs = static_cast<std::uint32_t>(work.weight.size(0)),
                       .table_bytes = static_cast<std::uint64_t>(work.table.nbytes()),
                       .rows = work.place.size(),
                       .nanoseconds_per_row = Median(nanoseconds[pass]),
                       .ratio_to_libtorch = Median(ratio[pass]),
                       .cpu_ratio_to_libtorch = Median(cpu_ratio[pass])});
  }
}

Result<std::vector<ProjectionFigure>> RunProjection(const AggregateBenchOptions& options,
                                                    const JobControl& control) {
  SetTorchThreads(options.threads);
  torch::manual_seed(options.seed);
  std::vector<ProjectionFigure> figures;
  for (const std::uint64_t bytes : options.table_bytes) {
    for (const std::uint32_t width : options.widths) {
      for (const std::int64_t outputs : kProjectionOutputs) {
        RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
        MeasureWork(ProjectionWork(bytes, width, outputs, options.seed), options, figures);
      }
    }
  }
  return figures;
}

}  // namespace

Result<std::vector<ProjectionFigure>> MeasureProjection(const AggregateBenchOptions& options,
                                                        const JobControl& control) {
  return GuardedTorch([&] { return RunProjection(options, control); });
}

}  // namespace rhizome
