#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <span>
#include <vector>

#include "index/base/counter_random.h"
#include "index/homes/home_graph.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace internal {

/// Returns the maximum number of 4-byte entries that the table of HomeRefinement has for a graph or
/// for a coarser version of it.
std::uint64_t MostTableEntries(std::uint64_t vertices, std::uint64_t half_edges,
                               std::uint64_t parts);

/// Improves the homes of a graph's vertices by moving one vertex at a time. In a round, the vertex
/// whose move reduces the cut most moves first. Moves that increase the cut are tried as well: a
/// round ends after many moves in a row without a better cut, and is rolled back to its best state
/// (Fiduccia and Mattheyses, "A linear-time heuristic for improving network partitions", DAC 1982,
/// for any number of parts). Loads above the caps are reduced first, at any cost in edges.
///
/// Memory: 4 bytes for each vertex and part, unless that is far more than the graph itself. Without
/// this table, a move's gain is computed from the vertex's edges, and only moves with a gain are
/// made.
class HomeRefinement {
 public:
  /// `caps` has a cap for each part. `part_of` has the part of each vertex; Run changes it in
  /// place.
  HomeRefinement(const HomeGraph& graph, std::span<const HomeLoad> caps,
                 std::span<PartitionId> part_of, std::uint64_t seed);

  void Run();

  /// Returns the weight of all edges between parts.
  std::uint64_t CutOf() const;

  /// Returns whether all loads are within the caps.
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

  /// The caps of a part that a move must keep.
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
  std::vector<std::uint32_t> row_;    // the row of the table for one vertex, if there is no table
  CounterRandom random_;

  std::priority_queue<Queued> queue_;
  std::vector<std::int64_t> queued_;  // by vertex: its gain in the queue
  std::vector<bool> locked_;          // by vertex: whether it moved in this round
};

}  // namespace internal
}  // namespace rhizome
