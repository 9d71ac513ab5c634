// The homes in a store are those that were chosen, for every way of creating the store, and after
// updates, compactions and restores.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <set>

#include "index/generation/graph_builder.h"
#include "index/homes/home_array.h"
#include "index/homes/home_partitioner.h"
#include "index/input/npy.h"
#include "index/partition/partitioner.h"
#include "index/partition_graphs.h"
#include "rhizome/array_add.h"
#include "rhizome/backup.h"
#include "rhizome/graph.h"
#include "rhizome/ingest.h"
#include "rhizome/maintenance.h"
#include "testing/compressed.h"
#include "testing/test_store.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using testing::GenerationBytes;
using ::testing::HasSubstr;
using testing::OpenStoreGraph;
using testing::TempDir;
using testing::WriteInput;

constexpr std::uint32_t kParts = 4;

/// A graph whose ids are "v0", "v1", ... in the order of the nodes file, and its training vertices.
struct GraphOfHomes {
  TestGraph graph;
  std::vector<VertexId> seeds;
  std::vector<PartitionId> given;  ///< homes from another program

  explicit GraphOfHomes(std::mt19937_64& random) {
    graph = {.name = "homes", .vertex_count = 200 + random() % 300, .src = {}, .dst = {}};
    const std::uint64_t edges = 4 * graph.vertex_count;
    for (std::uint64_t e = 0; e < edges; ++e) {
      const std::uint64_t u = random() % graph.vertex_count;
      graph.Add(u, random() % 8 == 0 ? random() % graph.vertex_count
                                     : (u + random() % 6) % graph.vertex_count);
    }
    for (std::uint64_t v = 0; v < graph.vertex_count; ++v) {
      if (random() % 5 == 0) seeds.push_back(static_cast<VertexId>(v));
      given.push_back(static_cast<PartitionId>(random() % kParts));
    }
  }

  /// Writes the input files. A bad line of the nodes file has a home, too, which no vertex
  /// receives.
  IngestOptions Write(const TempDir& dir, HomeRule rule, bool split_is_array) const {
    std::string text;
    for (std::size_t e = 0; e < graph.src.size(); ++e)
      text += fmt::format("v{}\tv{}\n", graph.src[e], graph.dst[e]);
    WriteInput(dir / "e.tsv", text);
    std::string nodes;
    std::string homes;
    std::vector<std::uint8_t> split;
    for (std::uint64_t v = 0; v < graph.vertex_count; ++v) {
      const bool seed = std::binary_search(seeds.begin(), seeds.end(), static_cast<VertexId>(v));
      split.push_back(seed ? 0 : v % 2 == 0 ? 2 : 255);
      nodes +=
          fmt::format("v{}", v) + (split_is_array ? "" : fmt::format("\t{}", split.back())) + "\n";
      homes += fmt::format("{}\n", given[v]);
      if (v != 50) continue;
      nodes += "bad\tline\tindeed\n";
      homes += "3\n";
      split.push_back(0);
    }
    WriteInput(dir / "n.tsv", nodes);
    WriteInput(dir / "homes.txt", homes);
    IngestOptions options{.edges = {dir / "e.tsv"}, .nodes = dir / "n.tsv"};
    options.node_columns = {"id"};
    if (split_is_array) {
      const std::vector<std::uint64_t> shape = {split.size(), 1};
      const auto header = EncodeNpyHeader(DataType::kUint8, shape);
      std::string bytes(reinterpret_cast<const char*>(header.data()), header.size());
      bytes.append(reinterpret_cast<const char*>(split.data()), split.size());
      WriteInput(dir / "split.npy", bytes);
      options.arrays = {{.name = "split", .path = dir / "split.npy"}};
    } else {
      options.node_columns.emplace_back("split");
    }
    options.max_bad_lines = 1;
    options.build.partition.partitions = kParts;
    options.build.homes = rule;
    if (rule == HomeRule::kFile)
      options.homes_file = ArrayFile{.name = "home", .path = dir / "homes.txt"};
    options.store_id = *StoreId::Parse("000102030405060708090a0b0c0d0e0f");
    return options;
  }

  /// Applies the rule without a store.
  std::vector<PartitionId> Chosen(HomeRule rule, const PartitionOptions& options) const {
    const PartitionInput input = graph.input();
    if (rule == HomeRule::kFile) return given;
    if (rule == HomeRule::kEdgeCut)
      return *DivideRows(input, seeds, {.homes = kParts, .seed = options.seed}, JobControl());
    return *ChooseOwners(input, *PartitionEdges(input, options, JobControl()), kParts);
  }
};

