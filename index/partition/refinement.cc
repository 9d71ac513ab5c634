#include "index/partition/refinement.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {

namespace {

// Vertices of higher degree do not move as a whole: hubs are replicated in any case, and moving one
// would move too many edges.
constexpr std::uint64_t kMaxVertexDegree = 128;

// Replicas with more edges are not worth scattering.
constexpr std::uint64_t kMaxReplicaEdges = 64;

// Number of vertex sets in a pass. With enough sets, few vertices move at a time, so that their
// estimated gains are accurate enough.
constexpr std::uint32_t kSteps = 32;
// LevelEdges runs before every kStepsBetweenLevels-th step.
constexpr std::uint32_t kStepsBetweenLevels = 8;
// Changes are sharded by vertex, so that the shards can be applied in parallel.
constexpr std::size_t kShards = 64;
constexpr std::uint64_t kPieceWork = 1 << 15;  // half-edges

// Passes end after kMaxPasses, or once a pass changes the number of replicas by less than kMinGain
// of that number.
constexpr int kMaxPasses = 24;
constexpr double kMinGain = 0.005;
// A pass raises the price of a replica by kPriceStep times the excess of vertices over the goal;
// prices stay within [0, kMaxPrice].
constexpr double kPriceStep = 2;
constexpr double kMaxPrice = 16;
// The cost of an edge that no partition can take.
constexpr double kNoTarget = 1e9;
// A move must lower the cost by more than this, so that rounding does not count as a gain.
constexpr double kEpsilon = 1e-6;

constexpr std::size_t kMaxWords = kMaxPartitions / 64;  // words of the largest replica set

/// A byte for each bit of the index.
constexpr std::array<std::uint64_t, 256> kBytesOfBits = [] {
  std::array<std::uint64_t, 256> bytes{};
  for (std::size_t bits = 0; bits < 256; ++bits)
    for (std::size_t b = 0; b < 8; ++b) bytes[bits] |= std::uint64_t{bits >> b & 1} << (8 * b);
  return bytes;
}();

/// Counts how often each partition occurs in a number of sets, eight partitions at a time: a
/// counter is a byte, so at most 255 sets may be added.
class SetCounter {
 public:
  explicit SetCounter(std::size_t words) : words_(words) {
    std::fill_n(counts_.begin(), 8 * words, 0);
  }

  void Add(const ReplicaSets& sets, std::uint64_t vertex) {
    for (std::size_t w = 0; w < words_; ++w)
      for (std::uint64_t *counts = &counts_[8 * w], set = sets.word(vertex, w); set != 0; set >>= 8)
        *counts++ += kBytesOfBits[set & 0xFF];
  }

  std::uint32_t Count(std::size_t p) const { return counts_[p / 8] >> (p % 8 * 8) & 0xFF; }

 private:
  const std::size_t words_;
  std::array<std::uint64_t, 8 * kMaxWords> counts_;
};
static_assert(kMaxVertexDegree < 256);

}  // namespace

template <typename Index, typename Part>
Refinement<Index, Part>::Refinement(HalfEdges<Index, Part>& halves, ReplicaSets& replicas,
                                    std::uint32_t partitions, const BalanceLimits& limits,
                                    Workers& workers)
    : halves_(halves),
      replicas_(replicas),
      single_(halves.vertex_count(), partitions),
      partitions_(partitions),
      limits_(limits),
      workers_(workers),
      hub_degree_(std::max<std::uint64_t>(64, 4 * std::uint64_t{partitions})),
      hubs_(halves.vertex_count()),
      edges_(partitions),
      vertices_(partitions),
      price_(partitions),
      open_(partitions),
      open_set_(replicas.word_count()),
      room_set_(replicas.word_count()),
      shards_(kShards),
      moving_(halves.vertex_count()) {
  CutIntoPieces();
  std::uint64_t hubs = 0;
  for (std::uint64_t v = 0; v < halves_.vertex_count(); ++v) {
    if (!is_hub(v)) continue;
    hubs_.Set(v);
    ++hubs;
  }
  hubs_.Seal();
  hub_counts_.resize(static_cast<std::size_t>(hubs) * partitions_);
  CountAll();
}

