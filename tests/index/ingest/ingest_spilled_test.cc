#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <random>

#include "index/generation/graph_builder.h"
#include "index/input/npy.h"
#include "index/partition/partitioner.h"
#include "index/topology/adjacency.h"
#include "rhizome/graph.h"
#include "rhizome/ingest.h"
#include "testing/compressed.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using testing::GenerationBytes;
using testing::WriteInput;

enum class Ids : std::uint8_t { kDense, kSparse, kStrings, kLateStrings };

/// Random input files of one graph.
class RandomInput {
 public:
  RandomInput(std::mt19937_64& random, Ids ids, const testing::TempDir& dir)
      : random_(random), ids_(ids), dir_(dir) {}

  IngestOptions Make(std::uint64_t vertices, std::uint64_t edges) {
    IngestOptions options;
    options.columns = {"src", "dst", "type", "weight", "time", "amount"};
    std::string text;
    for (std::uint64_t e = 0; e < edges; ++e) {
      const bool late = ids_ == Ids::kLateStrings && 3 * e > 2 * edges;
      text += fmt::format(
          "{}\t{}\trel{}\t{}\t{}\t{}\n", Id(Skewed(vertices), late), Id(Pick(vertices), late),
          Pick(3), static_cast<double>(Pick(8)) / 4, static_cast<std::int64_t>(Pick(1000)) - 500,
          e < edges / 2 ? fmt::format("{}", Pick(100)) : fmt::format("{}.5", Pick(100)));
    }
    WriteInput(dir_ / "e.tsv", text);
    options.edges = {dir_ / "e.tsv"};
    text.clear();
    std::vector<std::uint64_t> lines(vertices);
    for (std::uint64_t v = 0; v < vertices; ++v) lines[v] = v;
    std::shuffle(lines.begin(), lines.end(), random_);
    if (ids_ != Ids::kDense) lines.resize(vertices / 2);  // the others appear only in edges
    for (std::size_t i = 0; i < lines.size(); ++i) {
      text += fmt::format("{}\tkind{}\t{}\n", Id(lines[i], false), Pick(2), Pick(5));
      if (i == lines.size() / 2) text += "bad line\n";
    }
    WriteInput(dir_ / "n.tsv", text);
    options.nodes = dir_ / "n.tsv";
    options.node_columns = {"id", "type", "label"};
    options.max_bad_lines = 1;
    options.arrays = Arrays(lines.size() + 1);
    options.store_id = *StoreId::Parse("000102030405060708090a0b0c0d0e0f");
    return options;
  }

 private:
  std::uint64_t Pick(std::uint64_t bound) { return random_() % bound; }
  std::uint64_t Skewed(std::uint64_t bound) { return std::min(Pick(bound), Pick(bound)) / 4; }

  std::string Id(std::uint64_t v, bool late) const {
    if (late || ids_ == Ids::kStrings) return fmt::format("vertex-{}\xC3\xA9", v * 7919 % 65537);
    if (ids_ == Ids::kDense) return std::to_string(v);
    return std::to_string(static_cast<std::int64_t>(v) * 1000003 - 5000000);
  }

  std::vector<ArrayFile> Arrays(std::uint64_t rows) {
    std::vector<float> values(rows * 3);
    for (float& value : values) value = static_cast<float>(Pick(1000)) / 8;
    const std::vector<std::uint64_t> shape = {rows, 3};
    const auto header = EncodeNpyHeader(DataType::kFloat32, shape);
    std::string bytes(reinterpret_cast<const char*>(header.data()), header.size());
    bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    WriteInput(dir_ / "x.npy", bytes);
    std::string triplets;
    for (std::uint64_t row = rows; row-- > 0;)
      if (Pick(3) == 0) triplets += fmt::format("{}\t{}\t{}\n", row, Pick(5), Pick(100));
    WriteInput(dir_ / "s.tsv", triplets);
    return {{.name = "x", .path = dir_ / "x.npy", .dtype = DataType::kFloat16},
            {.name = "s", .path = dir_ / "s.tsv", .dim = 5}};
  }

  std::mt19937_64& random_;
  const Ids ids_;
  const testing::TempDir& dir_;
};

class IngestSpilledTest : public ::testing::Test {
 protected:
  Result<IngestReport> Run(const std::string& name, IngestOptions options,
                           IngestOptions::Spill spill, std::uint64_t memory_bytes) {
    options.spill = spill;
    options.memory_bytes = memory_bytes;
    return Ingest(FileSystem::Posix(), dir_ / name, options, control_);
  }

