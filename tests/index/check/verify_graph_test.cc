#include <gmock/gmock.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <random>

#include "index/delta/graph_parts.h"
#include "index/generation/graph_builder.h"
#include "index/homes/home_array.h"
#include "index/topology/adjacency_format.h"
#include "rhizome/graph.h"
#include "rhizome/maintenance.h"
#include "storage/array/chunk_writer.h"
#include "storage/base/mutex.h"
#include "storage/io/files.h"
#include "storage/io/forwarding_file_system.h"
#include "storage/maintenance/verify_files.h"
#include "storage/store/generation_writer.h"
#include "testing/graph_model.h"
#include "testing/section_edit.h"
#include "testing/test_store.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using testing::BuildStore;
using testing::RandomGraph;
using testing::RandomGraphOptions;
using testing::SectionEdit;

std::vector<std::string> LinesOfVerifyGraph(const VerifyReport& report) {
  std::vector<std::string> lines;
  for (const Damage& damage : report.damaged) lines.push_back(damage.file + ": " + damage.what);
  return lines;
}

// VerifyStore reports the result of VerifyFiles or, if that finds nothing, the result of
// VerifyGraph.
void ExpectTheSameAtOnce(const Path& store, const VerifyReport& graph) {
  const JobControl control;
  const auto files = VerifyFiles(FileSystem::Posix(), store, control);
  const auto both = VerifyStore(FileSystem::Posix(), store, control);
  ASSERT_OK(files);
  ASSERT_OK(both);
  EXPECT_EQ(LinesOfVerifyGraph(*both), LinesOfVerifyGraph(files->ok() ? graph : *files));
  EXPECT_EQ(both->files, files->files);
  EXPECT_EQ(both->bytes, files->bytes);
}

VerifyReport Verify(const Path& store) {
  VerifyReport report;
  const JobControl control;
  EXPECT_OK(VerifyGraph(FileSystem::Posix(), store, control, report));
  ExpectTheSameAtOnce(store, report);
  return report;
}

// Returns all findings, one "file: what" per line.
std::string OnlyDamage(const Path& store) {
  const VerifyReport report = Verify(store);
  EXPECT_FALSE(report.ok());
  std::string all;
  for (const Damage& damage : report.damaged) all += damage.file + ": " + damage.what + "\n";
  return all;
}

ArrayInput FeaturesOfVerifyGraph() {
  ArrayInput array;
  array.name = "feat";
  array.dim = 3;
  array.chunk_rows = 128;
  array.read_rows = [](std::span<const VertexId> vertices, std::span<std::byte> out) {
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<std::byte>(vertices[i / 12] * 7 + static_cast<VertexId>(i % 12));
    return Status::Ok();
  };
  return array;
}

BuildOptions Partitions(std::uint32_t partitions) {
  BuildOptions options;
  options.partition.partitions = partitions;
  options.partition.kind = PartitionerKind::kRandom;
  return options;
}

void FlipBit(const Path& path, std::uint64_t offset, int bit) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(static_cast<std::streamoff>(offset));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(static_cast<char>(byte ^ (1 << bit)));
  ASSERT_TRUE(file.good());
}

TEST(VerifyGraphTest, SoundStoresAreSound) {
  std::mt19937_64 rng(testing::TestSeed());
  for (const bool undirected : {false, true}) {
    for (const Direction directions : {Direction::kOut, Direction::kIn, Direction::kBoth}) {
      const testing::TempDir folder;
      GraphInput input = RandomGraph(rng, {.vertices = 300,
                                           .edges = 700,
                                           .edge_types = 1 + static_cast<std::uint32_t>(rng() % 3),
                                           .weighted = rng() % 2 == 0,
                                           .undirected = undirected,
                                           .id_kind = ExternalIdKind::kInteger});
      input.arrays = {FeaturesOfVerifyGraph()};
      BuildOptions options = Partitions(5);
      options.directions = directions;
      options.order = rng() % 2 == 0 ? OrderKind::kNatural : OrderKind::kPds;
      ASSERT_OK(BuildStore(folder / "g", std::move(input), options));
      const VerifyReport report = Verify(folder / "g");
      EXPECT_TRUE(report.ok()) << OnlyDamage(folder / "g");
    }
  }
}

