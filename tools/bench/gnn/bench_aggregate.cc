#include <torch/torch.h>

#include <algorithm>
#include <functional>
#include <random>

#include "cache/job/compute_threads.h"
#include "cache/job/work_clock.h"
#include "cache/kernels/simd.h"
#include "gnn/ops/aggregate_ops.h"
#include "gnn/ops/torch_guard.h"
#include "gnn/ops/torch_threads.h"
#include "tools/bench/gnn/bench_kernels.h"
#include "tools/bench/harness/bench_common.h"

namespace rhizome {
namespace {

/// Pieces of work per thread; see aggregate_ops.cc.
constexpr std::size_t kBenchAggregatePiecesPerThread = 8;

/// Prefetch distance in bytes when rows are read without summing, as in the kernels.
constexpr std::size_t kAheadBytes = 8192;

/// Suppresses libtorch's warning on stderr that its sparse tensors are a beta feature.
class Quiet final : public c10::WarningHandler {
 public:
  void process(const c10::Warning&) override {}
};

/// Times of one turn of a contestant.
struct TurnTime {
  double seconds = 0;
  double cpu_seconds = 0;
};

TurnTime Time(const std::function<void()>& work) {
  const WorkClock clock;
  work();
  return {clock.seconds(), clock.cpu_seconds()};
}

/// Returns the exclusive or of all 8-byte words, which forces the compiler to read them.
std::uint64_t ReadWords(const std::byte* begin, std::size_t bytes) {
  std::uint64_t parts[8] = {};
  for (std::size_t at = 0; at + 64 <= bytes; at += 64) {
    std::uint64_t words[8];
    std::memcpy(words, begin + at, sizeof(words));
    for (int i = 0; i < 8; ++i) parts[i] ^= words[i];
  }
  std::uint64_t all = 0;
  for (const std::uint64_t part : parts) all ^= part;
  return all;
}

/// A table of rows, and neighbour lists over them.
struct Workload {
  torch::Tensor x;
  Csr csr;
  torch::Tensor to, from;  // [edges], int64
  torch::Tensor sparse;    // [targets, sources], float32 CSR of ones
  std::int64_t targets = 0;

  std::int64_t sources() const { return x.size(0); }
  double row_bytes() const {
    return static_cast<double>(x.size(1)) * static_cast<double>(x.element_size());
  }
  /// Returns the bytes of one aggregation: rows and indexes read, results written.
  double bytes() const {
    return static_cast<double>(csr.neighbors.size()) * (row_bytes() + 4) +
           static_cast<double>(targets * x.size(1)) * 4;
  }
};

Workload MakeWorkload(const AggregateBenchOptions& options, std::uint64_t table_bytes,
                      std::uint32_t width, torch::Dtype dtype) {
  Workload work;
  const auto row_bytes = static_cast<std::uint64_t>(width) * torch::elementSize(dtype);
  const auto rows = static_cast<std::int64_t>(std::max<std::uint64_t>(table_bytes / row_bytes, 1));
  work.x = torch::rand({rows, width}).to(dtype);
  // Reads every row about once, but enough rows to measure if the table is small.
  const auto edges = std::max<std::uint64_t>(static_cast<std::uint64_t>(rows),
                                             (std::uint64_t{32} << 20) / row_bytes);
  work.targets = static_cast<std::int64_t>(std::max<std::uint64_t>(edges / options.degree, 1));
  std::mt19937_64 random(options.seed);
  for (std::int64_t t = 0; t < work.targets; ++t) {
    for (std::uint32_t i = 0; i < options.degree; ++i) {
      work.csr.neighbors.push_back(
          static_cast<std::uint32_t>(random() % static_cast<std::uint64_t>(rows)));
    }
    work.csr.offsets.push_back(static_cast<std::uint32_t>(work.csr.neighbors.size()));
  }
  const auto count = static_cast<std::int64_t>(work.csr.neighbors.size());
  work.from = torch::empty({count}, torch::kInt64);
  std::copy(work.csr.neighbors.begin(), work.csr.neighbors.end(),
            work.from.data_ptr<std::int64_t>());
  work.to = torch::arange(work.targets).repeat_interleave(options.degree);
  const torch::Tensor rows_at = torch::arange(work.targets + 1) * std::int64_t{options.degree};
  work.sparse = torch::sparse_csr_tensor(rows_at, work.from, torch::ones({count}),
                                         {work.targets, rows}, torch::kFloat32);
  return work;
}

/// One operation: Rhizome's implementation and libtorch's implementations; a missing one is empty.
struct Contest {
  std::string op;
  double bytes = 0;
  std::function<void()> ours;
  std::function<void()> scatter;
  std::function<void()> sparse;
};

class AggregateBench {
 public:
  AggregateBench(const AggregateBenchOptions& options, const JobControl& control)
      : options_(options), control_(control) {}