  void ExpectSameBytes(const IngestOptions& options) {
    const auto held = Run("held.rz", options, IngestOptions::Spill::kNever, 0);
    ASSERT_OK(held);
    EXPECT_FALSE(held->spilled);
    const auto spilled = Run("spilled.rz", options, IngestOptions::Spill::kAlways, kTinyMemory);
    ASSERT_OK(spilled);
    EXPECT_TRUE(spilled->spilled);
    EXPECT_GT(spilled->spilled_bytes, 0U);
    EXPECT_EQ(held->bad_lines, spilled->bad_lines);
    const auto expected = GenerationBytes(dir_ / "held.rz");
    const auto found = GenerationBytes(dir_ / "spilled.rz");
    ASSERT_EQ(expected.size(), found.size());
    for (const auto& [name, bytes] : expected) {
      ASSERT_TRUE(found.contains(name)) << name;
      EXPECT_TRUE(bytes == found.at(name)) << name << " differs";
    }
    EXPECT_FALSE(std::filesystem::exists(dir_ / "spilled.rz/scratch"));
    std::filesystem::remove_all(dir_ / "held.rz");
    std::filesystem::remove_all(dir_ / "spilled.rz");
  }

  // Far below what the graphs need. key_sorter_test covers sorts of many runs.
  static constexpr std::uint64_t kTinyMemory = 1 << 20;
  testing::TempDir dir_;
  JobControl control_;
};

class IngestSpilledIdsTest : public IngestSpilledTest, public ::testing::WithParamInterface<Ids> {};

TEST_P(IngestSpilledIdsTest, BothWaysGiveTheSameBytes) {
  std::mt19937_64 random(testing::TestSeed());
  RandomInput input(random, GetParam(), dir_);
  IngestOptions options = input.Make(200 + random() % 800, random() % 8000);
  options.build.partition.kind = PartitionerKind::kHdrf;
  options.build.partition.partitions = 3 + random() % 4;  // one of them fits in kTinyMemory
  options.build.partition.threads = 2;
  options.undirected = random() % 2 == 0;
  options.build.directions =
      std::vector{Direction::kBoth, Direction::kOut, Direction::kIn}[random() % 3];
  options.layout = random() % 2 == 0 ? ArrayLayout::kRow : ArrayLayout::kChunk;
  ExpectSameBytes(options);
}
INSTANTIATE_TEST_SUITE_P(All, IngestSpilledIdsTest,
                         ::testing::Values(Ids::kDense, Ids::kSparse, Ids::kStrings,
                                           Ids::kLateStrings));

// Partitioners that need all edges make several passes over the spilled ones, if their own data
// fits in memory.
TEST_F(IngestSpilledTest, EveryPartitionerGivesTheSameBytesBothWays) {
  std::mt19937_64 random(testing::TestSeed());
  RandomInput input(random, Ids::kDense, dir_);
  IngestOptions options = input.Make(300, 3000);
  options.build.partition.partitions = 3;
  for (const PartitionerKind kind :
       {PartitionerKind::kRefined, PartitionerKind::kAdaDne, PartitionerKind::kDne,
        PartitionerKind::kHash2d, PartitionerKind::kDbh, PartitionerKind::kHdrf,
        PartitionerKind::kRandom, PartitionerKind::kRange}) {
    SCOPED_TRACE(PartitionerName(kind));
    options.build.partition.kind = kind;
    ExpectSameBytes(options);
  }
}

// The input is read through files but is small enough to be built in memory, so any partitioner
// works.
TEST_F(IngestSpilledTest, AnInputThatFitsOnceReadKeepsItsPartitioner) {
  std::mt19937_64 random(testing::TestSeed());
  RandomInput input(random, Ids::kStrings, dir_);
  IngestOptions options = input.Make(300, 2000);
  options.build.partition.partitions = 2;
  options.build.partition.kind = PartitionerKind::kRefined;
  const auto held = Run("held.rz", options, IngestOptions::Spill::kNever, 0);
  ASSERT_OK(held);
  // The memory limit is just below the estimate, and far above what the build needs.
  std::optional<IngestReport> spilled;
  for (std::uint64_t memory = 64 << 10; !spilled && memory < (64 << 20); memory = memory * 5 / 4) {
    auto report = Run("auto.rz", options, IngestOptions::Spill::kAuto, memory);
    if (!report) {
      EXPECT_EQ(report.error().code(), StatusCode::kOutOfMemory) << report.error().ToString();
      EXPECT_FALSE(std::filesystem::exists(dir_ / "auto.rz"));
      continue;
    }
    if (report->info.partitioner == "refined")
      spilled = *report;
    else
      std::filesystem::remove_all(dir_ / "auto.rz");
  }
  ASSERT_TRUE(spilled);
  EXPECT_EQ(GenerationBytes(dir_ / "held.rz"), GenerationBytes(dir_ / "auto.rz"));
}

