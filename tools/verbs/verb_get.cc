#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "index/graph/edges_of_vertex.h"
#include "storage/array/array_facts.h"
#include "storage/array/array_versions.h"
#include "tools/cli/id_text.h"
#include "tools/cli/text.h"
#include "tools/import/elements.h"
#include "tools/import/stored_texts.h"
#include "tools/verbs/verbs.h"
#include "tools/verbs/vertex_array.h"

// `get` prints a card of each vertex: its id, type, label, split and degrees, and the first columns
// of its row in each array (CardOf). With --array, it prints a whole row (RowOf).

namespace rhizome {
namespace {

// Columns of an array that a card shows.
constexpr std::size_t kCardColumns = 8;

struct GetFlags {
  std::string store;
  std::vector<std::string> ids;
  std::string array;
};

/// Formats a value for people.
std::string ValueText(const Json& value) {
  if (value.is_null()) return "null";
  if (value.is_string()) return value.get<std::string>();
  return value.is_number_float() ? fmt::format("{:.5g}", value.get<double>()) : value.dump();
}

std::string RowText(const Json& f) {
  const Json& values = f["values"];
  std::string text = fmt::format("{}  {}[{}] {}\n", IdText(f["id"]), f["array"].get<std::string>(),
                                 values.size(), f["dtype"].get<std::string>());
  TextTable table({1, 2, 3, 4, 5, 6, 7, 8});
  for (std::size_t i = 0; i < values.size(); i += kCardColumns) {
    std::vector<std::string> row = {fmt::format("{}:", i)};
    for (std::size_t j = i; j < std::min(values.size(), i + kCardColumns); ++j)
      row.push_back(ValueText(values[j]));
    table.Add(std::move(row));
  }
  return text + table.ToString();
}

std::string CardText(const Json& f) {
  std::string text = fmt::format("{}  ({})\n", IdText(f["id"]), f["type"].get<std::string>());
  TextTable table;
  for (const char* const field : {"label", "split"})
    if (f.contains(field)) table.Add({field, "", ValueText(f[field])});
  for (const Json& degree : f["degrees"]) {
    const auto direction = degree["direction"].get<std::string>();
    table.Add({direction == "both" ? "edges" : direction + "-edges",
               degree["type"].get<std::string>(), WithCommas(degree["count"])});
  }
  if (f["degrees"].empty()) table.Add({"edges", "", "none"});
  for (const Json& array : f["arrays"]) {
    std::string values;
    for (const Json& value : array["values"])
      values += (values.empty() ? "" : "  ") + ValueText(value);
    const auto dim = array["dim"].get<std::uint64_t>();
    if (dim > array["values"].size()) values += fmt::format("  ... of {}", dim);
    table.Add({array["name"].get<std::string>(), array["dtype"].get<std::string>(), values});
  }
  return text + table.ToString();
}

std::string DescribeGet(const Json& f) {
  const auto describe = [](const Json& one) {
    return one.contains("values") ? RowText(one) : CardText(one);
  };
  if (!f.contains("vertices")) return describe(f);
  std::string text;
  for (const Json& one : f["vertices"]) text += (text.empty() ? "" : "\n") + describe(one);
  return text;
}

/// Returns the type of an array's values as people see them.
std::string_view ShownType(const ArrayEntry& entry) {
  return HasTexts(entry) ? kTypeText : DataTypeName(entry.dtype);
}

Result<Json> DegreesOf(const GraphSnapshot& graph, VertexId vertex) {
  RHIZOME_ASSIGN_OR_RETURN(const auto degrees, CountEdgesOf(graph, vertex, Direction::kBoth));
  const std::vector<std::string> types = graph.edge_types();
  Json json = Json::array();
  for (const TypeDegree& degree : degrees)
    json.push_back({{"direction", DirectionOfList(graph, degree.list)},
                    {"type", types[degree.type]},
                    {"count", degree.count}});
  return json;
}

/// Returns the arrays of a card: a row in each array of vertices that users see, of several
/// versions the one that the plain name means, unless it is bound to another vertex type. Label and
/// split have fields of their own.
Result<Json> ArraysOfCard(const OpenedGraph& opened, StoredTexts& texts, VertexId vertex,
                          const Session& session, Json& card) {
  Json arrays = Json::array();
  for (const CardArray& array : CardArrays(opened.store->manifest())) {
    const std::string_view bound = BoundType(*array.entry);
    if (!bound.empty() && bound != card["type"].get<std::string>()) continue;
    RHIZOME_ASSIGN_OR_RETURN(const auto file, opened.store->OpenArray(array.entry->name));
    RHIZOME_ASSIGN_OR_RETURN(const auto row, ReadVertexRow(*opened.graph, *file, vertex));
    RHIZOME_ASSIGN_OR_RETURN(Json values, texts.RowJson(*array.entry, row));
    if (values.size() > kCardColumns) values.erase(values.begin() + kCardColumns, values.end());
    if (array.name == "split" && array.entry->dim == 1) {
      card["split"] = SplitText(values[0]);
      continue;
    }
    arrays.push_back({{"name", array.name},
                      {"dtype", ShownType(*array.entry)},
                      {"dim", array.entry->dim},
                      {"values", std::move(values)}});
    RHIZOME_RETURN_IF_ERROR(WarnIfStale(session, *opened.graph, *array.entry, card, vertex));
  }
  return arrays;
}

Result<Json> CardOf(const OpenedGraph& opened, const std::optional<ClassNames>& labels,
                    StoredTexts& texts, VertexId vertex, const Session& session) {
  const GraphSnapshot& graph = *opened.graph;
  RHIZOME_ASSIGN_OR_RETURN(const ExternalId id, graph.ExternalIdOf(vertex));
  RHIZOME_ASSIGN_OR_RETURN(const TypeId type, graph.TypeOf(vertex));
  Json card = {{"id", IdJson(id)}, {"type", graph.vertex_types()[type]}};
  if (labels) {
    RHIZOME_ASSIGN_OR_RETURN(card["label"], labels->Of(graph, vertex));
  }
  RHIZOME_ASSIGN_OR_RETURN(auto arrays, ArraysOfCard(opened, texts, vertex, session, card));
  RHIZOME_ASSIGN_OR_RETURN(card["degrees"], DegreesOf(graph, vertex));
  card["arrays"] = std::move(arrays);
  return card;
}

Result<Json> RowOf(const OpenedGraph& opened, const std::string& name, StoredTexts& texts,
                   VertexId vertex, const Session& session) {
  RHIZOME_ASSIGN_OR_RETURN(const auto array, opened.store->OpenArray(name));
  RHIZOME_RETURN_IF_ERROR(CheckVertexArray(array->entry()));
  RHIZOME_ASSIGN_OR_RETURN(const auto row, ReadVertexRow(*opened.graph, *array, vertex));
  RHIZOME_ASSIGN_OR_RETURN(const ExternalId id, opened.graph->ExternalIdOf(vertex));
  RHIZOME_ASSIGN_OR_RETURN(Json values, texts.RowJson(array->entry(), row));
  Json fields = {{"id", IdJson(id)},
                 {"array", name},
                 {"dtype", ShownType(array->entry())},
                 {"values", std::move(values)}};
  RHIZOME_RETURN_IF_ERROR(WarnIfStale(session, *opened.graph, array->entry(), fields, vertex));
  return fields;
}

// All ids are resolved first, so that a wrong one is reported before anything is printed.
Result<Answer> RunGet(const GetFlags& flags, Session& session) {
  if (!flags.array.empty()) RHIZOME_RETURN_IF_ERROR(ParseArrayReference(flags.array));
  RHIZOME_ASSIGN_OR_RETURN(const OpenedGraph opened,
                           OpenGraph(flags.store, session, TopologyPlace::kLazy));
  std::vector<VertexId> vertices;
  for (const std::string& id : flags.ids) {
    RHIZOME_ASSIGN_OR_RETURN(vertices.emplace_back(), opened.graph->FindText(id));
  }
  RHIZOME_ASSIGN_OR_RETURN(const auto labels, ClassNames::Open(opened));
  StoredTexts texts(*opened.graph);
  Json found = Json::array();
  for (const VertexId vertex : vertices) {
    RHIZOME_ASSIGN_OR_RETURN(auto one, flags.array.empty()
                                           ? CardOf(opened, labels, texts, vertex, session)
                                           : RowOf(opened, flags.array, texts, vertex, session));
    found.push_back(std::move(one));
  }
  Json fields;
  if (found.size() == 1) {
    fields = std::move(found[0]);
  } else {
    fields["vertices"] = std::move(found);
  }
  return Answer{std::move(fields), DescribeGet, {}};
}

}  // namespace

void AddGetVerb(CLI::App& root, Session& session) {
  auto flags = std::make_shared<GetFlags>();
  CLI::App* verb = AddVerb(root, session, "get",
                           "Print vertices: type, label, degrees, and their rows of all arrays",
                           "rhizome get demo.rz 7", flags, RunGet);
  verb->add_option("STORE", flags->store, "The store's folder")->required();
  verb->add_option("ID", flags->ids, "External ids of the vertices")->required();
  verb->add_option("--array", flags->array, "Print only the row of this array, with all columns")
      ->type_name("NAME");
}

}  // namespace rhizome
