#pragma once

#include "rhizome/link_scores.h"

namespace rhizome {
inline namespace internal {

/// Implements LinkScores::Top.
Result<TopLinksReport> FindTopLinks(const GraphSnapshot& graph, const TopLinksOptions& options,
                                    const VertexSource& source, const ScoreSink& sink,
                                    const JobControl& control);

}  // namespace internal
}  // namespace rhizome
