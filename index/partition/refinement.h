#pragma once

#include <cstdint>
#include <vector>

#include "index/base/workers.h"
#include "index/partition/half_edges.h"
#include "index/partition/replica_sets.h"
#include "index/topology/rank_bitmap.h"
#include "rhizome/job_control.h"

namespace rhizome {
inline namespace internal {

/// The bounds that a refinement must keep, and its goal.
struct BalanceLimits {
  std::uint64_t max_edges = 0;     ///< hard cap on a partition's edges; no move exceeds it
  double goal_vertex_balance = 0;  ///< a replica's price rises above this balance
  double max_vertex_balance = 0;   ///< holds in the end, if any sequence of moves reaches it
};

/// Improves an assignment by local moves that remove replicas. A replica in partition p costs 1 +
/// price_p. The price rises while p has more than its share of vertices, so that the same moves
/// lower both the replication factor and the imbalance (a vertex whose neighbours are hubs present
/// everywhere changes partition at no cost). A move is one of two kinds, and is made if it lowers
/// the cost: a vertex with all its edges moves to one partition; or the edges of one replica move,
/// each to the best other partition of the vertex. Between steps, edges move from fuller partitions
/// to emptier ones that hold both of their ends, which costs nothing and frees capacity for further
/// moves.
///
/// Threads: a pass visits the vertices in kSteps disjoint sets. All vertices of a set search for
/// their best move in parallel, in the state after the previous set. If two neighbours both want to
/// move, one waits for the next pass. Moves that exceed a partition's capacity are dropped in a
/// fixed order; the others are applied, and then the counts are updated, each vertex by one thread.
/// Therefore the result does not depend on timing.
/// Work: O(half-edges) a pass, at most kMaxPasses passes.
///
/// If the passes do not end within the bounds (one partition's edges are sparse, another's dense,
/// and none has capacity), regions are exchanged for edges of dense partitions, at any cost in
/// replicas. If even that fails, a share of the edges is reassigned at random, which evens out all
/// loads. The result exceeds the bounds only if there are too few edges for random assignment to
/// even them out. It is then the best result found.
///
/// Finally, vertices of few edges leave partitions with too many interior vertices (which no other
/// partition could own) for partitions that hold all of their neighbours, at no cost in replicas.
///
/// Invariants between steps: replicas_ and single_ (the partitions in which a vertex has exactly
/// one edge), edges_ and vertices_ agree with the partitions of the half-edges.
template <typename Index, typename Part>
class Refinement {
 public:
  /// Refines in place. Every edge must have a partition, and `replicas` must match.
  Refinement(HalfEdges<Index, Part>& halves, ReplicaSets& replicas, std::uint32_t partitions,
             const BalanceLimits& limits, Workers& workers);

  /// Runs passes until one gains little and the vertices are balanced, then rebalances.
  /// Errors: kInterrupted.
  Status Run(const JobControl& control);

  /// Returns whether both bounds hold.
  bool balanced() const;

  /// Return the edges and vertices of each partition.
  const std::vector<std::uint64_t>& edges() const { return edges_; }
  const std::vector<std::uint64_t>& vertices() const { return vertices_; }

 private:
  static constexpr Part kMixed = HalfEdges<Index, Part>::kFree;

  // A vertex's best move. It moves all edges, or those in partition `from`, to `to`. If `to` is
  // kMixed, each edge has its own target; the targets are entries of the piece's `targets`,
  // beginning at `first`.
  struct Move {
    Index vertex;
    Part from;  // kMixed: all edges move
    Part to;
    std::uint32_t edges;     // edges that `to` gains
    std::uint32_t replicas;  // replicas that `to` gains
    std::size_t first;
  };
  struct Target {
    std::uint64_t half;
    Part to;
  };
  // Change at one end of a moved edge: one edge less in `from` and one more in `to`.
  struct Change {
    Index vertex;
    Part from;
    Part to;
  };
  struct Piece {
    std::size_t begin = 0;  // vertices
    std::size_t end = 0;
    std::vector<Move> moves;
    std::vector<Target> targets;
    std::vector<std::vector<Change>> changes;  // [kShards] by vertex
    std::vector<std::int64_t> edges;           // [partitions] net change
    std::vector<std::uint64_t> quota;          // [partitions] edges that may still leave or arrive

    // Scratch of one vertex, [partitions].
    std::vector<Index> own;                // its edges
    std::vector<std::uint32_t> neighbors;  // edges by partition of their other end
    std::vector<std::uint32_t> saved;      // replicas of neighbours that disappear with the move
    std::vector<double> scatter;           // cost of scattering this replica's edges
  };
  struct Shard {
    std::vector<std::int64_t> vertices;  // [partitions] net change
    std::int64_t replicas = 0;
  };

  void CutIntoPieces();
  void CountAll();
  // Returns whether the vertices of all partitions sum to the replicas and no count wrapped. For
  // assertions.
  bool CountsAddUp() const;

  // refinement_rebalance.cc: brings the result within the bounds if prices alone do not. Runs on
  // one thread.
  Status Rebalance(const JobControl& control);
  Status Exchange(const JobControl& control);
  Status SpreadInterior(const JobControl& control);
  PartitionId InteriorTarget(Index vertex, PartitionId from,
                             const std::vector<std::uint64_t>& interior, std::uint64_t most) const;
  bool StaysBalanced(PartitionId to, std::uint64_t fewer) const;
  void ExchangeBetween(PartitionId from, PartitionId to);
  bool MakeRoom(PartitionId p, std::uint64_t edges, PartitionId preferred,
                std::vector<Index>& heavy);
  std::vector<Index> VerticesByCount(PartitionId p);
  Index Count(Index vertex, PartitionId p);
  void MoveEdge(Index vertex, std::uint64_t half, PartitionId to);
  bool HasRoom(PartitionId p, std::uint64_t more) const {
    return edges_[p] + more <= limits_.max_edges;
  }
  void Blend(std::uint64_t share, std::uint64_t of);
  void Recount();

  Status Pass(const JobControl& control);
  void Step(std::uint32_t step);
  void FillSets();
  bool Overlaps(std::uint64_t vertex, const std::vector<std::uint64_t>& set) const {
    for (std::size_t w = 0; w < set.size(); ++w)
      if ((replicas_.word(vertex, w) & set[w]) != 0) return true;
    return false;
  }
  double vertex_balance() const;
  void UpdatePrices();
  double Cost(std::size_t p) const { return 1 + price_[p]; }

  void Propose(Piece& piece, std::uint32_t step);
  void ProposeMove(Piece& piece, Index vertex);
  void CountOwn(Piece& piece, Index vertex);
  double CostOfWhole(const Piece& piece, Index vertex, Move& move) const;
  double CostOfScatter(Piece& piece, Index vertex, Move& move) const;
  struct Targets;
  Targets TargetsOf(Index vertex) const;
  double BestTarget(Index vertex, Index other, std::size_t from, Part& to) const;
  bool Yields(const Move& move) const;
  void DropConflicts(Piece& piece);
  void DropBeyondRoom();
  void LevelEdges();
  void LevelPiece(Piece& piece);
  void Record(Piece& piece, Index vertex, std::uint64_t half, Part to);
  void Settle(std::uint64_t work);
  void Apply(Piece& piece);
  void ApplyMove(Piece& piece, const Move& move);
  void Update(std::size_t shard);
  void UpdateHub(const Change& change, Shard& shard);
  void Recount(Index vertex, Shard& shard);
  void Gain(Index vertex, PartitionId p, Shard& shard);
  void Lose(Index vertex, PartitionId p, Shard& shard);
  bool is_hub(std::uint64_t vertex) const { return halves_.degree(vertex) > hub_degree_; }
  Index* hub_counts(std::uint64_t vertex) {
    return hub_counts_.data() + hubs_.Rank(vertex) * partitions_;
  }

  HalfEdges<Index, Part>& halves_;
  ReplicaSets& replicas_;
  ReplicaSets single_;
  const std::uint32_t partitions_;
  const BalanceLimits limits_;
  Workers& workers_;

  // Vertices of high degree store their counts; for others the edges are counted again.
  const std::uint64_t hub_degree_;
  RankBitmap hubs_;
  std::vector<Index> hub_counts_;  // [hubs x partitions]

  std::vector<std::uint64_t> edges_;     // [partitions]
  std::vector<std::uint64_t> vertices_;  // [partitions]
  std::uint64_t replica_count_ = 0;
  std::vector<double> price_;       // [partitions] price of a replica, added to 1
  std::vector<std::uint8_t> open_;  // [partitions] may gain vertices in this step
  // The partitions that are open, and those with capacity for a replica's edges (FillSets).
  std::vector<std::uint64_t> open_set_;
  std::vector<std::uint64_t> room_set_;

  std::vector<Piece> pieces_;
  std::vector<Shard> shards_;
  // [vertices] 1 + the step of this pass in which it wants to move
  std::vector<std::uint8_t> moving_;
};

extern template class Refinement<std::uint32_t, std::uint8_t>;
extern template class Refinement<std::uint32_t, std::uint16_t>;
extern template class Refinement<std::uint64_t, std::uint16_t>;

}  // namespace internal
}  // namespace rhizome
