#include <fmt/format.h>

#include "rhizome/index/verify_store.h"
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
  std::string text = fmt::format("{}: DAMAGED ({} read)\n", f["store"].get<std::string>(), scope);
  for (const Json& damage : f["damaged"]) {
    text += fmt::format("  {}, byte {}: {}\n", damage["file"].get<std::string>(),
                        damage["offset"].get<std::uint64_t>(), damage["what"].get<std::string>());
  }
  return text;
}

Result<Answer> RunVerify(const VerifyFlags& flags, Session& session) {
  FileSystem& fs = FileSystem::Posix();
  const Stopwatch watch;
  RHIZOME_ASSIGN_OR_RETURN(const VerifyReport report,
                           VerifyStore(fs, flags.store, session.control));
  const double seconds = watch.seconds();
  Json damaged = Json::array();
  for (const Damage& damage : report.damaged) {
    damaged.push_back(
        {{"file", damage.file}, {"offset", damage.offset_bytes}, {"what", damage.what}});
  }
  Answer answer{{{"store", flags.store},
                 {"ok", report.ok()},
                 {"files", report.files},
                 {"bytes", report.bytes},
                 {"seconds", seconds},
                 {"damaged", std::move(damaged)},
                 {"orphans", report.orphans}},
                DescribeVerify,
                {}};
  if (!report.ok()) {
    answer.verdict = Status::Corruption(
        fmt::format("{}: {} found; run repair, restore the store from a backup, or ingest it again",
                    flags.store, Plural(report.damaged.size(), "damaged place")));
  }
  return answer;
}

}  // namespace

void AddVerifyVerb(CLI::App& root, Session& session) {
  auto flags = std::make_shared<VerifyFlags>();
  CLI::App* verb = AddVerb(root, session, "verify",
                           "Check every byte and every invariant of a store; damage is listed",
                           "rhizome verify demo.rz", flags, RunVerify);
  verb->add_option("STORE", flags->store, "The store's folder")->required();
}

}  // namespace rhizome