template <typename Index, typename Part>
void Refinement<Index, Part>::CutIntoPieces() {
  const std::uint64_t vertices = halves_.vertex_count();
  for (std::uint64_t v = 0; v < vertices;) {
    Piece piece;
    piece.begin = v;
    // A step visits one vertex of every kSteps, hence the factor.
    const std::uint64_t enough = halves_.begin(v) + kPieceWork * kSteps;
    while (v < vertices && halves_.begin(v) < enough) ++v;
    piece.end = v;
    piece.changes.resize(kShards);
    piece.edges.resize(partitions_);
    piece.quota.resize(partitions_);
    piece.own.resize(partitions_);
    piece.neighbors.resize(partitions_);
    piece.saved.resize(partitions_);
    piece.scatter.resize(partitions_);
    pieces_.push_back(std::move(piece));
  }
  for (Shard& shard : shards_) shard.vertices.resize(partitions_);
}

template <typename Index, typename Part>
void Refinement<Index, Part>::CountAll() {
  workers_.ForEach(pieces_.size(), halves_.size(), [this](std::size_t i) {
    Piece& piece = pieces_[i];
    for (std::uint64_t v = piece.begin; v < piece.end; ++v) {
      CountOwn(piece, static_cast<Index>(v));
      for (std::size_t p = 0; p < partitions_; ++p) {
        if (is_hub(v)) hub_counts(v)[p] = piece.own[p];
        if (piece.own[p] == 1) single_.Add(v, static_cast<PartitionId>(p));
        // The expansion also adds vertices to partitions that got none of their edges.
        if (piece.own[p] != 0)
          replicas_.Add(v, static_cast<PartitionId>(p));
        else
          replicas_.Remove(v, static_cast<PartitionId>(p));
        piece.edges[p] += piece.own[p] != 0;  // counts replicas here
      }
    }
    std::fill(piece.quota.begin(), piece.quota.end(), 0);  // counts edges here
    for (std::uint64_t half = halves_.begin(piece.begin); half < halves_.begin(piece.end); ++half)
      piece.quota[halves_.part(half)] += halves_.twin(half) >= half;
  });
  for (Piece& piece : pieces_) {
    for (std::size_t p = 0; p < partitions_; ++p) {
      vertices_[p] += static_cast<std::uint64_t>(piece.edges[p]);
      replica_count_ += static_cast<std::uint64_t>(piece.edges[p]);
      edges_[p] += piece.quota[p];
    }
    std::fill(piece.edges.begin(), piece.edges.end(), 0);
  }
  RHIZOME_DCHECK(CountsAddUp());
}

// Counts the edges of a vertex in each partition.
template <typename Index, typename Part>
void Refinement<Index, Part>::CountOwn(Piece& piece, Index vertex) {
  std::fill(piece.own.begin(), piece.own.end(), Index{0});
  const std::uint64_t end = halves_.end(vertex);
  for (std::uint64_t half = halves_.begin(vertex); half < end; ++half) {
    ++piece.own[halves_.part(half)];
  }
}

template <typename Index, typename Part>
double Refinement<Index, Part>::vertex_balance() const {
  if (replica_count_ == 0) return 1;
  const std::uint64_t most = *std::max_element(vertices_.begin(), vertices_.end());
  return static_cast<double>(most) * partitions_ / static_cast<double>(replica_count_);
}

template <typename Index, typename Part>
bool Refinement<Index, Part>::balanced() const {
  return vertex_balance() <= limits_.max_vertex_balance &&
         *std::max_element(edges_.begin(), edges_.end()) <= limits_.max_edges;
}

template <typename Index, typename Part>
// Refines the assignment:
// 1. runs passes of moves until one changes the number of replicas by less than kMinGain and the
//    vertices are balanced;
// 2. rebalances if a bound is still exceeded (refinement_rebalance.cc);
// 3. moves interior vertices out of partitions that have too many.
Status Refinement<Index, Part>::Run(const JobControl& control) {
  for (int pass = 0; pass < kMaxPasses; ++pass) {
    const std::uint64_t before = replica_count_;
    RHIZOME_RETURN_IF_ERROR(Pass(control));
    const auto gain = static_cast<double>(before) - static_cast<double>(replica_count_);
    // If the vertices are not balanced by this time and no move was found, further passes do not
    // help.
    if (std::abs(gain) < kMinGain * static_cast<double>(before) && (balanced() || gain == 0)) break;
  }
  RHIZOME_RETURN_IF_ERROR(Rebalance(control));
  return SpreadInterior(control);
}

