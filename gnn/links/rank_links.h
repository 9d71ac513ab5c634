#pragma once

#include "rhizome/link_scores.h"

namespace rhizome {
inline namespace internal {

/// Implements LinkScores::Evaluate.
Result<LinkEvaluation> RankLinks(const GraphSnapshot& graph, const LinkEvaluationOptions& options,
                                 const LinkEvaluationEdges& edges, const JobControl& control);

}  // namespace internal
}  // namespace rhizome
