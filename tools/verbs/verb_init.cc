#include <fmt/format.h>

#include "tools/cli/text.h"
#include "tools/verbs/schema_file.h"
#include "tools/verbs/verbs.h"

namespace rhizome {
namespace {

struct InitFlags {
  std::string store;
  std::string schema;
};

std::string DescribeInit(const Json& f) {
  const auto attributes = f["edge_attributes"].get<std::size_t>();
  return fmt::format(
      "{}: an empty store with {} ids, {}{}, {} and {}\n"
      "next: rhizome put {} FILE\n",
      f["store"].get<std::string>(), f["ids"].get<std::string>(),
      f["weighted"].get<bool>() ? "weights, " : "", Plural(f["edge_types"], "edge type"),
      fmt::format("{} of edges", Plural(attributes, "attribute")), Plural(f["arrays"], "array"),
      f["store"].get<std::string>());
}

Result<Answer> RunInit(const InitFlags& flags, Session&) {
  RHIZOME_ASSIGN_OR_RETURN(const GraphSchema schema, ReadSchema(flags.schema));
  RHIZOME_ASSIGN_OR_RETURN(const auto graph, Graph::Create(flags.store, schema));
  return Answer{{{"store", flags.store},
                 {"id", graph->Snapshot()->store().id().ToString()},
                 {"ids", schema.text_ids ? "text" : "integer"},
                 {"weighted", schema.weighted},
                 {"undirected", schema.undirected},
                 {"vertex_types", schema.vertex_types.size()},
                 {"edge_types", schema.edge_types.size()},
                 {"edge_attributes", schema.edge_attributes.size()},
                 {"arrays", schema.arrays.size()}},
                DescribeInit,
                {}};
}

}  // namespace

void AddInitVerb(CLI::App& root, Session& session) {
  auto flags = std::make_shared<InitFlags>();
  CLI::App* verb = AddVerb(root, session, "init",
                           "Create an empty store, to which put adds vertices, edges and rows",
                           "rhizome init new.rz --schema '{\"weighted\": true}'", flags, RunInit);
  verb->add_option("STORE", flags->store, "Folder to create")->required();
  verb->add_option("--schema", flags->schema,
                   "File with the schema, or the schema itself; default: integer ids, one type of "
                   "vertices and edges, no weights, attributes and arrays")
      ->type_name("F.json");
  verb->footer(std::string(kSchemaHelp) + verb->get_footer());
}

}  // namespace rhizome
