#include <fmt/format.h>

#include <algorithm>

#include "rhizome/maintenance.h"
#include "rhizome/verify.h"
#include "tools/cli/text.h"
#include "tools/verbs/verbs.h"

namespace rhizome {
namespace {

struct RepairFlags {
  std::string store;
  RepairOptions options;
  double wait = 0;
};

Json NotesJson(const std::vector<RepairNote>& notes, const char* how) {
  Json list = Json::array();
  for (const RepairNote& note : notes) list.push_back({{"what", note.what}, {how, note.how}});
  return list;
}

Json DamageJson(const std::vector<Damage>& damaged) {
  Json list = Json::array();
  for (const Damage& damage : damaged)
    list.push_back({{"file", damage.file}, {"offset", damage.offset_bytes}, {"what", damage.what}});
  return list;
}

std::string DescribeRepair(const Json& f) {
  const bool dry = f["dry_run"].get<bool>();
  std::string text = fmt::format("{}: {} found\n", f["store"].get<std::string>(),
                                 Plural(f["found"].size(), "damaged place"));
  for (const Json& one : f["rebuilt"])
    text += fmt::format("  {} {}: {}\n", dry ? "would rebuild" : "rebuilt",
                        one["what"].get<std::string>(), one["how"].get<std::string>());
  for (const Json& one : f["lost"])
    text += fmt::format("  LOST {}: {}\n", one["what"].get<std::string>(),
                        one["how"].get<std::string>());
  if (!f["quarantined"].empty())
    text += fmt::format("  {} {} to {}\n", Plural(f["quarantined"].size(), "file"),
                        dry ? "would be moved" : "moved", f["quarantine"].get<std::string>());
  if (dry) return text;
  return text + (f["ok"].get<bool>() ? "  verify: ok\n"
                                     : fmt::format("  verify: {} left\n",
                                                   Plural(f["damaged"].size(), "damaged place")));
}

Result<Answer> RunRepair(const RepairFlags& flags, Session& session) {
  FileSystem& fs = FileSystem::Posix();
  RepairOptions options = flags.options;
  options.wait = WaitFor(flags.wait, session);
  RHIZOME_ASSIGN_OR_RETURN(RepairReport report,
                           RepairGraph(fs, flags.store, options, session.control));
  if (!flags.options.dry_run && report.after.ok())
    RHIZOME_RETURN_IF_ERROR(VerifyGraph(fs, flags.store, session.control, report.after));
  Answer answer{
      {{"store", flags.store},
       {"dry_run", flags.options.dry_run},
       {"ok", report.after.ok()},
       {"found", DamageJson(report.found)},
       {"rebuilt", NotesJson(report.rebuilt, "how")},
       {"quarantined", NotesJson(report.quarantined, "to")},
       {"quarantine", report.quarantine.empty() ? Json(nullptr) : Json(report.quarantine)},
       {"lost", NotesJson(report.lost, "how")},
       {"damaged", DamageJson(report.after.damaged)}},
      DescribeRepair,
      {}};
  const bool earlier = !report.after.damaged.empty() && report.after.unread.empty() &&
                       std::all_of(report.after.damaged.begin(), report.after.damaged.end(),
                                   [](const Damage& damage) { return damage.earlier; });
  if (report.after.damaged.empty() && !report.after.ok()) {
    answer.verdict = report.after.verdict();
  } else if (earlier && !flags.options.dry_run) {
    answer.verdict = Status::Busy(
        fmt::format("{}: the current data is intact, but a program that has the store open still "
                    "reads a damaged earlier version of the arrays: stop it, and run repair again",
                    flags.store));
  } else if (!report.after.ok()) {
    answer.verdict = Status::Corruption(
        fmt::format("{}: {} left; restore the store from a backup, or ingest it again", flags.store,
                    Plural(report.after.damaged.size(), "damaged place")));
  }
  return answer;
}

}  // namespace

void AddRepairVerb(CLI::App& root, Session& session) {
  auto flags = std::make_shared<RepairFlags>();
  CLI::App* verb = AddVerb(
      root, session, "repair",
      "Move damaged files out of a store, rebuild what can be derived, and report what is lost",
      "rhizome repair demo.rz --dry-run", flags, RunRepair);
  verb->add_option("STORE", flags->store, "The store's folder")->required();
  verb->add_flag("--dry-run", flags->options.dry_run, "Only report what would be done");
  verb->add_flag(
      "--fill-holes", flags->options.fill_holes,
      "Keep arrays that lost chunks, with zeros or \"none\" in the lost rows; default: drop them");
  AddWait(*verb, flags->wait);
}

}  // namespace rhizome
