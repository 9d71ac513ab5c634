#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "rhizome/store.h"
#include "rhizome/verify.h"
#include "storage/array_fixture.h"
#include "storage/base/damage.h"
#include "storage/base/little_endian.h"
#include "storage/catalog/catalog.h"
#include "storage/maintenance/repair_store.h"
#include "storage/maintenance/verify_files.h"
#include "testing/care.h"
#include "testing/harmed_store.h"

// Checks of care.h about faults that do not prove damage. Each check creates an intact and a
// damaged store, makes operations on each file or folder fail or takes away descriptors, runs
// verify and repair, and checks their reports and that no file has changed.

namespace rhizome::testing {
namespace {

const std::array<Status, 6>& Faults() {
  static const std::array<Status, 6> faults = {
      Status::IoError("Too many open files"), Status::PermissionDenied("Permission denied"),
      Status::OutOfMemory("Cannot allocate"), Status::OutOfSpace("No space left on device"),
      Status::IoError("Operation canceled"),  Status::IoError("Input/output error")};
  return faults;
}

/// Checks that a fault makes neither verify nor repair report damage.
Complaint Judge(const Result<VerifyReport>& report, const std::string& when) {
  if (!report && ProvesDamage(report.error()))
    return "verify fails with " + report.error().ToString() + " " + when;
  if (report && !report->damaged.empty())
    return "verify calls " + report->damaged.front().file + " damaged (" +
           report->damaged.front().what + ") " + when;
  return std::nullopt;
}

/// Runs `run` with only `count` free descriptors.
template <typename Run>
void WithDescriptors(std::uint64_t count, const Run& run) {
  rlimit before = {};
  getrlimit(RLIMIT_NOFILE, &before);
  std::uint64_t first_free = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    first_free = std::max<std::uint64_t>(first_free, std::stoull(entry.path().filename()));
  rlimit less = before;
  less.rlim_cur = first_free + count;
  setrlimit(RLIMIT_NOFILE, &less);
  run();
  setrlimit(RLIMIT_NOFILE, &before);
}

constexpr int kDeltaCommits = 3;

/// Creates a store in which each commit of the delta is in a separate catalogue table.
Status MakeStoreWithDelta(const Path& store) {
  RHIZOME_RETURN_IF_ERROR(MakeStore(Disk(), store));
  // The record holds only its sequence and the previous record's; see "Catalogue records" in
  // FORMAT.md.
  for (int i = 0; i < kDeltaCommits; ++i) {
    RHIZOME_ASSIGN_OR_RETURN(const auto writer, Store::Open(Disk(), store, Store::Mode::kWrite));
    std::vector<std::byte> record(17);
    RHIZOME_RETURN_IF_ERROR(
        writer->CommitDelta(true, [&](std::uint64_t first, const HistoryState&) {
          StoreLittle(record.data() + 1, first);
          StoreLittle(record.data() + 9, i == 0 ? std::uint64_t{0} : first - 1);
          return std::vector<DeltaCommit>{{.sequence = first, .record = record, .rows = {}}};
        }));
  }
  return Status::Ok();
}

}  // namespace

Complaint FaultsAreNoDamage() {
  TempDir dir;
  const Path store = dir / "s";
  const Path harmed = dir / "h";
  if (!MakeStore(Disk(), store).ok() || !MakeStore(Disk(), harmed).ok()) return "no store";
  Change(harmed / kRows, {5, 300});
  const auto sound = Tree(store);
  const auto damaged = Tree(harmed);
  std::size_t next = 0;
  for (const auto& [file, _] : sound) {
    const Status& fault = Faults()[next++ % Faults().size()];
    const std::string when = fmt::format("while '{}' cannot be opened ({})", file, fault.message());
    // The fault affects the file itself, and in the second file system its folder.
    Watched of_file([&, file = file](const Path& path) {
      return path == store / file || path == harmed / file ? fault : Status::Ok();
    });
    Watched of_folder([&, folder = Path(file).parent_path()](const Path& path) {
      const bool top = folder.empty();
      return path == (top ? store : store / folder) || path == (top ? harmed : harmed / folder)
                 ? fault
                 : Status::Ok();
    });
    for (FileSystem* const fs :
         {static_cast<FileSystem*>(&of_file), static_cast<FileSystem*>(&of_folder)}) {
      if (auto wrong = Judge(VerifyFiles(*fs, store, JobControl()), when)) return wrong;
      const auto again = VerifyFiles(*fs, store, JobControl());
      const bool of_rocksdb = file.starts_with("catalog/");
      if (again && again->ok() && !of_rocksdb) return "verify does not notice it " + when;
      if (of_rocksdb) continue;  // RocksDB opens this file itself
      const auto repaired = RepairStore(*fs, harmed, {}, JobControl());
      if (repaired) return "repair ends well " + when;
      if (Tree(harmed) != damaged) return "repair changes a file " + when;
    }
  }
  return std::nullopt;
}

Complaint FewDescriptorsAreNoDamage() {
  TempDir dir;
  const Path store = dir / "s";
  if (const Status made = MakeStoreWithDelta(store); !made.ok()) return made.ToString();
  const auto sound = Tree(store);
  for (std::uint64_t count = 0; count <= 60; count += 3) {
    const std::string when = fmt::format("with {} free descriptors", count);
    Result<VerifyReport> report = VerifyReport();
    Result<RepairReport> repaired = RepairReport();
    WithDescriptors(count, [&] {
      report = VerifyFiles(Disk(), store, JobControl());
      repaired = RepairStore(Disk(), store, {}, JobControl());
    });
    if (auto wrong = Judge(report, when)) return wrong;
    if (!repaired && ProvesDamage(repaired.error()))
      return "repair fails with " + repaired.error().ToString() + " " + when;
    if (repaired && !repaired->found.empty()) return "repair finds damage " + when;
    if (Tree(store) != sound) return "repair changes a file " + when;
    if (count == 60 && (!report || !report->ok())) return "60 descriptors are not enough";
  }
  return std::nullopt;
}

Complaint FewDescriptorsKeepTheDelta() {
  TempDir dir;
  const Path kept = dir / "k";
  if (const Status made = MakeStoreWithDelta(kept); !made.ok()) return made.ToString();
  std::filesystem::remove(kept / "catalog/CURRENT");
  std::size_t done = 0;
  for (std::uint64_t count = 5; count <= 41; count += 2) {
    const Path store = dir / fmt::format("s{}", count);
    std::filesystem::copy(kept, store, std::filesystem::copy_options::recursive);
    Result<RepairReport> repaired = RepairReport();
    WithDescriptors(count, [&] { repaired = RepairStore(Disk(), store, {}, JobControl()); });
    if (!repaired && ProvesDamage(repaired.error())) return repaired.error().ToString();
    // The repair runs again with enough descriptors: an interrupted first run must not lose
    // anything.
    if (!repaired)
      repaired = RepairStore(Disk(), store, {}, JobControl());
    else
      ++done;
    if (!repaired) return repaired.error().ToString();
    const auto reader = Store::Open(Disk(), store, Store::Mode::kRead);
    if (!reader) return reader.error().ToString();
    int commits = 0;
    const Status scanned = (*reader)->ScanDelta(0, [&](std::uint64_t, std::span<const std::byte>) {
      ++commits;
      return Status::Ok();
    });
    if (!scanned.ok()) return scanned.ToString();
    if (commits != kDeltaCommits)
      return fmt::format("{} commits of the delta are left after a repair with {} free descriptors",
                         commits, count);
  }
  return done > 0 ? std::nullopt : Complaint("41 descriptors are not enough");
}

}  // namespace rhizome::testing
