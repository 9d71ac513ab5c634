#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "index/sample/draws.h"
#include "index/sample/sampled_directions.h"
#include "index/sample/sampler_lists.h"
#include "index/sample/sampler_plan.h"
#include "index/sample/sampler_times.h"
#include "index/sample/sampler_weights.h"
#include "rhizome/sampler.h"

namespace rhizome {
inline namespace internal {

/// The data of the graph that draws need.
/// Threads: const after Create.
struct DrawTables {
  /// `graph` is a snapshot; `view` is the view of its delta, or null.
  static Result<std::unique_ptr<const DrawTables>> Create(
      const GraphSnapshot& graph, const std::shared_ptr<const DeltaView>& view,
      const SamplerOptions& options);

  /// Replaces `pieces` by the parts of a list, over all sides, with edge type `type`.
  void OnlyType(std::span<const Piece> list, TypeId type, std::vector<Piece>& pieces) const;

  WalkedSides sides;
  std::vector<ListFinder> lists;       ///< by side
  std::optional<WeightTable> weights;  ///< set if weighted
  std::optional<TimeOrder> times;      ///< set if temporal
  std::uint64_t seed = 1;
  bool replace = false;
  TemporalPick temporal_pick = TemporalPick::kUniform;
};

/// Frontier vertices to draw for. The spans `rows` and `subgraphs` are parallel.
struct FrontierSlice {
  std::span<const Row> rows;
  std::span<const std::uint32_t> subgraphs;     ///< if disjoint: index of the seed
  std::span<const std::int64_t> subgraph_time;  ///< if temporal: time by index of the seed
  std::span<const ListRequest> requests;        ///< draws of the hop
  std::uint64_t batch = 0;
  std::uint32_t hop = 0;

  // If the vertices are of several subgraphs that are sampled together, parallel to `rows`, instead
  // of `batch` and `subgraph_time`. Else empty.
  std::span<const std::uint64_t> batches = {};
  std::span<const std::int64_t> times = {};

  std::uint64_t BatchOf(std::size_t i) const { return batches.empty() ? batch : batches[i]; }
  std::int64_t TimeOf(std::size_t i) const {
    return times.empty() ? subgraph_time[subgraphs[i]] : times[i];
  }
};

/// Draws entries of the lists of frontier vertices. Holds scratch memory: use one instance for each
/// thread.
class EntryPicker {
 public:
  /// Replaces `entries` by the draws, vertex by vertex; counts[i] is the number for rows[i].
  void Pick(const DrawTables& tables, const FrontierSlice& slice, std::vector<EntryRef>& entries,
            std::vector<std::uint64_t>& counts);

  /// As Pick, but takes the whole lists, regardless of weights.
  void PickAll(const DrawTables& tables, std::span<const Row> rows, std::vector<EntryRef>& entries,
               std::vector<std::uint64_t>& counts);

 private:
  void FindLists(const DrawTables& tables, std::span<const Row> rows);
  void PickUniform(const DrawTables& tables, const FrontierSlice& slice,
                   std::vector<EntryRef>& entries, std::vector<std::uint64_t>& counts);
  void PickList(const DrawTables& tables, const FrontierSlice& slice, std::size_t i,
                const ListRequest& request, std::vector<EntryRef>& entries);
  void DrawPositions(const DrawTables& tables, const ListRequest& request, CounterRandom& random,
                     std::span<const Piece> pieces);
  void DrawWeighted(const DrawTables& tables, const ListRequest& request, CounterRandom& random,
                    std::span<const Piece> pieces);

  std::vector<VertexList> lists_;
  std::vector<VertexList> second_;  // lists of the second side
  std::vector<Piece> joined_;       // pieces of the lists of both sides, vertex by vertex
  std::vector<Piece> typed_;        // pieces of one list with the requested type
  std::vector<Piece> eligible_;     // pieces of one list, cut to the eligible times
  std::vector<std::uint64_t> positions_;
  PositionDrawer drawer_;
  WeightedDrawer weighted_;
};

}  // namespace internal
}  // namespace rhizome
