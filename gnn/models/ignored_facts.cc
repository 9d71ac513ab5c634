#include "gnn/models/ignored_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace rhizome {
inline namespace internal {
namespace {

/// Returns "types (a, b, ...)" with only the first few names.
std::string Named(std::string_view what, const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 8;
  const std::vector<std::string> shown(
      names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kShown)));
  return fmt::format("{} ({}{})", what, fmt::join(shown, ", "),
                     names.size() > kShown ? ", ..." : "");
}

/// Returns 12345 as "12,345".
std::string Grouped(std::uint64_t number) {
  if (number < 1000) return fmt::format("{}", number);
  return fmt::format("{},{:03}", Grouped(number / 1000), number % 1000);
}

/// Returns how many of `vertices` have no edge in `direction`.
Result<std::uint64_t> CountWithout(const GraphSnapshot& graph, std::span<const VertexId> vertices,
                                   Direction direction) {
  std::uint64_t count = 0;
  for (const VertexId vertex : vertices) {
    RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t degree, graph.Degree(vertex, direction));
    count += degree == 0 ? 1 : 0;
  }
  return count;
}

/// Describes the direction that is not walked, and how many training vertices have no edge without
/// it.
Result<std::string> OtherDirection(const GraphSnapshot& graph, const UsedFacts& used) {
  const bool walks_in = used.sampling.walked() == Direction::kIn;
  std::string text = walks_in ? "out-edges" : "in-edges";
  if (used.training.empty()) return text;
  RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t without,
                           CountWithout(graph, used.training, used.sampling.walked()));
  if (without == 0) return text;
  text += fmt::format(" ({} of {} training vertices have no {}-edge: ", Grouped(without),
                      Grouped(used.training.size()), walks_in ? "in" : "out");
  return text + (graph.info().directions == Direction::kBoth
                     ? "use `direction=both` to follow both)"
                     : "ingest with `undirected`, or with `directions=both` for `direction=both`)");
}

}  // namespace

Result<std::vector<std::string>> IgnoredFacts(const GraphSnapshot& graph, const UsedFacts& used) {
  std::vector<std::string> ignored;
  if (graph.vertex_types().size() > 1 && !used.vertex_types)
    ignored.push_back(Named("vertex types", graph.vertex_types()));
  const bool by_type =
      used.edge_types || !used.sampling.typed_fanouts.empty() || !used.sampling.meta_path.empty();
  if (graph.edge_types().size() > 1 && !by_type)
    ignored.push_back(Named("edge types", graph.edge_types()));
  if (graph.info().weighted && !used.edge_weights && !used.sampling.weighted)
    ignored.emplace_back("edge weights");
  std::vector<std::string> attributes;
  for (const EdgeAttributeInfo& attribute : graph.edge_attributes())
    if (attribute.name != used.sampling.time_attribute) attributes.push_back(attribute.name);
  if (!attributes.empty()) ignored.push_back(Named("edge attributes", attributes));
  if (!graph.info().symmetric && used.sampling.walked() != Direction::kBoth) {
    RHIZOME_ASSIGN_OR_RETURN(std::string other, OtherDirection(graph, used));
    ignored.push_back(std::move(other));
  }
  return ignored;
}

void ReportIgnored(const std::vector<std::string>& ignored,
                   const std::function<void(std::string_view)>& note) {
  if (ignored.empty() || !note) return;
  note(fmt::format("not used: {}; the model does not depend on them", fmt::join(ignored, "; ")));
}

}  // namespace internal
}  // namespace rhizome
