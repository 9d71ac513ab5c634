#include <fmt/format.h>

#include <algorithm>

#include "rhizome/index/verify_store.h"
#include "rhizome/storage/backup.h"
#include "rhizome/storage/stopwatch.h"
#include "rhizome/storage/verify.h"
#include "text.h"
#include "verbs.h"

namespace rhizome {
namespace {

struct VerifyFlags {
  std::string store;
};

std::string DescribeVerify(const Json& f) {
  const std::string scope = fmt::format("{}, {} in {}", Plural(f["files"], "file"),
                                        HumanBytes(f["bytes"]), HumanSeconds(f["seconds"]));
  if (f["ok"].get<bool>()) {
    std::string text = fmt::format("{}: ok (every checksum and invariant; {})\n",
                                   f["store"].get<std::string>(), scope);
    if (!f["orphans"].empty()) {
      text += fmt::format("  {} of interrupted runs; the next run that writes removes them\n",
                          Plural(f["orphans"].size(), "leftover"));
    }
    return text;
  }
  const bool damaged = !f["damaged"].empty();
  std::string text = fmt::format("{}: {} ({} read)\n", f["store"].get<std::string>(),
                                 damaged ? "DAMAGED" : "NOT ALL COULD BE READ", scope);
  for (const Json& damage : f["damaged"]) {
    text += fmt::format("  {}, byte {}: {}\n", damage["file"].get<std::string>(),
                        damage["offset"].get<std::uint64_t>(), damage["what"].get<std::string>());
  }
  constexpr std::size_t kMostLines = 20;
  for (std::size_t i = 0; i < std::min(f["unread"].size(), kMostLines); ++i) {
    text += fmt::format("  {}, not read: {}\n", f["unread"][i]["file"].get<std::string>(),
                        f["unread"][i]["why"].get<std::string>());
  }
  if (f["unread"].size() > kMostLines)
    text += fmt::format("  and {} more\n", f["unread"].size() - kMostLines);
  return text;
}

/// A folder of backups, and not a store?
bool HoldsBackups(FileSystem& fs, const Path& path) {
  return !fs.Stat(path / "FORMAT") && (fs.Stat(path / "BACKUP") || fs.Stat(path / "backups"));
}

Result<Answer> RunVerify(const VerifyFlags& flags, Session& session) {
  FileSystem& fs = FileSystem::Posix();
  const Stopwatch watch;
  RHIZOME_ASSIGN_OR_RETURN(const VerifyReport report,
                           HoldsBackups(fs, flags.store)
                               ? VerifyBackups(fs, flags.store, session.control)
                               : VerifyStore(fs, flags.store, session.control));
  const double seconds = watch.seconds();
  Json damaged = Json::array();
  for (const Damage& damage : report.damaged) {
    damaged.push_back(
        {{"file", damage.file}, {"offset", damage.offset_bytes}, {"what", damage.what}});
  }
  Json unread = Json::array();
  for (const Unread& one : report.unread)
    unread.push_back({{"file", one.file}, {"why", one.why.ToString()}});
  Answer answer{{{"store", flags.store},
                 {"ok", report.ok()},
                 {"files", report.files},
                 {"bytes", report.bytes},
                 {"seconds", seconds},
                 {"damaged", std::move(damaged)},
                 {"unread", std::move(unread)},
                 {"orphans", report.orphans}},
                DescribeVerify,
                {}};
  if (!report.damaged.empty()) {
    answer.verdict = Status::Corruption(
        fmt::format("{}: {} found; run repair, restore the store from a backup, or ingest it again",
                    flags.store, Plural(report.damaged.size(), "damaged place")));
  } else if (!report.ok()) {
    answer.verdict = report.verdict().WithContext(
        fmt::format("{}: {} not read, nothing else is wrong", flags.store,
                    Plural(report.unread.size(), "file")));
  }
  return answer;
}

}  // namespace

void AddVerifyVerb(CLI::App& root, Session& session) {
  auto flags = std::make_shared<VerifyFlags>();
  CLI::App* verb =
      AddVerb(root, session, "verify",
              "Check every byte and every invariant of a store or of backups; damage is listed",
              "rhizome verify demo.rz", flags, RunVerify);
  verb->add_option("STORE", flags->store, "The store's folder, or a folder of backups")->required();
}

}  // namespace rhizome