/// Counts how often each chunk of the array of homes is opened.
class CountsHomes final : public ForwardingFileSystem {
 public:
  CountsHomes() : ForwardingFileSystem(FileSystem::Posix()) {}
  Result<std::unique_ptr<ReadableFile>> OpenRead(const Path& path,
                                                 const ReadOptions& options) override {
    const bool chunk =
        path.parent_path().filename() == kHomeArray && path.filename().native().starts_with("c.");
    if (chunk) {
      const MutexLock lock(mutex_);
      ++opened_[path.filename().string()];
    }
    return ForwardingFileSystem::OpenRead(path, options);
  }
  std::map<std::string, int> opened() {
    const MutexLock lock(mutex_);
    return opened_;
  }

 private:
  Mutex mutex_;
  std::map<std::string, int> opened_ RHIZOME_GUARDED_BY(mutex_);
};

TEST(VerifyGraphTest, HomesAreCheckedAsTheyAreReadForTheirHashes) {
  std::mt19937_64 rng(testing::TestSeed());
  for (const std::int32_t wrong : {0, 2}) {
    const testing::TempDir folder;
    GraphInput input = RandomGraph(rng, {.vertices = 300, .edges = 700});
    ArrayInput homes;
    homes.name = kHomeArray;
    homes.dtype = DataType::kInt32;
    homes.dim = 1;
    homes.chunk_rows = 128;
    homes.attributes = HomeAttributes({.homes = 2, .rule = HomeRule::kFile, .metrics = {}});
    homes.read_rows = [wrong](std::span<const VertexId> vertices, std::span<std::byte> out) {
      for (std::size_t i = 0; i < vertices.size(); ++i) {
        const std::int32_t home = vertices[i] == 7 ? wrong : static_cast<std::int32_t>(i % 2);
        std::memcpy(out.data() + i * sizeof(home), &home, sizeof(home));
      }
      return Status::Ok();
    };
    input.arrays = {std::move(homes)};
    ASSERT_OK(BuildStore(folder / "g", std::move(input), Partitions(2)));
    CountsHomes fs;
    const auto report = VerifyStore(fs, folder / "g", JobControl());
    ASSERT_OK(report);
    EXPECT_EQ(report->ok(), wrong == 0);
    EXPECT_EQ(LinesOfVerifyGraph(*report), LinesOfVerifyGraph(Verify(folder / "g")));
    ASSERT_EQ(fs.opened().size(), 3U);
    for (const auto& [chunk, count] : fs.opened()) EXPECT_EQ(count, 1) << chunk;
  }
}

TEST(VerifyGraphTest, EveryByteOfTheGraphFilesIsChecked) {
  std::mt19937_64 rng(testing::TestSeed());
  const testing::TempDir folder;
  ASSERT_OK(
      BuildStore(folder / "g",
                 RandomGraph(rng, {.vertices = 8, .edges = 12, .id_kind = ExternalIdKind::kString}),
                 Partitions(2)));
  auto store = Store::Open(FileSystem::Posix(), folder / "g", Store::Mode::kRead);
  ASSERT_OK(store);
  for (const std::string& name :
       {PartitionPath(0), PartitionPath(1), std::string(kOrderPath), std::string(kVertexIdsPath)}) {
    const Path path = (*store)->GenerationFolder() / name;
    const std::uint64_t size = std::filesystem::file_size(path);
    for (std::uint64_t offset = 0; offset < size; ++offset) {
      const int bit = static_cast<int>(rng() % 8);
      FlipBit(path, offset, bit);
      const auto graph = Graph::Open(**store);
      EXPECT_FALSE(graph) << name << " byte " << offset;
      if (graph) continue;
      EXPECT_NE(graph.error().message().find(name), std::string::npos);
      if (offset % 311 == 0) {
        EXPECT_THAT(OnlyDamage(folder / "g"), ::testing::HasSubstr(name));
      }
      FlipBit(path, offset, bit);
    }
  }
  EXPECT_OK(Graph::Open(**store));
}

