#pragma once

#include "rhizome/link_scores.h"

namespace rhizome {
inline namespace internal {

/// Implements LinkScores::Score.
Result<LinkScoreReport> ScorePairs(const GraphSnapshot& graph, const LinkScoreOptions& options,
                                   const PairSource& source, const ScoreSink& sink,
                                   const JobControl& control);

}  // namespace internal
}  // namespace rhizome