std::vector<std::int32_t> StoredHomesOf(const Path& store, std::uint64_t vertices) {
  const auto open = OpenStoreGraph(store);
  EXPECT_OK(open);
  std::vector<VertexId> ids;
  for (std::uint64_t v = 0; v < vertices; ++v)
    ids.push_back(*open->graph->Find(ExternalId(fmt::format("v{}", v))));
  std::vector<std::int32_t> homes(vertices);
  EXPECT_OK(open->graph->ReadRows("home", ids, std::as_writable_bytes(std::span(homes))));
  return homes;
}

StoredHomes FactsOf(const Path& path) {
  const auto store = Store::Open(FileSystem::Posix(), path, Store::Mode::kRead);
  EXPECT_OK(store);
  const auto facts = FindHomes((*store)->manifest());
  EXPECT_OK(facts);
  EXPECT_TRUE(*facts);
  return facts->value_or(StoredHomes{});
}

void ExpectSoundStore(const Path& store) {
  const auto report = VerifyStore(FileSystem::Posix(), store, JobControl());
  ASSERT_OK(report);
  for (const Damage& damage : report->damaged) ADD_FAILURE() << damage.file << ": " << damage.what;
}

class IngestHomesTest : public ::testing::TestWithParam<HomeRule> {
 protected:
  Status Run(const std::string& name, IngestOptions options, IngestOptions::Spill spill) {
    options.spill = spill;
    options.memory_bytes = spill == IngestOptions::Spill::kAlways ? 1 << 20 : 0;
    return testing::AsStatus(Ingest(FileSystem::Posix(), dir_ / name, options, JobControl()));
  }

  TempDir dir_;
  std::mt19937_64 random_{testing::TestSeed()};
};

INSTANTIATE_TEST_SUITE_P(All, IngestHomesTest,
                         ::testing::Values(HomeRule::kEdgeCut, HomeRule::kOwner, HomeRule::kFile),
                         [](const auto& param) { return std::string(HomeRuleName(param.param)); });

TEST_P(IngestHomesTest, AreThoseOfTheRuleAndMeasuredBothWays) {
  for (const bool split_is_array : {false, true}) {
    SCOPED_TRACE(split_is_array);
    const GraphOfHomes graph(random_);
    const IngestOptions options = graph.Write(dir_, GetParam(), split_is_array);
    ASSERT_OK(Run("held.rz", options, IngestOptions::Spill::kNever));
    ASSERT_OK(Run("spilled.rz", options, IngestOptions::Spill::kAlways));
    EXPECT_TRUE(GenerationBytes(dir_ / "held.rz") == GenerationBytes(dir_ / "spilled.rz"));
    const auto chosen = graph.Chosen(GetParam(), options.build.partition);
    EXPECT_EQ(StoredHomesOf(dir_ / "held.rz", graph.graph.vertex_count),
              std::vector<std::int32_t>(chosen.begin(), chosen.end()));
    const StoredHomes facts = FactsOf(dir_ / "held.rz");
    EXPECT_EQ(facts.homes, kParts);
    EXPECT_EQ(facts.rule, GetParam());
    EXPECT_EQ(facts.seeds, graph.seeds.size());
    EXPECT_EQ(facts.metrics, *MeasureHomes(graph.graph.input(), graph.seeds, chosen, kParts));
    ExpectSoundStore(dir_ / "held.rz");
    std::filesystem::remove_all(dir_ / "held.rz");
    std::filesystem::remove_all(dir_ / "spilled.rz");
  }
}

/// Adds new vertices and edges. By a put, assigns a home to a new vertex and moves an existing one.
void Update(const Path& path, std::mt19937_64& random, std::vector<std::int32_t>& homes) {
  const auto store = Store::Open(FileSystem::Posix(), path, Store::Mode::kWrite);
  ASSERT_OK(store);
  const auto graph = Graph::Open(**store);
  ASSERT_OK(graph);
  WriteBatch batch;
  for (int i = 0; i < 3; ++i) {
    batch.PutEdge(fmt::format("v{}", homes.size()), fmt::format("v{}", random() % homes.size()));
    homes.push_back(kNoHome);
  }
  homes[homes.size() - 2] = static_cast<std::int32_t>(random() % kParts);
  const std::size_t moved = random() % (homes.size() - 3);
  homes[moved] = static_cast<std::int32_t>(random() % kParts);
  for (const std::size_t v : {homes.size() - 2, moved})
    batch.PutRow(fmt::format("v{}", v), "home", {homes[v]});
  ASSERT_OK((*graph)->Write(batch));
}

