#include <fmt/format.h>

#include "rhizome/store_options.h"
#include "tools/cli/text.h"
#include "tools/verbs/verbs.h"

namespace rhizome {
namespace {

struct CleanFlags {
  std::string store;
  CleanOptions options;
};

const char* NameOf(JobScratchFolder::State state) {
  if (state == JobScratchFolder::State::kRunning) return "running";
  return state == JobScratchFolder::State::kEnded ? "ended" : "foreign";
}

std::string DescribeClean(const Json& f) {
  const bool dry = f["dry_run"].get<bool>();
  TextTable table({1});
  for (const Json& folder : f["folders"]) {
    const std::string state = folder["state"];
    table.Add({folder["path"].get<std::string>(), HumanBytes(folder["bytes"]),
               state == "ended"     ? dry ? "would be removed" : "removed"
               : state == "running" ? "its job is running: it remains"
                                    : "no job created it: it remains"});
  }
  const std::string summary = dry ? std::string()
                                  : fmt::format("removed {}, {}\n", Plural(f["removed"], "folder"),
                                                HumanBytes(f["removed_bytes"]));
  if (f["folders"].empty())
    return fmt::format("{}: no scratch files\n", f["store"].get<std::string>());
  return table.ToString() + summary;
}

Result<Answer> RunClean(const CleanFlags& flags, Session&) {
  RHIZOME_ASSIGN_OR_RETURN(const CleanReport report,
                           CleanScratch(FileSystem::Posix(), flags.store, flags.options));
  Json folders = Json::array();
  for (const JobScratchFolder& folder : report.folders)
    folders.push_back(
        {{"path", folder.path.string()}, {"bytes", folder.bytes}, {"state", NameOf(folder.state)}});
  return Answer{{{"store", flags.store},
                 {"dry_run", flags.options.dry_run},
                 {"folders", std::move(folders)},
                 {"removed", report.removed},
                 {"removed_bytes", report.removed_bytes}},
                DescribeClean,
                {}};
}

}  // namespace

void AddCleanVerb(CLI::App& root, Session& session) {
  auto flags = std::make_shared<CleanFlags>();
  CLI::App* verb = AddVerb(root, session, "clean",
                           "Remove scratch files of jobs that ended, such as killed ones",
                           "rhizome clean demo.rz --dry-run", flags, RunClean);
  verb->add_option("STORE", flags->store, "The store's folder")->required();
  verb->add_flag("--dry-run", flags->options.dry_run, "Only list the scratch files");
  verb->add_option_function<std::string>(
          "--scratch", [flags](const std::string& given) { flags->options.scratch = given; },
          "Folder that jobs on this store were given as --scratch, to be cleaned as well")
      ->type_name("DIR");
  verb->footer(
      "Files of running jobs remain. A killed job cannot be resumed (--resume) afterwards.\n" +
      verb->get_footer());
}

}  // namespace rhizome
