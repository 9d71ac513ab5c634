#include "rhizome/index/adadne.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "rhizome/index/adadne_expansion.h"
#include "rhizome/index/adadne_refinement.h"
#include "rhizome/index/partition_balance.h"
#include "rhizome/index/workers.h"

namespace rhizome {

namespace {

// The refinement needs some room to move edges in, and a goal inside the bound to end inside it.
constexpr double kExpansionShare = 0.4;
constexpr double kGoalShare = 0.83;

// The printed constants wind up (GLISP III-B; lambda0 0.1, alpha = beta = 1, compounding): among
// those tried, a slow start without compounding and a weak pull towards balance leave the fewest
// replicas, because the refinement balances at less cost than the expansion can.
ExpansionPolicy PolicyOf(const PartitionOptions& options, std::uint64_t edges) {
  if (options.printed_formula) {
    return {.lambda0 = 0.1, .alpha = 1, .beta = 1, .compounding = true, .edge_cap = edges};
  }
  const bool adaptive = options.kind == PartitionerKind::kAdaDne;
  const double room = options.max_edge_balance - 1;
  const double balance = 1 + (adaptive ? kExpansionShare * room : room);
  return {.lambda0 = 0.01,
          .alpha = adaptive ? 0.03 : 0,
          .beta = adaptive ? 0.03 : 0,
          .compounding = false,
          .edge_cap = EdgeCap(edges, options.partitions, balance)};
}

}  // namespace

template <typename Index, typename Part>
Result<std::vector<PartitionId>> PartitionAdaDne(const PartitionInput& input,
                                                 const PartitionOptions& options,
                                                 const JobControl& control) {
  const std::uint64_t edge_count = input.edge_count();
  Workers workers(options.threads);
  RHIZOME_ASSIGN_OR_RETURN(auto edges, (HalfEdges<Index, Part>::Create(input)));
  auto expansion = std::make_unique<NeighborExpansion<Index, Part>>(
      edges, edge_count, options, PolicyOf(options, edge_count), workers);
  RHIZOME_RETURN_IF_ERROR(expansion->Run(control));
  ReplicaSets replicas = std::move(expansion->replicas());
  expansion.reset();
  if (options.kind == PartitionerKind::kAdaDne && !options.printed_formula) {
    const BalanceLimits limits{
        .max_edges = EdgeCap(edge_count, options.partitions, options.max_edge_balance),
        .goal_vertex_balance = 1 + kGoalShare * (options.max_vertex_balance - 1),
        .max_vertex_balance = options.max_vertex_balance};
    Refinement<Index, Part> refinement(edges, replicas, options.partitions, limits, workers);
    RHIZOME_RETURN_IF_ERROR(refinement.Run(control));
  }
  return edges.Collect(input);
}

template Result<std::vector<PartitionId>> PartitionAdaDne<std::uint32_t, std::uint8_t>(
    const PartitionInput&, const PartitionOptions&, const JobControl&);
template Result<std::vector<PartitionId>> PartitionAdaDne<std::uint32_t, std::uint16_t>(
    const PartitionInput&, const PartitionOptions&, const JobControl&);
template Result<std::vector<PartitionId>> PartitionAdaDne<std::uint64_t, std::uint16_t>(
    const PartitionInput&, const PartitionOptions&, const JobControl&);

}  // namespace rhizome
