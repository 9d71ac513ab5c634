#pragma once

#include <cstdint>
#include <vector>

#include "rhizome/index/half_edges.h"
#include "rhizome/index/rank_bitmap.h"
#include "rhizome/index/replica_sets.h"
#include "rhizome/index/workers.h"
#include "rhizome/storage/job_control.h"

namespace rhizome {

/// What a refinement must keep and aims at.
struct BalanceLimits {
  std::uint64_t max_edges = 0;     ///< of a partition; no move takes it further
  double goal_vertex_balance = 0;  ///< where the price of a replica starts to rise
  double max_vertex_balance = 0;   ///< inside it in the end, if any sequence of moves gets there
};

/// Improves an assignment by local moves that remove replicas. A replica in partition p costs
/// 1 + price_p; the price rises while p has more than its share of vertices, so that the same moves
/// lower the replication factor and the imbalance (a vertex whose neighbours are hubs present
/// everywhere changes partition for nothing). Two kinds of moves, taken when they lower the cost: a
/// vertex with all its edges to one partition; the edges of one replica, each to whichever other
/// partition of the vertex suits it best. Between them edges leave the fuller partitions for
/// emptier ones that have both of their ends, which costs nothing and makes room for further moves.
///
/// Threads: a pass visits the vertices in kSteps disjoint sets. All vertices of a set look for
/// their best move at once, in the state that the set before left; of two neighbours that both
/// want to move, one waits for the next pass; moves beyond a partition's room are dropped in a
/// fixed order; the rest is applied, and counts are then brought up to date, each vertex by one
/// thread. So nothing depends on timing. Work: O(half-edges) a pass, of which there are at most
/// kMaxPasses.
///
/// Where that does not end inside the bounds (one partition's edges are sparse, another's dense,
/// and none has room for more), regions are exchanged against edges of dense ones, whatever
/// replicas that costs; and where even that does not, a share of the edges is dealt out at random,
/// which evens out everything. Only where edges are so few that chance cannot even them out does
/// the result lie outside: it is then the best of those found.
///
/// At last vertices of few edges leave partitions with too many that are in no other (nobody else
/// could own those) for partitions that have all of their neighbours, which costs no replica.
///
/// Invariants between steps: replicas_ and single_ (the partitions in which a vertex has exactly
/// one edge), edges_ and vertices_ describe the half-edges' partitions.
template <typename Index, typename Part>
class Refinement {
 public:
  /// Refines in place. Every edge has a partition; `replicas` agrees.
  Refinement(HalfEdges<Index, Part>& halves, ReplicaSets& replicas, std::uint32_t partitions,
             const BalanceLimits& limits, Workers& workers);

  /// Passes until one gains little and the vertices are balanced. Errors: kInterrupted.
  Status Run(const JobControl& control);

  /// True if both bounds hold.
  bool balanced() const;

 private:
  static constexpr Part kMixed = HalfEdges<Index, Part>::kFree;

  // A vertex's best move: all its edges, or those of one partition, to `to`, or (kMixed) each to
  // its own target; those stand in the piece's `targets` from `first` on.
  struct Move {
    Index vertex;
    Part from;  // kMixed: all
    Part to;
    std::uint32_t edges;     // that come to `to`
    std::uint32_t replicas;  // that come to `to`
    std::size_t first;
  };
  struct Target {
    std::uint64_t half;
    Part to;
  };
  // One edge moved away: an end of it has one edge less in `from` and one more in `to`.
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
    std::vector<std::int64_t> edges;           // [partitions] how many came and went
    std::vector<std::uint64_t> quota;          // [partitions] how many may go, or come

    // Scratch of one vertex, [partitions].
    std::vector<Index> own;                // its edges
    std::vector<std::uint32_t> neighbors;  // edges whose other end is there
    std::vector<std::uint32_t> saved;      // replicas of others that go along
    std::vector<double> scatter;           // cost of sending this replica's edges off
  };
  struct Shard {
    std::vector<std::int64_t> vertices;  // [partitions] how many came and went
    std::int64_t replicas = 0;
  };

  void CutIntoPieces();
  void CountAll();
  // The vertices of all partitions are the replicas, and no count wrapped.
  bool CountsAddUp() const;

  // refinement_rebalance.cc: what ends inside the bounds where prices do not get there. One thread.
  Status Rebalance(const JobControl& control);
  Status Exchange(const JobControl& control);
  Status SpreadInterior(const JobControl& control);
  PartitionId InteriorTarget(Index vertex, PartitionId from,
                             const std::vector<std::uint64_t>& interior, std::uint64_t most) const;
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
  double vertex_balance() const;
  void UpdatePrices();
  double Cost(std::size_t p) const { return 1 + price_[p]; }

  void Propose(Piece& piece, std::uint32_t step);
  void ProposeMove(Piece& piece, Index vertex);
  void CountOwn(Piece& piece, Index vertex);
  double CostOfWhole(const Piece& piece, Index vertex, Move& move) const;
  double CostOfScatter(Piece& piece, Index vertex, Move& move) const;
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

  // Vertices of high degree keep their counts; others count their edges again.
  const std::uint64_t hub_degree_;
  RankBitmap hubs_;
  std::vector<Index> hub_counts_;  // [hubs x partitions]

  std::vector<std::uint64_t> edges_;     // [partitions]
  std::vector<std::uint64_t> vertices_;  // [partitions]
  std::uint64_t replica_count_ = 0;
  std::vector<double> price_;       // [partitions] of a replica, beyond 1
  std::vector<std::uint8_t> open_;  // [partitions] may take more vertices in this step

  std::vector<Piece> pieces_;
  std::vector<Shard> shards_;
  std::vector<std::uint8_t> moving_;  // [vertices] 1 + the step of this pass in which it would
};

extern template class Refinement<std::uint32_t, std::uint8_t>;
extern template class Refinement<std::uint32_t, std::uint16_t>;
extern template class Refinement<std::uint64_t, std::uint16_t>;

}  // namespace rhizome
