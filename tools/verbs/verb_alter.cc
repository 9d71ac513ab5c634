#include <fmt/format.h>

#include "rhizome/graph_types.h"
#include "storage/base/stopwatch.h"
#include "tools/cli/text.h"
#include "tools/verbs/verbs.h"

namespace rhizome {
namespace {

struct AlterFlags {
  std::string store;
  bool weights = false;
  std::vector<std::string> attributes;
  CompactOptions options;
  Path scratch;
  double wait = 0;
};

/// Parses NAME:DTYPE or NAME:DTYPE:DIM.
Result<EdgeAttributeSchema> ParseAttribute(const std::string& given) {
  const auto wrong = [&] {
    return Fail(Status::InvalidArgument(
        fmt::format("--edge-attribute '{}': write NAME:DTYPE or NAME:DTYPE:DIM, such as time:int64 "
                    "or vector:float32:16",
                    given)));
  };
  const std::vector<std::string> parts = SplitList(given, ':');
  if (parts.size() < 2 || parts.size() > 3) return wrong();
  const auto dtype = ParseDataType(parts[1]);
  const auto dim = parts.size() == 3 ? ParseCanonicalInteger(parts[2]) : std::int64_t{1};
  if (!dtype || !dim || *dim < 1) return wrong();
  return EdgeAttributeSchema{
      .name = parts[0], .dtype = *dtype, .dim = static_cast<std::uint64_t>(*dim)};
}

std::string DescribeAlter(const Json& f) {
  return fmt::format("{}: generation {} has {}{} of edges; {}\n", f["store"].get<std::string>(),
                     f["generation"].get<std::uint64_t>(),
                     f["weighted"].get<bool>() ? "weights and " : "",
                     Plural(f["edge_attributes"], "attribute"), HumanSeconds(f["seconds"]));
}

Result<Answer> RunAlter(const AlterFlags& flags, Session& session) {
  SchemaChange change{.weighted = flags.weights};
  for (const std::string& given : flags.attributes) {
    RHIZOME_ASSIGN_OR_RETURN(change.edge_attributes.emplace_back(), ParseAttribute(given));
  }
  if (change.empty())
    return Fail(Status::InvalidArgument("nothing to add: give --weights or --edge-attribute"));
  const Stopwatch watch;
  RHIZOME_RETURN_IF_ERROR(session.control.Report({.phase = "opening the store"}));
  RHIZOME_ASSIGN_OR_RETURN(
      const auto graph,
      Graph::Open(flags.store,
                  {.mode = Mode::kWrite,
                   .store = {.scratch = flags.scratch, .wait = WaitFor(flags.wait, session)}}));
  RHIZOME_ASSIGN_OR_RETURN(const CompactResult result,
                           graph->Alter(change, flags.options, session.control));
  return Answer{{{"store", flags.store},
                 {"generation", result.generation},
                 {"commits", result.commits},
                 {"weighted", graph->Snapshot()->info().weighted},
                 {"edge_attributes", graph->edge_attributes().size()},
                 {"seconds", watch.seconds()}},
                DescribeAlter,
                {}};
}

}  // namespace

void AddAlterVerb(CLI::App& root, Session& session) {
  auto flags = std::make_shared<AlterFlags>();
  CLI::App* verb = AddVerb(root, session, "alter", "Add weights or attributes to all edges",
                           "rhizome alter demo.rz --edge-attribute time:int64", flags, RunAlter);
  verb->add_option("STORE", flags->store, "The store's folder")->required();
  verb->add_flag("--weights", flags->weights, "Add weights; existing edges get the weight 1");
  verb->add_option("--edge-attribute", flags->attributes,
                   "Add an attribute of type int64, float32 or float64; existing edges get zeros")
      ->allow_extra_args(false)
      ->type_name("NAME:DTYPE[:DIM]");
  AddScratch(*verb, flags->scratch);
  AddWait(*verb, flags->wait);
  AddThreads(*verb, flags->options.threads);
  AddSize(*verb, "--memory", flags->options.memory_bytes, "Memory limit; 0: none");
  verb->footer(
      "This writes the next generation of the store, as compact does; the change is one commit.\n"
      "Arrays: rhizome array add STORE NAME --empty DIM. Types: rhizome put --create-types.\n" +
      verb->get_footer());
}

}  // namespace rhizome
