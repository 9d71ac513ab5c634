#include <cstdio>
#include <cstring>
#include <string>

#include "tools/cli/mpi_library.h"
#include "tools/cli/program.h"
#include "tools/cli/sibling_binary.h"
#include "tools/verbs/verbs.h"

namespace rhizome {
namespace {

struct HelpFlags {
  std::string verb;
};

const CLI::App* FindVerb(const CLI::App& root, const std::string& name) {
  for (const CLI::App* verb : root.get_subcommands({})) {
    if (verb->get_name() == name) return verb;
  }
  throw CLI::ValidationError("VERB", "there is no verb '" + name + "'; 'rhizome help' lists them");
}

void AddHelpVerb(CLI::App& root) {
  auto flags = std::make_shared<HelpFlags>();
  CLI::App* verb = root.add_subcommand("help", "Show this list, or the help of a verb");
  verb->add_option("VERB", flags->verb, "The verb to explain");
  verb->footer("Example: rhizome help ingest");
  verb->callback([flags, &root] {
    // App::help() of the root would describe the subcommand that was parsed, which is `help`
    // itself.
    const CLI::App* about = &root;
    std::string name = "rhizome";
    if (!flags->verb.empty()) {
      about = FindVerb(root, flags->verb);
      name += " " + flags->verb;
    }
    const auto formatter = about->get_formatter();
    const std::string text = formatter->make_help(about, name, CLI::AppFormatMode::Normal);
    std::fputs(text.c_str(), stdout);
  });
}

void AddVerbs(CLI::App& root, Session& session) {
  AddGenerateVerb(root, session);
  AddImportVerb(root, session);
  AddIngestVerb(root, session);
  AddPartitionVerb(root, session);
  AddPlanVerb(root, session);
  AddInfoVerb(root, session);
  AddVerifyVerb(root, session);
  AddArrayVerb(root, session);
  AddRepairVerb(root, session);
  AddBackupVerb(root, session);
  AddRestoreVerb(root, session);
  AddUpgradeVerb(root, session);
  AddDoctorVerb(root, session);
  AddNeighborsVerb(root, session);
  AddGetVerb(root, session);
  AddPutVerb(root, session);
  AddDeleteVerb(root, session);
  AddChangesVerb(root, session);
  AddCompactVerb(root, session);
  AddSampleVerb(root, session);
  AddTrainVerb(root, session);
  AddModelsVerb(root, session);
  AddInferVerb(root, session);
  AddSimilarVerb(root, session);
  AddScoreVerb(root, session);
  AddExportVerb(root, session);
  root.add_subcommand("bench", "Measure this machine against the physical limit")
      ->footer(
          "Example: rhizome bench pool --help\n`rhizome bench --help` lists the benches, which are "
          "in rhizome-bench.");
  AddHelpVerb(root);
}

/// Replaces this process by rhizome-bench, which is in the folder of this binary. Returns only on
/// failure.
int ExecBench(char** argv) {
  const Status status = ExecSibling("rhizome-bench", argv + 1);
  std::fprintf(stderr, "rhizome: %s; build the target rhizome_bench\n", status.ToString().c_str());
  return ExitCode(status.code());
}

}  // namespace
}  // namespace rhizome

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "bench") == 0) return rhizome::ExecBench(argv);
  return rhizome::EndProcess(rhizome::RunProgram(
      {.name = "rhizome",
       .description = "Rhizome: an embedded storage engine for graphs and embeddings.",
       .footer = "Every verb has --help with an example. "
                 "Example: rhizome help ingest",
       .add_verbs = rhizome::AddVerbs},
      argc, argv));
}
