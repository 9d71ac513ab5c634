#include <fmt/format.h>

#include "storage/maintenance/upgrade.h"
#include "tools/verbs/verbs.h"

namespace rhizome {
namespace {

struct UpgradeFlags {
  std::string store;
  double wait = 0;
};

std::string DescribeUpgrade(const Json& f) {
  const std::string store = f["store"].get<std::string>();
  const auto to = f["format"].get<std::uint64_t>();
  if (f["from"] == f["format"]) return fmt::format("{}: already at format {}\n", store, to);
  return fmt::format("{}: upgraded from format {} to format {}\n", store,
                     f["from"].get<std::uint64_t>(), to);
}

Result<Answer> RunUpgrade(const UpgradeFlags& flags, Session& session) {
  RHIZOME_ASSIGN_OR_RETURN(const UpgradeReport report,
                           UpgradeStore(FileSystem::Posix(), flags.store, session.control,
                                        WaitFor(flags.wait, session)));
  return Answer{
      {{"store", flags.store}, {"from", report.from}, {"format", report.to}}, DescribeUpgrade, {}};
}

}  // namespace

void AddUpgradeVerb(CLI::App& root, Session& session) {
  auto flags = std::make_shared<UpgradeFlags>();
  CLI::App* verb = AddVerb(root, session, "upgrade",
                           "Upgrade a store of an older format to the format of this version",
                           "rhizome upgrade demo.rz", flags, RunUpgrade);
  verb->add_option("STORE", flags->store, "The store's folder")->required();
  AddWait(*verb, flags->wait);
}

}  // namespace rhizome