TEST_P(IngestHomesTest, StayThroughUpdatesCompactionBackupAndRestore) {
  const GraphOfHomes graph(random_);
  const IngestOptions options = graph.Write(dir_, GetParam(), random_() % 2 == 0);
  const Path store = dir_ / "g.rz";
  ASSERT_OK(Run("g.rz", options, IngestOptions::Spill::kNever));
  const StoredHomes facts = FactsOf(store);
  std::vector<std::int32_t> homes = StoredHomesOf(store, graph.graph.vertex_count);
  for (const std::uint32_t partitions : {0U, random_() % 2 == 0 ? 2U : 7U}) {
    SCOPED_TRACE(partitions);
    ASSERT_NO_FATAL_FAILURE(Update(store, random_, homes));
    EXPECT_EQ(StoredHomesOf(store, homes.size()), homes);
    {
      const auto open = Store::Open(FileSystem::Posix(), store, Store::Mode::kWrite);
      ASSERT_OK(open);
      const auto live = Graph::Open(**open);
      ASSERT_OK(live);
      CompactOptions compact{.repartition = partitions != 0};
      compact.partition.partitions = partitions;
      ASSERT_OK((*live)->Compact(compact, JobControl()));
    }
    EXPECT_EQ(StoredHomesOf(store, homes.size()), homes);
  }
  ASSERT_NO_FATAL_FAILURE(Update(store, random_, homes));
  ASSERT_OK(BackupStore(FileSystem::Posix(), store, dir_ / "backups", {}, JobControl()));
  ASSERT_OK(RestoreStore(FileSystem::Posix(), dir_ / "backups", dir_ / "again.rz", std::nullopt,
                         JobControl()));
  EXPECT_EQ(StoredHomesOf(dir_ / "again.rz", homes.size()), homes);
  EXPECT_EQ(FactsOf(dir_ / "again.rz"), facts);
  ExpectSoundStore(dir_ / "again.rz");
}

class HomeRefusalsTest : public ::testing::Test {
 protected:
  HomeRefusalsTest() {
    WriteInput(dir_ / "e.tsv", "0\t1\n1\t2\n2\t3\n3\t0\n");
    options_.edges = {dir_ / "e.tsv"};
    options_.build.partition.partitions = 2;
    options_.build.homes = HomeRule::kFile;
  }
  void Homes(const std::string& name, const std::string& text) {
    WriteInput(dir_ / name, text);
    options_.homes_file = ArrayFile{.name = "home", .path = dir_ / name};
  }
  void HomesNpy(DataType dtype, std::uint64_t dim, const std::vector<std::int32_t>& values) {
    const std::vector<std::uint64_t> shape = {values.size() / dim, dim};
    const auto header = EncodeNpyHeader(dtype, shape);
    std::string bytes(reinterpret_cast<const char*>(header.data()), header.size());
    Homes("h.npy", bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * 4));
  }
  /// Expects an error from ingestion in memory and through files. Its message contains all of
  /// `parts`.
  void ExpectRefused(const std::vector<std::string>& parts) {
    for (const auto spill : {IngestOptions::Spill::kNever, IngestOptions::Spill::kAlways}) {
      IngestOptions options = options_;
      options.spill = spill;
      const auto report = Ingest(FileSystem::Posix(), dir_ / "g.rz", options, JobControl());
      ASSERT_FALSE(report) << fmt::format("{}", fmt::join(parts, "; "));
      EXPECT_EQ(report.error().code(), StatusCode::kInvalidArgument) << report.error().ToString();
      for (const std::string& part : parts)
        EXPECT_THAT(std::string(report.error().message()), HasSubstr(part));
      EXPECT_FALSE(std::filesystem::exists(dir_ / "g.rz"));
    }
  }

  TempDir dir_;
  IngestOptions options_;
};

TEST_F(HomeRefusalsTest, OfAFileSayWhere) {
  Homes("h.txt", "0\n1\n2\n0\n");
  ExpectRefused({"h.txt:3", "home 2 is not in [0, 2)"});
  Homes("h.txt", "0\n-1\n0\n0\n");
  ExpectRefused({"h.txt:2", "home -1"});
  Homes("h.txt", "0\n1\none\n0\n");
  ExpectRefused({"h.txt:3", "one integer"});
  options_.max_bad_lines = 5;  // lines of homes are never skipped
  ExpectRefused({"h.txt:3", "one integer"});
  Homes("h.txt", "0\t1\n1\n0\n0\n");
  ExpectRefused({"h.txt:1", "one integer"});
  Homes("h.txt", "0\n1\n0\n");
  ExpectRefused({"h.txt", "3 rows", "4 rows are expected"});
  Homes("h.txt.gz", "0\n1\n0\n2\n");
  ExpectRefused({"h.txt.gz:4", "home 2"});
  HomesNpy(DataType::kInt32, 1, {0, 1, 7, 0});
  ExpectRefused({"h.npy: row 2", "home 7 is not in [0, 2)"});
  HomesNpy(DataType::kInt32, 2, {0, 1, 0, 1});
  ExpectRefused({"h.npy", "but it is 2 x int32"});
  HomesNpy(DataType::kFloat32, 1, {0, 0, 0, 0});
  ExpectRefused({"h.npy", "but it is 1 x float32"});
}