template <typename Index, typename Part>
Status Refinement<Index, Part>::Pass(const JobControl& control) {
  std::fill(moving_.begin(), moving_.end(), std::uint8_t{0});
  for (std::uint32_t step = 0; step < kSteps; ++step) {
    RHIZOME_RETURN_IF_ERROR(control.Report({"refine", step, kSteps, {}}));
    if (step % kStepsBetweenLevels == 0) LevelEdges();
    UpdatePrices();
    Step(step);
  }
  return Status::Ok();
}

template <typename Index, typename Part>
void Refinement<Index, Part>::UpdatePrices() {
  const double mean = static_cast<double>(replica_count_) / partitions_;
  for (std::uint32_t p = 0; p < partitions_; ++p) {
    const double over = static_cast<double>(vertices_[p]) / mean - limits_.goal_vertex_balance;
    price_[p] = std::clamp(price_[p] + kPriceStep / kSteps * over, 0.0, kMaxPrice);
    open_[p] = static_cast<double>(vertices_[p]) < mean * limits_.goal_vertex_balance;
  }
}

template <typename Index, typename Part>
void Refinement<Index, Part>::FillSets() {
  std::fill(open_set_.begin(), open_set_.end(), 0);
  std::fill(room_set_.begin(), room_set_.end(), 0);
  for (std::size_t p = 0; p < partitions_; ++p) {
    const std::uint64_t bit = std::uint64_t{1} << (p % 64);
    if (open_[p] != 0) open_set_[p / 64] |= bit;
    if (edges_[p] + kMaxReplicaEdges <= limits_.max_edges) room_set_[p / 64] |= bit;
  }
}

template <typename Index, typename Part>
void Refinement<Index, Part>::Step(std::uint32_t step) {
  FillSets();
  workers_.ForEach(pieces_.size(), halves_.size() / kSteps,
                   [&](std::size_t i) { Propose(pieces_[i], step); });
  std::size_t moves = 0;
  for (const Piece& piece : pieces_) moves += piece.moves.size();
  if (moves == 0) return;
  const std::uint64_t work = moves * 64;
  workers_.ForEach(pieces_.size(), work, [this](std::size_t i) { DropConflicts(pieces_[i]); });
  DropBeyondRoom();
  workers_.ForEach(pieces_.size(), work, [this](std::size_t i) { Apply(pieces_[i]); });
  Settle(work);
}

// Updates replicas and counts with the changes that the pieces recorded.
template <typename Index, typename Part>
void Refinement<Index, Part>::Settle(std::uint64_t work) {
  workers_.ForEach(kShards, work, [this](std::size_t s) { Update(s); });
  for (Piece& piece : pieces_) {
    // Every edge that leaves a partition arrives at another.
    RHIZOME_DCHECK(std::accumulate(piece.edges.begin(), piece.edges.end(), std::int64_t{0}) == 0);
    for (std::size_t p = 0; p < partitions_; ++p) {
      edges_[p] += static_cast<std::uint64_t>(std::exchange(piece.edges[p], 0));
    }
  }
  for (Shard& shard : shards_) {
    for (std::size_t p = 0; p < partitions_; ++p) {
      vertices_[p] += static_cast<std::uint64_t>(std::exchange(shard.vertices[p], 0));
    }
    replica_count_ += static_cast<std::uint64_t>(std::exchange(shard.replicas, 0));
  }
  RHIZOME_DCHECK(CountsAddUp());
}

template <typename Index, typename Part>
bool Refinement<Index, Part>::CountsAddUp() const {
  std::uint64_t replicas = 0;
  for (std::size_t p = 0; p < partitions_; ++p) {
    if (edges_[p] > halves_.size() || vertices_[p] > halves_.vertex_count()) return false;
    replicas += vertices_[p];
  }
  return replicas == replica_count_;
}

