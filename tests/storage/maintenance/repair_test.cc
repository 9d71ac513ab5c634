#include <gmock/gmock.h>

#include <fstream>
#include <random>

#include "rhizome/array_change.h"
#include "rhizome/verify.h"
#include "storage/array_fixture.h"
#include "storage/io/files.h"
#include "storage/io/forwarding_file_system.h"
#include "storage/maintenance/repair_store.h"
#include "storage/store/generation_writer.h"
#include "storage/store/store_files.h"

// Tests of RepairStore. Each test damages files of a store with two versions of an array, runs
// repair, and checks what was rebuilt, lost or quarantined.

namespace rhizome {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TempDir;

constexpr const char* kGeneration = "generations/000001/";

/// A store with the row array "feat", and "emb" in two versions in layout chunk.
class RepairTest : public ::testing::Test {
 protected:
  explicit RepairTest(const GenerationInfo& info = testing::SmallInfo()) {
    EXPECT_OK(testing::MakeStore(fs_, store_, /*array=*/true, 300, info));
    EXPECT_OK(CreateDirectories(fs_, dir_ / "job"));
    const auto written =
        testing::WriteByFormula(fs_, dir_ / "job",
                                testing::MakeEntry("emb", 300, 4, DataType::kFloat32,
                                                   ArrayLayout::kChunk, CodecKind::kZstd, 128));
    EXPECT_OK(written);
    EXPECT_OK(ArrayChange::Run(fs_, store_, {.generation = 1}, [&](ArrayChange& change) -> Status {
      for (int i = 0; i < 2; ++i)
        RHIZOME_RETURN_IF_ERROR(
            change.AddVersion({written->arrays, dir_ / "job", written->files}, "emb"));
      RHIZOME_RETURN_IF_ERROR(change.SetAlias("emb", "live", 1));
      return change.SetAlias("emb", "live", 2);
    }));
  }

