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
                   "Lines are rows of this array: id v1 v2 ...; a row that exists is replaced")
      ->type_name("NAME");
  verb->add_flag("--upsert", flags->upsert,
                 "An edge replaces all of the same source, type and target");
  verb->add_flag("--create-types", flags->create_types,
                 "Add edge and vertex types that the store lacks; default: refuse them");
  verb->add_flag("--no-create-vertices", flags->no_create_vertices,
                 "Refuse edges and rows of vertices that the store lacks; default: add them");
  verb->footer(std::string(kUpdateJsonHelp) + verb->get_footer());
}

}  // namespace rhizome