  Status Run(std::uint64_t table_bytes, std::uint32_t width, const std::string& dtype,
             AggregateBenchReport& report) {
    const torch::Dtype type = dtype == "float16"    ? torch::kHalf
                              : dtype == "bfloat16" ? torch::kBFloat16
                                                    : torch::kFloat32;
    const Workload work = MakeWorkload(options_, table_bytes, width, type);
    const AggregateLists lists(work.csr.view(), work.sources());
    lists.turned();  // done once per block, so not measured
    const torch::Tensor weights = torch::rand({work.from.size(0)});
    const torch::Tensor gradient = torch::rand({work.targets, width});
    for (const Contest& contest : Contests(work, lists, weights, gradient)) {
      RHIZOME_RETURN_IF_ERROR(control_.CheckCancelled());
      AggregateFigure figure = Measure(contest, work);
      figure.dtype = dtype;
      figure.width = width;
      figure.table_bytes = table_bytes;
      figure.edges = work.csr.neighbors.size();
      report.figures.push_back(std::move(figure));
      RHIZOME_RETURN_IF_ERROR(control_.Report(
          {.phase = "aggregate", .done = report.figures.size(), .total = 0, .detail = contest.op}));
    }
    return Status::Ok();
  }

 private:
  std::vector<Contest> Contests(const Workload& work, const AggregateLists& lists,
                                const torch::Tensor& weights, const torch::Tensor& gradient) {
    const bool wide = work.x.scalar_type() == torch::kFloat32;
    const std::int64_t width = work.x.size(1);
    mean_.assign(static_cast<std::size_t>(work.targets), 1 / static_cast<float>(options_.degree));
    const auto rows = [&work] { return work.x.index_select(0, work.from).to(torch::kFloat32); };
    const auto sum = [&work, width](const torch::Tensor& values) {
      return torch::zeros({work.targets, width}).index_add_(0, work.to, values);
    };
    std::vector<Contest> all;
    all.push_back({"sum", work.bytes(), [&] { AggregateSum(work.x, lists, {}); },
                   [rows, sum] { sum(rows()); }, [&work] { torch::mm(work.sparse, work.x); }});
    all.push_back(
        {"mean",
         work.bytes(),
         [&] { AggregateSum(work.x, lists, {.target = mean_, .source = {}, .self = {}}); },
         [this, rows, sum] { sum(rows()).mul_(mean_[0]); },
         {}});
    all.push_back({"weighted",
                   work.bytes() + 4 * static_cast<double>(weights.size(0)),
                   [&] { AggregateWeighted(work.x, weights, lists); },
                   [&weights, rows, sum] { sum(rows().mul_(weights.unsqueeze(1))); },
                   {}});
    all.push_back({"max",
                   work.bytes() + 4 * static_cast<double>(work.targets * width),
                   [&] { AggregateMax(work.x, lists); },
                   [&work, rows, width] {
                     torch::zeros({work.targets, width})
                         .scatter_reduce_(0, work.to.unsqueeze(1).expand({-1, width}), rows(),
                                          "amax", /*include_self=*/false);
                   },
                   {}});
    if (wide) {
      const TransposedCsr& turned = lists.turned();
      const double bytes =
          static_cast<double>(work.csr.neighbors.size()) * (static_cast<double>(width) * 4 + 4) +
          static_cast<double>(work.sources() * width) * 4;
      // Write into memory that is already mapped: page faults would dominate the measurement.
      gradient_ = torch::zeros({work.sources(), width});
      all.push_back(
          {"sum gradient",
           bytes,
           [this, &turned, &gradient, width] {
             const CsrView csr = turned.lists.view();
             SumOnThreads(MakeSumArgs(csr, {}, RowsOf(gradient), {}, gradient_.data_ptr<float>(),
                                      static_cast<std::size_t>(width)),
                          csr);
           },
           [this, &work, &gradient] {
             gradient_.zero_().index_add_(0, work.from, gradient.index_select(0, work.to));
           },
           {}});
    } else {
      all.front().sparse = {};  // libtorch has no sparse product of half-precision rows
    }
    return all;
  }

  AggregateFigure Measure(const Contest& contest, const Workload& work) {
    std::vector<double> ours, sequential, random, scatter, sparse, cpu_scatter, cpu_sparse;
    for (std::uint32_t round = 0; round <= options_.rounds; ++round) {
      const double front_to_back =
          static_cast<double>(work.x.nbytes()) / Time([&] { ReadAll(work); }).seconds;
      const double rows = static_cast<double>(work.csr.neighbors.size()) * work.row_bytes() /
                          Time([&] { ReadRows(work); }).seconds;
      const TurnTime mine = Time(contest.ours);
      const TurnTime add = TimeLibtorch(contest.scatter);
      const TurnTime product = TimeLibtorch(contest.sparse);
      if (round == 0) continue;  // the first round warms caches and allocator
      sequential.push_back(front_to_back / 1e9);
      random.push_back(rows / 1e9);
      ours.push_back(contest.bytes / mine.seconds / 1e9);
      scatter.push_back(add.seconds / mine.seconds);
      sparse.push_back(product.seconds / mine.seconds);
      cpu_scatter.push_back(add.cpu_seconds / mine.cpu_seconds);
      cpu_sparse.push_back(product.cpu_seconds / mine.cpu_seconds);
    }
    AggregateFigure figure;
    figure.op = contest.op;
    figure.gb_per_second = Median(ours);
    figure.sequential_gb_per_second = Median(sequential);
    figure.random_gb_per_second = Median(random);
    figure.share_of_sequential = figure.gb_per_second / figure.sequential_gb_per_second;
    figure.share_of_random = figure.gb_per_second / figure.random_gb_per_second;
    figure.ratio_to_scatter = Median(scatter);
    figure.ratio_to_sparse = Median(sparse);
    figure.cpu_ratio_to_scatter = Median(cpu_scatter);
    figure.cpu_ratio_to_sparse = Median(cpu_sparse);
    return figure;
  }

