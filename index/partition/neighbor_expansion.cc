#include "index/partition/neighbor_expansion.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "storage/base/check.h"
#include "storage/base/mix.h"

namespace rhizome {
inline namespace internal {

namespace {

// Minimum of the speed factor. A partition far ahead of the others still grows, because the others
// may be full or have no edges left to take.
constexpr double kSlowest = 0.02;

// Within these bounds, exp(alpha + beta) brings any speed back to 1 within some hundred rounds.
constexpr double kMinLambda = 1e-100;
constexpr double kMaxLambda = 1e100;

constexpr std::uint64_t kRoundsBetweenReports = 64;

// Unassigned edges of a piece of work: large enough to be worth a task, small enough to balance the
// threads.
constexpr std::uint64_t kPieceCost = 2048;

// Boundaries are sorted again after one in this many edges was assigned.
constexpr std::uint64_t kRefreshShare = 64;

// NextSeed compares this many seeds, and the one with the fewest edges starts a region. Regions
// that start at the periphery of the graph reach hubs late and share them less.
constexpr int kSeedsCompared = 8;
constexpr int kSeedsLookedAt = 64;  // maximum of candidates that NextSeed examines

}  // namespace

ExpansionPolicy PrintedPolicy(std::uint64_t edges) {
  return {.lambda0 = 0.1, .alpha = 1, .beta = 1, .compounding = true, .edge_cap = edges};
}

template <typename Index, typename Part>
NeighborExpansion<Index, Part>::NeighborExpansion(HalfEdges<Index, Part>& edges,
                                                  std::uint64_t edge_count,
                                                  const PartitionOptions& options,
                                                  const ExpansionPolicy& policy, Workers& workers)
    : edges_(edges),
      edge_count_(edge_count),
      policy_(policy),
      seed_(Mix64(options.seed)),
      workers_(workers),
      replicas_(edges.vertex_count(), options.partitions),
      free_(edges.vertex_count()),
      claim_(edges.vertex_count(), kFree),
      growers_(options.partitions),
      rank_(options.partitions),
      by_rank_(options.partitions) {
  for (std::size_t v = 0; v < free_.size(); ++v) free_[v] = static_cast<Index>(edges.degree(v));
  for (Grower& grower : growers_) grower.lambda = policy.lambda0;
  const std::uint64_t vertices = edges.vertex_count();
  if (vertices > 1) {
    seed_stride_ = 1 + ScaleTo(Mix64(seed_ + 1), vertices - 1);
    while (std::gcd(seed_stride_, vertices) != 1) ++seed_stride_;
  }
}

template <typename Index, typename Part>
// Assigns all edges in rounds. A round
// 1. ranks the partitions by their edges;
// 2. selects vertices of each partition's boundary (Select), in parallel;
// 3. decides which partition takes which vertex, and picks seeds for partitions without a boundary
//    (Claim);
// 4. takes the unassigned edges of these vertices (OneHop) and merges the results (Merge);
// 5. assigns edges between vertices that already share a partition (TwoHops);
// 6. sorts the boundaries again when enough edges were assigned (RefreshBoundaries).
Status NeighborExpansion<Index, Part>::Run(const JobControl& control) {
  for (std::uint64_t round = 0; assigned_ < edge_count_; ++round) {
    if (round % kRoundsBetweenReports == 0) {
      RHIZOME_RETURN_IF_ERROR(control.Report({"partition", assigned_, edge_count_, {}}));
    }
    RankByLoad();
    const std::uint64_t before = assigned_;
    std::uint64_t boundary = 0;
    for (const Grower& grower : growers_) boundary += grower.boundary.size();
    workers_.ForEach(growers_.size(), boundary / 8,
                     [this](std::size_t p) { Select(static_cast<PartitionId>(p)); });
    if (policy_.observe) Observe();
    Claim();
    OneHop();
    Merge();
    TwoHops();
    RefreshBoundaries();
    RHIZOME_DCHECK(CountsAddUp());
    stalled_ = assigned_ == before;
  }
  return Status::Ok();
}

template <typename Index, typename Part>
bool NeighborExpansion<Index, Part>::CountsAddUp() const {
  std::uint64_t edges = 0;
  std::uint64_t vertices = 0;
  for (const Grower& grower : growers_) {
    if (grower.edges > policy_.edge_cap) return false;
    edges += grower.edges;
    vertices += grower.vertices;
  }
  return edges == assigned_ && vertices == replica_count_ && assigned_ <= edge_count_;
}

template <typename Index, typename Part>
void NeighborExpansion<Index, Part>::Observe() const {
  std::vector<ExpansionSpeed> speeds;
  for (const Grower& grower : growers_)
    speeds.push_back({.vertices = grower.vertices,
                      .edges = grower.edges,
                      .boundary = grower.boundary_before,
                      .lambda = grower.lambda,
                      .selected = grower.selected.size()});
  policy_.observe(speeds);
}

template <typename Index, typename Part>
double NeighborExpansion<Index, Part>::Speed(const Grower& grower) const {
  const auto partitions = static_cast<double>(growers_.size());
  const double replicas = static_cast<double>(std::max<std::uint64_t>(replica_count_, 1));
  const double edges = static_cast<double>(std::max<std::uint64_t>(assigned_, 1));
  const double vertex_score = partitions * static_cast<double>(grower.vertices) / replicas;
  const double edge_score = partitions * static_cast<double>(grower.edges) / edges;
  const double factor =
      std::exp(policy_.alpha * (1 - vertex_score) + policy_.beta * (1 - edge_score));
  if (!policy_.compounding) return policy_.lambda0 * std::max(kSlowest, factor);
  // In the first round there is no load to adapt to. The formula is unbounded, but a double is not.
  if (assigned_ == 0) return grower.lambda;
  return std::clamp(grower.lambda * factor, kMinLambda, kMaxLambda);
}

template <typename Index, typename Part>
void NeighborExpansion<Index, Part>::Select(PartitionId p) {
  Grower& grower = growers_[p];
  grower.selected.clear();
  grower.reached.clear();
  grower.hungry = false;
  if (full(p)) return;
  grower.lambda = Speed(grower);
  grower.boundary_before = grower.boundary.size();
  const auto boundary = static_cast<double>(grower.boundary_before);
  if (policy_.compounding) {
    // A round can select at most the whole boundary, regardless of lambda.
    grower.credit = std::min(grower.credit + grower.lambda * boundary, std::max(boundary, 1.0));
    const bool starts = grower.boundary_before == 0;
    if (starts || (stalled_ && p == by_rank_[0])) grower.credit = std::max(grower.credit, 1.0);
  } else {
    grower.credit += grower.lambda * std::max(1 / policy_.lambda0, boundary);
  }
  RHIZOME_DCHECK(grower.credit >= 0);
  const auto count = static_cast<std::uint64_t>(grower.credit);
  grower.credit -= static_cast<double>(count);
  grower.hungry = count != 0;
  Index vertex = 0;
  while (grower.selected.size() < count &&
         grower.boundary.Pop(vertex, [this](Index v) { return free_[v]; })) {
    grower.selected.push_back(vertex);
  }
}

template <typename Index, typename Part>
void NeighborExpansion<Index, Part>::RankByLoad() {
  std::iota(by_rank_.begin(), by_rank_.end(), PartitionId{0});
  std::stable_sort(by_rank_.begin(), by_rank_.end(), [this](PartitionId a, PartitionId b) {
    return growers_[a].edges < growers_[b].edges;
  });
  for (std::size_t i = 0; i < by_rank_.size(); ++i) {
    rank_[by_rank_[i]] = static_cast<std::uint32_t>(i);
  }
}

// Assigns each selected vertex to the partition with the fewest edges among those that selected it.
// That partition takes all edges of the vertex, so the others lose nothing by dropping it.
template <typename Index, typename Part>
void NeighborExpansion<Index, Part>::Claim() {
  work_.clear();
  piece_count_ = 0;
  work_cost_ = 0;
  for (const PartitionId p : by_rank_) {
    if (full(p)) continue;
    Grower& grower = growers_[p];
    const std::size_t begin = work_.size();
    for (const Index vertex : grower.selected) {
      RHIZOME_DCHECK(free_[vertex] != 0);
      if (claim_[vertex] != kFree) continue;
      claim_[vertex] = static_cast<Part>(p);
      work_.push_back(vertex);
    }
    Index seed = 0;
    if (grower.hungry && grower.selected.empty() && NextSeed(seed)) {
      claim_[seed] = static_cast<Part>(p);
      work_.push_back(seed);
      if (replicas_.Add(seed, p)) {
        ++grower.vertices;
        ++replica_count_;
        grower.reached.push_back(seed);
      }
    }
    CutIntoPieces(p, begin, work_.size());
  }
}

template <typename Index, typename Part>
bool NeighborExpansion<Index, Part>::NextSeed(Index& seed) {
  __extension__ using Wide = unsigned __int128;
  const std::uint64_t vertices = free_.size();
  int found = 0;
  int looked = 0;
  for (std::uint64_t tried = seeds_tried_; tried < vertices && looked < kSeedsLookedAt; ++tried) {
    const Wide scattered = static_cast<Wide>(tried) * seed_stride_ + seed_;
    const auto vertex = static_cast<Index>(static_cast<std::uint64_t>(scattered % vertices));
    if (free_[vertex] == 0) {
      // A vertex without unassigned edges never gets any back, so later scans can skip a prefix of
      // such vertices.
      if (tried == seeds_tried_) {
        ++seeds_tried_;
      } else {
        ++looked;
      }
      continue;
    }
    ++looked;
    if (claim_[vertex] != kFree) continue;
    if (found++ == 0 || free_[vertex] < free_[seed]) seed = vertex;
    if (policy_.compounding || found == kSeedsCompared) break;
  }
  return found != 0;
}

// Cuts the work into pieces of about kPieceCost unassigned edges. OneHop and TwoHops divide the
// remaining capacity of each partition among the pieces, so that no partition exceeds its cap.
template <typename Index, typename Part>
void NeighborExpansion<Index, Part>::CutIntoPieces(PartitionId p, std::size_t begin,
                                                   std::size_t end) {
  while (begin < end) {
    if (piece_count_ == pieces_.size()) pieces_.emplace_back();
    Piece& piece = pieces_[piece_count_++];
    piece.begin = begin;
    piece.p = p;
    piece.cost = 0;
    piece.taken = 0;
    piece.reached.clear();
    while (begin < end && piece.cost < kPieceCost) piece.cost += free_[work_[begin++]];
    piece.end = begin;
    work_cost_ += piece.cost;
  }
}

template <typename Index, typename Part>
void NeighborExpansion<Index, Part>::OneHop() {
  std::vector<std::uint64_t> room(growers_.size());
  for (std::size_t p = 0; p < room.size(); ++p) {
    room[p] = full(p) ? 0 : policy_.edge_cap - growers_[p].edges;
  }
  for (std::size_t i = 0; i < piece_count_; ++i) {
    Piece& piece = pieces_[i];
    piece.quota.assign(1, std::min(room[piece.p], piece.cost));
    room[piece.p] -= piece.quota[0];
  }
  workers_.ForEach(piece_count_, work_cost_, [this](std::size_t i) { TakeEdges(pieces_[i]); });
  for (const Index vertex : work_) {
    RHIZOME_DCHECK(claim_[vertex] != kFree);  // each vertex occurs once
    claim_[vertex] = kFree;
  }
}

template <typename Index, typename Part>
void NeighborExpansion<Index, Part>::TakeEdges(Piece& piece) {
  for (std::size_t i = piece.begin; i < piece.end; ++i) TakeEdgesOf(piece, work_[i]);
}

// Exactly one end may take an edge between two claimed vertices: the end whose partition has fewer
// edges, or the lower vertex if both belong to one partition.
template <typename Index, typename Part>
void NeighborExpansion<Index, Part>::TakeEdgesOf(Piece& piece, Index vertex) {
  const PartitionId p = piece.p;
  for (std::uint64_t half = edges_.begin(vertex); half < edges_.end(vertex); ++half) {
    if (edges_.part(half) != kFree) continue;
    const Index other = edges_.other(half);
    const Part claim = claim_[other];
    if (claim != kFree && other != vertex) {
      if (claim == p ? other < vertex : rank_[claim] < rank_[p]) continue;
    }
    if (piece.taken == piece.quota[0]) break;
    edges_.set_half(half, static_cast<Part>(p));
    ++piece.taken;
    piece.taken_halves.push_back(static_cast<Index>(half));
    if (other == vertex) continue;
    if (!replicas_.HasShared(other, p) && replicas_.AddShared(other, p)) {
      piece.reached.push_back(other);
    }
  }
  SettleEdgesOf(piece, vertex);
}

// Completes the edges that a vertex has taken: counts them at both ends, and sets the partition of
// the twins. All counts come before all twins, because an atomic operation waits for the stores
// before it, and a twin is rarely in the cache.
template <typename Index, typename Part>
void NeighborExpansion<Index, Part>::SettleEdgesOf(Piece& piece, Index vertex) {
  if (piece.taken_halves.empty()) return;
  LoseFree(vertex, static_cast<Index>(piece.taken_halves.size()));
  for (const Index half : piece.taken_halves)
    if (const Index other = edges_.other(half); other != vertex) LoseFree(other, 1);
  for (const Index half : piece.taken_halves) edges_.set_half(edges_.twin(half), edges_.part(half));
  piece.taken_halves.clear();
}

template <typename Index, typename Part>
void NeighborExpansion<Index, Part>::Merge() {
  for (std::size_t i = 0; i < piece_count_; ++i) {
    Piece& piece = pieces_[i];
    Grower& grower = growers_[piece.p];
    RHIZOME_DCHECK(piece.taken <= piece.quota[0]);
    grower.edges += piece.taken;
    assigned_ += piece.taken;
    grower.vertices += piece.reached.size();
    replica_count_ += piece.reached.size();
  }
  workers_.ForEach(growers_.size(), work_cost_, [this](std::size_t p) {
    Grower& grower = growers_[p];
    std::size_t pieces = 0;
    for (std::size_t i = 0; i < piece_count_; ++i) {
      if (pieces_[i].p != p) continue;
      ++pieces;
      grower.reached.insert(grower.reached.end(), pieces_[i].reached.begin(),
                            pieces_[i].reached.end());
    }
    // The order in which pieces reach vertices depends on timing, so the merged list is sorted.
    if (pieces > 1) std::sort(grower.reached.begin(), grower.reached.end());
    for (const Index vertex : grower.reached) {
      if (free_[vertex] != 0) grower.boundary.Push(vertex, free_[vertex]);
    }
  });
}

template <typename Index, typename Part>
void NeighborExpansion<Index, Part>::TwoHops() {
  work_.clear();
  piece_count_ = 0;
  work_cost_ = 0;
  for (const PartitionId p : by_rank_) {
    for (const Index vertex : growers_[p].reached) {
      if (free_[vertex] == 0 || claim_[vertex] != kFree) continue;
      claim_[vertex] = 0;  // marks the vertex as reached
      work_.push_back(vertex);
    }
  }
  CutIntoPieces(0, 0, work_.size());
  RankByLoad();
  for (std::size_t i = 0; i < piece_count_; ++i) {
    Piece& piece = pieces_[i];
    piece.given.assign(growers_.size(), 0);
    piece.quota.assign(growers_.size(), 0);
    for (std::size_t p = 0; p < growers_.size(); ++p) {
      if (full(p)) continue;
      const std::uint64_t room = policy_.edge_cap - growers_[p].edges;
      piece.quota[p] = work_cost_ <= room
                           ? piece.cost
                           : static_cast<std::uint64_t>(static_cast<double>(room) *
                                                        static_cast<double>(piece.cost) /
                                                        static_cast<double>(work_cost_));
    }
  }
  workers_.ForEach(piece_count_, work_cost_, [this](std::size_t i) { GiveEdges(pieces_[i]); });
  for (const Index vertex : work_) {
    RHIZOME_DCHECK(claim_[vertex] != kFree);
    claim_[vertex] = kFree;
  }
  for (std::size_t i = 0; i < piece_count_; ++i) {
    for (std::size_t p = 0; p < growers_.size(); ++p) {
      RHIZOME_DCHECK(pieces_[i].given[p] <= pieces_[i].quota[p]);
      growers_[p].edges += pieces_[i].given[p];
      assigned_ += pieces_[i].given[p];
    }
  }
}

template <typename Index, typename Part>
void NeighborExpansion<Index, Part>::GiveEdges(Piece& piece) {
  for (std::size_t i = piece.begin; i < piece.end; ++i) GiveEdgesOf(piece, work_[i]);
}

template <typename Index, typename Part>
void NeighborExpansion<Index, Part>::GiveEdgesOf(Piece& piece, Index vertex) {
  for (std::uint64_t half = edges_.begin(vertex); half < edges_.end(vertex); ++half) {
    if (edges_.part(half) != kFree) continue;
    const Index other = edges_.other(half);
    if (!replicas_.HaveCommon(vertex, other)) continue;
    // If both ends were reached, only the lower one assigns their edge.
    if (other < vertex && claim_[other] != kFree) continue;
    const PartitionId p = BestShared(piece, vertex, other);
    if (p == kMaxPartitions) continue;
    RHIZOME_DCHECK(piece.given[p] < piece.quota[p]);
    edges_.set_half(half, static_cast<Part>(p));
    ++piece.given[p];
    piece.taken_halves.push_back(static_cast<Index>(half));
  }
  SettleEdgesOf(piece, vertex);
}

// Returns the least loaded partition that holds both vertices and is below its cap and the piece's
// quota; kMaxPartitions if there is none.
template <typename Index, typename Part>
PartitionId NeighborExpansion<Index, Part>::BestShared(const Piece& piece, std::uint64_t a,
                                                       std::uint64_t b) const {
  PartitionId best = kMaxPartitions;
  replicas_.ForEachCommon(a, b, [&](PartitionId p) {
    if (piece.given[p] >= piece.quota[p]) return;
    if (best == kMaxPartitions || rank_[p] < rank_[best]) best = p;
  });
  return best;
}

template <typename Index, typename Part>
void NeighborExpansion<Index, Part>::RefreshBoundaries() {
  // If the speed compounds, the boundary's size affects it, so the boundary must hold only vertices
  // with unassigned edges: it is refreshed in every round.
  const std::uint64_t enough = policy_.compounding ? 0 : edge_count_ / kRefreshShare + 1;
  if (assigned_ - refreshed_at_ < enough) return;
  refreshed_at_ = assigned_;
  std::uint64_t boundary = 0;
  for (const Grower& grower : growers_) boundary += grower.boundary.size();
  workers_.ForEach(growers_.size(), boundary, [this](std::size_t p) {
    if (full(p)) {
      growers_[p].boundary = {};
    } else {
      growers_[p].boundary.Refresh([this](Index v) { return free_[v]; });
    }
  });
}

template class NeighborExpansion<std::uint32_t, std::uint8_t>;
template class NeighborExpansion<std::uint32_t, std::uint16_t>;
template class NeighborExpansion<std::uint64_t, std::uint16_t>;

}  // namespace internal
}  // namespace rhizome
