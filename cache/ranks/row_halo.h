#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cache/layout/pass_lists.h"
#include "cache/pool/row_ranks.h"
#include "rhizome/graph.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace internal {

/// Returns the lists of all rows in a direction: target t is row t, and local row numbers are row
/// numbers. Memory: 4 bytes per edge and 40 per row. Errors: as DrawPassLists.
Result<PassLists> AllLists(const GraphSnapshot& graph, Direction direction,
                           const JobControl& control);

/// Returns the halo of a rank: the rows of other ranks that are neighbours of its own rows, by
/// descending degree and then in row order (V_p^h of MassiveGNN, section 3.1; DistDGL stores the
/// halo of one hop).
std::vector<Row> HaloOf(const PassLists& lists, const RowRanks& ranks);

/// Returns, by row, the probability that a minibatch requests it, assuming that vertices are found
/// independently of each other: the vertex-inclusion probability (VIP) of SALIENT++ (Kaler et al.,
/// "Communication-efficient graph neural networks with probabilistic neighborhood expansion
/// analysis and caching", MLSys 2023, section 3). A minibatch contains each of `seeds` with
/// probability `seed_chance`. Hop h draws fanouts[h] neighbours of each vertex that hop h-1 found
/// (kAllNeighbors: all), so a vertex with probability p and d neighbours passes min(1, fanouts[h] /
/// d) * p to each of them. Exact if the events on different paths are independent. Time O(edges)
/// per hop; memory: 24 bytes per row.
std::vector<double> InclusionChances(const PassLists& lists, std::span<const Row> seeds,
                                     double seed_chance, std::span<const std::int64_t> fanouts);

/// Returns the rows of other ranks that a minibatch may request, by descending probability and then
/// in row order. `chances`: by row.
std::vector<Row> RankByChance(std::span<const double> chances, const RowRanks& ranks);

}  // namespace internal
}  // namespace rhizome