TEST_F(HomeRefusalsTest, OfVerticesAndNames) {
  WriteInput(dir_ / "n.tsv", "0\n1\n2\n");
  options_.nodes = dir_ / "n.tsv";
  Homes("h.txt", "0\n1\n0\n");
  ExpectRefused({"h.txt", "1 vertices occur only in edges"});
  Homes("h.txt", "0\n1\n0\n1\n");
  ExpectRefused({"h.txt has 4 rows", "nodes file has 3 lines"});
  options_.nodes.reset();
  options_.arrays = {{.name = "home", .path = dir_ / "h.txt"}};
  ExpectRefused({"two arrays have the name 'home'", "homes of rows"});
  options_.arrays.clear();
  options_.homes_file.reset();
  ExpectRefused({"a file of homes"});
}

// Homes beyond the last vertex of an edge add vertices, as the rows of an array do.
TEST_F(HomeRefusalsTest, AFileMayHaveHomesOfVerticesWithoutEdges) {
  Homes("h.txt", "0\n1\n1\n1\n1\n0\n1\n1\n");
  const auto report = Ingest(FileSystem::Posix(), dir_ / "g.rz", options_, JobControl());
  ASSERT_OK(report);
  EXPECT_EQ(report->info.vertices, 8U);
  ASSERT_TRUE(report->homes);
  EXPECT_EQ(report->homes->metrics.row_balance, 1.5);
  const auto warning = HomeWarning(*report->homes, 8);
  ASSERT_TRUE(warning);
  EXPECT_THAT(*warning, HasSubstr("6 rows, 1.500 times the mean (bound: 1.05)"));
}

TEST_F(HomeRefusalsTest, AnEdgeCutThatDoesNotFitIsRefused) {
  std::string edges;
  for (int e = 0; e < 30'000; ++e) edges += fmt::format("{}\t{}\n", e % 997, e * 7 % 1009);
  WriteInput(dir_ / "e.tsv", edges);
  options_.build.homes = HomeRule::kEdgeCut;
  options_.build.partition.kind = PartitionerKind::kHdrf;
  options_.spill = IngestOptions::Spill::kAlways;
  options_.memory_bytes = (std::uint64_t{3} << 20) / 2;
  const auto report = Ingest(FileSystem::Posix(), dir_ / "g.rz", options_, JobControl());
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code(), StatusCode::kOutOfMemory) << report.error().ToString();
  EXPECT_THAT(std::string(report.error().message()), HasSubstr("homes by owner"));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "g.rz"));
  options_.build.homes = HomeRule::kOwner;
  EXPECT_OK(Ingest(FileSystem::Posix(), dir_ / "g.rz", options_, JobControl()));
}

TEST_F(HomeRefusalsTest, OfAPutSayWhich) {
  options_.build.homes = HomeRule::kOwner;
  ASSERT_OK(Ingest(FileSystem::Posix(), dir_ / "g.rz", options_, JobControl()));
  const auto store = Store::Open(FileSystem::Posix(), dir_ / "g.rz", Store::Mode::kWrite);
  ASSERT_OK(store);
  const auto graph = Graph::Open(**store);
  ASSERT_OK(graph);
  for (const std::int32_t home : {2, -2, 1 << 20}) {
    WriteBatch batch;
    batch.PutRow(std::int64_t{3}, "home", {home});
    const auto written = testing::AsStatus((*graph)->Write(batch));
    EXPECT_EQ(written.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(written.message()), HasSubstr(fmt::format("home {}", home)));
  }
  WriteBatch batch;
  batch.PutRow(std::int64_t{3}, "home", {std::int32_t{-1}});
  batch.PutEdge(std::int64_t{4}, std::int64_t{3});
  EXPECT_OK((*graph)->Write(batch));
  // Appended rows would be read from a file without a check.
  HomesNpy(DataType::kInt32, 1, {7});
  AddArrayOptions append{.file = {.name = "home", .path = dir_ / "h.npy"}};
  const auto appended =
      AppendRows(FileSystem::Posix(), dir_ / "g.rz", "home", append, JobControl());
  ASSERT_FALSE(appended);
  EXPECT_EQ(appended.error().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(appended.error().message()), HasSubstr("put the homes"));
}