  void Damage(const std::string& file, std::size_t count = 2) {
    const Path path = store_ / file;
    // Copies the file first, because links share their bytes and the other name must stay intact.
    std::ifstream in(path, std::ios::binary);
    std::string text((std::istreambuf_iterator<char>(in)), {});
    in.close();
    ASSERT_FALSE(text.empty()) << path;
    // A single wrong byte would be corrected by its checksum.
    for (std::size_t i = 0; i < count; ++i) {
      char& byte = text[text.size() / (2 + i)];
      byte = static_cast<char>(byte ^ 1);
    }
    std::filesystem::remove(path);
    std::ofstream(path, std::ios::binary) << text;
  }
  std::string Bytes(const std::string& file) {
    std::ifstream in(store_ / file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  RepairReport Run(RepairOptions options = {}) {
    auto report = RepairStore(fs_, store_, options, JobControl());
    EXPECT_OK(report);
    return report ? *std::move(report) : RepairReport{};
  }

  TempDir dir_;
  FileSystem& fs_ = FileSystem::Posix();
  const Path store_ = dir_ / "s";
};

TEST_F(RepairTest, ASoundStoreIsLeftAlone) {
  const RepairReport report = Run();
  EXPECT_THAT(report.found, IsEmpty());
  EXPECT_EQ(report.quarantine, "");
  EXPECT_TRUE(report.after.ok());
}

TEST_F(RepairTest, WhatCanBeDerivedIsRebuilt) {
  const std::vector<std::string> files = {"FORMAT",
                                          std::string(kGeneration) + "arrays/feat/zarr.json",
                                          std::string(kGeneration) + "arrays/zarr.json",
                                          std::string(kGeneration) + "sums/feat.crc32c/c.0.0",
                                          std::string(kGeneration) + "sums/feat.crc32c/zarr.json",
                                          std::string(kGeneration) + "arrays/emb.v1/zarr.json"};
  for (const bool missing : {false, true}) {
    std::vector<std::string> before;
    for (const std::string& file : files) {
      before.push_back(Bytes(file));
      if (missing)
        std::filesystem::remove(store_ / file);
      else
        Damage(file);
    }
    std::filesystem::remove(store_ / kGeneration / "PIN");
    const RepairReport report = Run();
    EXPECT_EQ(report.rebuilt.size(), files.size() + 1);
    EXPECT_THAT(report.lost, IsEmpty());
    EXPECT_TRUE(report.after.ok()) << report.after.damaged.front().file;
    for (std::size_t i = 0; i < files.size(); ++i) EXPECT_EQ(Bytes(files[i]), before[i]);
    EXPECT_EQ(report.quarantined.size(), missing ? 0U : files.size());
    for (const RepairNote& note : report.quarantined)
      EXPECT_TRUE(std::filesystem::exists(note.how)) << note.how;
    if (!report.quarantine.empty()) std::filesystem::remove_all(report.quarantine);
  }
}

TEST_F(RepairTest, ALostChunkTakesItsArrayAlong) {
  Damage(std::string(kGeneration) + "arrays/emb.v2/c.1.0");
  const RepairReport dry = Run({.dry_run = true});
  ASSERT_EQ(dry.lost.size(), 1U);
  EXPECT_FALSE(std::filesystem::exists(dry.quarantine));
  const RepairReport report = Run();
  ASSERT_EQ(report.lost.size(), 1U);
  EXPECT_THAT(report.lost[0].what, HasSubstr("emb@2"));
  EXPECT_THAT(report.lost[0].how, HasSubstr("rows 128-255"));
  EXPECT_TRUE(report.after.ok());
  EXPECT_EQ(report.quarantined.size(), 4U);  // with the intact chunks and zarr.json
  const auto store = Store::Open(fs_, store_, Store::Mode::kRead);
  ASSERT_OK(store);
  // The alias refers to the same version as before.
  ASSERT_NE((*store)->manifest().FindArray("emb@live"), nullptr);
  EXPECT_EQ((*store)->manifest().FindArray("emb@live")->name, "emb.v1");
  EXPECT_STATUS((*store)->OpenArray("emb@2"), kNotFound);
  for (const RepairNote& note : report.quarantined)
    EXPECT_TRUE(std::filesystem::exists(note.how)) << note.how;
}

TEST_F(RepairTest, HolesAreFilledOnDemandAndListed) {
  Damage(std::string(kGeneration) + "arrays/emb.v2/c.1.0");
  const RepairReport report = Run({.fill_holes = true});
  ASSERT_EQ(report.lost.size(), 1U);
  EXPECT_THAT(report.lost[0].how, HasSubstr("lost_rows"));
  EXPECT_TRUE(report.after.ok());
  const auto store = Store::Open(fs_, store_, Store::Mode::kRead);
  ASSERT_OK(store);
  const auto array = (*store)->OpenArray("emb@live");
  ASSERT_OK(array);
  EXPECT_EQ((*array)->entry().name, "emb.v3");
  bool listed = false;
  for (const auto& [key, value] : (*array)->entry().attributes)
    listed = listed || (key == "lost_rows" && value == "128-255");
  EXPECT_TRUE(listed);
  std::vector<std::byte> bytes(300 * 16);
  ASSERT_OK((*array)->ReadRows(0, 300, bytes));
  auto expected = testing::RowsByFormula(0, 300, 16);
  std::fill(expected.begin() + 128 * 16, expected.begin() + 256 * 16, std::byte{0});
  EXPECT_EQ(bytes, expected);
}

TEST_F(RepairTest, WhatCannotBeHelpedIsSaid) {
  Damage(std::string(kGeneration) + "topology/part-0000.adj");
  const RepairReport report = Run();
  ASSERT_EQ(report.lost.size(), 1U);
  EXPECT_THAT(report.lost[0].what, HasSubstr("part-0000.adj"));
  ASSERT_EQ(report.after.damaged.size(), 1U);
  EXPECT_TRUE(std::filesystem::exists(store_ / kGeneration / "topology/part-0000.adj"));
}

TEST_F(RepairTest, OneWrongByteOfAManifestIsFoundByItsSeal) {
  const std::string file = std::string(kGeneration) + "MANIFEST-000002";
  const std::string before = Bytes(file);
  for (const std::size_t at : {std::size_t{40}, before.size() / 2, before.size() - 2}) {
    std::string damaged = before;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x41);
    std::ofstream(store_ / file, std::ios::binary) << damaged;
    const RepairReport report = Run();
    EXPECT_THAT(report.lost, IsEmpty()) << "byte " << at;
    EXPECT_EQ(report.rebuilt.size(), 1U);
    EXPECT_TRUE(report.after.ok());
    EXPECT_EQ(Bytes(file), before);
    EXPECT_EQ(report.quarantined.size(), 1U);
    std::filesystem::remove_all(report.quarantine);
  }
}

// The parts of the manifest that list files and arrays can be rebuilt, and so can its head and its
// seal.
TEST_F(RepairTest, AManifestFollowsFromWhatItLists) {
  const std::string file = std::string(kGeneration) + "MANIFEST-000002";
  const std::string before = Bytes(file);
  const std::size_t files = before.find("arrays/emb.v1/c.0.0");
  const std::size_t arrays = before.rfind("emb.v1", before.size() - 100);
  ASSERT_NE(files, before.npos);
  ASSERT_GT(arrays, files);
  const auto damage = [&](std::size_t first, std::size_t end) {
    std::string damaged = before;
    for (std::size_t at = first; at < end; ++at)
      damaged[at] = static_cast<char>(damaged[at] ^ 0x5a);
    return damaged;
  };
  const std::vector<std::string> damaged = {damage(0, 56),  // the head
                                            damage(files, files + 200),
                                            damage(files, arrays),        // entries of files
                                            damage(arrays, arrays + 60),  // an array
                                            damage(before.size() - 4, before.size()),  // the seal
                                            damage(before.size() - 4, before.size() - 3)};
  for (std::size_t i = 0; i < damaged.size(); ++i) {
    SCOPED_TRACE(i);
    std::ofstream(store_ / file, std::ios::binary) << damaged[i];
    const RepairReport report = Run();
    EXPECT_THAT(report.lost, IsEmpty());
    EXPECT_EQ(report.rebuilt.size(), 1U);
    EXPECT_TRUE(report.after.ok());
    EXPECT_EQ(Bytes(file), before);
    EXPECT_EQ(report.quarantined.size(), 1U);
    std::filesystem::remove_all(report.quarantine);
  }
}

class TypedRepairTest : public RepairTest {
 protected:
  TypedRepairTest() : RepairTest(testing::TypedInfo()) {}