TEST(VerifyGraphTest, MissingAndTruncatedFilesAreNamed) {
  std::mt19937_64 rng(2);
  for (const bool truncate : {true, false}) {
    const testing::TempDir folder;
    ASSERT_OK(BuildStore(folder / "g", RandomGraph(rng, {}), Partitions(2)));
    const Path path = Store::GenerationFolder(folder / "g", 1) / PartitionPath(1);
    if (truncate) {
      std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
    } else {
      std::filesystem::remove(path);
    }
    EXPECT_THAT(OnlyDamage(folder / "g"),
                ::testing::HasSubstr("generations/000001/topology/part-0001.adj: "));
  }
}

TEST(VerifyGraphTest, WhatIsKnownIsNotRepeated) {
  std::mt19937_64 rng(2);
  const testing::TempDir folder;
  ASSERT_OK(BuildStore(folder / "g", RandomGraph(rng, {}), Partitions(1)));
  const std::string name = "generations/000001/" + PartitionPath(0);
  FlipBit(folder.path() / "g" / name, 100, 0);
  VerifyReport report;
  report.damaged.push_back({name, 100, "found before"});
  const JobControl control;
  ASSERT_OK(VerifyGraph(FileSystem::Posix(), folder / "g", control, report));
  EXPECT_EQ(report.damaged.size(), 1U);
}

TEST(VerifyGraphTest, DamagedRowsAndSidecarsAreNamed) {
  std::mt19937_64 rng(3);
  const testing::TempDir folder;
  GraphInput input = RandomGraph(rng, {.vertices = 200, .edges = 50});
  input.arrays = {FeaturesOfVerifyGraph()};
  ASSERT_OK(BuildStore(folder / "g", std::move(input), Partitions(1)));
  const Path generation = Store::GenerationFolder(folder / "g", 1);
  for (const std::string& name : {ChunkPath("feat", 1), ChunkPath(SidecarName("feat"), 0)}) {
    FlipBit(generation / name, 5, 3);
    const std::string array = name.substr(0, name.rfind('/'));
    EXPECT_THAT(OnlyDamage(folder / "g"), ::testing::HasSubstr(array)) << name;
    FlipBit(generation / name, 5, 3);
  }
  EXPECT_TRUE(Verify(folder / "g").ok());
}

// A store with correct checksums but wrong content. It has the files of an intact store, changed
// and sealed again.
class LyingStoreTest : public ::testing::Test {
 protected:
  using Edit = std::function<void(const std::string& path, SectionEdit& file)>;

  void Build(const RandomGraphOptions& options) {
    std::mt19937_64 rng(9);
    ASSERT_OK(BuildStore(folder_ / "sound", RandomGraph(rng, options), Partitions(3)));
  }
  SectionEdit Read(const Store& store, const std::string& name, FileKind kind) const {
    auto bytes = ReadWholeFile(FileSystem::Posix(), store.GenerationFolder() / name, UINT64_MAX);
    EXPECT_OK(bytes);
    return {*bytes, kind, store.id()};
  }
  Status BuildLiar(const Edit& edit, std::uint64_t further_edges = 0) {
    RHIZOME_ASSIGN_OR_RETURN(
        auto sound, Store::Open(FileSystem::Posix(), folder_ / "sound", Store::Mode::kRead));
    RHIZOME_ASSIGN_OR_RETURN(auto liar,
                             Store::Create(FileSystem::Posix(), folder_ / "liar", sound->id()));
    RHIZOME_ASSIGN_OR_RETURN(auto writer, GenerationWriter::Create(*liar));
    for (const FileEntry& entry : sound->manifest().files) {
      if (!entry.path.ends_with(".adj") && !entry.path.ends_with(".ord")) continue;
      SectionEdit file =
          Read(*sound, entry.path,
               entry.path.ends_with(".ord") ? FileKind::kOrder : FileKind::kPartition);
      edit(entry.path, file);
      RHIZOME_ASSIGN_OR_RETURN(auto out, writer->CreateFile(entry.path));
      RHIZOME_RETURN_IF_ERROR(out->Append(file.Seal()));
      RHIZOME_RETURN_IF_ERROR(out->Close());
    }
    GenerationInfo info = sound->manifest().info;
    info.edges += further_edges;
    return writer->Commit(info);
  }
  // Changes element `i` of a section of the first partition.
  std::string DamageAfter(PartitionSection section, std::size_t i,
                          const std::function<std::uint64_t(std::uint64_t)>& change) {
    EXPECT_OK(BuildLiar([&](const std::string& path, SectionEdit& file) {
      if (path != PartitionPath(0)) return;
      file.Set(Kind(section), i, change(file.Get(Kind(section), i)));
    }));
    return OnlyDamage(folder_ / "liar");
  }