/// Builds a store of 10 vertices with an array of homes. The array has the attributes `facts`, and
/// vertex 7 has the home `value`.
Status BuildWithHomes(const Path& path, std::vector<std::pair<std::string, std::string>> facts,
                      std::int32_t value) {
  GraphInput input;
  input.vertex_count = 10;
  input.edges.src = {0, 1};
  input.edges.dst = {1, 2};
  input.vertex_type_names = {"vertex"};
  input.edge_type_names = {"edge"};
  ArrayInput array;
  array.name = "home";
  array.dim = 1;
  array.dtype = DataType::kInt32;
  array.attributes = std::move(facts);
  array.read_rows = [value](std::span<const VertexId> vertices, std::span<std::byte> out) {
    for (std::size_t i = 0; i < vertices.size(); ++i) {
      const std::int32_t home = vertices[i] == 7 ? value : 0;
      std::memcpy(out.data() + 4 * i, &home, 4);
    }
    return Status::Ok();
  };
  input.arrays.push_back(std::move(array));
  return testing::BuildStore(path, std::move(input), {});
}

TEST(HomeArrayTest, VerifyFindsHomesThatAreNone) {
  StoredHomes facts;
  facts.homes = 3;
  facts.rule = HomeRule::kFile;
  const TempDir dir;
  for (const std::int32_t value : {-1, 2, 3, -2}) {
    SCOPED_TRACE(value);
    const Path store = dir / fmt::format("{}.rz", value);
    ASSERT_OK(BuildWithHomes(store, HomeAttributes(facts), value));
    const auto report = VerifyStore(FileSystem::Posix(), store, JobControl());
    ASSERT_OK(report);
    ASSERT_EQ(report->damaged.size(), value == 3 || value == -2 ? 1U : 0U);
    if (report->damaged.empty()) continue;
    EXPECT_THAT(report->damaged[0].file, HasSubstr("arrays/home"));
    EXPECT_THAT(report->damaged[0].what, HasSubstr(fmt::format("home {} is not in", value)));
  }
  // Without the attributes, the same array is an ordinary array of the user.
  ASSERT_OK(BuildWithHomes(dir / "plain.rz", {}, 12));
  ExpectSoundStore(dir / "plain.rz");
}

TEST(HomeArrayTest, FactsComeBackAsTheyWere) {
  std::mt19937_64 random(testing::TestSeed());
  std::uniform_real_distribution<double> share(0, 1);
  for (int i = 0; i < 200; ++i) {
    StoredHomes facts;
    facts.homes = static_cast<std::uint32_t>(1 + random() % kMaxPartitions);
    facts.rule = std::vector{HomeRule::kEdgeCut, HomeRule::kOwner, HomeRule::kFile}[random() % 3];
    facts.seeds = random() % (std::uint64_t{1} << 40);
    facts.metrics = {share(random), 1 + share(random), 1 + 100 * share(random)};
    ArrayEntry entry;
    entry.name = "home";
    entry.rows = 9;
    entry.dim = 1;
    entry.dtype = DataType::kInt32;
    entry.attributes = HomeAttributes(facts);
    EXPECT_TRUE(std::is_sorted(entry.attributes.begin(), entry.attributes.end()));
    const auto back = HomesOfArray(entry);
    ASSERT_OK(back);
    EXPECT_EQ(*back, facts);
    // A wrong or missing attribute is noticed, and so is another element type.
    ArrayEntry spoilt = entry;
    auto& [key, value] = spoilt.attributes[random() % spoilt.attributes.size()];
    if (key == "missing") continue;
    const bool counts = key == "homes";
    value = counts ? std::vector{"0", "1025", "4x", ""}[random() % 4] : value + "x";
    EXPECT_FALSE(HomesOfArray(spoilt));
    spoilt = entry;
    spoilt.dtype = DataType::kInt64;
    EXPECT_FALSE(HomesOfArray(spoilt));
    spoilt = entry;
    spoilt.name = "homes";
    EXPECT_EQ(*HomesOfArray(spoilt), std::nullopt);
    entry.name = "home.v3";
    EXPECT_EQ(*HomesOfArray(entry), facts);
  }
}

}  // namespace
}  // namespace rhizome
