#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cache/feed/feed_pipeline.h"
#include "cache/feed/minibatch_sampler.h"
#include "cache/tables/negative_sources.h"
#include "cache/tables/single_negatives.h"
#include "index/base/counter_random.h"
#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/graph_types.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

struct LinkSeedOptions {
  std::uint64_t negatives = 0;      ///< for each pair and side
  std::string sources = "uniform";  ///< mixture of negatives (ParseNegativeMixture)
  std::uint64_t seed = 1;
  bool keep_seed_edges = false;  ///< do not leave out the edges of pairs
};

/// Turns the batches of an EpochPlan over pairs into seeds: the plan's vertices are the numbers of
/// pairs, from 0. The seeds are the distinct ends of a batch's pairs and its negatives, in order of
/// first use: the source and the destination of each pair, then negatives of sources, then of
/// destinations.
///
/// A side has K negatives for each pair. Among the pairs whose replaced end has the same vertex
/// type, the i-th has the vertices [i * K, (i + 1) * K) of that type. Each is drawn by itself:
/// first its source, by the shares of the mixture, then a vertex of the type. A vertex equal to the
/// end that it replaces is drawn again, up to kMaxRedraws times. Negatives depend on the graph, the
/// options, the pairs of the batch and SeedBatch::key.
///
/// Memory: 24 bytes for each pair, and NegativeVertices if there are negatives.
/// Threads: one at a time.
class LinkSeeds {
 public:
  static constexpr int kMaxRedraws = 16;

  /// Errors: kInvalidArgument, a pair whose end is not a vertex or was deleted, or whose type the
  /// graph does not have (named by its number); an unknown source of negatives, or `resident`;
  /// negatives for an end of a type that has no other vertex. Errors of NegativeVertices::Of.
  static Result<std::shared_ptr<LinkSeeds>> Create(std::shared_ptr<const GraphSnapshot> graph,
                                                   std::vector<VertexPair> pairs,
                                                   const LinkSeedOptions& options);

  /// Returns 0 ... pairs - 1: the vertices of the plan.
  std::vector<VertexId> numbers() const;
  std::span<const VertexPair> pairs() const { return pairs_; }

  /// Returns the bytes of this object besides the pairs.
  std::uint64_t held_bytes() const;

  /// Replaces `batch.vertices`, numbers of pairs, by the seeds, and sets the pairs and negatives.
  /// Errors: as NegativeVertices::Draw.
  Status Expand(SeedBatch& batch);

 private:
  LinkSeeds(std::shared_ptr<const GraphSnapshot> graph, std::vector<VertexPair> pairs,
            const LinkSeedOptions& options)
      : graph_(std::move(graph)), pairs_(std::move(pairs)), options_(options) {}
  Status Check() const;
  Status CheckEnd(std::size_t pair, VertexId end) const;
  Status OpenNegatives();
  Result<TypeId> TypeOf(VertexId vertex) const;
  Status DrawSide(std::uint32_t side, std::span<const VertexPair> pairs, std::uint64_t key,
                  std::vector<std::pair<TypeId, std::vector<VertexId>>>& drawn);
  Status DrawFor(VertexId end, TypeId type, std::span<const VertexId> in_batch,
                 CounterRandom& random, std::vector<VertexId>& out);

  const std::shared_ptr<const GraphSnapshot> graph_;
  const std::vector<VertexPair> pairs_;
  const LinkSeedOptions options_;
  std::optional<NegativeVertices> vertices_;  // absent without negatives
  std::optional<SingleNegatives> single_;     // draws from vertices_
};

/// Returns the stream of `next` with the batches expanded by `links`; `next` itself if it is null.
FeedPipeline::NextSeeds WithLinks(std::shared_ptr<LinkSeeds> links, FeedPipeline::NextSeeds next);

}  // namespace internal
}  // namespace rhizome
