#include "gnn/ops/group_rows.h"

#include <algorithm>
#include <numeric>

#include "cache/job/compute_threads.h"
#include "cache/kernels/simd.h"

namespace rhizome {
inline namespace internal {

GroupReducer::GroupReducer(const LayerRows& x, const LayerGraph& graph)
    : graph_(graph), rows_(RowsOf(x.table)) {
  CsrView lists = graph.lists.csr();
  if (!x.place.empty()) {
    placed_.resize(lists.neighbors.size());
    constexpr std::size_t kPiece = 1 << 15;
    ComputeFor((placed_.size() + kPiece - 1) / kPiece, [&](std::size_t piece) {
      const std::size_t end = std::min(placed_.size(), (piece + 1) * kPiece);
      for (std::size_t e = piece * kPiece; e < end; ++e) placed_[e] = x.place[lists.neighbors[e]];
    });
    lists.neighbors = placed_;
  }
  args_ = MakeSumArgs(lists,
                      {.target = graph.target_scale, .source = {}, .edge = graph.lists.weights()},
                      rows_, {}, nullptr, rows_.dim);
}

void GroupReducer::Reduce(std::size_t first, std::size_t count, float* out) const {
  SumArgs args = args_;
  args.begins += first;
  args.ends += first;
  args.target_scale += first;
  args.out = out;
  Kernels().sum(args, 0, count);
}

std::vector<std::uint32_t> TargetOfGroups(const GroupedLists& groups) {
  std::vector<std::uint32_t> targets;
  targets.reserve(groups.groups());
  for (std::size_t t = 0; t < groups.targets(); ++t)
    targets.insert(targets.end(), groups.group_begin[t + 1] - groups.group_begin[t],
                   static_cast<std::uint32_t>(t));
  return targets;
}

std::span<const std::uint32_t> Consecutive(std::size_t count) {
  thread_local std::vector<std::uint32_t> numbers;
  if (numbers.size() < count) {
    numbers.resize(count);
    std::iota(numbers.begin(), numbers.end(), 0U);
  }
  return numbers;
}

torch::Tensor ReduceGroups(const LayerRows& x, const LayerGraph& graph) {
  if (x.place.empty()) return AggregateSum(x.table, graph.lists, graph.factors());
  const LayerRows rows{x.table.contiguous(), x.place};
  const GroupReducer reducer(rows, graph);
  const auto groups = static_cast<std::int64_t>(graph.groups.groups());
  torch::Tensor out = at::empty({groups, x.table.size(1)});
  ForTargets(graph.lists.csr(), [&](std::size_t begin, std::size_t end) {
    reducer.Reduce(begin, end - begin, out.data_ptr<float>() + begin * reducer.columns());
  });
  return out;
}

torch::Tensor ReduceGroupsGradient(const LayerGraph& graph, const torch::Tensor& gradient,
                                   const torch::Tensor& own) {
  const CsrView turned = graph.lists.turned().lists.view();
  const auto columns = static_cast<std::size_t>(gradient.size(1));
  AggregateStart start;
  if (own.defined()) {
    start = {.rows = own.data_ptr<float>(),
             .stride = columns,
             .count = static_cast<std::size_t>(own.size(0)),
             .scale = {}};
  }
  torch::Tensor out = at::empty({graph.sources(), gradient.size(1)});
  SumOnThreads(
      MakeSumArgs(
          turned,
          {.target = {}, .source = graph.target_scale, .edge = graph.lists.turned_weights()},
          RowsView::Floats(gradient.data_ptr<float>(), columns), start, out.data_ptr<float>(),
          columns),
      turned);
  return out;
}

}  // namespace internal
}  // namespace rhizome
