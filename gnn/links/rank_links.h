#pragma once

#include "gnn/links/link_table.h"
#include "rhizome/link_scores.h"

namespace rhizome {
inline namespace internal {

/// Implements LinkScores::Evaluate.
Result<LinkEvaluation> RankLinks(const GraphSnapshot& graph, const LinkEvaluationOptions& options,
                                 const LinkEvaluationEdges& edges, const JobControl& control);

/// As RankLinks, by the rows of a table. `options.array` is used only with negatives.
Result<LinkEvaluation> RankTable(const LinkTable& table, const LinkEvaluationOptions& options,
                                 const LinkEvaluationEdges& edges, const JobControl& control);

}  // namespace internal
}  // namespace rhizome
