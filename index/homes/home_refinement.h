#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <span>
#include <vector>

#include "rhizome/index/counter_random.h"
#include "rhizome/index/home_graph.h"
#include "rhizome/storage/types.h"

namespace rhizome::inline internal {

/// Returns the most entries, of 4 bytes, that the table of HomeRefinement has for a graph, or for
/// one that is coarser.
std::uint64_t MostTableEntries(std::uint64_t vertices, std::uint64_t half_edges,
                               std::uint64_t parts);

/// Improves the homes of a graph's vertices by moving one vertex at a time. In a round, the vertex
/// whose move cuts most edges less moves first, and moves that cut more are tried, too: a round
/// ends when many of them in a row led to nothing better, and is taken back to its best moment
/// (Fiduccia and Mattheyses, "A linear-time heuristic for improving network partitions", DAC 1982,
/// for any number of parts). Loads above the caps are brought down first, at any cost in edges.
///
/// Memory: 4 bytes for each vertex and part, if that is not far more than the graph itself;
/// else, a move's gain is counted from its edges, and only moves that gain are made.
class HomeRefinement {
 public:
  /// `caps` has a cap for each part; `part_of`, which it changes, the part of each vertex.
  HomeRefinement(const HomeGraph& graph, std::span<const HomeLoad> caps,
                 std::span<PartitionId> part_of, std::uint64_t seed);

  void Run();

  /// The weight of all edges between parts.
  std::uint64_t CutOf() const;

  /// Whether all loads are within the caps.
  bool balanced() const;

 private:
  struct Move {
    std::int64_t gain = 0;
    std::uint32_t vertex = 0;
    PartitionId to = 0;
  };
  struct Queued {
    std::int64_t gain = 0;
    std::uint32_t tie = 0;
    std::uint32_t vertex = 0;
    bool operator<(const Queued& other) const {
      return gain != other.gain ? gain < other.gain : tie < other.tie;
    }
  };

  /// Which of a part's caps a move has to keep.
  enum class Room : std::uint8_t { kBoth, kSeeds, kRows };

  bool has_table() const { return !table_.empty(); }
  void CountTable();
  std::span<const std::uint32_t> WeightsTo(std::uint32_t v);
  bool HasRoom(std::size_t part, const HomeLoad& load, Room room) const;
  bool Helps(std::uint32_t v, Room room) const;
  bool FindMove(std::uint32_t v, Move& move, std::optional<Room> relieves = std::nullopt);
  void Apply(std::uint32_t v, PartitionId to);
  void Rebalance();
  void Relieve(Room room);
  bool GreedyRound();
  bool SearchRound();
  void Queue(std::uint32_t v);
  double Fill(std::size_t part) const;

  const HomeGraph& graph_;
  const std::vector<HomeLoad> caps_;
  const std::span<PartitionId> part_of_;
  std::vector<HomeLoad> loads_;       // by part
  std::vector<std::uint32_t> table_;  // [vertices, parts] weight of a vertex's edges into a part
  std::vector<std::uint32_t> row_;    // the same of one vertex, where there is no table
  CounterRandom random_;

  std::priority_queue<Queued> queue_;
  std::vector<std::int64_t> queued_;  // by vertex: the gain that it stands in the queue with
  std::vector<bool> locked_;          // by vertex: it moved in this round
};

}  // namespace rhizome::inline internal