TEST_F(IngestSpilledTest, APartitionerWhoseEdgesDoNotFitGivesWay) {
  std::mt19937_64 random(testing::TestSeed());
  RandomInput input(random, Ids::kDense, dir_);
  IngestOptions options = input.Make(200, 80000);
  options.choose_partitions = true;
  const auto report = Run("g.rz", options, IngestOptions::Spill::kAuto, kTinyMemory);
  ASSERT_OK(report);
  EXPECT_TRUE(report->spilled);
  EXPECT_EQ(report->info.partitioner, "hdrf");
  EXPECT_GT(report->info.partitions, 1U);
}

TEST_F(IngestSpilledTest, TooFewPartitionsAreRefusedWithANumberThatDoes) {
  std::mt19937_64 random(testing::TestSeed());
  RandomInput input(random, Ids::kDense, dir_);
  IngestOptions options = input.Make(200, 20000);
  const auto refused = Run("g.rz", options, IngestOptions::Spill::kAuto, kTinyMemory);
  ASSERT_FALSE(refused);
  EXPECT_STATUS(refused, kOutOfMemory);
  EXPECT_FALSE(std::filesystem::exists(dir_ / "g.rz"));
  const std::string& message = refused.error().message();
  const std::size_t hint = message.find("`partitions=");
  ASSERT_NE(hint, std::string::npos) << message;
  options.build.partition.partitions =
      static_cast<std::uint32_t>(std::stoul(message.substr(hint + 12)));
  EXPECT_OK(Run("g.rz", options, IngestOptions::Spill::kAuto, kTinyMemory));
}

// Weights may be put later, whether the ingestion spilled or not.
TEST_F(IngestSpilledTest, AWeightColumnWithoutEdgesMakesAWeightedGraph) {
  WriteInput(dir_ / "e.tsv", "");
  IngestOptions options{
      .edges = {dir_ / "e.tsv"}, .columns = {"src", "dst", "weight"}, .vertices = 5};
  options.store_id = *StoreId::Parse("000102030405060708090a0b0c0d0e0f");
  const auto in_memory = Run("memory.rz", options, IngestOptions::Spill::kNever, 0);
  ASSERT_OK(in_memory);
  EXPECT_TRUE(in_memory->info.weighted);
  const auto bytes = GenerationBytes(dir_ / "memory.rz");
  for (const auto spill : {IngestOptions::Spill::kAuto, IngestOptions::Spill::kAlways}) {
    const Path path = dir_ / fmt::format("{}.rz", static_cast<int>(spill));
    const auto report = Run(path.filename().string(), options, spill, kTinyMemory);
    ASSERT_OK(report);
    EXPECT_TRUE(report->info.weighted);
    EXPECT_EQ(GenerationBytes(path), bytes);
  }
}

TEST_F(IngestSpilledTest, VerticesThatAreTooManyAreRefused) {
  WriteInput(dir_ / "e.tsv", "0\t1\n");
  const IngestOptions options{.edges = {dir_ / "e.tsv"}, .vertices = 1000000};
  const auto refused = Run("g.rz", options, IngestOptions::Spill::kAuto, kTinyMemory);
  ASSERT_FALSE(refused);
  EXPECT_STATUS(refused, kOutOfMemory);
  EXPECT_NE(refused.error().message().find("1000000 vertices"), std::string::npos)
      << refused.error().message();
  EXPECT_FALSE(std::filesystem::exists(dir_ / "g.rz"));
}

