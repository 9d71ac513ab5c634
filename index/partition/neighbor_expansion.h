#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "rhizome/index/boundary_queue.h"
#include "rhizome/index/half_edges.h"
#include "rhizome/index/partitioner.h"
#include "rhizome/index/replica_sets.h"
#include "rhizome/index/workers.h"
#include "rhizome/storage/check.h"
#include "rhizome/storage/job_control.h"

namespace rhizome {

/// What an expansion knows of a partition when it chooses its speed; see ExpansionPolicy::observe.
struct ExpansionSpeed {
  std::uint64_t vertices = 0;
  std::uint64_t edges = 0;
  std::uint64_t boundary = 0;  ///< vertices
  double lambda = 0;
  std::uint64_t selected = 0;  ///< of the boundary, in this round
};

/// How fast partitions grow: in a round, partition p takes lambda_p of its boundary's vertices.
struct ExpansionPolicy {
  double lambda0 = 0.01;

  /// lambda_p = lambda0 exp(alpha (1 - VS_p) + beta (1 - ES_p)), where VS_p and ES_p are the
  /// partition's vertices and edges over the mean (after GLISP III-B, eq. 5-7). 0: all equally
  /// fast.
  double alpha = 0;
  double beta = 0;

  /// As printed in GLISP: the factor multiplies the lambda_p of the round before; a boundary counts
  /// as what it is; a region goes on at a random vertex. It winds up.
  bool compounding = false;

  std::uint64_t edge_cap = 0;  ///< hard; of a partition

  /// For tests: told each round's speeds before anything is taken. Called from one thread.
  std::function<void(std::span<const ExpansionSpeed>)> observe = {};
};

/// The policy of GLISP's section III-B with the constants of its section IV-B: lambda0 0.1, alpha =
/// beta = 1, and no partition is ever full.
ExpansionPolicy PrintedPolicy(std::uint64_t edges);

/// Neighbour expansion: every partition grows a region from seed vertices, in rounds. In a round
/// it selects the vertices of its boundary that have the fewest unassigned edges, takes those edges
/// (one hop), and then every unassigned edge between a vertex that was just reached and a vertex
/// that shares a partition with it is given away (two hops; to the least loaded shared partition).
///
/// A boundary below 1 / lambda0 vertices counts as that many, unless the speed compounds: nearly
/// tree-like graphs have tiny boundaries for ever. Fractions of a vertex are carried over to the
/// next round. Where no partition could take anything in a round, the emptiest takes a vertex.
///
/// Threads: partitions act together, each phase of a round on what the phase before left. Where two
/// want the same vertex or edge, the one with fewer edges at the start of the round gets it; room
/// below the cap is shared out to the pieces of work before they run. So nothing depends on timing.
/// Shape: O(edges x replicas of their ends).
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
    double lambda = 0;  // of this round
    std::uint64_t boundary_before = 0;
    double credit = 0;    // vertices that it may take, with fractions of earlier rounds
    bool hungry = false;  // may take one in this round
    BoundaryQueue<Index> boundary;
    std::vector<Index> selected;
    std::vector<Index> reached;  // in this round
  };

  // A piece of a phase: some vertices of `work_`, and what came of them.
  struct Piece {
    std::size_t begin = 0;
    std::size_t end = 0;
    PartitionId p = 0;                 // one hop
    std::uint64_t cost = 0;            // unassigned edges of its vertices
    std::uint64_t taken = 0;           // one hop
    std::vector<Index> reached;        // one hop
    std::vector<std::uint64_t> quota;  // two hops: [partitions] edges that it may still give
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

  // No partition is beyond its cap, and the counts of all add up.
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
  void CutIntoPieces(PartitionId p, std::size_t begin, std::size_t end);
  void RefreshBoundaries();

  HalfEdges<Index, Part>& edges_;
  const std::uint64_t edge_count_;
  const ExpansionPolicy policy_;
  const std::uint64_t seed_;
  Workers& workers_;

  ReplicaSets replicas_;
  std::vector<Index> free_;  // [vertices] unassigned edges
  std::vector<Part> claim_;  // [vertices] who takes its edges in this round; later: reached in it
  std::vector<Grower> growers_;
  std::vector<std::uint32_t> rank_;   // [partitions] position by edges, fewest first
  std::vector<PartitionId> by_rank_;  // [partitions]
  std::vector<Index> work_;           // vertices of this phase
  std::vector<Piece> pieces_;
  std::size_t piece_count_ = 0;  // of pieces_, which are used again
  std::uint64_t work_cost_ = 0;

  std::uint64_t assigned_ = 0;
  std::uint64_t refreshed_at_ = 0;
  bool stalled_ = false;  // nothing was taken in the round before
  std::uint64_t replica_count_ = 0;
  std::uint64_t seeds_tried_ = 0;
  std::uint64_t seed_stride_ = 1;  // coprime to the vertex count: visits all in scattered order
};

extern template class NeighborExpansion<std::uint32_t, std::uint8_t>;
extern template class NeighborExpansion<std::uint32_t, std::uint16_t>;
extern template class NeighborExpansion<std::uint64_t, std::uint16_t>;

}  // namespace rhizome
