// Runs the cases of MutateCatalogs. The parent starts children that run ranges of cases and report
// each over a pipe (Start, Follow); after a child dies or hangs, the next child continues with the
// next case. A child makes sound catalogues, changes one for each case, opens it as a reader and as
// a writer, and compares the answers (RunCases, RunCase, Try).

#include "reliability/catalog/catalog_mutation.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reliability/harness/process.h"
#include "reliability/harness/rocks_disk.h"
#include "storage/base/little_endian.h"
#include "storage/catalog/catalog.h"
#include "storage/maintenance/catalog_repair.h"
#include "testing/child_process.h"
#include "testing/testing.h"

namespace rhizome::testing {
namespace {

const Path kFolder = "/c";
constexpr std::uint64_t kArray = 7;
constexpr std::uint64_t kRows = 12;
constexpr std::size_t kRowBytes = 300;
constexpr unsigned kPatienceSeconds = 60;

StoreId AnyStoreId() {
  StoreId id;
  id.bytes.fill(std::byte{0x5A});
  return id;
}

/// A sound catalogue and its answers.
struct Sound {
  FakeImage image;
  std::string answers;
};

/// Appends a record that names its predecessor, as the graph's records do.
Status Append(Catalog& catalog, std::uint64_t sequence, std::uint64_t before, bool sync) {
  std::vector<std::byte> record(40 + sequence * 13 % 90, static_cast<std::byte>(sequence));
  StoreLittle(record.data(), before);
  const std::vector<std::byte> bytes(kRowBytes, static_cast<std::byte>(sequence * 3));
  std::vector<DeltaRow> rows;
  for (std::uint64_t vertex = 0; vertex < kRows; ++vertex)
    rows.push_back(
        {.array_id = kArray, .vertex = static_cast<std::int64_t>(vertex), .bytes = bytes});
  const DeltaCommit commit{.sequence = sequence, .record = record, .rows = rows};
  return catalog.AppendDelta(std::span(&commit, 1), sync);
}

/// Returns all answers of a catalogue that a graph needs, as text. Errors: any of reading;
/// kCorruption, a record is missing.
Result<std::string> Ask(Catalog& catalog) {
  RHIZOME_ASSIGN_OR_RETURN(const CommitRecord current, catalog.Current());
  std::string said =
      fmt::format("commit {} {} {}\n", current.generation, current.sequence, current.base_sequence);
  RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t last, catalog.LastDelta());
  said += fmt::format("last {}\n", last);
  std::vector<std::byte> row(kRowBytes);
  std::uint64_t at = current.base_sequence;
  RHIZOME_RETURN_IF_ERROR(catalog.ScanDelta(
      at, [&](std::uint64_t sequence, std::span<const std::byte> record) -> Status {
        const auto before = LoadLittle<std::uint64_t>(record.data());
        if (at == current.base_sequence ? before > at : before != at)
          return Status::Corruption("a record is missing");
        at = sequence;
        said += fmt::format("{}: {} bytes, rows", sequence, record.size());
        for (std::uint64_t vertex = 0; vertex < kRows; ++vertex) {
          RHIZOME_RETURN_IF_ERROR(
              catalog.ReadDeltaRow(sequence, kArray, static_cast<std::int64_t>(vertex), row));
          said += fmt::format(" {}", std::to_integer<int>(row[vertex]));
        }
        said += '\n';
        return Status::Ok();
      }));
  std::uint64_t entries = 0;
  RHIZOME_RETURN_IF_ERROR(
      catalog.ScanDeltaEntries(current.base_sequence, [&](std::string_view, std::string_view) {
        ++entries;
        return Status::Ok();
      }));
  RHIZOME_RETURN_IF_ERROR(catalog.VerifyChecksums());
  return said + fmt::format("{} entries\n", entries);
}

Result<std::unique_ptr<Catalog>> OpenOn(FileSystem& disk, Catalog::Mode mode) {
  return Catalog::Open(disk, kFolder, mode, AnyStoreId(), {.write_bytes = 1 << 20});
}

/// Creates three catalogues: one that was closed often, so that it has tables in several levels and
/// a deleted range; the same before it was closed, with logs; and a new one.
Result<std::vector<Sound>> MakeSound() {
  std::vector<Sound> out;
  const auto add = [&](const FakeImage& image) -> Status {
    StoreDisk disk(image);
    RHIZOME_ASSIGN_OR_RETURN(const auto catalog, OpenOn(disk, Catalog::Mode::kRead));
    RHIZOME_ASSIGN_OR_RETURN(std::string answers, Ask(*catalog));
    out.push_back({image, std::move(answers)});
    return Status::Ok();
  };
  StoreDisk disk;
  constexpr std::uint64_t kDropped = 9;
  std::uint64_t sequence = 0;
  std::uint64_t before = 0;
  for (std::uint64_t opening = 0; opening < 7; ++opening) {
    const auto mode = opening == 0 ? Catalog::Mode::kCreate : Catalog::Mode::kWrite;
    RHIZOME_ASSIGN_OR_RETURN(const auto catalog, OpenOn(disk, mode));
    RHIZOME_RETURN_IF_ERROR(catalog->Commit({.generation = opening + 1,
                                             .sequence = ++sequence,
                                             .base_sequence = opening < 5 ? 0 : kDropped}));
    for (int i = 0; i < 3; ++i) {
      RHIZOME_RETURN_IF_ERROR(Append(*catalog, ++sequence, before, i == 1));
      before = sequence;
    }
    if (opening == 5) RHIZOME_RETURN_IF_ERROR(catalog->DropDelta(kDropped));
    if (opening == 6) {
      const FakeImage open = disk.ImageAfterCrash(FakeFileSystem::CrashMode::kKeepUnsynced, 0);
      RHIZOME_RETURN_IF_ERROR(add(open));
    }
    RHIZOME_RETURN_IF_ERROR(catalog->Close());
    if (opening == 0 || opening == 6) RHIZOME_RETURN_IF_ERROR(add(disk.Image()));
  }
  return out;
}

CatalogFiles FilesIn(StoreDisk& disk) {
  CatalogFiles files;
  for (auto& [path, bytes] : disk.Files())
    if (Path(path).parent_path() == kFolder) files[Path(path).filename().string()] = bytes;
  return files;
}

enum class Outcome : char { kRefused = 'r', kSame = 's', kSilent = 'x', kHung = 'h', kDied = 'd' };

/// Opens the catalogue, reads it, and lets a writer continue.
Outcome Try(const FakeImage& image, const std::string& answers, Catalog::Mode mode) {
  StoreDisk disk(image);
  const auto catalog = OpenOn(disk, mode);
  const auto said = catalog ? Ask(**catalog) : Result<std::string>(Fail(catalog.error()));
  if (catalog && mode == Catalog::Mode::kWrite) {
    static_cast<void>(Append(**catalog, 1000, 999, true));
    static_cast<void>((*catalog)->DropDelta(12));
    static_cast<void>((*catalog)->Close());
  }
  if (!said) return Outcome::kRefused;
  return *said == answers ? Outcome::kSame : Outcome::kSilent;
}

Outcome RunCase(const std::vector<Sound>& sound, std::uint64_t seed, const std::string& only,
                std::string& what) {
  const Sound& chosen = sound[seed % sound.size()];
  StoreDisk disk(chosen.image);
  CatalogFiles files = FilesIn(disk);
  what = MutateCatalog(files, seed, only);
  for (auto& [name, bytes] : files)
    if (!disk.Overwrite(kFolder / name, bytes).ok()) return Outcome::kSilent;
  const FakeImage image = disk.Image();
  if (seed / 3 % 8 == 0) {
    static_cast<void>(RepairDatabase(disk, kFolder));
    static_cast<void>(OpenOn(disk, Catalog::Mode::kRead));
    return Outcome::kRefused;
  }
  const Outcome read = Try(image, chosen.answers, Catalog::Mode::kRead);
  const Outcome write = Try(image, chosen.answers, Catalog::Mode::kWrite);
  if (read == Outcome::kSilent || write == Outcome::kSilent) return Outcome::kSilent;
  return read == Outcome::kSame && write == Outcome::kSame ? Outcome::kSame : Outcome::kRefused;
}

// Environment variable with the child's arguments: first case, end, descriptor, files to change.
constexpr const char* kTold = "RHIZOME_CATALOG_CHILD";

/// Runs a child's cases. Writes a 'b' at the beginning and the outcome at the end of each to the
/// pipe.
void RunCases(std::uint64_t begin, std::uint64_t end, int pipe, const std::string& only) {
  PrepareProcess();
  const auto tell = [&](char what) {
    if (::write(pipe, &what, 1) != 1) _exit(2);
  };
  const auto sound = MakeSound();
  ASSERT_OK(sound);
  for (std::uint64_t seed = begin; seed < end; ++seed) {
    tell('b');
    ::alarm(kPatienceSeconds * Patience());
    std::string what;
    const Outcome outcome = RunCase(*sound, seed, only, what);
    if (outcome == Outcome::kSilent) {
      std::printf("SILENT seed %llu: %s\n", static_cast<unsigned long long>(seed), what.c_str());
      std::fflush(stdout);
    }
    tell(static_cast<char>(outcome));
  }
  ::alarm(0);
}

// RocksDB's threads do not survive a fork, so a child is this program again with a variable set.
// Without the variable, this test does nothing.
TEST(CatalogMutationChild, TriesWhatItIsTold) {
  const char* const told = std::getenv(kTold);
  if (told == nullptr) return;
  std::istringstream in(told);
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  int pipe = -1;
  std::string only;
  in >> begin >> end >> pipe >> only;
  RunCases(begin, end, pipe, only);
}

/// Starts a child that reports its cases to `pipe`.
ChildProcess Start(const MutationPlan& plan, std::uint64_t begin, int pipe) {
  return ChildProcess::RunAgain(
      {.arguments = ChildProcess::OnlyTest("CatalogMutationChild.*"),
       .variables = {
           fmt::format("{}={} {} {} {}", kTold, begin, plan.seed + plan.cases, pipe, plan.only)}});
}

void Count(MutationCounts& counts, char outcome) {
  ++counts.cases;
  switch (static_cast<Outcome>(outcome)) {
    case Outcome::kRefused:
      ++counts.refused;
      break;
    case Outcome::kSame:
      ++counts.same;
      break;
    case Outcome::kSilent:
      ++counts.silent;
      break;
    case Outcome::kHung:
      ++counts.hung;
      break;
    case Outcome::kDied:
      ++counts.crashed;
      break;
  }
}

/// Reads a child's reports until it ends, and returns the first case that it has not run.
std::uint64_t Follow(ChildProcess child, int pipe, std::uint64_t seed, MutationCounts& counts) {
  bool begun = false;
  for (char said = 0; ::read(pipe, &said, 1) == 1;) {
    begun = said == 'b';
    if (begun) continue;
    Count(counts, said);
    ++seed;
  }
  const int status = child.Wait();
  if (!begun) return seed;
  const bool hung = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
  std::printf("%s seed %llu\n", hung ? "HUNG" : "DIED", static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  Count(counts, static_cast<char>(hung ? Outcome::kHung : Outcome::kDied));
  return seed + 1;
}

}  // namespace

MutationCounts MutateCatalogs(const MutationPlan& plan) {
  MutationCounts counts;
  const std::uint64_t end = plan.seed + plan.cases;
  for (std::uint64_t seed = plan.seed; seed < end;) {
    int ends[2];
    if (::pipe(ends) != 0) break;
    std::fflush(stdout);
    ChildProcess child = Start(plan, seed, ends[1]);
    ::close(ends[1]);
    const std::uint64_t next =
        child.id() < 0 ? seed : Follow(std::move(child), ends[0], seed, counts);
    ::close(ends[0]);
    if (next == seed) break;  // no child or no catalogue could be created
    seed = next;
    if (plan.stop_at_first && counts.silent + counts.crashed + counts.hung > 0) break;
  }
  return counts;
}

}  // namespace rhizome::testing