TEST_F(IngestSpilledTest, MalformedInputLeavesNothing) {
  WriteInput(dir_ / "e.tsv", "0\t1\t5\nx\n");
  WriteInput(dir_ / "t.tsv", "0\t1\t5\n1\t0\t1.5\n");
  WriteInput(dir_ / "s.tsv", "0\t1\t5\n1\t0\t2\n0\t1\t6\n");
  const auto refuse = [&](const IngestOptions& options, std::string_view part) {
    const auto refused = Run("g.rz", options, IngestOptions::Spill::kAlways, 0);
    ASSERT_FALSE(refused);
    EXPECT_STATUS(refused, kInvalidArgument);
    EXPECT_NE(refused.error().message().find(part), std::string::npos) << refused.error().message();
    EXPECT_FALSE(std::filesystem::exists(dir_ / "g.rz"));
  };
  refuse({.edges = {dir_ / "e.tsv"}, .columns = {"src", "dst", "-"}}, "e.tsv:2");
  refuse({.edges = {dir_ / "t.tsv"}, .columns = {"src", "dst", "time"}}, "t.tsv:2");
  refuse({.edges = {dir_ / "t.tsv"},
          .arrays = {{.name = "s", .path = dir_ / "s.tsv", .dim = 3, .triplets = true}},
          .columns = {"src", "dst", "-"}},
         "row 0, column 1 is repeated");
}

// Cancels the ingestion at the first report of each phase. No file may be left.
TEST_F(IngestSpilledTest, CancellingAtAnyPhaseLeavesNothing) {
  std::mt19937_64 random(testing::TestSeed());
  RandomInput input(random, Ids::kStrings, dir_);
  IngestOptions options = input.Make(300, 2000);
  options.spill = IngestOptions::Spill::kAlways;
  options.build.partition.partitions = 2;
  std::vector<std::string> phases;
  JobControl listen([&](const JobControl::Progress& progress) {
    if (std::find(phases.begin(), phases.end(), progress.phase) == phases.end())
      phases.emplace_back(progress.phase);
  });
  ASSERT_OK(Ingest(FileSystem::Posix(), dir_ / "all.rz", options, listen));
  EXPECT_GE(phases.size(), 9U);
  for (const std::string& stop : phases) {
    JobControl* self = nullptr;
    JobControl control([&](const JobControl::Progress& progress) {
      if (progress.phase == stop) self->Cancel();
    });
    self = &control;
    EXPECT_STATUS(Ingest(FileSystem::Posix(), dir_ / "g.rz", options, control), kInterrupted);
    EXPECT_FALSE(std::filesystem::exists(dir_ / "g.rz")) << stop;
  }
}

// --- Edge attributes

TEST_F(IngestSpilledTest, AttributesStandAtTheirEdgesIds) {
  std::mt19937_64 random(testing::TestSeed());
  std::string text;
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::int64_t>> times;
  for (int e = 0; e < 500; ++e) {
    const auto src = static_cast<std::int64_t>(random() % 20);
    const auto dst = static_cast<std::int64_t>(random() % 20);
    text += fmt::format("{}\t{}\t{}\n", src, dst, e);
    times[{src, dst}].push_back(e);
  }
  WriteInput(dir_ / "e.tsv", text);
  IngestOptions options{
      .edges = {dir_ / "e.tsv"}, .columns = {"src", "dst", "time"}, .vertices = 20};
  options.build.partition.partitions = 3;
  ASSERT_OK(Run("g.rz", options, IngestOptions::Spill::kNever, 0));
  auto store = Store::Open(FileSystem::Posix(), dir_ / "g.rz", Store::Mode::kRead);
  ASSERT_OK(store);
  const auto graph = Graph::Open(std::as_const(**store));
  ASSERT_OK(graph);
  std::uint64_t seen = 0;
  for (std::uint32_t p = 0; p < 3; ++p) {
    const auto array = (*store)->OpenArray(EdgeArrayName("time", p));
    ASSERT_OK(array);
    const Adjacency& part = (*graph)->partition(p);
    ASSERT_EQ((*array)->entry().rows, part.edge_count());
    ASSERT_EQ((*array)->entry().dtype, DataType::kInt64);
    std::vector<std::int64_t> values(part.edge_count());
    ASSERT_OK((*array)->ReadRows(0, values.size(), std::as_writable_bytes(std::span(values))));
    for (LocalId local = 0; local < part.vertex_count(); ++local) {
      const auto list = part.Neighbors(local, Direction::kOut);
      for (std::size_t i = 0; i < list.neighbors.size(); ++i) {
        const std::pair ends = {*(*graph)->VertexAt(part.RowOf(local)),
                                *(*graph)->VertexAt(part.RowOf(list.neighbors[i]))};
        auto& left = times[ends];
        const auto found = std::find(left.begin(), left.end(), values[list.first + i]);
        ASSERT_NE(found, left.end()) << ends.first << " -> " << ends.second;
        left.erase(found);
        ++seen;
      }
    }
  }
  EXPECT_EQ(seen, 500U);
}

}  // namespace
}  // namespace rhizome
