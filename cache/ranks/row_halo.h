#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rhizome/cache/pass_lists.h"
#include "rhizome/cache/row_ranks.h"
#include "rhizome/index/graph.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/types.h"

namespace rhizome::inline internal {

/// Returns the lists that a sampling walks, of all rows: target t is row t, and so are the local
/// rows that it reads. Memory: 4 bytes an edge and 40 a row. Errors: those of DrawPassLists.
Result<PassLists> AllLists(const GraphSnapshot& graph, Direction direction,
                           const JobControl& control);

/// Returns the halo of a rank: the rows of other ranks that its own rows have as neighbours, those
/// with the highest degree first, then in their order (V_p^h of MassiveGNN, section 3.1; DistDGL
/// keeps the halo of one hop).
std::vector<Row> HaloOf(const PassLists& lists, const RowRanks& ranks);

/// Returns, by row, the chance that a minibatch asks for it, taking each vertex to be found
/// independently of the others: vertex-inclusion probability (VIP) of SALIENT++ (Kaler et al.,
/// "Communication-efficient graph neural networks with probabilistic neighborhood expansion
/// analysis and caching", MLSys 2023, section 3). A minibatch has each of `seeds` with the chance
/// `seed_chance`; hop h takes fanouts[h] neighbours of each vertex that hop h-1 found
/// (kAllNeighbors: all), so a vertex with chance p and d neighbours passes min(1, fanouts[h] / d) *
/// p on to each. Exact where what is found on different ways is independent. O(edges) a hop;
/// memory: 24 bytes a row.
std::vector<double> InclusionChances(const PassLists& lists, std::span<const Row> seeds,
                                     double seed_chance, std::span<const std::int64_t> fanouts);

/// Returns the rows of other ranks that a minibatch may ask for, the likeliest first, then in their
/// order. `chances`: by row.
std::vector<Row> RankByChance(std::span<const double> chances, const RowRanks& ranks);

}  // namespace rhizome::inline internal
