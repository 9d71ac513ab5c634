#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tools/cli/completion.h"
#include "tools/cli/help.h"
#include "tools/cli/help_json.h"
#include "tools/cli/mpi_library.h"
#include "tools/cli/program.h"
#include "tools/cli/settings.h"
#include "tools/cli/sibling_binary.h"
#include "tools/verbs/verbs.h"

namespace rhizome {
namespace {

struct HelpFlags {
  std::vector<std::string> topic;
  bool all = false;
  bool man = false;
  bool json = false;
};

/// Returns the verb that `topic` names; `root` if it is empty. Appends the name of each to `name`.
/// Throws: CLI::ValidationError, there is no such verb.
const CLI::App& FindTopic(const CLI::App& root, const std::vector<std::string>& topic,
                          std::string& name) {
  const CLI::App* about = &root;
  for (const std::string& word : topic) {
    about = FindVerb(*about, word);
    if (about == nullptr)
      throw CLI::ValidationError(
          "VERB", "there is no verb '" + word + "' in '" + name + "'; 'rhizome help' lists them");
    name += " " + word;
  }
  return *about;
}

/// Returns the help of the verb that the topic names, the list of verbs, or the list of settings.
std::string HelpText(const CLI::App& root, const HelpFlags& flags, Session& session) {
  if (flags.topic == std::vector<std::string>{"settings"} && !flags.json) return ListSettings(root);
  std::string name = root.get_name();
  const CLI::App& about = FindTopic(root, flags.topic, name);
  if (flags.man) return ManPage(about, name);
  if (!flags.json) return HelpOf(about, name, flags.all);
  AddLateOptions(about, session);
  return HelpJson(about, name).dump() + "\n";
}

void AddHelpVerb(CLI::App& root, Session& session) {
  auto flags = std::make_shared<HelpFlags>();
  CLI::App* verb =
      root.add_subcommand("help", "Show the list of verbs, the help of a verb, or the settings");
  verb->add_option("VERB", flags->topic, "Verb to describe, such as plan train; or settings");
  verb->add_flag("--all", flags->all, "Show all options");
  CLI::Option* const man = verb->add_flag(
      "--man", flags->man, "Print a manual page (roff): rhizome help --man | man -l -");
  verb->add_flag("--json", flags->json, "Print a verb's options with types and defaults, as JSON")
      ->excludes(man);
  verb->footer("Example: rhizome help ingest");
  verb->callback(
      [flags, &root, &session] { std::fputs(HelpText(root, *flags, session).c_str(), stdout); });
}

void AddCompletionVerb(CLI::App& root) {
  auto shell = std::make_shared<std::string>();
  CLI::App* verb = root.add_subcommand("completion", "Print a completion script for a shell");
  verb->add_option("SHELL", *shell, "bash or zsh")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh"}));
  verb->footer("Example: rhizome completion bash");
  verb->callback([shell, &root] {
    std::fputs((*shell == "bash" ? BashCompletion(root) : ZshCompletion(root)).c_str(), stdout);
  });
}

void AddVerbs(CLI::App& root, Session& session) {
  AddGenerateVerb(root, session);
  AddImportVerb(root, session);
  AddIngestVerb(root, session);
  AddInitVerb(root, session);
  AddPartitionVerb(root, session);
  AddPlanVerb(root, session);
  AddInfoVerb(root, session);
  AddVerifyVerb(root, session);
  AddArrayVerb(root, session);
  AddRepairVerb(root, session);
  AddBackupVerb(root, session);
  AddRestoreVerb(root, session);
  AddCleanVerb(root, session);
  AddUpgradeVerb(root, session);
  AddDoctorVerb(root, session);
  AddNeighborsVerb(root, session);
  AddGetVerb(root, session);
  AddPutVerb(root, session);
  AddDeleteVerb(root, session);
  AddChangesVerb(root, session);
  AddCompactVerb(root, session);
  AddAlterVerb(root, session);
  AddSampleVerb(root, session);
  AddTrainVerb(root, session);
  AddModelsVerb(root, session);
  AddInferVerb(root, session);
  AddSimilarVerb(root, session);
  AddScoreVerb(root, session);
  AddEvaluateVerb(root, session);
  AddExportVerb(root, session);
  root.add_subcommand("bench", "Run a benchmark")
      ->footer(
          "Example: rhizome bench pool --help\n"
          "`rhizome bench --help` lists the benchmarks; they are in the program rhizome-bench.");
  AddHelpVerb(root, session);
  AddCompletionVerb(root);
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
