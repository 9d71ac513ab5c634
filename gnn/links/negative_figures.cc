#include "gnn/links/negative_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "cache/feed/compute_metrics.h"
#include "gnn/links/score_pairs.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Appends the scores of all pairs of `source`.
Status AppendScores(const GraphSnapshot& graph, const LinkEvaluationOptions& options,
                    const PairSource& source, const JobControl& control,
                    std::vector<float>& scores) {
  const ScoreSink sink = [&](std::span<const VertexPair> pairs, std::span<const float> of_pairs) {
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      if (!std::isnan(of_pairs[i])) continue;
      return Status::InvalidArgument(fmt::format(
          "array {}: the score of the edge from {} to {} is not a number; the row of one of them, "
          "or the decoder, has NaN or infinite values",
          options.array, graph.NameOf(pairs[i].src), graph.NameOf(pairs[i].dst)));
    }
    scores.insert(scores.end(), of_pairs.begin(), of_pairs.end());
    return Status::Ok();
  };
  RHIZOME_RETURN_IF_ERROR(ScorePairs(graph,
                                     {.array = options.array,
                                      .scorer = options.scorer,
                                      .decoder = options.decoder,
                                      .memory_bytes = options.memory_bytes,
                                      .threads = options.threads},
                                     source, sink, control));
  return Status::Ok();
}

}  // namespace

double OgbHits(std::span<const float> positives, std::vector<float> negatives, std::uint64_t k) {
  if (negatives.size() < k) return 1;
  const auto at = negatives.begin() + static_cast<std::ptrdiff_t>(k - 1);
  std::nth_element(negatives.begin(), at, negatives.end(), std::greater<>());
  const auto hits =
      std::count_if(positives.begin(), positives.end(), [&](float score) { return score > *at; });
  return static_cast<double>(hits) / static_cast<double>(positives.size());
}

Result<NegativeFigures> CompareWithNegatives(const GraphSnapshot& graph,
                                             const LinkEvaluationOptions& options,
                                             std::span<const VertexPair> positives,
                                             const PairSource& negatives,
                                             const JobControl& control) {
  std::vector<float> scores;
  std::size_t given = 0;
  const PairSource source = [&](std::span<VertexPair> out) -> Result<std::size_t> {
    const std::size_t count = std::min(out.size(), positives.size() - given);
    std::copy_n(positives.begin() + static_cast<std::ptrdiff_t>(given), count, out.begin());
    given += count;
    return count;
  };
  RHIZOME_RETURN_IF_ERROR(AppendScores(graph, options, source, control, scores));
  RHIZOME_RETURN_IF_ERROR(AppendScores(graph, options, negatives, control, scores));
  if (scores.size() == positives.size())
    return Fail(Status::InvalidArgument("there are no negative edges"));
  std::vector<std::uint8_t> labels(scores.size(), 0);
  std::fill_n(labels.begin(), positives.size(), 1);
  NegativeFigures figures;
  figures.negatives = scores.size() - positives.size();
  figures.roc_auc = RocAuc(scores, labels).value_or(0);
  figures.average_precision = AveragePrecision(scores, labels).value_or(0);
  const std::span<const float> all = scores;
  const std::span<const float> of_positives = all.first(positives.size());
  const std::span<const float> of_negatives = all.subspan(positives.size());
  for (const std::uint64_t k : {10, 20, 50, 100}) {
    figures.hits.emplace_back(k,
                              OgbHits(of_positives, {of_negatives.begin(), of_negatives.end()}, k));
  }
  return figures;
}

}  // namespace internal
}  // namespace rhizome
