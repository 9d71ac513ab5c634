#include <fmt/format.h>

#include "tools/verbs/verbs.h"

namespace rhizome {
namespace {

struct CountFlags {
  std::string store;
};

std::string DescribeCount(const Json& f) {
  return fmt::format("{} vertices\n", f["vertices"].get<std::uint64_t>());
}

Result<Answer> RunCount(const CountFlags& flags, Session& session) {
  RHIZOME_ASSIGN_OR_RETURN(const OpenedGraph opened, OpenGraph(flags.store, session));
  return Answer{{{"vertices", opened.graph->live_vertex_count()}}, DescribeCount, {}};
}

}  // namespace

void AddCountVerb(CLI::App& root, Session& session) {
  auto flags = std::make_shared<CountFlags>();
  CLI::App* verb = AddVerb(root, session, "count", "How many vertices there are",
                           "rhizome count demo.rz", flags, RunCount);
  verb->add_option("STORE", flags->store, "The store's folder")->required();
}

}  // namespace rhizome
