// Refinement of homes. Run brings all loads within the caps (Rebalance), then runs rounds that make
// only moves with a gain (GreedyRound), and then, if there is a table of gains, rounds of
// Fiduccia-Mattheyses search (SearchRound).

#include "index/homes/home_refinement.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr int kGreedyRounds = 8;
constexpr int kSearchRounds = 6;
constexpr std::int64_t kNotQueued = std::numeric_limits<std::int64_t>::min();

/// Maximum table size: this multiple of the graph's half-edges, or kSmallTable entries if that is
/// more.
constexpr std::uint64_t kTableShare = 2;
constexpr std::uint64_t kSmallTable = std::uint64_t{1} << 22;

/// A search round ends after this many moves without a better cut: kPatience, plus one for each
/// kPatienceShare vertices.
constexpr std::uint64_t kPatienceShare = 30;
constexpr std::uint64_t kPatience = 300;

}  // namespace

std::uint64_t MostTableEntries(std::uint64_t vertices, std::uint64_t half_edges,
                               std::uint64_t parts) {
  return std::min(vertices * parts, std::max(kSmallTable, kTableShare * half_edges));
}

HomeRefinement::HomeRefinement(const HomeGraph& graph, std::span<const HomeLoad> caps,
                               std::span<PartitionId> part_of, std::uint64_t seed)
    : graph_(graph),
      caps_(caps.begin(), caps.end()),
      part_of_(part_of),
      loads_(caps.size()),
      row_(caps.size()),
      random_({.seed = seed, .stream = 2}) {
  RHIZOME_DCHECK(part_of.size() == graph.vertex_count());
  for (std::uint32_t v = 0; v < graph.vertex_count(); ++v) loads_[part_of[v]] += graph.load(v);
  CountTable();
}

void HomeRefinement::CountTable() {
  const std::uint64_t entries = std::uint64_t{graph_.vertex_count()} * caps_.size();
  if (entries > MostTableEntries(graph_.vertex_count(), graph_.half_edge_count(), caps_.size()))
    return;
  table_.assign(entries, 0);
  for (std::uint32_t v = 0; v < graph_.vertex_count(); ++v) {
    std::uint32_t* const to = &table_[v * caps_.size()];
    graph_.ForEachNeighbor(
        v, [&](std::uint32_t u, std::uint32_t weight) { to[part_of_[u]] += weight; });
  }
}

void HomeRefinement::Run() {
  Rebalance();
  for (int round = 0; round < kGreedyRounds && GreedyRound(); ++round) {
  }
  for (int round = 0; has_table() && round < kSearchRounds && SearchRound(); ++round) {
  }
}

std::uint64_t HomeRefinement::CutOf() const {
  std::uint64_t twice = 0;
  for (std::uint32_t v = 0; v < graph_.vertex_count(); ++v) {
    graph_.ForEachNeighbor(v, [&](std::uint32_t u, std::uint32_t weight) {
      if (part_of_[u] != part_of_[v]) twice += weight;
    });
  }
  return twice / 2;
}

bool HomeRefinement::balanced() const {
  for (std::size_t p = 0; p < caps_.size(); ++p)
    if (!loads_[p].Within(caps_[p])) return false;
  return true;
}

/// Returns the weights of v's edges by part.
std::span<const std::uint32_t> HomeRefinement::WeightsTo(std::uint32_t v) {
  if (has_table()) return std::span(table_).subspan(v * caps_.size(), caps_.size());
  std::fill(row_.begin(), row_.end(), 0);
  graph_.ForEachNeighbor(
      v, [&](std::uint32_t u, std::uint32_t weight) { row_[part_of_[u]] += weight; });
  return row_;
}

/// Returns how full a part is, as the larger of its shares of the caps on rows and on seeds.
double HomeRefinement::Fill(std::size_t part) const {
  const auto share = [](std::uint64_t load, std::uint64_t cap) {
    return cap == 0 ? 0.0 : static_cast<double>(load) / static_cast<double>(cap);
  };
  return std::max(share(loads_[part].rows, caps_[part].rows),
                  share(loads_[part].seeds, caps_[part].seeds));
}

/// Finds the best move of v into a part with capacity: a part that v has edges to, or, when
/// relieving v's own part, any part. Ties go to the emptier part.
bool HomeRefinement::FindMove(std::uint32_t v, Move& move, std::optional<Room> relieves) {
  const std::span<const std::uint32_t> weights = WeightsTo(v);
  const PartitionId own = part_of_[v];
  const HomeLoad load = graph_.load(v);
  bool found = false;
  std::uint32_t most = 0;
  for (std::size_t p = 0; p < weights.size(); ++p) {
    if (p == own || (weights[p] == 0 && !relieves)) continue;
    const bool better =
        !found || weights[p] > most || (weights[p] == most && Fill(p) < Fill(move.to));
    if (!better || !HasRoom(p, load, relieves.value_or(Room::kBoth))) continue;
    found = true;
    most = weights[p];
    move.to = static_cast<PartitionId>(p);
  }
  move.vertex = v;
  move.gain = static_cast<std::int64_t>(most) - static_cast<std::int64_t>(weights[own]);
  return found;
}

