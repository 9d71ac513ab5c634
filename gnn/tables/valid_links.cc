#include "gnn/tables/valid_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "cache/job/safetensors.h"
#include "cache/tables/negative_sources.h"
#include "index/base/counter_random.h"
#include "index/links/link_file.h"
#include "storage/base/hash.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::uint64_t kMaxCandidates = 512;  // of a vertex type
constexpr std::uint32_t kCandidateStream = 104;

/// Draws a fixed sample of the vertices of each type that an end of the edges has.
Status DrawCandidates(std::uint64_t seed, const std::shared_ptr<const GraphSnapshot>& graph,
                      ValidLinks& valid) {
  std::set<TypeId> types;
  for (const VertexPair& edge : valid.edges) {
    for (const VertexId end : {edge.src, edge.dst}) {
      RHIZOME_ASSIGN_OR_RETURN(const TypeId type, graph->TypeOf(end));
      types.insert(type);
    }
  }
  RHIZOME_ASSIGN_OR_RETURN(NegativeVertices vertices, NegativeVertices::Of(graph));
  for (const TypeId type : types) {
    std::vector<VertexId> drawn;
    CounterRandom random({.seed = seed, .stream = kCandidateStream, .subgraph = type});
    RHIZOME_RETURN_IF_ERROR(vertices.Draw({.source = NegativeSource::kUniform}, 0, type,
                                          kMaxCandidates, random, drawn));
    std::sort(drawn.begin(), drawn.end());
    drawn.erase(std::unique(drawn.begin(), drawn.end()), drawn.end());
    valid.candidates.push_back({.type = type, .vertices = std::move(drawn)});
  }
  return Status::Ok();
}

}  // namespace

Result<ValidLinks> ReadValidLinks(const TrainOptions& options,
                                  const std::shared_ptr<const GraphSnapshot>& graph) {
  ValidLinks valid;
  if (options.link.valid.empty()) return valid;
  RHIZOME_ASSIGN_OR_RETURN(valid.edges, ReadLinks(*graph, options.link.valid));
  if (valid.edges.empty())
    return Fail(Status::InvalidArgument(
        fmt::format("`valid`: {} has no edges", options.link.valid.string())));
  std::vector<VertexId> numbers;
  for (const VertexPair& edge : valid.edges)
    numbers.insert(numbers.end(), {edge.src, edge.dst, VertexId{edge.type}});
  valid.hash = ToHex(Xxh3(std::as_bytes(std::span(numbers))));
  RHIZOME_RETURN_IF_ERROR(DrawCandidates(options.learning.seed, graph, valid));
  return valid;
}

}  // namespace internal
}  // namespace rhizome
