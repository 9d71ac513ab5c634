#pragma once

#include "rhizome/gnn/link_scores.h"

namespace rhizome::inline internal {

/// Implements LinkScores::Score.
Result<LinkScoreReport> ScorePairs(const GraphSnapshot& graph, const LinkScoreOptions& options,
                                   const PairSource& source, const ScoreSink& sink,
                                   const JobControl& control);

}  // namespace rhizome::inline internal
