#include <fmt/format.h>

#include <ctime>

#include "rhizome/backup.h"
#include "tools/cli/text.h"
#include "tools/verbs/verbs.h"

namespace rhizome {
namespace {

struct BackupFlags {
  std::string store;
  std::string dir;
  BackupOptions options;
};

struct RestoreFlags {
  std::string store;
  std::string dir;
  std::uint64_t number = 0;
  bool list = false;
};

std::string TimeText(std::int64_t unix_seconds) {
  const auto seconds = static_cast<std::time_t>(unix_seconds);
  std::tm parts = {};
  char text[32] = "";
  if (gmtime_r(&seconds, &parts) != nullptr)
    std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

Json InfoJson(const BackupInfo& info) {
  return {{"backup", info.number},         {"time", TimeText(info.unix_seconds)},
          {"generation", info.generation}, {"manifest_version", info.manifest_version},
          {"commit", info.sequence},       {"files", info.files},
          {"bytes", info.bytes},           {"delta_entries", info.delta_entries}};
}

std::string DescribeBackup(const Json& f) {
  std::string text = fmt::format(
      "backup {}: {}, {}; copied {}, shared {} with earlier backups; in {}\n",
      f["backup"].get<std::uint64_t>(), Plural(f["files"], "file"), HumanBytes(f["bytes"]),
      HumanBytes(f["bytes_copied"]), HumanBytes(f["bytes_shared"]), HumanSeconds(f["seconds"]));
  if (!f["mended"].empty())
    text += fmt::format(
        "  {} of earlier backups {} damaged or missing, and {} copied again: check the disk of the "
        "backups\n",
        Plural(f["mended"].size(), "file"), f["mended"].size() == 1 ? "was" : "were",
        f["mended"].size() == 1 ? "was" : "were");
  return text;
}

Result<Answer> RunBackup(const BackupFlags& flags, Session& session) {
  RHIZOME_ASSIGN_OR_RETURN(
      const BackupReport report,
      BackupStore(FileSystem::Posix(), flags.store, flags.dir, flags.options, session.control));
  Json fields = {{"store", flags.store}, {"dir", flags.dir}};
  fields.update(InfoJson(report.backup));
  fields["files_copied"] = report.files_copied;
  fields["bytes_copied"] = report.bytes_copied;
  fields["files_shared"] = report.files_shared;
  fields["bytes_shared"] = report.bytes_shared;
  fields["mended"] = report.mended;
  fields["removed"] = report.removed;
  fields["seconds"] = report.seconds;
  return Answer{std::move(fields), DescribeBackup, {}};
}

std::string DescribeRestore(const Json& f) {
  if (f.contains("backups")) {
    TextTable table({0, 3, 4});
    table.Add({"backup", "time", "generation", "files", "bytes"});
    for (const Json& one : f["backups"])
      table.Add({one["backup"].dump(), one["time"].get<std::string>(), one["generation"].dump(),
                 WithCommas(one["files"]), HumanBytes(one["bytes"])});
    return table.ToString();
  }
  return fmt::format("restored backup {} of {} as {}: {}, {}, read back and compared; in {}\n",
                     f["backup"].get<std::uint64_t>(), f["time"].get<std::string>(),
                     f["store"].get<std::string>(), Plural(f["files"], "file"),
                     HumanBytes(f["bytes"]), HumanSeconds(f["seconds"]));
}

Result<Answer> RunRestore(const RestoreFlags& flags, Session& session) {
  FileSystem& fs = FileSystem::Posix();
  if (flags.list) {
    RHIZOME_ASSIGN_OR_RETURN(const auto backups, ListBackups(fs, flags.dir));
    Json list = Json::array();
    for (const BackupInfo& info : backups) list.push_back(InfoJson(info));
    return Answer{{{"dir", flags.dir}, {"backups", std::move(list)}}, DescribeRestore, {}};
  }
  if (flags.store.empty())
    return Fail(Status::InvalidArgument("give STORE, the folder to create, or --list"));
  std::optional<std::uint64_t> number;
  if (flags.number != 0) number = flags.number;
  RHIZOME_ASSIGN_OR_RETURN(const RestoreReport report,
                           RestoreStore(fs, flags.dir, flags.store, number, session.control));
  Json fields = {{"store", flags.store}, {"dir", flags.dir}};
  fields.update(InfoJson(report.backup));
  fields["seconds"] = report.seconds;
  return Answer{std::move(fields), DescribeRestore, {}};
}

}  // namespace

void AddBackupVerb(CLI::App& root, Session& session) {
  auto flags = std::make_shared<BackupFlags>();
  CLI::App* verb =
      AddVerb(root, session, "backup", "Back up a store incrementally; writers can continue",
              "rhizome backup demo.rz demo.backups", flags, RunBackup);
  verb->add_option("STORE", flags->store, "The store's folder")->required();
  verb->add_option("DIR", flags->dir, "Folder of backups; created if it does not exist")
      ->required();
  verb->add_option("--keep", flags->options.keep,
                   "Afterwards remove all backups except the newest N")
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 40))
      ->type_name("N");
  verb->add_flag("--trust", flags->options.trust,
                 "Compare files of earlier backups only by length; default: by hash");
}

void AddRestoreVerb(CLI::App& root, Session& session) {
  auto flags = std::make_shared<RestoreFlags>();
  CLI::App* verb = AddVerb(root, session, "restore", "Create a store from a backup",
                           "rhizome restore demo.backups copy.rz", flags, RunRestore);
  verb->add_option("DIR", flags->dir, "Folder of backups")->required();
  verb->add_option("STORE", flags->store, "Folder to create");
  verb->add_option("--backup", flags->number, "Number of the backup; default: the newest")
      ->type_name("N");
  verb->add_flag("--list", flags->list, "Only list the backups");
}

}  // namespace rhizome
