// Second part of Refinement: Rebalance exchanges regions between partitions (Exchange) and, if that
// is not enough, reassigns edges at random (Blend); SpreadInterior moves interior vertices.

#include <algorithm>
#include <utility>
#include <vector>

#include "index/partition/boundary_queue.h"
#include "index/partition/refinement.h"
#include "storage/base/check.h"
#include "storage/base/mix.h"

namespace rhizome {
inline namespace internal {

namespace {

// Exchange stops after this many exchanges for each partition.
constexpr std::uint32_t kExchangesForEachPartition = 64;

// Bound on the interior vertices of a partition, as a multiple of its even share of all vertices.
constexpr double kMaxInteriorShare = 1.05;
// SpreadInterior does not move vertices of higher degree.
constexpr std::uint64_t kMaxInteriorDegree = 8;
// A move may make neighbours movable; a later round then moves them.
constexpr int kInteriorRounds = 4;

}  // namespace

// Exchanges regions first. If a bound is still exceeded, it reassigns 1/8, 2/8, 4/8 and finally all
// of the edges at random, each time from the same state, until the bounds hold. If they never do,
// the state with the best vertex balance is kept.
template <typename Index, typename Part>
Status Refinement<Index, Part>::Rebalance(const JobControl& control) {
  if (!balanced()) RHIZOME_RETURN_IF_ERROR(Exchange(control));
  if (balanced()) return Status::Ok();
  const auto copy = [this] {
    std::vector<Part> parts(halves_.size());
    for (std::size_t half = 0; half < parts.size(); ++half) parts[half] = halves_.part(half);
    return parts;
  };
  const auto restore = [this](const std::vector<Part>& parts) {
    for (std::size_t half = 0; half < parts.size(); ++half) halves_.set_part(half, parts[half]);
    Recount();
  };
  const std::vector<Part> before = copy();
  std::vector<Part> best = before;
  double best_balance = vertex_balance();
  for (const std::uint64_t share : {1, 2, 4, 8}) {
    RHIZOME_RETURN_IF_ERROR(control.Report({"rebalance", share, 8, {}}));
    restore(before);
    Blend(share, 8);
    if (balanced()) return Status::Ok();
    if (vertex_balance() >= best_balance) continue;
    best_balance = vertex_balance();
    best = copy();
  }
  restore(best);
  return Status::Ok();
}

// Reassigns `share` of every `of` edges at random, to partitions with fewer edges than the mean.
template <typename Index, typename Part>
void Refinement<Index, Part>::Blend(std::uint64_t share, std::uint64_t of) {
  std::uint64_t total = 0;
  for (const std::uint64_t edges : edges_) total += edges;
  std::vector<std::uint64_t> left = edges_;
  const auto dealt = [&](std::uint64_t half) {
    return halves_.twin(half) >= half && ScaleTo(Mix64(half), of) < share;
  };
  for (std::uint64_t half = 0; half < halves_.size(); ++half) {
    if (!dealt(half)) continue;
    RHIZOME_DCHECK(left[halves_.part(half)] != 0);
    --left[halves_.part(half)];
  }
  const std::uint64_t mean = (total + partitions_ - 1) / partitions_;
  for (std::uint64_t half = 0; half < halves_.size(); ++half) {
    if (!dealt(half)) continue;
    std::uint64_t p = ScaleTo(Mix64(~half), partitions_);
    while (left[p] >= mean) p = p + 1 == partitions_ ? 0 : p + 1;
    ++left[p];
    halves_.set_part(half, static_cast<Part>(p));
  }
  Recount();
}

template <typename Index, typename Part>
void Refinement<Index, Part>::Recount() {
  for (std::uint64_t v = 0; v < halves_.vertex_count(); ++v) {
    for (std::size_t w = 0; w < replicas_.word_count(); ++w) {
      replicas_.set_word(v, w, 0);
      single_.set_word(v, w, 0);
    }
  }
  std::fill(edges_.begin(), edges_.end(), 0);
  std::fill(vertices_.begin(), vertices_.end(), 0);
  replica_count_ = 0;
  CountAll();
}

// Exchanges between the partitions with the most and the fewest vertices, until the bound holds or
// a number of exchanges equal to the number of partitions brought no improvement.
template <typename Index, typename Part>
Status Refinement<Index, Part>::Exchange(const JobControl& control) {
  double best = vertex_balance();
  std::uint32_t failures = 0;
  const std::uint32_t max_exchanges = kExchangesForEachPartition * partitions_;
  for (std::uint32_t i = 0; i < max_exchanges; ++i) {
    if (best <= limits_.max_vertex_balance || failures > partitions_) break;
    RHIZOME_RETURN_IF_ERROR(control.Report({"rebalance", i, max_exchanges, {}}));
    const auto most = std::max_element(vertices_.begin(), vertices_.end());
    const auto fewest = std::min_element(vertices_.begin(), vertices_.end());
    ExchangeBetween(static_cast<PartitionId>(most - vertices_.begin()),
                    static_cast<PartitionId>(fewest - vertices_.begin()));
    const double now = vertex_balance();
    failures = now < best ? 0 : failures + 1;
    best = std::min(best, now);
  }
  return Status::Ok();
}

// Moves a region of `from`, grown from its vertices with the fewest edges, to `to`. If `to` has no
// capacity for more edges, edges of its vertices with the most edges leave it first: their moves
// cost the fewest replicas an edge.
template <typename Index, typename Part>
void Refinement<Index, Part>::ExchangeBetween(PartitionId from, PartitionId to) {
  RHIZOME_DCHECK(vertices_[from] >= vertices_[to]);
  const std::uint64_t moves = std::max<std::uint64_t>(1, (vertices_[from] - vertices_[to]) / 4);
  std::vector<Index> heavy = VerticesByCount(to);
  BoundaryQueue<Index> light;
  for (const Index vertex : VerticesByCount(from)) light.Push(vertex, Count(vertex, from));

  Index vertex = 0;
  for (std::uint64_t moved = 0; moved < moves; ++moved) {
    if (!light.Pop(vertex, [&](Index v) { return Count(v, from); })) return;
    if (!MakeRoom(to, Count(vertex, from), from, heavy)) return;
    for (std::uint64_t half = halves_.begin(vertex); half < halves_.end(vertex); ++half) {
      if (halves_.part(half) != from) continue;
      // MakeRoom may have moved edges of this vertex to `from`.
      if (!HasRoom(to, 1)) return;
      MoveEdge(vertex, half, to);
      const Index other = halves_.other(half);
      const Index left = Count(other, from);
      if (left != 0) light.Push(other, left);
    }
  }
}

// Moves edges out of `p` until `edges` more fit. `heavy` holds the vertices whose edges move, the
// next one last. Returns false if no other partition has capacity.
template <typename Index, typename Part>
bool Refinement<Index, Part>::MakeRoom(PartitionId p, std::uint64_t edges, PartitionId preferred,
                                       std::vector<Index>& heavy) {
  while (!HasRoom(p, edges)) {
    if (heavy.empty()) return false;
    const Index vertex = heavy.back();
    for (std::uint64_t half = halves_.begin(vertex); half < halves_.end(vertex); ++half) {
      if (HasRoom(p, edges)) break;
      if (halves_.part(half) != p) continue;
      PartitionId target = preferred;
      if (!HasRoom(target, 1)) {
        const auto least = std::min_element(edges_.begin(), edges_.end());
        target = static_cast<PartitionId>(least - edges_.begin());
      }
      if (target == p || !HasRoom(target, 1)) return false;
      MoveEdge(vertex, half, target);
    }
    if (Count(vertex, p) == 0) heavy.pop_back();
  }
  return true;
}

// Returns the vertices of a partition, sorted by their edges in it, ascending.
template <typename Index, typename Part>
std::vector<Index> Refinement<Index, Part>::VerticesByCount(PartitionId p) {
  std::vector<std::pair<Index, Index>> counted;
  for (std::size_t v = 0; v < halves_.vertex_count(); ++v) {
    const auto vertex = static_cast<Index>(v);
    if (replicas_.Has(v, p)) counted.emplace_back(Count(vertex, p), vertex);
  }
  std::sort(counted.begin(), counted.end());
  std::vector<Index> vertices;
  vertices.reserve(counted.size());
  for (const auto& [count, vertex] : counted) vertices.push_back(vertex);
  return vertices;
}

template <typename Index, typename Part>
Index Refinement<Index, Part>::Count(Index vertex, PartitionId p) {
  if (is_hub(vertex)) return hub_counts(vertex)[p];
  Index count = 0;
  for (std::uint64_t half = halves_.begin(vertex); half < halves_.end(vertex); ++half) {
    count += halves_.part(half) == p;
  }
  return count;
}

template <typename Index, typename Part>
void Refinement<Index, Part>::MoveEdge(Index vertex, std::uint64_t half, PartitionId to) {
  const Part from = halves_.part(half);
  RHIZOME_DCHECK(from != to && HasRoom(to, 1));
  halves_.set_part(half, static_cast<Part>(to));
  --edges_[from];
  ++edges_[to];
  Shard& shard = shards_[0];
  const auto update = [&](Index end) {
    if (is_hub(end)) {
      UpdateHub({end, from, static_cast<Part>(to)}, shard);
    } else {
      Recount(end, shard);
    }
  };
  update(vertex);
  if (const Index other = halves_.other(half); other != vertex) update(other);
  for (const std::size_t p : {std::size_t{from}, std::size_t{to}}) {
    vertices_[p] += static_cast<std::uint64_t>(std::exchange(shard.vertices[p], 0));
  }
  replica_count_ += static_cast<std::uint64_t>(std::exchange(shard.replicas, 0));
}

// Moves interior vertices in the order of ids. One thread suffices, because there are few. A move
// may make neighbours movable, hence several rounds.
template <typename Index, typename Part>
Status Refinement<Index, Part>::SpreadInterior(const JobControl& control) {
  if (!balanced()) return Status::Ok();
  const auto most = static_cast<std::uint64_t>(
      kMaxInteriorShare * static_cast<double>(halves_.vertex_count()) / partitions_);
  std::vector<std::uint64_t> interior(partitions_);
  const auto count = [&](std::uint64_t v, std::uint64_t change) {
    if (replicas_.Size(v) != 1) return;
    replicas_.ForEach(v, [&](PartitionId p) {
      RHIZOME_DCHECK(change == 1 || interior[p] != 0);
      interior[p] += change;
    });
  };
  constexpr std::uint64_t kLess = ~std::uint64_t{0};
  for (std::uint64_t v = 0; v < halves_.vertex_count(); ++v) count(v, 1);
  for (int round = 0; round < kInteriorRounds; ++round) {
    if (*std::max_element(interior.begin(), interior.end()) <= most) return Status::Ok();
    RHIZOME_RETURN_IF_ERROR(control.Report(
        {"spread interior", static_cast<std::uint64_t>(round), kInteriorRounds, {}}));
    bool moved = false;
    for (std::uint64_t v = 0; v < halves_.vertex_count(); ++v) {
      const std::uint64_t degree = halves_.degree(v);
      if (degree == 0 || degree > kMaxInteriorDegree || replicas_.Size(v) != 1) continue;
      const auto vertex = static_cast<Index>(v);
      const PartitionId from = halves_.part(halves_.begin(v));
      if (interior[from] <= most) continue;
      const PartitionId to = InteriorTarget(vertex, from, interior, most);
      if (to == from) continue;
      // Duplicate ends are removed, so that each is counted once.
      std::vector<std::uint64_t> ends = {v};
      for (std::uint64_t half = halves_.begin(v); half < halves_.end(v); ++half)
        ends.push_back(halves_.other(half));
      std::sort(ends.begin(), ends.end());
      ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
      if (!StaysBalanced(to, ends.size() - 1)) continue;
      for (const std::uint64_t end : ends) count(end, kLess);
      for (std::uint64_t half = halves_.begin(v); half < halves_.end(v); ++half)
        MoveEdge(vertex, half, to);
      RHIZOME_DCHECK(replicas_.Size(v) == 1 && replicas_.Has(v, to));
      for (const std::uint64_t end : ends) count(end, 1);
      moved = true;
    }
    if (!moved) return Status::Ok();
  }
  return Status::Ok();
}

// Returns whether the bound on vertices still holds when `to` gains a vertex and up to `fewer`
// replicas disappear: fewer replicas lower the mean with which all partitions are compared.
template <typename Index, typename Part>
bool Refinement<Index, Part>::StaysBalanced(PartitionId to, std::uint64_t fewer) const {
  const std::uint64_t most =
      std::max(*std::max_element(vertices_.begin(), vertices_.end()), vertices_[to] + 1);
  return static_cast<double>(most) * partitions_ <=
         limits_.max_vertex_balance * static_cast<double>(replica_count_ - fewer);
}

// Returns the partition that holds all neighbours of an interior vertex, has capacity, and has the
// fewest interior vertices; `from` if there is none.
template <typename Index, typename Part>
PartitionId Refinement<Index, Part>::InteriorTarget(Index vertex, PartitionId from,
                                                    const std::vector<std::uint64_t>& interior,
                                                    std::uint64_t most) const {
  const double mean = static_cast<double>(replica_count_) / partitions_;
  const double max_vertices = limits_.goal_vertex_balance * mean;
  const std::uint64_t begin = halves_.begin(vertex);
  const std::uint64_t end = halves_.end(vertex);
  PartitionId best = from;
  replicas_.ForEach(halves_.other(begin), [&](PartitionId q) {
    if (q == from || interior[q] >= most || !HasRoom(q, end - begin)) return;
    if (static_cast<double>(vertices_[q] + 1) > max_vertices) return;
    if (best != from && interior[q] >= interior[best]) return;
    for (std::uint64_t half = begin; half < end; ++half)
      if (!replicas_.Has(halves_.other(half), q)) return;
    best = q;
  });
  return best;
}

template Status Refinement<std::uint32_t, std::uint8_t>::Rebalance(const JobControl&);
template Status Refinement<std::uint32_t, std::uint8_t>::Exchange(const JobControl&);
template Status Refinement<std::uint32_t, std::uint8_t>::SpreadInterior(const JobControl&);
template bool Refinement<std::uint32_t, std::uint8_t>::StaysBalanced(PartitionId,
                                                                     std::uint64_t) const;
template PartitionId Refinement<std::uint32_t, std::uint8_t>::InteriorTarget(
    std::uint32_t, PartitionId, const std::vector<std::uint64_t>&, std::uint64_t) const;
template void Refinement<std::uint32_t, std::uint8_t>::ExchangeBetween(PartitionId, PartitionId);
template bool Refinement<std::uint32_t, std::uint8_t>::MakeRoom(PartitionId, std::uint64_t,
                                                                PartitionId,
                                                                std::vector<std::uint32_t>&);
template std::vector<std::uint32_t> Refinement<std::uint32_t, std::uint8_t>::VerticesByCount(
    PartitionId);
template std::uint32_t Refinement<std::uint32_t, std::uint8_t>::Count(std::uint32_t, PartitionId);
template void Refinement<std::uint32_t, std::uint8_t>::MoveEdge(std::uint32_t, std::uint64_t,
                                                                PartitionId);
template void Refinement<std::uint32_t, std::uint8_t>::Blend(std::uint64_t, std::uint64_t);
template void Refinement<std::uint32_t, std::uint8_t>::Recount();

template Status Refinement<std::uint32_t, std::uint16_t>::Rebalance(const JobControl&);
template Status Refinement<std::uint32_t, std::uint16_t>::Exchange(const JobControl&);
template Status Refinement<std::uint32_t, std::uint16_t>::SpreadInterior(const JobControl&);
template bool Refinement<std::uint32_t, std::uint16_t>::StaysBalanced(PartitionId,
                                                                      std::uint64_t) const;
template PartitionId Refinement<std::uint32_t, std::uint16_t>::InteriorTarget(
    std::uint32_t, PartitionId, const std::vector<std::uint64_t>&, std::uint64_t) const;
template void Refinement<std::uint32_t, std::uint16_t>::ExchangeBetween(PartitionId, PartitionId);
template bool Refinement<std::uint32_t, std::uint16_t>::MakeRoom(PartitionId, std::uint64_t,
                                                                 PartitionId,
                                                                 std::vector<std::uint32_t>&);
template std::vector<std::uint32_t> Refinement<std::uint32_t, std::uint16_t>::VerticesByCount(
    PartitionId);
template std::uint32_t Refinement<std::uint32_t, std::uint16_t>::Count(std::uint32_t, PartitionId);
template void Refinement<std::uint32_t, std::uint16_t>::MoveEdge(std::uint32_t, std::uint64_t,
                                                                 PartitionId);
template void Refinement<std::uint32_t, std::uint16_t>::Blend(std::uint64_t, std::uint64_t);
template void Refinement<std::uint32_t, std::uint16_t>::Recount();

template Status Refinement<std::uint64_t, std::uint16_t>::Rebalance(const JobControl&);
template Status Refinement<std::uint64_t, std::uint16_t>::Exchange(const JobControl&);
template Status Refinement<std::uint64_t, std::uint16_t>::SpreadInterior(const JobControl&);
template bool Refinement<std::uint64_t, std::uint16_t>::StaysBalanced(PartitionId,
                                                                      std::uint64_t) const;
template PartitionId Refinement<std::uint64_t, std::uint16_t>::InteriorTarget(
    std::uint64_t, PartitionId, const std::vector<std::uint64_t>&, std::uint64_t) const;
template void Refinement<std::uint64_t, std::uint16_t>::ExchangeBetween(PartitionId, PartitionId);
template bool Refinement<std::uint64_t, std::uint16_t>::MakeRoom(PartitionId, std::uint64_t,
                                                                 PartitionId,
                                                                 std::vector<std::uint64_t>&);
template std::vector<std::uint64_t> Refinement<std::uint64_t, std::uint16_t>::VerticesByCount(
    PartitionId);
template std::uint64_t Refinement<std::uint64_t, std::uint16_t>::Count(std::uint64_t, PartitionId);
template void Refinement<std::uint64_t, std::uint16_t>::MoveEdge(std::uint64_t, std::uint64_t,
                                                                 PartitionId);
template void Refinement<std::uint64_t, std::uint16_t>::Blend(std::uint64_t, std::uint64_t);
template void Refinement<std::uint64_t, std::uint16_t>::Recount();

}  // namespace internal
}  // namespace rhizome