// Moves edges from partitions above the mean to partitions below it that hold both ends. Each piece
// receives its share of the edges that may leave and arrive in advance.
template <typename Index, typename Part>
void Refinement<Index, Part>::LevelEdges() {
  std::uint64_t total = 0;
  for (const std::uint64_t edges : edges_) total += edges;
  const std::uint64_t mean = (total + partitions_ - 1) / partitions_;
  const std::uint64_t most = *std::max_element(edges_.begin(), edges_.end());
  // If more than half of the slack is left, the moves find enough capacity on their own.
  if (most <= mean + (std::max(limits_.max_edges, mean) - mean) / 2) return;
  for (Piece& piece : pieces_) {
    const double share =
        static_cast<double>(halves_.begin(piece.end) - halves_.begin(piece.begin)) /
        static_cast<double>(halves_.size());
    for (std::size_t p = 0; p < partitions_; ++p) {
      open_[p] = edges_[p] < mean;
      const std::uint64_t apart = open_[p] ? mean - edges_[p] : edges_[p] - mean;
      piece.quota[p] = static_cast<std::uint64_t>(share * static_cast<double>(apart));
    }
  }
  FillSets();
  workers_.ForEach(pieces_.size(), halves_.size(),
                   [this](std::size_t i) { LevelPiece(pieces_[i]); });
  Settle(halves_.size());
}

template <typename Index, typename Part>
void Refinement<Index, Part>::LevelPiece(Piece& piece) {
  for (std::vector<Change>& changes : piece.changes) changes.clear();
  std::uint64_t leaving = 0;
  std::uint64_t arriving = 0;
  for (std::size_t p = 0; p < partitions_; ++p) (open_[p] ? arriving : leaving) += piece.quota[p];
  std::uint64_t left = std::min(leaving, arriving);
  for (std::uint64_t v = piece.begin; v < piece.end && left != 0; ++v) {
    if (!replicas_.HasSeveral(v) || !Overlaps(v, open_set_)) continue;
    const auto vertex = static_cast<Index>(v);
    for (std::uint64_t half = halves_.begin(v); half < halves_.end(v); ++half) {
      const Part from = halves_.part(half);
      const Index other = halves_.other(half);
      // The higher end handles an edge, so that each edge is visited once, by one thread.
      if (other > vertex || open_[from] || piece.quota[from] == 0) continue;
      PartitionId to = kMaxPartitions;
      replicas_.ForEachCommon(vertex, other, [&](PartitionId q) {
        if (!open_[q] || piece.quota[q] == 0) return;
        if (to == kMaxPartitions || piece.quota[q] > piece.quota[to]) to = q;
      });
      if (to == kMaxPartitions) continue;
      RHIZOME_DCHECK(!open_[from] && open_[to]);
      --piece.quota[from];
      --piece.quota[to];
      --left;
      Record(piece, vertex, half, static_cast<Part>(to));
    }
  }
}

// Moves an edge, and records the change for Settle.
template <typename Index, typename Part>
void Refinement<Index, Part>::Record(Piece& piece, Index vertex, std::uint64_t half, Part to) {
  RHIZOME_DCHECK(piece.begin <= vertex && vertex < piece.end);
  const Part from = halves_.part(half);
  if (from == to) return;
  halves_.set_part(half, to);
  --piece.edges[from];
  ++piece.edges[to];
  piece.changes[vertex / 64 % kShards].push_back({vertex, from, to});
  const Index other = halves_.other(half);
  if (other != vertex) piece.changes[other / 64 % kShards].push_back({other, from, to});
}

template <typename Index, typename Part>
void Refinement<Index, Part>::Propose(Piece& piece, std::uint32_t step) {
  piece.moves.clear();
  piece.targets.clear();
  std::uint64_t v = (piece.begin + kSteps - 1) / kSteps * kSteps + step;
  if (v >= piece.begin + kSteps) v -= kSteps;
  for (; v < piece.end; v += kSteps) {
    if (halves_.degree(v) == 0) continue;
    ProposeMove(piece, static_cast<Index>(v));
  }
  for (const Move& move : piece.moves) moving_[move.vertex] = static_cast<std::uint8_t>(step + 1);
}

