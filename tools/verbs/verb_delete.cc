#include "tools/verbs/update_run.h"
#include "tools/verbs/verbs.h"

namespace rhizome {

void AddDeleteVerb(CLI::App& root, Session& session) {
  auto flags = std::make_shared<UpdateFlags>();
  flags->format.verb = UpdateVerb::kDelete;
  CLI::App* verb =
      AddVerb(root, session, "delete",
              "Delete edges, including all parallel ones, or vertices with their edges",
              "printf '3\\t8\\n' | rhizome delete demo.rz -", flags, RunUpdate);
  AddUpdateFlags(*verb, *flags);
  verb->footer(std::string(kUpdateJsonHelp) + verb->get_footer());
}

}  // namespace rhizome
