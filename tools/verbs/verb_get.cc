#include <fmt/format.h>

#include "storage/array/array_versions.h"
#include "tools/cli/id_text.h"
#include "tools/cli/text.h"
#include "tools/import/elements.h"
#include "tools/verbs/verbs.h"
#include "tools/verbs/vertex_array.h"

namespace rhizome {
namespace {

struct GetFlags {
  std::string store;
  std::string id;
  std::string array;
};

std::string DescribeGet(const Json& f) {
  constexpr std::size_t kColumns = 8;
  const Json& values = f["values"];
  std::string text = fmt::format("{}  {}[{}] {}\n", IdText(f["id"]), f["array"].get<std::string>(),
                                 values.size(), f["dtype"].get<std::string>());
  TextTable table({1, 2, 3, 4, 5, 6, 7, 8});
  for (std::size_t i = 0; i < values.size(); i += kColumns) {
    std::vector<std::string> row = {fmt::format("{}:", i)};
    for (std::size_t j = i; j < std::min(values.size(), i + kColumns); ++j) {
      row.push_back(values[j].is_string()         ? values[j].get<std::string>()
                    : values[j].is_number_float() ? fmt::format("{:.5g}", values[j].get<double>())
                                                  : values[j].dump());
    }
    table.Add(std::move(row));
  }
  return text + table.ToString();
}

Result<Answer> RunGet(const GetFlags& flags, Session& session) {
  RHIZOME_RETURN_IF_ERROR(ParseArrayReference(flags.array));
  RHIZOME_ASSIGN_OR_RETURN(const OpenedGraph opened, OpenGraph(flags.store, session));
  RHIZOME_ASSIGN_OR_RETURN(const VertexId vertex, opened.graph->FindText(flags.id));
  RHIZOME_ASSIGN_OR_RETURN(const auto array, opened.store->OpenArray(flags.array));
  RHIZOME_RETURN_IF_ERROR(CheckVertexArray(array->entry()));
  RHIZOME_ASSIGN_OR_RETURN(const auto row, ReadVertexRow(*opened.graph, *array, vertex));
  Json fields = {{"id", IdJson(*opened.graph->ExternalIdOf(vertex))},
                 {"array", flags.array},
                 {"dtype", DataTypeName(array->entry().dtype)},
                 {"values", ToJson(ElementType(array->entry()), row)}};
  RHIZOME_RETURN_IF_ERROR(WarnIfStale(session, *opened.graph, array->entry(), fields, vertex));
  return Answer{std::move(fields), DescribeGet, {}};
}

}  // namespace

void AddGetVerb(CLI::App& root, Session& session) {
  auto flags = std::make_shared<GetFlags>();
  CLI::App* verb = AddVerb(root, session, "get", "Print a vertex's row of an array",
                           "rhizome get demo.rz 7 --array feat", flags, RunGet);
  verb->add_option("STORE", flags->store, "The store's folder")->required();
  verb->add_option("ID", flags->id, "External id of the vertex")->required();
  verb->add_option("--array", flags->array, "Name of the array")->required()->type_name("NAME");
}

}  // namespace rhizome
