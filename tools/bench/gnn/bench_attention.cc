#include <torch/torch.h>

#include <cmath>
#include <functional>
#include <random>

#include "cache/job/compute_threads.h"
#include "cache/job/work_clock.h"
#include "cache/kernels/attention_kernels.h"
#include "cache/kernels/simd.h"
#include "gnn/ops/aggregate_ops.h"
#include "gnn/ops/head_dots.h"
#include "gnn/ops/torch_guard.h"
#include "gnn/ops/torch_threads.h"
#include "tools/bench/gnn/bench_kernels.h"
#include "tools/bench/harness/bench_common.h"

namespace rhizome {
namespace {

constexpr std::int64_t kAttentionHeads = 4;
constexpr std::int64_t kAttentionWidth = 64;
constexpr std::int64_t kAttentionColumns = kAttentionHeads * kAttentionWidth;

/// Number of lists that contain a row, about as in the first layer of a minibatch.
constexpr std::uint64_t kEdgesOfSource = 4;

constexpr float kAttentionSlope = 0.2F;

/// Kernels of one kind of attention over one table. All memory is allocated in advance: page faults
/// would dominate the measurement.
class AttentionWork {
 public:
  AttentionWork(AttendScore score, std::uint64_t table_bytes, std::uint32_t degree,
                std::uint64_t seed)
      : score_(score) {
    const auto row_bytes = static_cast<std::uint64_t>(kAttentionColumns) * sizeof(float);
    sources_ = static_cast<std::int64_t>(table_bytes / row_bytes);
    const std::uint64_t edges = static_cast<std::uint64_t>(sources_) * kEdgesOfSource;
    targets_ = static_cast<std::int64_t>(std::max<std::uint64_t>(edges / degree, 1));
    std::mt19937_64 random(seed);
    for (std::int64_t t = 0; t < targets_; ++t) {
      for (std::uint32_t i = 0; i < degree; ++i) {
        csr_.neighbors.push_back(
            static_cast<std::uint32_t>(random() % static_cast<std::uint64_t>(sources_)));
      }
      csr_.offsets.push_back(static_cast<std::uint32_t>(csr_.neighbors.size()));
    }
    turned_ = Turn(csr_.view(), static_cast<std::size_t>(sources_));
    const std::int64_t query = v2() ? kAttentionColumns : kAttentionHeads;
    x_ = torch::randn({sources_, kAttentionColumns});
    source_ = torch::randn({sources_, kAttentionHeads});
    query_ = torch::randn({targets_, query});
    // Scores then have a deviation of about 1, as in an untrained model.
    vectors_ = torch::randn({kAttentionHeads, kAttentionWidth}) / std::sqrt(kAttentionWidth);
    weights_ = torch::rand({edges_count()});
    out_ = torch::zeros({targets_, kAttentionColumns});
    maximum_ = torch::zeros({targets_, kAttentionHeads});
    denominator_ = torch::zeros({targets_, kAttentionHeads});
    gradient_ = torch::randn({targets_, kAttentionColumns});
    stats_ = torch::zeros({targets_, static_cast<std::int64_t>(AttendStatsSize(
                                         score, static_cast<std::size_t>(kAttentionHeads)))});
    x_gradient_ = torch::zeros({sources_, kAttentionColumns});
    source_gradient_ = torch::zeros({sources_, kAttentionHeads});
    query_gradient_ = torch::zeros({targets_, query});
    edge_gradient_ = torch::zeros({edges_count(), kAttentionHeads});
    groups_ =
        torch::zeros({static_cast<std::int64_t>(kVectorGroups), kAttentionHeads, kAttentionWidth});
  }

  std::int64_t edges_count() const { return static_cast<std::int64_t>(csr_.neighbors.size()); }

  /// Sums rows with one weight per edge, into the same output rows.
  void WeightedSum() const {
    const std::span<const float> weights(weights_.data_ptr<float>(), csr_.neighbors.size());
    SumOnThreads(
        MakeSumArgs(csr_.view(), {.target = {}, .source = {}, .edge = weights}, RowsOf(x_), {},
                    out_.data_ptr<float>(), static_cast<std::size_t>(kAttentionColumns)),
        csr_.view());
  }

  void Forward() const {
    AttendArgs args;
    args.score = score_;
    args.x = x_.data_ptr<float>();
    args.x_stride = static_cast<std::size_t>(kAttentionColumns);
    args.heads = static_cast<std::size_t>(kAttentionHeads);
    args.width = static_cast<std::size_t>(kAttentionWidth);
    args.begins = csr_.offsets.data();
    args.ends = csr_.offsets.data() + 1;
    args.index = csr_.neighbors.data();
    args.index_end = static_cast<std::uint32_t>(csr_.neighbors.size());
    args.source = source_.data_ptr<float>();
    args.source_stride = args.heads;
    args.query = query_.data_ptr<float>();
    args.query_stride = static_cast<std::size_t>(query_.size(1));
    args.attention = vectors_.data_ptr<float>();
    args.slope = kAttentionSlope;
    args.finish = true;
    args.maximum = maximum_.data_ptr<float>();
    args.denominator = denominator_.data_ptr<float>();
    args.out = out_.data_ptr<float>();
    args.out_stride = args.x_stride;
    ForTargets(csr_.view(),
               [&](std::size_t begin, std::size_t end) { Kernels().attend(args, begin, end); });
  }