  const testing::TempDir folder_;
};

TEST_F(LyingStoreTest, AnUnchangedCopyIsSound) {
  Build({.vertices = 20, .edges = 60});
  ASSERT_OK(BuildLiar([](const std::string&, SectionEdit&) {}));
  EXPECT_TRUE(Verify(folder_ / "liar").ok());
}

TEST_F(LyingStoreTest, WrongGlobalDegreesAreFound) {
  Build({.vertices = 20, .edges = 60});
  EXPECT_THAT(DamageAfter(PartitionSection::kOutDegrees, 1, [](auto d) { return d + 1; }),
              ::testing::HasSubstr("part-0000.adj: the out-degree of row"));
}

TEST_F(LyingStoreTest, WrongPartitionSetsAreFound) {
  Build({.vertices = 40, .edges = 60});
  // Marks a vertex of partitions 0 and 1, or 0 and 2, as part of the third one as well.
  auto sound = Store::Open(FileSystem::Posix(), folder_ / "sound", Store::Mode::kRead);
  ASSERT_OK(sound);
  SectionEdit file = Read(**sound, PartitionPath(0), FileKind::kPartition);
  std::size_t i = 0;
  while (i < file.Count(Kind(PartitionSection::kPartitionSets)) &&
         file.Get(Kind(PartitionSection::kPartitionSets), i) == 7)
    ++i;
  ASSERT_LT(i, file.Count(Kind(PartitionSection::kPartitionSets)));
  EXPECT_THAT(DamageAfter(PartitionSection::kPartitionSets, i, [](auto) { return 7; }),
              ::testing::HasSubstr("part-0000.adj: the partition set of row"));
}

TEST_F(LyingStoreTest, InListsOfOtherEdgesAreFound) {
  Build({.vertices = 20, .edges = 60});
  auto sound = Store::Open(FileSystem::Posix(), folder_ / "sound", Store::Mode::kRead);
  ASSERT_OK(sound);
  const auto order = LoadOrder(**sound);
  ASSERT_OK(order);
  // The parser cannot detect a wrong source if the list remains sorted.
  SectionEdit file = Read(**sound, PartitionPath(0), FileKind::kPartition);
  for (std::size_t i = 0; i < file.Count(Kind(PartitionSection::kInNeighbors)); ++i) {
    SectionEdit changed = file;
    changed.Set(Kind(PartitionSection::kInNeighbors), i,
                changed.Get(Kind(PartitionSection::kInNeighbors), i) + 1);
    auto sections =
        SectionFile::Parse(changed.Seal(), PartitionPath(0), FileKind::kPartition, (*sound)->id());
    ASSERT_OK(sections);
    if (!Adjacency::Parse(*std::move(sections), *order, 0, 3, 1)) continue;
    EXPECT_THAT(DamageAfter(PartitionSection::kInNeighbors, i, [](auto v) { return v + 1; }),
                ::testing::HasSubstr("part-0000.adj: in-lists"));
    return;
  }
  FAIL() << "no entry could be changed";
}

TEST_F(LyingStoreTest, AnotherCountOfEdgesIsFound) {
  Build({.vertices = 20, .edges = 60});
  ASSERT_OK(BuildLiar([](const std::string&, SectionEdit&) {}, 1));
  EXPECT_THAT(OnlyDamage(folder_ / "liar"), ::testing::HasSubstr("hold 60 edges"));
  EXPECT_STATUS(testing::OpenStoreGraph(folder_ / "liar"), kCorruption);
}

TEST(VerifyGraphTest, NoStoreIsNotFoundAndCancellingInterrupts) {
  const testing::TempDir folder;
  VerifyReport report;
  JobControl control;
  EXPECT_STATUS(VerifyGraph(FileSystem::Posix(), folder / "none", control, report), kNotFound);
  std::mt19937_64 rng(2);
  ASSERT_OK(BuildStore(folder / "g", RandomGraph(rng, {}), Partitions(2)));
  control.Cancel();
  EXPECT_STATUS(VerifyGraph(FileSystem::Posix(), folder / "g", control, report), kInterrupted);
}

}  // namespace
}  // namespace rhizome