template <typename Index, typename Part>
void Refinement<Index, Part>::ProposeMove(Piece& piece, Index vertex) {
  const bool whole = halves_.degree(vertex) <= kMaxVertexDegree;
  const bool interior = !replicas_.HasSeveral(vertex);
  if (interior && !whole) return;
  if (is_hub(vertex)) {
    std::copy_n(hub_counts(vertex), partitions_, piece.own.begin());
  } else {
    CountOwn(piece, vertex);
  }
  Move best{vertex, kMixed, 0, 0, 0, 0};
  double best_cost = -kEpsilon;
  if (whole) {
    SetCounter neighbors(replicas_.word_count());
    std::fill(piece.saved.begin(), piece.saved.end(), 0);
    for (std::uint64_t half = halves_.begin(vertex); half < halves_.end(vertex); ++half) {
      const Index other = halves_.other(half);
      if (other == vertex) continue;
      neighbors.Add(replicas_, other);
      const Part p = halves_.part(half);
      piece.saved[p] += single_.Has(other, p);
    }
    for (std::size_t p = 0; p < partitions_; ++p) piece.neighbors[p] = neighbors.Count(p);
    Move move = best;
    const double cost = CostOfWhole(piece, vertex, move);
    if (cost < best_cost) {
      best_cost = cost;
      best = move;
    }
  }
  if (!interior) {
    Move move = best;
    const double cost = CostOfScatter(piece, vertex, move);
    if (cost < best_cost) {
      best_cost = cost;
      best = move;
    }
  }
  if (best_cost == -kEpsilon) return;
  if (best.from != kMixed) {
    best.first = piece.targets.size();
    for (std::uint64_t half = halves_.begin(vertex); half < halves_.end(vertex); ++half) {
      if (halves_.part(half) != best.from) continue;
      Part to = 0;
      BestTarget(vertex, halves_.other(half), best.from, to);
      piece.targets.push_back({half, to});
    }
  }
  piece.moves.push_back(best);
}

// Returns the change of cost if all edges move to the best single partition: the cost of the new
// replica minus the cost of the replicas that disappear. Never positive.
template <typename Index, typename Part>
double Refinement<Index, Part>::CostOfWhole(const Piece& piece, Index vertex, Move& move) const {
  const std::uint64_t degree = halves_.degree(vertex);
  std::uint64_t others = 0;
  for (std::uint64_t half = halves_.begin(vertex); half < halves_.end(vertex); ++half) {
    others += halves_.other(half) != vertex;
  }
  double now = 0;
  for (std::size_t p = 0; p < partitions_; ++p) {
    if (piece.own[p] == 0) continue;
    now += (1 + piece.saved[p]) * Cost(p);
  }
  double best = 0;
  for (std::size_t q = 0; q < partitions_; ++q) {
    const std::uint64_t more_edges = degree - piece.own[q];
    if (piece.neighbors[q] == 0 || more_edges == 0) continue;
    const std::uint64_t new_others = others - piece.neighbors[q];
    const std::uint64_t more = new_others + (piece.own[q] == 0);
    if ((more != 0 && !open_[q]) || edges_[q] + more_edges > limits_.max_edges) continue;
    const double then = (1 + static_cast<double>(new_others) + piece.saved[q]) * Cost(q);
    if (then - now >= best) continue;
    best = then - now;
    move = {vertex,
            kMixed,
            static_cast<Part>(q),
            static_cast<std::uint32_t>(more_edges),
            static_cast<std::uint32_t>(more),
            0};
  }
  return best;
}

// The cost of moving edges of a vertex to its other partitions; the same as of BestTarget.
template <typename Index, typename Part>
struct Refinement<Index, Part>::Targets {
  std::size_t words;
  std::array<std::uint64_t, kMaxWords> room;  // partitions of the vertex with capacity
  // The lowest cost where the other end is not yet, and the lowest in another partition than that.
  PartitionId lowest_at = kMaxPartitions;
  double lowest = kNoTarget;
  double second = kNoTarget;

  double CostTo(const ReplicaSets& replicas, std::uint64_t vertex, std::uint64_t other,
                std::size_t from) const {
    for (std::size_t w = 0; w < words; ++w) {
      std::uint64_t set = room[w];
      if (w == from / 64) set &= ~(std::uint64_t{1} << (from % 64));
      if (other != vertex) set &= replicas.word(other, w);
      if (set != 0) return 0;
    }
    return from == lowest_at ? second : lowest;
  }
};

template <typename Index, typename Part>
typename Refinement<Index, Part>::Targets Refinement<Index, Part>::TargetsOf(Index vertex) const {
  Targets targets;
  targets.words = replicas_.word_count();
  for (std::size_t w = 0; w < targets.words; ++w)
    targets.room[w] = replicas_.word(vertex, w) & room_set_[w];
  replicas_.ForEach(vertex, [&](PartitionId q) {
    if (!open_[q] || (room_set_[q / 64] >> (q % 64) & 1) == 0) return;
    const double cost = Cost(q);
    if (cost < targets.lowest) {
      targets.second = std::exchange(targets.lowest, cost);
      targets.lowest_at = q;
    } else {
      targets.second = std::min(targets.second, cost);
    }
  });
  return targets;
}