  void Backward() const {
    const AttendStatsArgs stats{.score = score_,
                                .heads = static_cast<std::size_t>(kAttentionHeads),
                                .width = static_cast<std::size_t>(kAttentionWidth),
                                .maximum = maximum_.data_ptr<float>(),
                                .denominator = denominator_.data_ptr<float>(),
                                .query = v2() ? nullptr : query_.data_ptr<float>(),
                                .out = out_.data_ptr<float>(),
                                .gradient = gradient_.data_ptr<float>(),
                                .stats = stats_.data_ptr<float>()};
    ForTargets(csr_.view(), [&](std::size_t begin, std::size_t end) {
      Kernels().attend_stats(stats, begin, end);
    });
    const AttendGradientArgs args = GradientArgs();
    const std::vector<std::size_t> runs = SplitByEdges(turned_.lists.view(), kVectorGroups);
    ComputeFor(kVectorGroups, [&](std::size_t g) {
      Kernels().attend_source_gradient(GroupOf(args, g), runs[g], runs[g + 1]);
    });
    const std::vector<std::size_t> cuts = SplitByEdges(csr_.view(), kVectorGroups);
    ComputeFor(kVectorGroups, [&](std::size_t g) {
      Kernels().attend_query_gradient(GroupOf(args, g), cuts[g], cuts[g + 1]);
    });
  }

 private:
  bool v2() const { return score_ == AttendScore::kGatv2; }

  AttendGradientArgs GradientArgs() const {
    AttendGradientArgs args;
    args.score = score_;
    args.heads = static_cast<std::size_t>(kAttentionHeads);
    args.width = static_cast<std::size_t>(kAttentionWidth);
    args.x = x_.data_ptr<float>();
    args.source = source_.data_ptr<float>();
    args.query = query_.data_ptr<float>();
    args.attention = vectors_.data_ptr<float>();
    args.slope = kAttentionSlope;
    args.stats = stats_.data_ptr<float>();
    args.gradient = gradient_.data_ptr<float>();
    args.begins = csr_.offsets.data();
    args.ends = csr_.offsets.data() + 1;
    args.index = csr_.neighbors.data();
    args.transposed_begins = turned_.lists.offsets.data();
    args.turned_ends = turned_.lists.offsets.data() + 1;
    args.target = turned_.lists.neighbors.data();
    args.edge = turned_.edges.data();
    args.edge_count = static_cast<std::uint32_t>(csr_.neighbors.size());
    args.x_gradient = x_gradient_.data_ptr<float>();
    args.source_gradient = source_gradient_.data_ptr<float>();
    args.edge_gradient = edge_gradient_.data_ptr<float>();
    args.query_gradient = query_gradient_.data_ptr<float>();
    return args;
  }

  /// Each group of rows sums its own part of the gradient of the vectors.
  AttendGradientArgs GroupOf(AttendGradientArgs args, std::size_t group) const {
    args.attention_gradient =
        groups_.data_ptr<float>() + group * static_cast<std::size_t>(kAttentionColumns);
    return args;
  }

  const AttendScore score_;
  std::int64_t sources_ = 0;
  std::int64_t targets_ = 0;
  Csr csr_;
  TransposedCsr turned_;
  torch::Tensor x_, source_, query_, vectors_, weights_;
  torch::Tensor out_, maximum_, denominator_, gradient_, stats_;
  torch::Tensor x_gradient_, source_gradient_, query_gradient_, edge_gradient_, groups_;
};

/// Measures one pass and the weighted sum in turns.
AttentionFigure Measure(const AttentionWork& work, const std::function<void()>& pass,
                        std::uint32_t rounds) {
  std::vector<double> nanoseconds, ratio, cpu_ratio;
  for (std::uint32_t round = 0; round <= rounds; ++round) {
    const WorkClock sum_clock;
    work.WeightedSum();
    const double sum = sum_clock.seconds(), cpu_sum = sum_clock.cpu_seconds();
    work.Forward();  // the backward pass reads its results, which the sum has overwritten
    const WorkClock clock;
    pass();
    if (round == 0) continue;  // the first round warms caches
    nanoseconds.push_back(clock.seconds() * 1e9 / static_cast<double>(work.edges_count()));
    ratio.push_back(clock.seconds() / sum);
    cpu_ratio.push_back(clock.cpu_seconds() / cpu_sum);
  }
  AttentionFigure figure;
  figure.edges = static_cast<std::uint64_t>(work.edges_count());
  figure.nanoseconds_per_edge = Median(nanoseconds);
  figure.ratio_to_weighted_sum = Median(ratio);
  figure.cpu_ratio_to_weighted_sum = Median(cpu_ratio);
  return figure;
}

Result<std::vector<AttentionFigure>> RunAttention(const AggregateBenchOptions& options,
                                                  const JobControl& control) {
  SetTorchThreads(options.threads);
  torch::manual_seed(options.seed);
  std::vector<AttentionFigure> figures;
  for (const std::uint64_t bytes : options.table_bytes) {
    for (const AttendScore score : {AttendScore::kAdditive, AttendScore::kGatv2}) {
      const AttentionWork work(score, bytes, options.degree, options.seed);
      const std::string name = score == AttendScore::kAdditive ? "gat" : "gatv2";
      for (const bool backward : {false, true}) {
        RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
        AttentionFigure figure = Measure(
            work, [&] { backward ? work.Backward() : work.Forward(); }, options.rounds);
        figure.op = name + (backward ? " backward" : " forward");
        figure.heads = static_cast<std::uint32_t>(kAttentionHeads);
        figure.width = static_cast<std::uint32_t>(kAttentionWidth);
        figure.table_bytes = bytes;
        figures.push_back(std::move(figure));
      }
    }
  }
  return figures;
}

}  // namespace

// For GAT and GATv2 on each size of table (RunAttention), measures the forward and the backward
// pass in turns with a weighted sum of the same rows.
Result<std::vector<AttentionFigure>> MeasureAttention(const AggregateBenchOptions& options,
                                                      const JobControl& control) {
  return GuardedTorch([&] { return RunAttention(options, control); });
}

}  // namespace rhizome
