#include "tools/verbs/update_run.h"
#include "tools/verbs/verbs.h"

namespace rhizome {

void AddPutVerb(CLI::App& root, Session& session) {
  auto flags = std::make_shared<UpdateFlags>();
  CLI::App* verb =
      AddVerb(root, session, "put", "Add edges, vertices or rows of an array to a store, durably",
              "printf '3\\t8\\n8\\t3\\n' | rhizome put demo.rz -", flags, RunUpdate);
  AddUpdateFlags(*verb, *flags);
  verb->add_option("--array", flags->format.array,
                   "Lines are rows of this array: id v1 v2 ...; existing rows are replaced")
      ->type_name("NAME");
  verb->add_flag("--upsert", flags->upsert,
                 "Replace all existing edges with the same source, type and target");
  verb->add_flag("--create-types", flags->create_types,
                 "Create edge and vertex types that do not exist; default: reject them");
  verb->add_flag(
      "--no-create-vertices", flags->no_create_vertices,
      "Reject edges and rows of vertices that do not exist; default: create the vertices");
  verb->add_flag("--create", flags->create,
                 "Create the store if it is absent, with ids, weights and types as in the first "
                 "batch");
  verb->add_option("--schema", flags->schema,
                   "With --create: the schema instead, a file or JSON, as for rhizome init")
      ->type_name("F.json");
  verb->footer(std::string(kUpdateJsonHelp) + verb->get_footer());
}

}  // namespace rhizome