// Returns the change of cost for the replica with the lowest cost of removal. Never positive.
template <typename Index, typename Part>
double Refinement<Index, Part>::CostOfScatter(Piece& piece, Index vertex, Move& move) const {
  bool small = false;
  replicas_.ForEach(vertex, [&](PartitionId p) {
    piece.scatter[p] = -Cost(p);
    small = small || piece.own[p] <= kMaxReplicaEdges;
  });
  if (!small) return 0;
  const Targets targets = TargetsOf(vertex);
  for (std::uint64_t half = halves_.begin(vertex); half < halves_.end(vertex); ++half) {
    const Part p = halves_.part(half);
    if (piece.own[p] > kMaxReplicaEdges) continue;
    const Index other = halves_.other(half);
    piece.scatter[p] += targets.CostTo(replicas_, vertex, other, p);
    if (other != vertex && single_.Has(other, p)) piece.scatter[p] -= Cost(p);
  }
  double best = 0;
  replicas_.ForEach(vertex, [&](PartitionId p) {
    if (piece.own[p] > kMaxReplicaEdges || piece.scatter[p] >= best) return;
    best = piece.scatter[p];
    move = {vertex, static_cast<Part>(p), kMixed, static_cast<std::uint32_t>(piece.own[p]), 0, 0};
  });
  return best;
}

// Returns the lowest cost of an edge in a partition of `vertex` other than `from`; a huge cost if
// none has capacity.
template <typename Index, typename Part>
double Refinement<Index, Part>::BestTarget(Index vertex, Index other, std::size_t from,
                                           Part& to) const {
  double best = kNoTarget;
  replicas_.ForEach(vertex, [&](PartitionId q) {
    if (q == from || edges_[q] + kMaxReplicaEdges > limits_.max_edges) return;
    const bool there = other == vertex || replicas_.Has(other, q);
    if (!there && !open_[q]) return;
    const double cost = (there ? 0 : Cost(q));
    if (cost > best || (cost == best && edges_[q] >= edges_[to])) return;
    best = cost;
    to = static_cast<Part>(q);
  });
  return best;
}

template <typename Index, typename Part>
void Refinement<Index, Part>::DropConflicts(Piece& piece) {
  std::erase_if(piece.moves, [this](const Move& move) { return Yields(move); });
}

// Returns whether a neighbour across one of the edges to be moved also moves and has the lower id.
// The vertex then waits for the next pass.
template <typename Index, typename Part>
bool Refinement<Index, Part>::Yields(const Move& move) const {
  const std::uint8_t step = moving_[move.vertex];
  for (std::uint64_t half = halves_.begin(move.vertex); half < halves_.end(move.vertex); ++half) {
    if (move.from != kMixed && halves_.part(half) != move.from) continue;
    const Index other = halves_.other(half);
    if (other < move.vertex && moving_[other] == step) return true;
  }
  return false;
}

template <typename Index, typename Part>
void Refinement<Index, Part>::DropBeyondRoom() {
  std::vector<std::uint64_t> edges = edges_;
  std::vector<std::uint64_t> vertices = vertices_;
  const auto goal = static_cast<std::uint64_t>(static_cast<double>(replica_count_) / partitions_ *
                                               limits_.goal_vertex_balance);
  for (Piece& piece : pieces_) {
    std::erase_if(piece.moves, [&](const Move& move) {
      if (move.from == kMixed) {
        if (edges[move.to] + move.edges > limits_.max_edges) return true;
        if (move.replicas != 0 && vertices[move.to] + move.replicas > goal) return true;
        edges[move.to] += move.edges;
        vertices[move.to] += move.replicas;
        return false;
      }
      for (std::uint32_t i = 0; i < move.edges; ++i) {
        const Part to = piece.targets[move.first + i].to;
        if (edges[to] + move.edges > limits_.max_edges) return true;
      }
      for (std::uint32_t i = 0; i < move.edges; ++i) ++edges[piece.targets[move.first + i].to];
      return false;
    });
  }
  for (std::size_t p = 0; p < partitions_; ++p)
    RHIZOME_DCHECK(edges[p] <= std::max(edges_[p], limits_.max_edges));
}

