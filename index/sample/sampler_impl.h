#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "index/base/parallel.h"
#include "index/delta/delta_view.h"
#include "index/sample/sampled_directions.h"
#include "index/sample/sampler_draw.h"
#include "index/sample/sampler_plan.h"
#include "index/sample/sampler_scratch.h"
#include "index/sample/sampler_sweep.h"
#include "index/topology/adjacency.h"
#include "rhizome/graph.h"
#include "rhizome/sampler.h"

namespace rhizome {

/// The number of frontier vertices in one chunk. Their draws stay in the L2 cache until they are
/// numbered.
inline constexpr std::size_t kSampleGrain = 256;

/// The implementation of Sampler. The frontier of a hop is processed in chunks. Any thread draws
/// and looks up a chunk; then the chunks are numbered and appended in order, one at a time, while
/// later ones are drawn. Only the numbering depends on the order, so the result does not depend on
/// the threads.
///
/// A vertex's list is the concatenation of its partitions' lists, and positions are drawn over the
/// whole. Each partition's share therefore has exactly the distribution that splitting the fanout
/// first would give, with one stream of random numbers for each vertex. Positions are drawn for
/// many vertices before any is looked up, so that the cache misses of the look-ups overlap.
class Sampler::Impl {
 public:
  Impl(std::shared_ptr<const GraphSnapshot> graph, std::shared_ptr<const DeltaView> view,
       const SamplerOptions& options, SamplingPlan plan, std::unique_ptr<const DrawTables> tables,
       std::shared_ptr<const NeighborSource> neighbors)
      : graph_(std::move(graph)),
        view_(std::move(view)),
        sides_(*graph_, options.direction),
        vertex_count_(graph_->vertex_count()),
        options_(options),
        plan_(std::move(plan)),
        tables_(std::move(tables)),
        source_(std::move(neighbors)),
        out_types_(options.types_by_side && sides_.count() > 1
                       ? static_cast<TypeId>(std::max<std::size_t>(graph_->edge_types().size(), 1))
                       : 0),
        typed_(graph_->edge_types().size() > 1 || out_types_ > 0),
        weighted_(graph_->info().weighted),
        arena_(static_cast<int>(std::min<std::uint32_t>(options.threads, 1024))),
        scratches_(vertex_count_, options.disjoint) {
    for (std::uint32_t p = 0; p < graph_->partition_count(); ++p) {
      partitions_.push_back(&graph_->partition(p));
    }
  }

  Status Sample(const SampleRequest& request, SampledSubgraph& out);
  Status SampleTogether(std::span<const SampleRequest> requests, const SampleSink& sink);

 private:
  /// One hop of one call.
  struct Hop {
    FrontierSlice frontier;  // the whole frontier
    SampleScratch& scratch;
    SampledSubgraph& out;
    bool induced = false;  ///< take all edges to numbered vertices, and add no vertices
    std::size_t chunks() const { return (frontier.rows.size() + kSampleGrain - 1) / kSampleGrain; }
  };

  /// A subgraph that is sampled together with others, between hops.
  struct Partial;

  Status CheckSeeds(const SampleRequest& request) const;
  Status CheckDraws(std::size_t hop, std::size_t vertices) const;
  Status NumberSeeds(const SampleRequest& request, SampleScratch& scratch,
                     SampledSubgraph& out) const;
  /// Returns whether hops are drawn in sweeps over the lists (sampler_sweep.cc).
  bool sweeps() const { return source_->wants_whole_hops() && !options_.induced; }
  std::size_t FrontierOf(const SampledSubgraph& out, std::size_t hop) const {
    return options_.frontier == Frontier::kOnce ? out.hop_offsets[hop] : 0;
  }
  void EndHop(SampledSubgraph& out) const;
  void Complete(SampledSubgraph& out) const;
  Status SweepHop(std::size_t hop, std::span<Partial> partials);
  void FindLengths(std::span<const SweptVertex> vertices,
                   std::vector<std::uint64_t>& lengths) const;
  std::vector<std::size_t> WindowEnds(std::size_t hop, std::span<const SweptVertex> vertices) const;
  Status DrawWindow(std::size_t hop, std::span<const Partial> partials, SweepWindow& window) const;
  void KeepDraws(const SweepWindow& window, std::span<Partial> partials) const;
  Status NumberDraws(std::size_t hop, Partial& partial);
  Status RunHop(const Hop& hop);
  Status RunLists(const Hop& hop);
  Status Induce(SampleScratch& scratch, SampledSubgraph& out);
  Status RunChunks(const Hop& hop);
  Status RunWhole(const Hop& hop);
  Status RunChunk(const Hop& hop, std::size_t c, SampleChunk& chunk) const;
  void Pick(const Hop& hop, std::size_t c, SampleChunk& chunk) const;
  bool Filters(const Hop& hop) const { return hop.induced || !hop.scratch.left_out.empty(); }
  void Filter(const Hop& hop, std::size_t c, SampleChunk& chunk) const;
  void KeepKnown(const Numbering& numbering, SampleChunk& chunk) const;
  Status LookUp(std::span<EntryRef> entries, std::span<Row> rows, LookUpScratch& scratch) const;
  bool OfDelta(const EntryRef& entry) const {
    return sides_.Within(entry.partition) == sides_.delta();
  }
  const Adjacency& PartitionOf(const EntryRef& entry) const {
    return *partitions_[sides_.Within(entry.partition)];
  }
  void Annotate(SampleChunk& chunk) const;
  TypeId TypeOf(const EntryRef& entry) const;
  float WeightOf(const EntryRef& entry) const;
  void AnnotateWeights(SampleChunk& chunk) const;
  Status Finish(const Hop& hop, std::size_t c, const SampleChunk& chunk) const;

  const std::shared_ptr<const GraphSnapshot> graph_;  // a snapshot
  const std::shared_ptr<const DeltaView> view_;       // null if there is no delta
  const WalkedSides sides_;
  const std::uint64_t vertex_count_;
  const SamplerOptions options_;
  const SamplingPlan plan_;
  const std::unique_ptr<const DrawTables> tables_;
  const std::shared_ptr<const NeighborSource> source_;
  const TypeId out_types_;  // added to the types of out-lists
  const bool typed_;
  const bool weighted_;
  std::vector<const Adjacency*> partitions_;
  TaskArena arena_;
  SampleScratchPool scratches_;
};

}  // namespace rhizome
