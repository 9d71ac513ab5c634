#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rhizome/cache/minibatch_sampler.h"
#include "rhizome/cache/neighbor_sampling.h"
#include "rhizome/cache/pass_lists.h"
#include "rhizome/index/graph.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/result.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Finds the names of `sampling` in a graph, and returns what samplers of minibatches take;
/// `fanouts` ([hops]) are those of all types, where it has no others. `edge_weights`: whether
/// layers use the weights of edges; absent: where the store has them. Errors: kInvalidArgument,
/// options that exclude each other, are out of range or that the store cannot serve (the message
/// says what to do), and those of CheckEdgeWeights; kNotFound, no such edge type, attribute or
/// array; those of reading times.
Result<MinibatchSamplerOptions> ResolveSampling(const NeighborSampling& sampling,
                                                std::optional<bool> edge_weights,
                                                std::vector<std::int64_t> fanouts,
                                                const GraphSnapshot& graph);

/// Sets what is drawn where the validation set is measured: `eval_fanouts` (TrainOptions), one for
/// each of `layers` hops; empty: as in training. Errors: kInvalidArgument, another number of them,
/// or numbers where neighbours are drawn by type.
Status SetValidSampler(const std::vector<std::int64_t>& eval_fanouts, std::size_t layers,
                       MinibatchSamplerOptions& sampling);

/// Sets the seed and the threads, at least 1, of all samplers.
void SetSamplers(std::uint64_t seed, std::uint32_t threads, MinibatchSamplerOptions& sampling);

/// Reads the time of each row as a seed, [rows], from an array of a snapshot; of a vertex without a
/// row: 0. Errors: kNotFound, no such array; kInvalidArgument, not int64 or int32 with one column;
/// those of reading.
Result<std::vector<std::int64_t>> ReadSeedTimes(const GraphSnapshot& graph,
                                                const std::string& name);

/// Describes what DescribeSampling does, and whether layers use the weights of edges; empty:
/// nothing is other than usual.
std::string DescribeDraws(const NeighborSampling& sampling, bool edge_weights);

/// Checks that layers can be computed for all vertices, one after another: each then takes the
/// edges that its hop walks for every vertex, so that all hops have to walk the same types, and no
/// edge may depend on the seed. Errors: kInvalidArgument, saying what can.
Status CheckLayerwise(const MinibatchSamplerOptions& options);

/// Returns the same, with all neighbours of the types that are walked.
MinibatchSamplerOptions WithAllNeighbors(MinibatchSamplerOptions options);

/// Sets what the pass of a layer draws, all but its plain fanout. `hop` is that of the layer.
void SetPassDraw(const MinibatchSamplerOptions& options, std::size_t hop, PassDrawOptions& draw);

/// Returns the bytes that the tables of a sampler take (index/sampler.h), without those of a
/// concurrent call.
std::uint64_t SamplerTableBytes(const GraphSnapshot& graph, const SamplerOptions& options);

}  // namespace internal
}  // namespace rhizome