void HomeRefinement::Apply(std::uint32_t v, PartitionId to) {
  const PartitionId from = std::exchange(part_of_[v], to);
  const HomeLoad load = graph_.load(v);
  loads_[from] -= load;
  loads_[to] += load;
  if (!has_table()) return;
  graph_.ForEachNeighbor(v, [&](std::uint32_t u, std::uint32_t weight) {
    std::uint32_t* const weights = &table_[u * caps_.size()];
    RHIZOME_DCHECK(weights[from] >= weight);
    weights[from] -= weight;
    weights[to] += weight;
  });
}

bool HomeRefinement::HasRoom(std::size_t part, const HomeLoad& load, Room room) const {
  const HomeLoad sum = loads_[part] + load;
  return (room == Room::kSeeds || sum.rows <= caps_[part].rows) &&
         (room == Room::kRows || sum.seeds <= caps_[part].seeds);
}

/// Returns whether removing v brings its part closer to its caps.
bool HomeRefinement::Helps(std::uint32_t v, Room room) const {
  const PartitionId own = part_of_[v];
  const bool has_seeds = graph_.load(v).seeds > 0;
  const bool rows = room == Room::kBoth || (room == Room::kRows && !has_seeds);
  return (rows && loads_[own].rows > caps_[own].rows) ||
         (room != Room::kRows && has_seeds && loads_[own].seeds > caps_[own].seeds);
}

/// Brings all loads within the caps. If no part has capacity for both rows and seeds, seeds move
/// first, regardless of rows, and then vertices without seeds. Between single vertices that always
/// succeeds: a part above its cap of rows and within its cap of seeds has vertices without seeds.
void HomeRefinement::Rebalance() {
  for (const Room room : {Room::kBoth, Room::kSeeds, Room::kRows})
    if (!balanced()) Relieve(room);
}

/// Moves vertices out of parts above their caps. Vertices with the lowest cost for the load that
/// they relieve move first. A gain is computed when a vertex is listed, and again when its turn
/// comes.
void HomeRefinement::Relieve(Room room) {
  std::vector<Move> moves;
  for (std::uint32_t v = 0; v < graph_.vertex_count(); ++v) {
    Move move;
    if (Helps(v, room) && FindMove(v, move, room)) moves.push_back(move);
  }
  const auto cost = [&](const Move& move) {
    const HomeLoad load = graph_.load(move.vertex);
    return -static_cast<double>(move.gain) / static_cast<double>(load.rows + load.seeds);
  };
  std::stable_sort(moves.begin(), moves.end(),
                   [&](const Move& a, const Move& b) { return cost(a) < cost(b); });
  for (const Move& listed : moves) {
    Move move;
    if (Helps(listed.vertex, room) && FindMove(listed.vertex, move, room))
      Apply(move.vertex, move.to);
  }
}

/// Moves, in random order, every vertex whose move has a gain, or no loss and evens the loads.
bool HomeRefinement::GreedyRound() {
  const std::uint32_t count = graph_.vertex_count();
  std::uint32_t moved = 0;
  std::uint32_t stride = static_cast<std::uint32_t>(random_.Below(count) | 1);
  while (std::gcd(stride, count) != 1) ++stride;
  std::uint64_t v = random_.Below(count);
  for (std::uint32_t i = 0; i < count; ++i, v = (v + stride) % count) {
    Move move;
    if (!FindMove(static_cast<std::uint32_t>(v), move)) continue;
    const bool evens = move.gain == 0 && Fill(move.to) < Fill(part_of_[v]) - 0.01;
    if (move.gain <= 0 && !evens) continue;
    Apply(move.vertex, move.to);
    if (move.gain > 0) ++moved;
  }
  return moved > count / 1000;
}

void HomeRefinement::Queue(std::uint32_t v) {
  Move move;
  if (locked_[v]) return;
  if (!FindMove(v, move)) {
    queued_[v] = kNotQueued;
    return;
  }
  if (queued_[v] == move.gain) return;
  queued_[v] = move.gain;
  queue_.push({move.gain, random_.Next32(), v});
}

/// Runs one round of search; returns whether it found a better cut.
bool HomeRefinement::SearchRound() {
  const std::uint32_t count = graph_.vertex_count();
  queue_ = {};
  queued_.assign(count, kNotQueued);
  locked_.assign(count, false);
  for (std::uint32_t v = 0; v < count; ++v) Queue(v);
  std::vector<Move> made;  // `to` holds the part that the vertex left
  std::int64_t gain = 0;
  std::int64_t best_gain = 0;
  std::size_t best = 0;  // number of moves up to the best cut
  const std::size_t patience = kPatience + count / kPatienceShare;
  while (!queue_.empty() && made.size() - best < patience) {
    const Queued next = queue_.top();
    queue_.pop();
    const std::uint32_t v = next.vertex;
    if (locked_[v] || queued_[v] != next.gain) continue;
    queued_[v] = kNotQueued;
    Move move;
    if (!FindMove(v, move)) continue;
    if (move.gain < next.gain) {
      Queue(v);
      continue;
    }
    made.push_back({move.gain, v, part_of_[v]});
    Apply(v, move.to);
    locked_[v] = true;
    gain += move.gain;
    if (gain > best_gain) {
      best_gain = gain;
      best = made.size();
    }
    graph_.ForEachNeighbor(v, [&](std::uint32_t u, std::uint32_t) { Queue(u); });
  }
  while (made.size() > best) {
    Apply(made.back().vertex, made.back().to);
    made.pop_back();
  }
  queue_ = {};
  return best_gain > 0;
}

}  // namespace internal
}  // namespace rhizome
