#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "index/base/workers.h"
#include "index/partition/boundary_queue.h"
#include "index/partition/half_edges.h"
#include "index/partition/replica_sets.h"
#include "rhizome/graph_types.h"
#include "rhizome/job_control.h"
#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {

/// State of one partition when the expansion sets its speed; see ExpansionPolicy::observe.
struct ExpansionSpeed {
  std::uint64_t vertices = 0;
  std::uint64_t edges = 0;
  std::uint64_t boundary = 0;  ///< vertices
  double lambda = 0;
  std::uint64_t selected = 0;  ///< boundary vertices selected in this round
};

/// Controls how fast partitions grow. In a round, partition p selects a share lambda_p of its
/// boundary.
struct ExpansionPolicy {
  double lambda0 = 0.01;

  /// lambda_p = lambda0 exp(alpha (1 - VS_p) + beta (1 - ES_p)), where VS_p and ES_p are the
  /// partition's vertices and edges over the mean (after GLISP section III-B, eq. 5-7). With alpha
  /// = beta = 0 all partitions grow at the same speed.
  double alpha = 0;
  double beta = 0;

  /// Computes the speeds as printed in GLISP: the factor multiplies the lambda_p of the previous
  /// round. In addition, small boundaries get no minimum, and a region without a boundary continues
  /// at a random vertex. The speeds wind up like an integrator without bounds.
  bool compounding = false;

  std::uint64_t edge_cap = 0;  ///< hard cap on the edges of a partition

  /// A hook for tests. It receives each round's speeds before any edge is taken, and is called from
  /// one thread.
  std::function<void(std::span<const ExpansionSpeed>)> observe = {};
};

/// Returns the policy of GLISP section III-B with the constants of its section IV-B: lambda0 = 0.1,
/// the default of DistributedNE, and alpha = beta = 1. It sets no cap.
ExpansionPolicy PrintedPolicy(std::uint64_t edges);

/// Neighbour expansion: every partition grows a region from seed vertices, in rounds. In a round it
/// selects the vertices of its boundary with the fewest unassigned edges and takes those edges (one
/// hop). Then every unassigned edge between a newly reached vertex and a vertex that shares a
/// partition with it goes to the least loaded partition that both share (two hops).
///
/// A boundary below 1 / lambda0 vertices counts as that many, unless the speed compounds: nearly
/// tree-like graphs never grow a larger boundary. Fractions of a vertex carry over to the next
/// round. If the speed compounds and a round assigned no edge, the partition with the fewest edges
/// selects a vertex in the next round.
///
/// Threads: the partitions work in parallel, and each phase of a round uses the result of the phase
/// before. If two partitions want the same vertex or edge, the one with fewer edges at the start of
/// the round gets it. The remaining capacity below the cap is divided among the pieces of work
/// before they run. Therefore the result does not depend on timing.
/// Work: O(edges x replicas of their ends).
template <typename Index, typename Part>
class NeighborExpansion {
 public:
  NeighborExpansion(HalfEdges<Index, Part>& edges, std::uint64_t edge_count,
                    const PartitionOptions& options, const ExpansionPolicy& policy,
                    Workers& workers);

  /// Assigns every edge. Errors: kInterrupted.
  Status Run(const JobControl& control);

  ReplicaSets& replicas() { return replicas_; }

 private:
  static constexpr Part kFree = HalfEdges<Index, Part>::kFree;

  struct Grower {
    std::uint64_t edges = 0;
    std::uint64_t vertices = 0;
    double lambda = 0;  // speed in this round
    std::uint64_t boundary_before = 0;
    double credit = 0;    // number of vertices it may select, with the fractions of earlier rounds
    bool hungry = false;  // has capacity and a credit of at least one vertex in this round
    BoundaryQueue<Index> boundary;
    std::vector<Index> selected;
    std::vector<Index> reached;  // in this round
  };

  // A piece of a phase: some vertices of `work_`, and the result for them.
  struct Piece {
    std::size_t begin = 0;
    std::size_t end = 0;
    PartitionId p = 0;                 // one hop
    std::uint64_t cost = 0;            // unassigned edges of its vertices
    std::uint64_t taken = 0;           // one hop
    std::vector<Index> reached;        // one hop
    std::vector<Index> taken_halves;   // half-edges of one vertex whose twins have no partition yet
    std::vector<std::uint64_t> quota;  // two hops: [partitions] edges that it may still assign
    std::vector<std::uint64_t> given;  // two hops: [partitions]
  };

  bool full(std::size_t p) const { return growers_[p].edges >= policy_.edge_cap; }
  Index free(std::uint64_t vertex) {
    return std::atomic_ref(free_[vertex]).load(std::memory_order_relaxed);
  }
  void LoseFree(std::uint64_t vertex, Index count) {
    const Index before = std::atomic_ref(free_[vertex]).fetch_sub(count, std::memory_order_relaxed);
    RHIZOME_DCHECK(before >= count);
  }

  // Returns whether no partition exceeds its cap and all counts add up. For assertions.
  bool CountsAddUp() const;
  double Speed(const Grower& grower) const;
  void Observe() const;
  void Select(PartitionId p);
  void RankByLoad();
  void Claim();
  bool NextSeed(Index& vertex);
  void OneHop();
  void TakeEdges(Piece& piece);
  void TakeEdgesOf(Piece& piece, Index vertex);
  void Merge();
  void TwoHops();
  void GiveEdges(Piece& piece);
  void GiveEdgesOf(Piece& piece, Index vertex);
  PartitionId BestShared(const Piece& piece, std::uint64_t a, std::uint64_t b) const;
  void SettleEdgesOf(Piece& piece, Index vertex);
  void CutIntoPieces(PartitionId p, std::size_t begin, std::size_t end);
  void RefreshBoundaries();

  HalfEdges<Index, Part>& edges_;
  const std::uint64_t edge_count_;
  const ExpansionPolicy policy_;
  const std::uint64_t seed_;
  Workers& workers_;

  ReplicaSets replicas_;
  std::vector<Index> free_;  // [vertices] unassigned edges
  std::vector<Part> claim_;  // [vertices] the partition that takes its edges; in TwoHops: reached
  std::vector<Grower> growers_;
  std::vector<std::uint32_t> rank_;   // [partitions] position by edges, fewest first
  std::vector<PartitionId> by_rank_;  // [partitions]
  std::vector<Index> work_;           // vertices of the current phase
  std::vector<Piece> pieces_;
  // Number of entries of pieces_ in use; the others keep their memory for later phases.
  std::size_t piece_count_ = 0;
  std::uint64_t work_cost_ = 0;

  std::uint64_t assigned_ = 0;
  std::uint64_t refreshed_at_ = 0;
  bool stalled_ = false;  // no edge was assigned in the previous round
  std::uint64_t replica_count_ = 0;
  std::uint64_t seeds_tried_ = 0;
  std::uint64_t seed_stride_ =
      1;  // coprime to the vertex count: scatters, and reaches all vertices
};

extern template class NeighborExpansion<std::uint32_t, std::uint8_t>;
extern template class NeighborExpansion<std::uint32_t, std::uint16_t>;
extern template class NeighborExpansion<std::uint64_t, std::uint16_t>;

}  // namespace internal
}  // namespace rhizome
