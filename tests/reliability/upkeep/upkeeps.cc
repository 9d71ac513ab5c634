// The operations of Upkeeps(), each with its preparation, run and check: verify (VerifyOf), a
// second backup (SecondBackup), restore (RestoreOf) and repair of various damage (RepairOf).

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "reliability/damage/damage_run.h"
#include "reliability/harness/description.h"
#include "reliability/upkeep/upkeep_run.h"
#include "rhizome/array_change.h"
#include "rhizome/backup.h"
#include "rhizome/chunk_array.h"
#include "rhizome/maintenance.h"
#include "storage/array/chunk_writer.h"
#include "testing/testing.h"

namespace rhizome::testing {
namespace {

using Wrong = std::optional<std::string>;
using CrashMode = FakeFileSystem::CrashMode;
using Bytes = std::vector<std::byte>;

const Path kBackups = "/data/backups";
const Path kRestored = "/data/restored.rz";

/// Returns the disk with all changes durable, so that a crash cannot undo the preparation.
FakeImage Durable(const StoreDisk& disk) {
  return disk.ImageAfterCrash(CrashMode::kKeepUnsynced, 0);
}

/// Returns the only file of the store with `part` in its path.
std::string FileWith(const FakeFileSystem& disk, const std::string& part) {
  for (const auto& [file, _] : disk.Files())
    if (file.starts_with(kStorePath.native()) && file.find(part) != std::string::npos) return file;
  ADD_FAILURE() << "no file with " << part;
  return {};
}

/// Damages `count` bytes of a file, far apart. A single damaged byte is corrected by its checksum.
void Damage(FakeFileSystem& disk, const std::string& file, std::size_t count = 2) {
  Bytes bytes = disk.Files().at(file);
  for (std::size_t i = 0; i < count; ++i) bytes[bytes.size() / (2 + i)] ^= std::byte{0x41};
  ASSERT_OK(disk.Overwrite(file, std::move(bytes)));
}

Wrong Compare(FileSystem& fs, const Path& store, const std::string& wanted, const char* what) {
  const auto seen = Describe(fs, store);
  if (!seen) return std::string(what) + " cannot be read: " + seen.error().ToString();
  return *seen == wanted ? std::nullopt : Wrong(std::string(what) + " is another one");
}

Wrong VerifySound(FileSystem& fs, const Path& store) {
  const auto report = VerifyStore(fs, store, JobControl());
  if (!report) return "verify fails: " + report.error().ToString();
  if (report->ok()) return std::nullopt;
  return "verify: " + report->verdict().ToString();
}

// Verify must not change a sound store, and must not overlook damage because of another failure.
Upkeep VerifyOf(const SmallStore& store, const std::string& damaged) {
  StoreDisk disk(store.now);
  if (!damaged.empty()) Damage(disk, FileWith(disk, damaged));
  const auto files = std::make_shared<const std::map<std::string, Bytes>>(disk.Files());
  StoreDisk undisturbed(disk.Image());
  const auto whole = VerifyStore(undisturbed, kStorePath, JobControl());
  EXPECT_OK(whole);
  const std::uint64_t looked_at = whole ? whole->files : 0;
  return {.name = "verify" + (damaged.empty() ? damaged : " with a damaged " + damaged),
          .before = Durable(disk),
          .run = [damaged, looked_at](StoreDisk& on, std::string& wrong) -> Status {
            const auto report = VerifyStore(on, kStorePath, JobControl());
            if (!report) return report.error();
            if (damaged.empty() && report->ok() && report->files != looked_at)
              wrong =
                  fmt::format("{} files of {} are called sound, and the others are not looked at",
                              report->files, looked_at);
            if (damaged.empty()) return report->verdict();
            if (report->ok()) wrong = "the damage is overlooked";
            return Status::Ok();
          },
          .check = [files](StoreDisk& on, const Status&) -> Wrong {
            return on.Files() == *files ? std::nullopt : Wrong("verify changed a file");
          },
          .sound = damaged.empty()};
}

Status Back(StoreDisk& disk, std::uint64_t keep = 0) {
  return AsStatus(BackupStore(disk, kStorePath, kBackups, {.keep = keep}, JobControl()));
}
Status Restore(StoreDisk& disk, std::optional<std::uint64_t> number = std::nullopt) {
  return AsStatus(RestoreStore(disk, kBackups, kRestored, number, JobControl()));
}

// The second backup of a store replaces the first. At any time there is a complete backup of the
// store's present or earlier state, and another try backs up the present state.
Upkeep SecondBackup(const SmallStore& store) {
  StoreDisk disk(store.now);
  EXPECT_OK(Back(disk));
  {
    const auto writer = Store::Open(disk, kStorePath, Store::Mode::kWrite);
    EXPECT_OK(writer);
    if (writer) EXPECT_OK(WriteOneMore(**writer));
  }
  const std::string then = store.description;
  const std::string now = Describe(disk, kStorePath).value_or("none");
  return {.name = "backup",
          .before = Durable(disk),
          .run = [](StoreDisk& on, std::string&) { return Back(on, 1); },
          .check = [then, now](StoreDisk& on, const Status& ended) -> Wrong {
            StoreDisk first(on.Image());
            if (const Status restored = Restore(first); !restored.ok())
              return "no backup is left: " + restored.ToString();
            const auto seen = Describe(first, kRestored);
            if (!seen || (*seen != now && (ended.ok() || *seen != then)))
              return "a backup holds another store";
            if (const Status again = Back(on, 1); !again.ok())
              return "the next backup fails: " + again.ToString();
            const auto list = ListBackups(on, kBackups);
            if (!list || list->size() != 1) return "not one backup is left";
            if (const Status restored = Restore(on); !restored.ok()) return restored.ToString();
            if (auto wrong = Compare(on, kStorePath, now, "the store")) return wrong;
            return Compare(on, kRestored, now, "the next backup");
          }};
}

// After a restore there is either no store or the whole one, and leftovers do not prevent another
// try.
Upkeep RestoreOf(const SmallStore& store) {
  StoreDisk disk(store.now);
  EXPECT_OK(Back(disk));
  return {.name = "restore",
          .before = Durable(disk),
          .run = [](StoreDisk& on, std::string&) { return Restore(on, 1); },
          .check = [wanted = store.description](StoreDisk& on, const Status& ended) -> Wrong {
            const auto seen = Describe(on, kRestored);
            const bool none = !seen || *seen == "none";
            if (!none && *seen != wanted) return "half a store is there";
            if (none && ended.ok()) return "no store is there";
            if (none) {
              if (const Status again = Restore(on, 1); !again.ok())
                return "another try fails: " + again.ToString();
            }
            if (auto wrong = Compare(on, kRestored, wanted, "what was restored")) return wrong;
            return VerifySound(on, kRestored);
          }};
}

using Harm = std::function<void(StoreDisk& disk)>;

// After another, undisturbed try the store is as after a single repair, and the damaged bytes still
// exist somewhere. A file of the catalogue that currently cannot be read counts as missing: data
// that was only in this file is lost then, and the report says so.
Upkeep RepairOf(std::string name, const FakeImage& store, const Harm& harm,
                const RepairOptions& options = {}) {
  StoreDisk disk(store);
  const auto sound = disk.Files();
  harm(disk);
  std::vector<Bytes> damaged;
  for (const auto& [file, bytes] : disk.Files())
    if (!sound.contains(file) || sound.at(file) != bytes) damaged.push_back(bytes);
  const auto repair = [options](StoreDisk& on) {
    return AsStatus(RepairGraph(on, kStorePath, options, JobControl()));
  };
  StoreDisk undisturbed(disk.Image());
  EXPECT_OK(repair(undisturbed));
  const auto wanted = Describe(undisturbed, kStorePath);
  EXPECT_OK(wanted);
  const bool of_catalog = name.find("catalogue") != name.npos;
  return {
      .name = "repair of " + std::move(name),
      .before = Durable(disk),
      .run = [repair](StoreDisk& on, std::string&) { return repair(on); },
      .check = [=, wanted = wanted.value_or("none")](StoreDisk& on, const Status& ended) -> Wrong {
        if (const Status again = repair(on); !again.ok())
          return "another try fails: " + again.ToString();
        const auto files = on.Files();
        for (const Bytes& bytes : damaged)
          if (std::none_of(files.begin(), files.end(),
                           [&](const auto& file) { return file.second == bytes; }))
            return "damaged bytes were thrown away";
        if (auto wrong = VerifySound(on, kStorePath)) return wrong;
        if (of_catalog && ended.ok()) return std::nullopt;
        return Compare(on, kStorePath, wanted, "the repaired store");
      }};
}

Harm DamageTo(std::vector<std::string> parts) {
  return [parts = std::move(parts)](StoreDisk& disk) {
    for (const std::string& part : parts) Damage(disk, FileWith(disk, part));
  };
}

/// Damages a chunk that its checksum corrects, and the checksums of its rows, which are then
/// recomputed from it.
void DamageRowsAndSums(StoreDisk& disk) {
  Damage(disk, FileWith(disk, "/emb.v1/c.0.0"), 1);
  Damage(disk, FileWith(disk, "/emb.v1.crc32c/c.0.0"));
}

/// Commits a manifest that lists one more chunk of a bound array, and one less, and says wrong ends
/// of edge types. All of its files are intact.
void MisstateBoundArrays(StoreDisk& disk) {
  const auto store = Store::Open(disk, kStorePath, Store::Mode::kWrite);
  ASSERT_OK(store);
  const std::vector<EdgeEnds> ends = (*store)->manifest().info.edge_ends;
  auto change = ArrayChange::Begin(**store);
  ASSERT_OK(change);
  const Path root = (*store)->scratch() / "misstated";
  for (const char* name : {"look", "tint"}) {
    const auto array = (*store)->OpenArray(name);
    ASSERT_OK(array);
    const ArrayEntry entry = (*array)->entry();
    auto chunks = ListedChunks(entry, (*store)->manifest().files);
    std::uint64_t unlisted = 0;
    while (std::ranges::binary_search(chunks, unlisted)) ++unlisted;
    chunks.front() = unlisted;
    const auto writer = ChunkArrayWriter::Create(disk, root, entry);
    ASSERT_OK(writer);
    for (std::uint64_t chunk = 0; chunk < entry.chunk_count(); ++chunk) {
      if (std::ranges::find(chunks, chunk) == chunks.end()) {
        ASSERT_OK((*writer)->LeaveOut(chunk));
        continue;
      }
      std::vector<std::byte> rows((*array)->RowsInChunk(chunk) * entry.row_bytes());
      ASSERT_OK((*array)->ReadRows(chunk * entry.chunk_rows, (*array)->RowsInChunk(chunk), rows));
      ASSERT_OK((*writer)->WriteChunk(chunk, rows));
    }
    const auto files = (*writer)->Finish();
    ASSERT_OK(files);
    ASSERT_OK(change->Replace(name, {(*writer)->arrays(), root, *files}));
    ASSERT_OK(change->Commit());
    change = ArrayChange::Begin(**store);
    ASSERT_OK(change);
  }
  ASSERT_OK(change->SetEdgeEnds(
      std::vector<EdgeEnds>(ends.size(), EdgeEnds{.source = 1, .destination = 1})));
  ASSERT_OK(change->Commit());
}

void RemoveCatalog(StoreDisk& disk) {
  for (const auto& [file, _] : disk.Files())
    if (file.find("/catalog/") != std::string::npos) EXPECT_OK(disk.RemoveFile(file));
}

void CutManifestOfCatalog(StoreDisk& disk) {
  const std::string file = FileWith(disk, "/catalog/MANIFEST-");
  Bytes bytes = disk.Files().at(file);
  bytes.resize(bytes.size() / 2);
  EXPECT_OK(disk.Overwrite(file, std::move(bytes)));
}

}  // namespace

std::vector<Upkeep> Upkeeps() {
  const auto store = MakeSmallStore();
  EXPECT_OK(store);
  if (!store) return {};
  std::vector<Upkeep> out = {VerifyOf(*store, ""),
                             VerifyOf(*store, "/emb.v2/c.0.0"),
                             VerifyOf(*store, "/topology/part-0001"),
                             VerifyOf(*store, "/catalog/MANIFEST-"),
                             SecondBackup(*store),
                             RestoreOf(*store)};
  const auto repair = [&](std::string name, const Harm& harm, const RepairOptions& options = {}) {
    out.push_back(RepairOf(std::move(name), store->now, harm, options));
  };
  repair("small files", DamageTo({"/FORMAT", "/feat/zarr.json", "/emb.v1.crc32c/c.0.0"}));
  repair("rows and their sums", DamageRowsAndSums);
  repair("a manifest", DamageTo({"/MANIFEST-000003"}));
  repair("a partition", DamageTo({"/topology/part-0001"}));
  repair("a lost chunk", DamageTo({"/emb.v2/c.0.0"}));
  repair("a lost chunk with holes", DamageTo({"/emb.v2/c.0.0"}), {.fill_holes = true});
  repair("a catalogue", CutManifestOfCatalog);
  repair("no catalogue", RemoveCatalog);
  const auto bound = MakeBoundStore();
  EXPECT_OK(bound);
  if (!bound) return {};
  const Harm chunks = DamageTo({"/look/c.", "/tint/c."});
  out.push_back(RepairOf("chunks of one type", *bound, chunks));
  out.push_back(RepairOf("chunks of one type with holes", *bound, chunks, {.fill_holes = true}));
  StoreDisk misstated(*bound);
  MisstateBoundArrays(misstated);
  out.push_back(RepairOf("a manifest that lists other chunks", misstated.Image(), [](StoreDisk&) {},
                         {.fill_holes = true}));
  return out;
}

}  // namespace rhizome::testing
