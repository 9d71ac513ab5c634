#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "rhizome/backup.h"
#include "rhizome/maintenance.h"
#include "rhizome/verify.h"
#include "storage/base/stopwatch.h"
#include "tools/cli/text.h"
#include "tools/output/gauge_text.h"
#include "tools/verbs/verbs.h"

namespace rhizome {
namespace {

struct VerifyFlags {
  std::string store;
  std::string metrics;
};

/// Lists leftover files, which are harmless, and how they are removed.
std::string DescribeLeftovers(const Json& f) {
  const bool backups = f["backups"].get<bool>();
  std::string text;
  std::size_t removable = 0;
  for (const Json& orphan : f["orphans"]) {
    const std::string name = orphan.get<std::string>();
    const bool record = backups && name.starts_with("backups/");
    if (record)
      text += fmt::format(
          "  {} is cut off, as after a backup that was killed: it is not removed automatically, "
          "nor are files that only it may name; remove it if that backup is not needed\n",
          name);
    removable += record ? 0 : 1;
  }
  if (removable > 0)
    text += fmt::format("  {} of interrupted runs; the next {} removes them\n",
                        Plural(removable, "leftover"), backups ? "backup" : "writer");
  for (const Json& stranger : f["strangers"])
    text += fmt::format("  {}: not a file of this version, and not removed automatically\n",
                        stranger.get<std::string>());
  return text;
}

std::string DescribeVerify(const Json& f) {
  const std::string scope = fmt::format("{}, {} in {}", Plural(f["files"], "file"),
                                        HumanBytes(f["bytes"]), HumanSeconds(f["seconds"]));
  if (f["ok"].get<bool>()) {
    std::string text = fmt::format("{}: ok (every checksum and invariant; {})\n",
                                   f["store"].get<std::string>(), scope);
    return text + DescribeLeftovers(f);
  }
  const bool damaged = !f["damaged"].empty();
  std::string text = fmt::format("{}: {} ({} read)\n", f["store"].get<std::string>(),
                                 damaged ? "DAMAGED" : "NOT COMPLETELY READ", scope);
  for (const Json& damage : f["damaged"]) {
    text += fmt::format("  {}, byte {}: {}\n", damage["file"].get<std::string>(),
                        damage["offset"].get<std::uint64_t>(), damage["what"].get<std::string>());
  }
  constexpr std::size_t kMaxLines = 20;
  for (std::size_t i = 0; i < std::min(f["unread"].size(), kMaxLines); ++i) {
    text += fmt::format("  {}, not read: {}\n", f["unread"][i]["file"].get<std::string>(),
                        f["unread"][i]["why"].get<std::string>());
  }
  if (f["unread"].size() > kMaxLines)
    text += fmt::format("  and {} more\n", f["unread"].size() - kMaxLines);
  return text;
}

/// Returns whether `path` is a folder of backups rather than a store.
bool HoldsBackups(FileSystem& fs, const Path& path) {
  return !fs.Stat(path / "FORMAT") && (fs.Stat(path / "BACKUP") || fs.Stat(path / "backups"));
}

/// Writes the time and the findings of a verification as metrics.
Status WriteVerifyMetrics(const VerifyFlags& flags, const VerifyReport& report) {
  if (flags.metrics.empty()) return Status::Ok();
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto gauge = [&](std::string_view name, std::string_view help, double value) {
    const GaugeSample sample{{{"store", flags.store}}, value};
    return GaugeText(name, help, std::span(&sample, 1));
  };
  return WriteText(
      flags.metrics,
      gauge("last_verify_timestamp_seconds", "Time of the last verification, since 1970",
            std::chrono::duration<double>(now).count()) +
          gauge("last_verify_damaged_places", "Damaged places that the last verification found",
                static_cast<double>(report.damaged.size())) +
          gauge("last_verify_unread_files", "Files that the last verification could not read",
                static_cast<double>(report.unread.size())));
}

Result<Answer> RunVerify(const VerifyFlags& flags, Session& session) {
  FileSystem& fs = FileSystem::Posix();
  RHIZOME_RETURN_IF_ERROR(ProbeOutput(flags.metrics));
  const Stopwatch watch;
  const bool backups = HoldsBackups(fs, flags.store);
  RHIZOME_ASSIGN_OR_RETURN(const VerifyReport report,
                           backups ? VerifyBackups(fs, flags.store, session.control)
                                   : VerifyStore(fs, flags.store, session.control));
  const double seconds = watch.seconds();
  RHIZOME_RETURN_IF_ERROR(WriteVerifyMetrics(flags, report));
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
                 {"backups", backups},
                 {"orphans", report.orphans},
                 {"strangers", report.strangers}},
                DescribeVerify,
                {}};
  if (!report.damaged.empty()) {
    answer.verdict = Status::Corruption(
        fmt::format("{}: {} found; run repair, restore the store from a backup, or ingest it again",
                    flags.store, Plural(report.damaged.size(), "damaged place")));
  } else if (!report.ok()) {
    answer.verdict = report.verdict().WithContext(
        fmt::format("{}: {} could not be read; no damage was found", flags.store,
                    Plural(report.unread.size(), "file")));
  }
  return answer;
}

}  // namespace

void AddVerifyVerb(CLI::App& root, Session& session) {
  auto flags = std::make_shared<VerifyFlags>();
  CLI::App* verb =
      AddVerb(root, session, "verify",
              "Check every byte and every invariant of a store or of backups, and list damage",
              "rhizome verify demo.rz", flags, RunVerify);
  verb->add_option("STORE", flags->store, "The store's folder, or a folder of backups")->required();
  AddMetricsFile(*verb, flags->metrics);
}

}  // namespace rhizome