  /// Expects that the manifest is rebuilt after `count` bytes from `first` on were lost.
  void ExpectRebuilt(const std::string& file, std::size_t first, std::size_t count) {
    SCOPED_TRACE(first);
    const std::string before = Bytes(file);
    std::string damaged = before;
    for (std::size_t at = first; at < first + count; ++at)
      damaged[at] = static_cast<char>(damaged[at] ^ 0x5a);
    std::ofstream(store_ / file, std::ios::binary) << damaged;
    const RepairReport report = Run();
    EXPECT_EQ(report.rebuilt.size(), 1U);
    EXPECT_TRUE(report.after.ok());
    EXPECT_EQ(Bytes(file), before);
    std::filesystem::remove_all(report.quarantine);
  }
};

TEST_F(TypedRepairTest, AManifestWithTheEndsOfEdgeTypesIsRebuilt) {
  const std::string file = std::string(kGeneration) + "MANIFEST-000002";
  const std::string before = Bytes(file);
  const std::size_t ends = before.find("writes") + 6;
  ASSERT_LT(ends, before.size());
  ExpectRebuilt(file, 0, 56);          // the head
  ExpectRebuilt(file, ends, 8);        // the ends, which an earlier manifest has
  ExpectRebuilt(file, ends + 60, 60);  // files
  ExpectRebuilt(file, before.size() - 4, 4);
}

TEST_F(TypedRepairTest, AManifestWithEndsAndWithoutArraysIsRebuilt) {
  std::filesystem::remove_all(store_);
  ASSERT_OK(testing::MakeStore(fs_, store_, /*array=*/false, 300, testing::TypedInfo()));
  const std::string file = std::string(kGeneration) + "MANIFEST-000001";
  ExpectRebuilt(file, 0, 56);
  ExpectRebuilt(file, Bytes(file).size() - 8, 8);  // the end of the rule on kept generations
}

// The manifest lists a chunk that is damaged, too. The entry of the chunk is rebuilt.
TEST_F(RepairTest, AManifestIsRebuiltBesideADamagedChunk) {
  const std::string file = std::string(kGeneration) + "MANIFEST-000002";
  const std::string before = Bytes(file);
  std::string damaged = before;
  for (std::size_t at = 0; at < 56; ++at) damaged[at] = 0;
  std::ofstream(store_ / file, std::ios::binary) << damaged;
  Damage(std::string(kGeneration) + "arrays/emb.v2/c.1.0");
  const RepairReport report = Run();
  EXPECT_EQ(report.rebuilt.size(), 1U);
  ASSERT_EQ(report.lost.size(), 1U);
  EXPECT_THAT(report.lost[0].what, HasSubstr("emb@2"));
  EXPECT_TRUE(report.after.ok());
}

// Facts that no file contains, such as the names of types, come from an earlier manifest. Without
// one, repair does not invent them.
TEST_F(RepairTest, AManifestThatDoesNotFollowIsLost) {
  const std::string file = std::string(kGeneration) + "MANIFEST-000002";
  const std::string before = Bytes(file);
  std::filesystem::remove(store_ / kGeneration / "MANIFEST-000001");
  std::string damaged = before;
  for (std::size_t at = 56; at < 120; ++at) damaged[at] = '\xff';
  for (const std::string& text : {damaged, std::string()}) {
    std::ofstream(store_ / file, std::ios::binary) << text;
    const RepairReport report = Run();
    EXPECT_THAT(report.rebuilt, IsEmpty());
    ASSERT_EQ(report.lost.size(), 1U);
    EXPECT_THAT(report.lost[0].how, HasSubstr("cannot be derived"));
    EXPECT_EQ(Bytes(file), text);
  }
}

TEST_F(RepairTest, AChunkWithOneWrongByteLosesNothing) {
  const std::string file = std::string(kGeneration) + "arrays/emb.v2/c.1.0";
  const std::string before = Bytes(file);
  std::string damaged = before;
  damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 8);
  std::filesystem::remove(store_ / file);  // links share their bytes
  std::ofstream(store_ / file, std::ios::binary) << damaged;
  const RepairReport report = Run();
  EXPECT_THAT(report.lost, IsEmpty());
  EXPECT_TRUE(report.after.ok());
  EXPECT_EQ(Bytes(file), before);
}

// The catalogue cannot be opened, so the manifest determines the current state.
TEST_F(RepairTest, SumsOfRowsFollowFromAChunkThatIsPutRight) {
  const std::string rows = std::string(kGeneration) + "arrays/feat/c.0.0";
  const std::string sums = std::string(kGeneration) + "sums/feat.crc32c/c.0.0";
  const std::string rows_before = Bytes(rows);
  const std::string sums_before = Bytes(sums);
  Damage(rows, 1);
  Damage(sums);
  for (const bool dry_run : {true, false}) {
    const RepairReport report = Run({.dry_run = dry_run});
    EXPECT_EQ(report.rebuilt.size(), 2U);
    EXPECT_THAT(report.lost, IsEmpty());
    EXPECT_EQ(report.after.ok(), !dry_run);
  }
  EXPECT_EQ(Bytes(rows), rows_before);
  EXPECT_EQ(Bytes(sums), sums_before);
}

TEST_F(RepairTest, ALostCatalogueFollowsFromTheManifest) {
  for (const bool whole : {true, false}) {
    if (whole)
      std::filesystem::remove_all(store_ / "catalog");
    else
      std::ofstream(store_ / "catalog/CURRENT", std::ios::trunc) << "MANIFEST-999999\n";
    const RepairReport dry = Run({.dry_run = true});
    EXPECT_FALSE(dry.rebuilt.empty());
    EXPECT_FALSE(dry.after.ok());
    const RepairReport report = Run();
    ASSERT_EQ(report.lost.size(), 1U);
    EXPECT_EQ(report.lost[0].what, "delta");
    EXPECT_TRUE(report.after.ok()) << report.after.damaged.front().what;
    const auto store = Store::Open(fs_, store_, Store::Mode::kWrite);
    ASSERT_OK(store);
    EXPECT_EQ((*store)->manifest().version, 2U);
    EXPECT_NE((*store)->manifest().FindArray("emb@live"), nullptr);
  }
}

/// Lets a given number of removals of the repair's own files and folders succeed. All later ones
/// fail, as if the process had been killed.
class EndsWhileItRemoves final : public ForwardingFileSystem {
 public:
  EndsWhileItRemoves(FileSystem& base, int removals)
      : ForwardingFileSystem(base), removals_(removals) {}
  Status RemoveFile(const Path& path) override {
    return Ends(path) ? Status::IoError("killed") : base().RemoveFile(path);
  }
  Status RemoveDirectory(const Path& path) override {
    return Ends(path) ? Status::IoError("killed") : base().RemoveDirectory(path);
  }
  bool ended() const { return removals_ < 0; }

