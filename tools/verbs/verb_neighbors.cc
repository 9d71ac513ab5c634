#include <fmt/format.h>

#include <algorithm>

#include "rhizome/neighbor_sampling.h"
#include "tools/cli/id_text.h"
#include "tools/cli/text.h"
#include "tools/verbs/verbs.h"

namespace rhizome {
namespace {

struct NeighborsFlags {
  std::string store;
  std::string id;
  Direction direction = Direction::kOut;
  std::string type;
};

std::string DescribeNeighbors(const Json& f) {
  const Json& neighbors = f["neighbors"];
  const std::string direction = f["direction"];
  std::string text =
      fmt::format("{}: {}{}\n", IdText(f["id"]), Plural(neighbors.size(), "neighbour"),
                  direction == "both" ? "" : fmt::format(" ({}-edges)", direction));
  TextTable table;
  for (const Json& n : neighbors) {
    std::vector<std::string> row = {n["type"].get<std::string>(), IdText(n["id"])};
    if (f["weighted"].get<bool>()) row.push_back(fmt::format("{:g}", n["weight"].get<double>()));
    table.Add(std::move(row));
  }
  return text + table.ToString();
}

/// Returns the edge type called `name`. Errors: kNotFound, listing the existing types.
Result<TypeId> FindEdgeType(const std::vector<std::string>& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<TypeId>(found - names.begin());
  return Fail(
      Status::NotFound(fmt::format("there is no edge type '{}'; there {} {}", name,
                                   names.size() == 1 ? "is" : "are", fmt::join(names, ", "))));
}

Result<Answer> RunNeighbors(const NeighborsFlags& flags, Session& session) {
  RHIZOME_ASSIGN_OR_RETURN(const OpenedGraph opened, OpenGraph(flags.store, session));
  const GraphSnapshot& graph = *opened.graph;
  RHIZOME_ASSIGN_OR_RETURN(const VertexId vertex, graph.FindText(flags.id));
  std::vector<Neighbor> list;
  if (flags.type.empty()) {
    RHIZOME_ASSIGN_OR_RETURN(list, graph.Neighbors(vertex, flags.direction));
  } else {
    RHIZOME_ASSIGN_OR_RETURN(const TypeId type, FindEdgeType(graph.edge_types(), flags.type));
    RHIZOME_ASSIGN_OR_RETURN(list, graph.NeighborsOfType(vertex, flags.direction, type));
  }
  const std::vector<std::string> types = graph.edge_types();
  Json neighbors = Json::array();
  for (const Neighbor& n : list) {
    neighbors.push_back({{"id", IdJson(*graph.ExternalIdOf(n.vertex))},
                         {"type", types[n.type]},
                         {"weight", n.weight}});
  }
  const char* direction = flags.direction == Direction::kOut  ? "out"
                          : flags.direction == Direction::kIn ? "in"
                                                              : "both";
  Json fields = {{"id", IdJson(*graph.ExternalIdOf(vertex))},
                 {"direction", direction},
                 {"weighted", graph.info().weighted},
                 {"neighbors", std::move(neighbors)}};
  return Answer{std::move(fields), DescribeNeighbors, {}};
}

}  // namespace

void AddNeighborsVerb(CLI::App& root, Session& session) {
  auto flags = std::make_shared<NeighborsFlags>();
  CLI::App* verb = AddVerb(root, session, "neighbors",
                           "List the neighbours of a vertex; parallel edges are repeated",
                           "rhizome neighbors demo.rz 7 --direction in", flags, RunNeighbors);
  verb->add_option("STORE", flags->store, "The store's folder")->required();
  verb->add_option("ID", flags->id, "External id of the vertex")->required();
  AddChoice<Direction>(
      *verb, "--direction", flags->direction,
      {{"out", Direction::kOut}, {"in", Direction::kIn}, {"both", Direction::kBoth}},
      "Edges to follow: out-edges of the vertex, in-edges, or both");
  verb->add_option("--type", flags->type, "Only edges of this type")->type_name("NAME");
}

}  // namespace rhizome
