#pragma once

#include <span>

#include "rhizome/link_scores.h"

namespace rhizome {
inline namespace internal {

/// Scores `positives` and `negatives` pair by pair, and compares them.
/// Memory: 5 bytes for each of them, and options.memory_bytes while they are scored.
/// Errors: as LinkScores::Score; kInvalidArgument, there are no negatives, or a score is not a
/// number, naming the vertices.
Result<NegativeFigures> CompareWithNegatives(const GraphSnapshot& graph,
                                             const LinkEvaluationOptions& options,
                                             std::span<const VertexPair> positives,
                                             const PairSource& negatives,
                                             const JobControl& control);

/// Returns the share of positives that are better than the k-th best negative, or 1 if there are
/// fewer negatives.
double OgbHits(std::span<const float> positives, std::vector<float> negatives, std::uint64_t k);

}  // namespace internal
}  // namespace rhizome
