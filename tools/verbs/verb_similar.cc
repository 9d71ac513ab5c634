#include <fmt/format.h>

#include <algorithm>

#include "rhizome/graph_lookup.h"
#include "storage/array/array_versions.h"
#include "tools/cli/id_text.h"
#include "tools/cli/text.h"
#include "tools/import/elements.h"
#include "tools/verbs/verbs.h"
#include "tools/verbs/vertex_array.h"

namespace rhizome {
namespace {

struct SimilarFlags {
  std::string store;
  std::string id;
  std::vector<std::string> arrays;
  std::uint64_t k = 10;
};

/// Prints a note about rows that were left out because they contain NaN or infinity.
void WarnLeftOutRows(const Session& session, const std::string& name, std::uint64_t rows) {
  if (rows == 0) return;
  Tell(session, "note",
       fmt::format("{} of {} {} NaN or an infinite value and {} ignored", Plural(rows, "row"), name,
                   rows == 1 ? "has" : "have", rows == 1 ? "is" : "are"));
}

Result<Json> SimilarJson(const OpenedGraph& opened, const std::optional<ClassNames>& labels,
                         const std::string& name, VertexId vertex, std::uint64_t k,
                         const Session& session) {
  std::uint64_t non_finite = 0;
  RHIZOME_ASSIGN_OR_RETURN(const auto array, opened.store->OpenArray(name));
  RHIZOME_RETURN_IF_ERROR(CheckVertexArray(array->entry()));
  RHIZOME_ASSIGN_OR_RETURN(const auto nearest, NearestVertices(*opened.graph, name, vertex, k,
                                                               session.control, &non_finite));
  WarnLeftOutRows(session, name, non_finite);
  Json list = Json::array();
  for (const ScoredVertex& scored : nearest) {
    Json label = nullptr;
    if (labels) {
      RHIZOME_ASSIGN_OR_RETURN(label, labels->Of(*opened.graph, scored.vertex));
    }
    RHIZOME_ASSIGN_OR_RETURN(const ExternalId id, opened.graph->ExternalIdOf(scored.vertex));
    list.push_back({{"id", IdJson(id)}, {"label", std::move(label)}, {"score", scored.score}});
  }
  return list;
}

std::string Text(const Json& value) { return value.is_null() ? std::string() : IdText(value); }

/// Formats the answer as one block of columns (id, label, score) per array, side by side.
std::string DescribeSimilar(const Json& f) {
  const std::string label = Text(f["label"]);
  std::string text = Text(f["id"]) + (label.empty() ? "" : "  (" + label + ")") + "\n";
  TextTable table({0});
  std::vector<std::string> head = {""};
  std::size_t rows = 0;
  for (const auto& [name, list] : f["by_array"].items()) {
    head.insert(head.end(), {"by " + name, "", "", ""});
    rows = std::max(rows, list.size());
  }
  head.erase(head.end() - 1);
  table.Add(std::move(head));
  for (std::size_t i = 0; i < rows; ++i) {
    std::vector<std::string> row = {std::to_string(i + 1)};
    for (const auto& [name, list] : f["by_array"].items()) {
      if (i < list.size()) {
        row.insert(row.end(), {Text(list[i]["id"]), Text(list[i]["label"]),
                               fmt::format("{:.3f}", list[i]["score"].get<double>()), ""});
      } else {
        row.insert(row.end(), {"", "", "", ""});
      }
    }
    row.pop_back();
    table.Add(std::move(row));
  }
  return text + table.ToString();
}

Result<Answer> RunSimilar(const SimilarFlags& flags, Session& session) {
  for (const std::string& name : flags.arrays) {
    RHIZOME_RETURN_IF_ERROR(ParseArrayReference(name));
  }
  RHIZOME_ASSIGN_OR_RETURN(const OpenedGraph opened,
                           OpenGraph(flags.store, session, TopologyPlace::kLazy));
  RHIZOME_ASSIGN_OR_RETURN(const VertexId vertex, opened.graph->FindText(flags.id));
  RHIZOME_ASSIGN_OR_RETURN(const std::optional<ClassNames> labels, ClassNames::Open(opened));
  Json label = nullptr;
  if (labels) {
    RHIZOME_ASSIGN_OR_RETURN(label, labels->Of(*opened.graph, vertex));
  }
  Json by_array = Json::object();
  for (const std::string& name : flags.arrays) {
    RHIZOME_ASSIGN_OR_RETURN(by_array[name],
                             SimilarJson(opened, labels, name, vertex, flags.k, session));
  }
  RHIZOME_ASSIGN_OR_RETURN(const ExternalId id, opened.graph->ExternalIdOf(vertex));
  Json fields = {{"id", IdJson(id)},
                 {"label", std::move(label)},
                 {"array", flags.arrays.front()},
                 {"similar", by_array[flags.arrays.front()]},
                 {"by_array", std::move(by_array)}};
  for (const std::string& name : flags.arrays) {
    RHIZOME_ASSIGN_OR_RETURN(const auto array, opened.store->OpenArray(name));
    RHIZOME_RETURN_IF_ERROR(WarnIfStale(session, *opened.graph, array->entry(), fields));
  }
  return Answer{std::move(fields), DescribeSimilar, {}};
}

}  // namespace

void AddSimilarVerb(CLI::App& root, Session& session) {
  auto flags = std::make_shared<SimilarFlags>();
  CLI::App* verb =
      AddVerb(root, session, "similar",
              "Find the nearest vertices by cosine similarity, in one or more arrays",
              "rhizome similar demo.rz 7 --array embedding --array feat --k 5", flags, RunSimilar);
  verb->add_option("STORE", flags->store, "The store's folder")->required();
  verb->add_option("ID", flags->id, "External id of the vertex")->required();
  verb->add_option("--array", flags->arrays, "Array to compare; may be repeated")
      ->required()
      ->allow_extra_args(false)
      ->type_name("NAME");
  verb->add_option("-k,--k", flags->k, "Number of vertices to return")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1000000}))
      ->type_name("N")
      ->capture_default_str();
}

}  // namespace rhizome