 private:
  bool Ends(const Path& path) {
    return path.string().find("/scratch/repair") != std::string::npos && --removals_ < 0;
  }
  int removals_;
};

// The repair's working folder carries a job mark until it is empty. Without the mark, no later job
// would remove it.
TEST_F(RepairTest, WhatAKilledRepairLeavesIsRemoved) {
  bool ended = true;
  // Tries every third number of removals, starting at a random one.
  for (int removals = static_cast<int>(testing::TestSeed() % 3); ended; removals += 3) {
    SCOPED_TRACE(removals);
    std::filesystem::remove_all(store_ / "catalog");
    EndsWhileItRemoves killed(fs_, removals);
    static_cast<void>(RepairStore(killed, store_, {}, JobControl()));
    ended = killed.ended();
    Run();
    ASSERT_OK(Store::Open(fs_, store_, Store::Mode::kWrite));
    const auto scratch = fs_.List(store_ / kScratchName);
    const bool empty = !scratch || scratch->empty();
    EXPECT_TRUE(empty) << scratch->front().name;
  }
}

// Damage in an earlier generation is harmless, because no current generation depends on it.
TEST_F(RepairTest, ADamagedEarlierGenerationIsGivenUp) {
  {
    const auto store = Store::Open(fs_, store_, Store::Mode::kWrite);
    ASSERT_OK(store);
    const auto writer = GenerationWriter::Create(**store);
    ASSERT_OK(writer);
    ASSERT_OK((*writer)->Commit(testing::SmallInfo()));
  }
  const Path earlier = store_ / "generations/000001";
  for (const char* file : {"arrays/emb.v1/c.0.0", "arrays/emb.v1/zarr.json"})
    Damage(std::string(kGeneration) + file);
  const RepairReport report = Run();
  EXPECT_EQ(report.found.size(), 2U);
  EXPECT_THAT(report.lost, IsEmpty());
  EXPECT_TRUE(report.after.ok()) << report.after.damaged.front().what;
  EXPECT_THAT(report.after.orphans, ::testing::ElementsAre("generations/000001"));
  EXPECT_TRUE(std::filesystem::exists(earlier));
  ASSERT_OK(Store::Open(fs_, store_, Store::Mode::kWrite));
  EXPECT_FALSE(std::filesystem::exists(earlier));
}

TEST_F(RepairTest, ForeignFilesGoToQuarantine) {
  std::ofstream(store_ / "notes.txt") << "mine";
  std::filesystem::create_directories(store_ / "generations/extra");
  std::ofstream(store_ / "generations/extra/x") << "y";
  const RepairReport report = Run();
  EXPECT_TRUE(report.after.ok());
  EXPECT_EQ(report.quarantined.size(), 2U);
  EXPECT_TRUE(std::filesystem::exists(Path(report.quarantine) / "notes.txt"));
}

TEST_F(RepairTest, AWriterKeepsItOut) {
  const auto writer = Store::Open(fs_, store_, Store::Mode::kWrite);
  ASSERT_OK(writer);
  EXPECT_STATUS(RepairStore(fs_, store_, {}, JobControl()), kBusy);
  EXPECT_STATUS(RepairStore(fs_, dir_ / "none", {}, JobControl()), kNotFound);
}

// Damages a random file, except RocksDB's. After a repair, verify reports ok or only what the
// repair listed as lost; no existing file has been deleted.
TEST_F(RepairTest, AnyOneFileMayBeDamaged) {
  std::mt19937_64 random(testing::TestSeed());
  std::vector<std::string> files;
  ASSERT_OK(WalkFiles(fs_, store_, [&](const std::string& file, auto) {
    if (!file.starts_with("catalog/") && file != "LOCK" && !file.ends_with("PIN"))
      files.push_back(file);
    return Status::Ok();
  }));
  std::sort(files.begin(), files.end());
  const std::string file = files[random() % files.size()];
  SCOPED_TRACE(file);
  Damage(file);
  const std::string damaged = Bytes(file);
  const RepairReport report = Run();
  EXPECT_EQ(report.found.empty(), false);
  EXPECT_TRUE(report.after.ok() || !report.lost.empty());
  bool kept = std::filesystem::exists(store_ / file) && Bytes(file) == damaged;
  for (const RepairNote& note : report.quarantined) {
    std::ifstream in(note.how, std::ios::binary);
    kept = kept || std::string((std::istreambuf_iterator<char>(in)), {}) == damaged;
  }
  EXPECT_TRUE(kept);
}

}  // namespace
}  // namespace rhizome
