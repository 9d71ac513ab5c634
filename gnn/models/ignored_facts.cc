#include "rhizome/gnn/ignored_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace rhizome::inline internal {
namespace {

/// Returns "types (a, b, ...)"; of many names only the first few.
std::string Named(std::string_view what, const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 8;
  const std::vector<std::string> shown(
      names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kShown)));
  return fmt::format("{} ({}{})", what, fmt::join(shown, ", "),
                     names.size() > kShown ? ", ..." : "");
}

}  // namespace

std::vector<std::string> IgnoredFacts(const GraphSnapshot& graph) {
  std::vector<std::string> ignored;
  if (graph.vertex_types().size() > 1)
    ignored.push_back(Named("vertex types", graph.vertex_types()));
  if (graph.edge_types().size() > 1) ignored.push_back(Named("edge types", graph.edge_types()));
  if (graph.info().weighted) ignored.emplace_back("edge weights");
  std::vector<std::string> attributes;
  for (const EdgeAttributeInfo& attribute : graph.edge_attributes())
    attributes.push_back(attribute.name);
  if (!attributes.empty()) ignored.push_back(Named("edge attributes", attributes));
  return ignored;
}

void TellIgnored(const std::vector<std::string>& ignored,
                 const std::function<void(std::string_view)>& note) {
  if (ignored.empty() || !note) return;
  note(fmt::format("not used: {}; the network takes all vertices and all edges for alike",
                   fmt::join(ignored, "; ")));
}

}  // namespace rhizome::inline internal
