#include <gmock/gmock.h>

#include <fstream>
#include <random>

#include "index/delta/graph_parts.h"
#include "index/topology/adjacency_format.h"
#include "index/topology/vertex_ids_format.h"
#include "index/topology/vertex_order_format.h"
#include "rhizome/maintenance.h"
#include "testing/graph_model.h"
#include "testing/test_store.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using testing::BuildStore;
using ::testing::IsEmpty;
using testing::RandomGraph;
using testing::RandomGraphOptions;

std::string BytesOf(const Path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void WriteOfRepairGraph(const Path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

class RepairGraphTest : public ::testing::Test {
 protected:
  void Build(const RandomGraphOptions& graph, Direction directions = Direction::kBoth,
             TopologyCodec codec = TopologyCodec::kNone, std::uint32_t partitions = 3) {
    std::filesystem::remove_all(store_);
    BuildOptions options;
    options.partition.partitions = partitions;
    options.partition.kind = PartitionerKind::kRandom;
    options.directions = directions;
    options.topology_codec = codec;
    options.order = rng_() % 3 == 0 ? OrderKind::kNatural : OrderKind::kPds;
    ASSERT_OK(BuildStore(store_, RandomGraph(rng_, graph), options));
    generation_ = Store::GenerationFolder(store_, 1);
  }

  /// Returns the offset and length in bytes of a section in a file.
  std::pair<std::uint64_t, std::uint64_t> Place(const std::string& name, FileKind kind,
                                                std::uint32_t section) {
    const auto id = Store::Open(FileSystem::Posix(), store_, Store::Mode::kRead);
    EXPECT_OK(id);
    const auto file = SectionFile::Load(FileSystem::Posix(), generation_ / name, kind, (*id)->id());
    EXPECT_OK(file);
    return {file->OffsetBytes(section), file->SectionBytes(section)};
  }

  void Overwrite(const std::string& name, std::uint64_t offset, std::uint64_t count) {
    std::string text = BytesOf(generation_ / name);
    ASSERT_LE(offset + count, text.size());
    for (std::uint64_t i = 0; i < count; ++i) text[offset + i] = static_cast<char>(rng_());
    WriteOfRepairGraph(generation_ / name, text);
  }

  RepairReport Repair() {
    auto report = RepairGraph(FileSystem::Posix(), store_, {}, JobControl());
    EXPECT_OK(report);
    return report ? *std::move(report) : RepairReport{};
  }

  bool Verifies() {
    const auto report = VerifyStore(FileSystem::Posix(), store_, JobControl());
    EXPECT_OK(report);
    return report && report->ok();
  }

  /// Overwrites a whole section. Repair must restore the original bytes.
  void ExpectSectionReturns(const std::string& name, FileKind kind, std::uint32_t section) {
    SCOPED_TRACE(name + " section " + std::to_string(section));
    const std::string before = BytesOf(generation_ / name);
    const auto [offset, bytes] = Place(name, kind, section);
    if (bytes == 0) return;
    Overwrite(name, offset, bytes);
    if (BytesOf(generation_ / name) == before) return;
    const RepairReport report = Repair();
    EXPECT_THAT(report.lost, IsEmpty());
    ASSERT_EQ(report.rebuilt.size(), 1U);
    EXPECT_TRUE(BytesOf(generation_ / name) == before);
    EXPECT_TRUE(Verifies());
    std::filesystem::remove_all(report.quarantine);
    WriteOfRepairGraph(generation_ / name, before);
  }

  const testing::TempDir dir_;
  const Path store_ = dir_ / "s";
  Path generation_;
  std::mt19937_64 rng_{testing::TestSeed()};
};

TEST_F(RepairGraphTest, EachDirectionOfTheOrderFollowsFromTheOther) {
  Build({.vertices = 3000, .edges = 3000});
  for (const OrderSection section : {OrderSection::kRowOfVertex, OrderSection::kVertexOfRow})
    ExpectSectionReturns(kOrderPath, FileKind::kOrder, static_cast<std::uint32_t>(section));
  // Both sections can be damaged, unless an entry is lost in both.
  const std::string before = BytesOf(generation_ / kOrderPath);
  const auto [rows, bytes] =
      Place(kOrderPath, FileKind::kOrder, static_cast<std::uint32_t>(OrderSection::kRowOfVertex));
  Overwrite(kOrderPath, rows + 4096, 1);
  Overwrite(kOrderPath, 8, 4);
  const RepairReport report = Repair();
  EXPECT_THAT(report.lost, IsEmpty());
  EXPECT_TRUE(BytesOf(generation_ / kOrderPath) == before);
}

TEST_F(RepairGraphTest, TheSortedSideFollowsFromTheIds) {
  for (const ExternalIdKind kind : {ExternalIdKind::kInteger, ExternalIdKind::kString}) {
    Build({.vertices = 3000, .edges = 100, .id_kind = kind});
    ExpectSectionReturns(kVertexIdsPath, FileKind::kVertexIds,
                         static_cast<std::uint32_t>(IdsSection::kSorted));
  }
}

TEST_F(RepairGraphTest, ListsOfOneDirectionFollowFromTheOther) {
  for (const TopologyCodec codec : {TopologyCodec::kNone, TopologyCodec::kEliasFano}) {
    for (const std::uint32_t types : {1U, 3U}) {
      for (const bool weighted : {false, true}) {
        SCOPED_TRACE(std::to_string(types) + (weighted ? " weighted" : ""));
        Build({.vertices = 600, .edges = 6000, .edge_types = types, .weighted = weighted},
              Direction::kBoth, codec);
        const bool plain = codec == TopologyCodec::kNone;
        for (const PartitionSection section :
             {plain ? PartitionSection::kInNeighbors : PartitionSection::kInLists,
              plain ? PartitionSection::kOutNeighbors : PartitionSection::kOutLists,
              PartitionSection::kInOffsetSteps, PartitionSection::kOutOffsetSteps,
              PartitionSection::kOutTypeLists, PartitionSection::kInTypeLists,
              PartitionSection::kInEdges})
          ExpectSectionReturns(PartitionPath(1), FileKind::kPartition, Kind(section));
      }
    }
  }
}

TEST_F(RepairGraphTest, WhatIsSaidOfBoundaryVerticesFollowsFromTheOtherPartitions) {
  for (const bool undirected : {false, true}) {
    Build({.vertices = 600, .edges = 3000, .edge_types = 2, .undirected = undirected},
          undirected ? Direction::kBoth : (rng_() % 2 == 0 ? Direction::kOut : Direction::kIn));
    for (const PartitionSection section :
         {PartitionSection::kMirrors, PartitionSection::kBoundaryOwned,
          PartitionSection::kOutDegrees, PartitionSection::kInDegrees,
          PartitionSection::kPartitionSets, PartitionSection::kHeader})
      ExpectSectionReturns(PartitionPath(2), FileKind::kPartition, Kind(section));
  }
}

// Checksums and the footer can be computed from the file, even if they were cut off.
TEST_F(RepairGraphTest, EndsAreWrittenAnew) {
  Build({.vertices = 3000, .edges = 9000, .id_kind = ExternalIdKind::kInteger});
  for (const std::string& name :
       {std::string(kOrderPath), std::string(kVertexIdsPath), PartitionPath(0)}) {
    const std::string before = BytesOf(generation_ / name);
    for (const std::uint64_t cut : {1U, 64U, 70U}) {
      WriteOfRepairGraph(generation_ / name, before.substr(0, before.size() - cut));
      const RepairReport report = Repair();
      EXPECT_THAT(report.lost, IsEmpty()) << name << " without its last " << cut;
      EXPECT_TRUE(BytesOf(generation_ / name) == before);
      std::filesystem::remove_all(report.quarantine);
    }
  }
  EXPECT_TRUE(Verifies());
}

// Changes one byte of each file. The checksums locate it, and repair restores the original bytes.
TEST_F(RepairGraphTest, AnyOneWrongByteIsPutRight) {
  Build({.vertices = 300, .edges = 900, .id_kind = ExternalIdKind::kString});
  for (const auto& entry : std::filesystem::recursive_directory_iterator(generation_)) {
    if (!entry.is_regular_file() || entry.file_size() == 0) continue;
    const std::string before = BytesOf(entry.path());
    std::string damaged = before;
    damaged[rng_() % damaged.size()] ^= static_cast<char>(1 + rng_() % 255);
    WriteOfRepairGraph(entry.path(), damaged);
    const RepairReport report = Repair();
    EXPECT_THAT(report.lost, IsEmpty()) << entry.path();
    EXPECT_EQ(report.rebuilt.size(), 1U) << entry.path();
    EXPECT_TRUE(BytesOf(entry.path()) == before) << entry.path();
    EXPECT_TRUE(BytesOf(Path(report.quarantine) /
                        std::filesystem::relative(entry.path(), store_)) == damaged);
    std::filesystem::remove_all(report.quarantine);
  }
  EXPECT_TRUE(Verifies());
}

// After any damage to a file of the graph, the file is either restored, or reported as lost and
// left unchanged.
TEST_F(RepairGraphTest, NothingIsWrongOrSilentlyLost) {
  Build({.vertices = 900,
         .edges = 5000,
         .edge_types = 2,
         .weighted = rng_() % 2 == 0,
         .id_kind = ExternalIdKind::kString});
  for (const std::string& name :
       {std::string(kOrderPath), std::string(kVertexIdsPath), PartitionPath(0), PartitionPath(2)}) {
    const std::string before = BytesOf(generation_ / name);
    for (int round = 0; round < 3; ++round) {
      const std::uint64_t count = 1 + rng_() % (before.size() / 2);
      const std::uint64_t offset = rng_() % (before.size() - count);
      if (round == 0) WriteOfRepairGraph(generation_ / name, before.substr(0, offset));
      if (round == 1) Overwrite(name, offset, count);
      if (round == 2) std::filesystem::remove(generation_ / name);
      const bool same = BytesOf(generation_ / name) == before;
      const RepairReport report = Repair();
      const bool whole = BytesOf(generation_ / name) == before;
      EXPECT_EQ(whole, report.lost.empty());
      EXPECT_EQ(whole, report.after.ok());
      EXPECT_TRUE(same || !report.found.empty());
      if (!report.quarantine.empty()) std::filesystem::remove_all(report.quarantine);
      WriteOfRepairGraph(generation_ / name, before);
    }
  }
  EXPECT_TRUE(Verifies());
}

}  // namespace
}  // namespace rhizome
