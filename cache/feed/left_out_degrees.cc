// Correct finds the queries: which lists must be searched for which vertices (QueriesOf). It then
// reads the lists of some queries at a time, and corrects the degrees (CorrectGroup).

#include "cache/feed/left_out_degrees.h"

#include <algorithm>
#include <span>

#include "cache/feed/row_degrees.h"
#include "storage/base/check.h"
#include "storage/base/mutant.h"

namespace rhizome {
inline namespace internal {
namespace {

// Lists are read together until they have this many entries.
constexpr std::uint64_t kEntriesAtOnce = std::uint64_t{1} << 18;

/// Whether an entry of a list leads to one of the partners, which are ascending.
bool LeadsTo(Row neighbor, std::span<const Row> partners) {
  return std::binary_search(partners.begin(), partners.end(), neighbor);
}

}  // namespace

Result<std::unique_ptr<LeftOutDegrees>> LeftOutDegrees::Create(
    const GraphSnapshot& graph, const SamplerOptions& sampling,
    std::shared_ptr<const NeighborSource> neighbors) {
  const SamplerOptions whole{
      .fanouts = {kAllNeighbors}, .direction = sampling.direction, .threads = sampling.threads};
  RHIZOME_ASSIGN_OR_RETURN(auto lists, Sampler::Create(graph, whole, std::move(neighbors)));
  const bool symmetric = sampling.direction == Direction::kBoth || graph.info().symmetric;
  return std::unique_ptr<LeftOutDegrees>(
      new LeftOutDegrees(graph, std::move(lists), symmetric, sampling.direction));
}

Status LeftOutDegrees::Correct(Minibatch& minibatch) const {
  if (RHIZOME_MUTANT("degrees count the edges of pairs")) return Status::Ok();
  // Sums of weights are added in the order of the list, without those left out, so that they have
  // the bits of a graph without these edges. This requires the lists of all ends.
  const bool halved = symmetric_ && minibatch.weighted_degrees.empty();
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<Query> queries, QueriesOf(minibatch, halved));
  std::uint64_t entries = 0;
  std::size_t first = 0;
  for (std::size_t i = 0; i < queries.size(); ++i) {
    RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t degree, DegreeOf(minibatch, queries[i].first));
    const bool same_list = i > first && queries[i].first == queries[i - 1].first;
    if (!same_list && i > first && entries + degree > kEntriesAtOnce) {
      RHIZOME_RETURN_IF_ERROR(
          CorrectGroup(std::span(queries).subspan(first, i - first), halved, minibatch));
      first = i;
      entries = 0;
    }
    if (!same_list) entries += degree;
  }
  return CorrectGroup(std::span(queries).subspan(first), halved, minibatch);
}

Result<std::uint64_t> LeftOutDegrees::DegreeOf(const Minibatch& minibatch,
                                               std::uint32_t local) const {
  RHIZOME_ASSIGN_OR_RETURN(const std::uint32_t degree,
                           DegreeOfRow(*graph_, minibatch.rows[local], direction_));
  return std::uint64_t{degree};
}

/// Returns the distinct queries, grouped by list. If `halved`, each pair is looked up in the
/// shorter one of its two lists.
Result<std::vector<LeftOutDegrees::Query>> LeftOutDegrees::QueriesOf(const Minibatch& minibatch,
                                                                     bool halved) const {
  std::vector<Query> queries;
  queries.reserve(2 * minibatch.pairs.size());
  for (const MinibatchPair& pair : minibatch.pairs) {
    const Query there{pair.src, pair.dst}, back{pair.dst, pair.src};
    if (!halved) {
      queries.push_back(there);
      queries.push_back(back);
      continue;
    }
    RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t of_src, DegreeOf(minibatch, pair.src));
    RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t of_dst, DegreeOf(minibatch, pair.dst));
    const bool from_src = of_src < of_dst || (of_src == of_dst && pair.src < pair.dst);
    queries.push_back(from_src ? there : back);
  }
  std::sort(queries.begin(), queries.end());
  queries.erase(std::unique(queries.begin(), queries.end()), queries.end());
  return queries;
}

/// Reads the lists of some queries and corrects the degrees of their vertices.
Status LeftOutDegrees::CorrectGroup(std::span<const Query> queries, bool halved,
                                    Minibatch& minibatch) const {
  std::vector<std::uint32_t> ends;
  std::vector<VertexId> seeds;
  for (const auto& [of, partner] : queries) {
    if (!ends.empty() && ends.back() == of) continue;
    ends.push_back(of);
    RHIZOME_ASSIGN_OR_RETURN(seeds.emplace_back(), graph_->VertexAt(minibatch.rows[of]));
  }
  RHIZOME_ASSIGN_OR_RETURN(const SampledSubgraph lists, lists_->Sample(seeds, 0));
  std::vector<Row> partners;
  std::size_t q = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const std::size_t first = q;
    partners.clear();
    for (; q < queries.size() && queries[q].first == ends[i]; ++q)
      partners.push_back(minibatch.rows[queries[q].second]);
    std::sort(partners.begin(), partners.end());
    double sum = 0;
    for (std::uint64_t e = lists.offsets[i]; e < lists.offsets[i + 1]; ++e) {
      const Row neighbor = lists.rows[static_cast<std::size_t>(lists.neighbors[e])];
      if (!LeadsTo(neighbor, partners)) {
        if (!lists.weights.empty()) sum += static_cast<double>(lists.weights[e]);
        continue;
      }
      if (minibatch.degrees.empty()) continue;
      --minibatch.degrees[ends[i]];
      if (!halved) continue;
      for (const auto& [of, partner] : queries.subspan(first, q - first))
        if (partner != of && minibatch.rows[partner] == neighbor) --minibatch.degrees[partner];
    }
    if (!minibatch.weighted_degrees.empty())
      minibatch.weighted_degrees[ends[i]] = static_cast<float>(sum);
  }
  return Status::Ok();
}

}  // namespace internal
}  // namespace rhizome
