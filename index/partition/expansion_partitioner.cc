#include "index/partition/expansion_partitioner.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "index/base/workers.h"
#include "index/partition/neighbor_expansion.h"
#include "index/partition/owner_chooser.h"
#include "index/partition/partition_balance.h"
#include "index/partition/refinement.h"
#include "index/partition/streaming_partitioner.h"

namespace rhizome {
inline namespace internal {

namespace {

// Division of the slack between perfect balance and the bound (max_edge_balance - 1). The expansion
// uses only a part of it, so that the refinement can still move edges; the refinement aims below
// the bound, so that its result keeps the bound.
constexpr double kExpansionShare = 0.4;
constexpr double kGoalShare = 0.83;

ExpansionPolicy PolicyOf(const PartitionOptions& options, std::uint64_t edges) {
  if (options.kind == PartitionerKind::kAdaDne) return PrintedPolicy(edges);
  // A slow start left the fewest replicas of all constants tried, because the refinement balances
  // at a lower cost in replicas than the expansion. The weak pull towards balance changes where
  // edges go, but not the number of replicas: with 0 the replication factor remains within the
  // variation between seeds (measured by DISABLED_TheAdaptiveFactorMakesNoDifference).
  const bool refined = options.kind == PartitionerKind::kRefined;
  const double room = options.max_edge_balance - 1;
  const double balance = 1 + (refined ? kExpansionShare * room : room);
  return {.lambda0 = 0.01,
          .alpha = refined ? 0.03 : 0,
          .beta = refined ? 0.03 : 0,
          .edge_cap = EdgeCap(edges, options.partitions, balance)};
}

// The edges of each vertex in each partition, as the View of an OwnerChooser. It visits partitions
// in the same order as ChooseOwners, so that both choose the same owners among equals.
template <typename Index, typename Part>
class CountedHalves {
 public:
  CountedHalves(const HalfEdges<Index, Part>& halves, const ReplicaSets& replicas,
                std::uint32_t partitions)
      : halves_(halves), replicas_(replicas), counts_(partitions) {}

  template <typename Visit>
  void ForEachPartition(std::uint64_t vertex, Visit&& visit) const {
    if (!replicas_.HasSeveral(vertex) || Count(vertex) >= counts_.size())
      return replicas_.ForEach(vertex, visit);
    // A short list: in the order of its edges.
    for (std::uint64_t half = halves_.begin(vertex); half < halves_.end(vertex); ++half) {
      const Part p = halves_.part(half);
      if (std::exchange(counts_[p], Index{0}) != 0) visit(static_cast<PartitionId>(p));
    }
  }

  PartitionId Majority(std::uint64_t vertex) const {
    Count(vertex);
    return ClearMajority<Index>([&](auto&& visit) {
      replicas_.ForEach(vertex, [&](PartitionId p) { visit(p, counts_[p]); });
    });
  }

 private:
  // Fills counts_, and returns their sum. A self-loop counts at both of its ends.
  std::uint64_t Count(std::uint64_t vertex) const {
    std::fill(counts_.begin(), counts_.end(), Index{0});
    std::uint64_t sum = 0;
    for (std::uint64_t half = halves_.begin(vertex); half < halves_.end(vertex); ++half) {
      const Index edges = halves_.other(half) == vertex ? 2 : 1;
      counts_[halves_.part(half)] += edges;
      sum += edges;
    }
    return sum;
  }

  const HalfEdges<Index, Part>& halves_;
  const ReplicaSets& replicas_;
  mutable std::vector<Index> counts_;  // of one vertex, [partitions]
};

}  // namespace

template <typename Index, typename Part>
Result<DividedEdges> PartitionByExpansion(const PartitionInput& input,
                                          const PartitionOptions& options,
                                          const JobControl& control) {
  DividedEdges result;
  const std::uint64_t edge_count = input.edge_count();
  Workers workers(options.threads);
  RHIZOME_ASSIGN_OR_RETURN(auto edges, (HalfEdges<Index, Part>::Create(input, workers)));
  auto expansion = std::make_unique<NeighborExpansion<Index, Part>>(
      edges, edge_count, options, PolicyOf(options, edge_count), workers);
  RHIZOME_RETURN_IF_ERROR(expansion->Run(control));
  ReplicaSets replicas = std::move(expansion->replicas());
  expansion.reset();
  if (options.kind == PartitionerKind::kRefined) {
    const BalanceLimits limits{
        .max_edges = EdgeCap(edge_count, options.partitions, options.max_edge_balance),
        .goal_vertex_balance = 1 + kGoalShare * (options.max_vertex_balance - 1),
        .max_vertex_balance = options.max_vertex_balance};
    Refinement<Index, Part> refinement(edges, replicas, options.partitions, limits, workers);
    RHIZOME_RETURN_IF_ERROR(refinement.Run(control));
    result.metrics = MetricsOf(replicas, refinement.edges(), refinement.vertices());
    result.owners = OwnerChooser(CountedHalves(edges, replicas, options.partitions),
                                 input.vertex_count(), options.partitions)
                        .Choose();
  }
  RHIZOME_ASSIGN_OR_RETURN(result.partition_of_edge, edges.Collect(input));
  return result;
}

template Result<DividedEdges> PartitionByExpansion<std::uint32_t, std::uint8_t>(
    const PartitionInput&, const PartitionOptions&, const JobControl&);
template Result<DividedEdges> PartitionByExpansion<std::uint32_t, std::uint16_t>(
    const PartitionInput&, const PartitionOptions&, const JobControl&);
template Result<DividedEdges> PartitionByExpansion<std::uint64_t, std::uint16_t>(
    const PartitionInput&, const PartitionOptions&, const JobControl&);

}  // namespace internal
}  // namespace rhizome