  /// Times an operation of libtorch on the same number of threads; libtorch is limited to one
  /// otherwise.
  TurnTime TimeLibtorch(const std::function<void()>& work) const {
    if (!work) return {};
    at::set_num_threads(static_cast<int>(options_.threads));
    const TurnTime turn = Time(work);
    at::set_num_threads(1);
    return turn;
  }

  std::size_t Pieces() const {
    return std::size_t{options_.threads} * kBenchAggregatePiecesPerThread;
  }

  void ReadAll(const Workload& work) {
    const auto* const bytes = static_cast<const std::byte*>(work.x.data_ptr());
    const std::size_t pieces = Pieces();
    const std::size_t each = static_cast<std::size_t>(work.x.nbytes()) / pieces;
    sinks_.assign(pieces, 0);
    ComputeFor(pieces, [&](std::size_t i) { sinks_[i] = ReadWords(bytes + i * each, each); });
  }

  void ReadRows(const Workload& work) {
    const auto* const bytes = static_cast<const std::byte*>(work.x.data_ptr());
    const auto row = static_cast<std::size_t>(work.row_bytes());
    const std::size_t ahead = std::clamp<std::size_t>(kAheadBytes / row, 2, 32);
    const std::vector<std::uint32_t>& index = work.csr.neighbors;
    const std::size_t pieces = Pieces();
    sinks_.assign(pieces, 0);
    ComputeFor(pieces, [&](std::size_t i) {
      const std::size_t end = index.size() * (i + 1) / pieces;
      std::uint64_t sink = 0;
      for (std::size_t e = index.size() * i / pieces; e < end; ++e) {
        if (e + ahead < end) {
          const std::byte* const next = bytes + index[e + ahead] * row;
          for (std::size_t at = 0; at < row; at += 64) __builtin_prefetch(next + at);
        }
        sink ^= ReadWords(bytes + index[e] * row, row);
      }
      sinks_[i] = sink;
    });
  }

  const AggregateBenchOptions& options_;
  const JobControl& control_;
  std::vector<std::uint64_t> sinks_;
  std::vector<float> mean_;
  torch::Tensor gradient_;
};

Status CheckOptions(const AggregateBenchOptions& options) {
  for (const std::string& dtype : options.dtypes) {
    if (dtype != "float32" && dtype != "float16" && dtype != "bfloat16") {
      return Status::InvalidArgument("rows of " + dtype +
                                     "; the kernels read float32, float16 and bfloat16");
    }
  }
  if (options.degree == 0 || options.rounds == 0) {
    return Status::InvalidArgument("degree and rounds must be at least 1");
  }
  for (const std::uint32_t width : options.widths) {
    if (width == 0 || width > 65536) {
      return Status::InvalidArgument("a width must be between 1 and 65536");
    }
  }
  for (const std::uint64_t bytes : options.table_bytes) {
    if (bytes < 65536 || bytes > std::uint64_t{16} << 30) {
      return Status::InvalidArgument("a table must have between 64 KiB and 16 GiB");
    }
  }
  return CheckSimdSetting();
}

Result<AggregateBenchReport> RunAggregation(const AggregateBenchOptions& options,
                                            const JobControl& control) {
  RHIZOME_RETURN_IF_ERROR(CheckOptions(options));
  SetTorchThreads(options.threads);
  const torch::NoGradGuard guard;
  Quiet quiet;
  const c10::WarningUtils::WarningHandlerGuard quiet_guard(&quiet);
  torch::manual_seed(options.seed);
  AggregateBenchReport report;
  report.simd = SimdPathName(CurrentSimdPath());
  AggregateBench bench(options, control);
  for (const std::uint64_t bytes : options.table_bytes) {
    for (const std::string& dtype : options.dtypes) {
      for (const std::uint32_t width : options.widths) {
        RHIZOME_RETURN_IF_ERROR(bench.Run(bytes, width, dtype, report));
      }
    }
  }
  return report;
}

}  // namespace

// For each dtype, width and size of table (RunAggregation): makes a random workload, then
// alternates sequential reads, random reads, Rhizome's kernels and libtorch's operations, and
// reports medians.
Result<AggregateBenchReport> MeasureAggregation(const AggregateBenchOptions& options,
                                                const JobControl& control) {
  return GuardedTorch([&] { return RunAggregation(options, control); });
}

}  // namespace rhizome