template <typename Index, typename Part>
void Refinement<Index, Part>::Apply(Piece& piece) {
  for (std::vector<Change>& changes : piece.changes) changes.clear();
  for (const Move& move : piece.moves) ApplyMove(piece, move);
}

template <typename Index, typename Part>
void Refinement<Index, Part>::ApplyMove(Piece& piece, const Move& move) {
  if (move.from == kMixed) {
    for (std::uint64_t half = halves_.begin(move.vertex); half < halves_.end(move.vertex); ++half) {
      Record(piece, move.vertex, half, move.to);
    }
  } else {
    for (std::uint32_t i = 0; i < move.edges; ++i) {
      const Target& target = piece.targets[move.first + i];
      // DropConflicts ensures that no other vertex moved the edge.
      RHIZOME_DCHECK(halves_.part(target.half) == move.from);
      Record(piece, move.vertex, target.half, target.to);
    }
  }
}

template <typename Index, typename Part>
void Refinement<Index, Part>::Update(std::size_t index) {
  Shard& shard = shards_[index];
  for (const Piece& piece : pieces_) {
    const std::vector<Change>& changes = piece.changes[index];
    for (std::size_t i = 0; i < changes.size(); ++i) {
      if (is_hub(changes[i].vertex)) {
        UpdateHub(changes[i], shard);
      } else if (i == 0 || changes[i - 1].vertex != changes[i].vertex) {
        Recount(changes[i].vertex, shard);
      }
    }
  }
}

template <typename Index, typename Part>
void Refinement<Index, Part>::Gain(Index vertex, PartitionId p, Shard& shard) {
  replicas_.Add(vertex, p);
  ++shard.vertices[p];
  ++shard.replicas;
}

template <typename Index, typename Part>
void Refinement<Index, Part>::Lose(Index vertex, PartitionId p, Shard& shard) {
  RHIZOME_DCHECK(replicas_.Has(vertex, p));
  replicas_.Remove(vertex, p);
  --shard.vertices[p];
  --shard.replicas;
}

template <typename Index, typename Part>
void Refinement<Index, Part>::UpdateHub(const Change& change, Shard& shard) {
  Index* counts = hub_counts(change.vertex);
  RHIZOME_DCHECK(change.from != change.to && counts[change.from] != 0);
  const Index left = --counts[change.from];
  if (left == 1) single_.Add(change.vertex, change.from);
  if (left == 0) {
    single_.Remove(change.vertex, change.from);
    Lose(change.vertex, change.from, shard);
  }
  const Index there = ++counts[change.to];
  if (there == 2) single_.Remove(change.vertex, change.to);
  if (there == 1) {
    single_.Add(change.vertex, change.to);
    Gain(change.vertex, change.to, shard);
  }
}

// Recomputes the entries of a vertex in replicas_ and single_. Idempotent.
template <typename Index, typename Part>
void Refinement<Index, Part>::Recount(Index vertex, Shard& shard) {
  RHIZOME_DCHECK(!is_hub(vertex));
  std::array<std::uint64_t, kMaxWords> once{};
  std::array<std::uint64_t, kMaxWords> twice{};
  for (std::uint64_t half = halves_.begin(vertex); half < halves_.end(vertex); ++half) {
    const Part p = halves_.part(half);
    const std::uint64_t bit = std::uint64_t{1} << (p % 64);
    twice[p / 64] |= once[p / 64] & bit;
    once[p / 64] |= bit;
  }
  for (std::size_t w = 0; w < replicas_.word_count(); ++w) {
    const std::uint64_t before = replicas_.word(vertex, w);
    replicas_.set_word(vertex, w, once[w]);
    single_.set_word(vertex, w, once[w] & ~twice[w]);
    for (std::uint64_t came = once[w] & ~before; came != 0; came &= came - 1) {
      ++shard.vertices[w * 64 + static_cast<std::size_t>(std::countr_zero(came))];
      ++shard.replicas;
    }
    for (std::uint64_t went = before & ~once[w]; went != 0; went &= went - 1) {
      --shard.vertices[w * 64 + static_cast<std::size_t>(std::countr_zero(went))];
      --shard.replicas;
    }
  }
}

template class Refinement<std::uint32_t, std::uint8_t>;
template class Refinement<std::uint32_t, std::uint16_t>;
template class Refinement<std::uint64_t, std::uint16_t>;

}  // namespace internal
}  // namespace rhizome
