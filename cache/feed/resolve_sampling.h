#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cache/feed/minibatch_sampler.h"
#include "cache/layout/pass_lists.h"
#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/neighbor_sampling.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Resolves the names in `sampling` against a graph, and returns the options for minibatch
/// samplers. `fanouts` ([hops]) apply to all edge types unless `sampling` has typed fanouts.
/// `edge_weights`: whether layers use edge weights; absent: if the store has them. Errors:
/// kInvalidArgument, options that exclude each other, are out of range or cannot be served by the
/// store (the message says what to do), and as CheckEdgeWeights; kNotFound, no such edge type,
/// attribute or array; any error of reading times.
Result<MinibatchSamplerOptions> ResolveSampling(const NeighborSampling& sampling,
                                                std::optional<bool> edge_weights,
                                                std::vector<std::int64_t> fanouts,
                                                const GraphSnapshot& graph);

/// Returns whether `options` walk the lists of both directions, and these are not the same.
bool WalksTwoSides(const GraphSnapshot& graph, const MinibatchSamplerOptions& options);

/// Sets the sampler for measuring the validation set: `eval_fanouts` (TrainOptions) has one fanout
/// for each of `layers` hops; empty: sample as in training. Errors: kInvalidArgument, a different
/// number of fanouts, or numbers where neighbours are drawn by type.
Status SetValidSampler(const std::vector<std::int64_t>& eval_fanouts, std::size_t layers,
                       MinibatchSamplerOptions& sampling);

/// Sets the seed and the number of threads (min 1) of all samplers.
void SetSamplers(std::uint64_t seed, std::uint32_t threads, MinibatchSamplerOptions& sampling);

/// Reads the time of each row as a seed, [rows], from an array of a snapshot; 0 for vertices
/// without a row in the array. Errors: kNotFound, no such array; kInvalidArgument, not int64 or
/// int32 with one column; any error of reading.
Result<std::vector<std::int64_t>> ReadSeedTimes(const GraphSnapshot& graph,
                                                const std::string& name);

/// Extends DescribeSampling by whether layers use edge weights; empty if all options are the
/// default.
std::string DescribeDraws(const NeighborSampling& sampling, bool edge_weights);

/// Checks that layers can be computed one after another for all vertices. Each layer then uses the
/// edges that its hop walks for every vertex, so all hops must walk the same types and no edge may
/// depend on the seed. Errors: kInvalidArgument; the message states which mode supports the
/// options.
Status CheckLayerwise(const MinibatchSamplerOptions& options);

/// Returns the options with all neighbours of the walked types instead of samples.
MinibatchSamplerOptions WithAllNeighbors(MinibatchSamplerOptions options);

/// Sets all draw options of a layer's pass except the plain fanout. `hop` is the hop of the layer.
void SetPassDraw(const MinibatchSamplerOptions& options, std::size_t hop, PassDrawOptions& draw);

/// Returns the bytes of a sampler's tables (rhizome/sampler.h), excluding the memory of concurrent
/// calls.
std::uint64_t SamplerTableBytes(const GraphSnapshot& graph, const SamplerOptions& options);

}  // namespace internal
}  // namespace rhizome
